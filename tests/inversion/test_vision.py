"""Captions from a vision model, over a real loopback server, well and badly behaved."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from evaluation.studio.edit import Cutaway, frames
from evaluation.studio.scenes import Slide, TextLine
from inversion.config import EvidenceConfig, InversionConfig
from inversion.evidence import gather_evidence
from inversion.shots import detect_shots
from inversion.vision import LONGEST, EndpointDescriber, caption_of, describer
from media.endpoint import EndpointRefused
from media.images import decode_image
from media.probe import probe
from media.sandbox import open_sandbox
from schemas.errors import ConfigInvalid, EndpointFailed
from schemas.storyboard import Evidence
from storage.artifacts import ArtifactStore
from tests.inversion.films import SIZE, encode


@dataclass
class Service:
    """What the server answers, in turn, and what it was asked."""

    url: str = ""
    answers: list[tuple[int, bytes]] = field(default_factory=list)
    asked: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)


def said(text: object) -> bytes:
    return json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode()


@pytest.fixture
def service() -> Iterator[Service]:
    state = Service()
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                state.asked.append((self.path, dict(self.headers.items()), data))
                status, body = state.answers[min(len(state.asked), len(state.answers)) - 1]
            self.send_response(status)
            self.send_header("Retry-After", "0")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield state
    server.shutdown()
    server.server_close()


def eye(service: Service, **more: Any) -> EndpointDescriber:
    return EndpointDescriber(EvidenceConfig(caption_endpoint_url=service.url, caption_endpoint_model="looker", **more))


def evidence_of(service: Service, folder: Path) -> list[Evidence]:
    sandbox = open_sandbox()
    edit = [Cutaway(Slide(c, (TextLine("Chapter", 0.2, 0.3, 0.2),)), 20) for c in ((20, 20, 30), (200, 60, 40))]
    path = encode(sandbox, folder / "film.mp4", frames(edit, SIZE))
    info = probe(path, sandbox)
    config = InversionConfig(evidence=EvidenceConfig(caption_endpoint_url=service.url, caption_requests=1))
    track = detect_shots(path, info, sandbox, config)
    assert len(track.shots) == 2
    return gather_evidence(path, info, sandbox, track.shots, None, ArtifactStore(folder / "store"), config)


def test_the_still_is_sent_and_the_answer_is_the_caption(service: Service, tmp_path: Path) -> None:
    service.answers = [(200, said("A dark card with one word.")), (200, said("A red card with one word."))]
    found = evidence_of(service, tmp_path)
    assert [(e.caption, e.caption_source) for e in found] == [
        ("A dark card with one word.", "endpoint"),
        ("A red card with one word.", "endpoint"),
    ]
    path, _, body = service.asked[0]
    assert path == "/v1/chat/completions"
    url = body["messages"][0]["content"][1]["image_url"]["url"]
    assert decode_image(base64.b64decode(url.removeprefix("data:image/jpeg;base64,"))).shape == (108, 192, 3)


def test_a_shot_the_model_says_nothing_of_keeps_its_composed_caption(service: Service, tmp_path: Path) -> None:
    service.answers = [(200, said("")), (200, said("A red card."))]
    first, second = evidence_of(service, tmp_path)
    assert first.caption_source == "composed"
    assert first.caption.startswith("Dark still")
    assert (second.caption, second.caption_source) == ("A red card.", "endpoint")


def test_the_key_comes_from_the_environment(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EYE_KEY", "s3cret")
    service.answers = [(200, said("A card."))]
    eye(service, caption_endpoint_key_env="EYE_KEY").describe(b"x")
    assert service.asked[0][1]["Authorization"] == "Bearer s3cret"


def test_without_an_address_nothing_is_asked() -> None:
    assert describer(EvidenceConfig()) is None


@pytest.mark.parametrize(
    ("words", "caption"),
    [
        ("  A man   at a desk.\n", "A man at a desk."),
        ('"A man at a desk."', "A man at a desk."),
        ("<think>Perhaps a cat?</think> A man at a desk.", "A man at a desk."),
        ("<think>never ends", None),
        ("**A man at a desk.**", "A man at a desk."),
        ("A man\u202e at\x00 a desk.", "A man at a desk."),
        ("", None),
        ("...", None),
    ],
)
def test_what_becomes_of_a_models_words(words: str, caption: str | None) -> None:
    assert caption_of(words) == caption


def test_a_long_answer_is_cut() -> None:
    got = caption_of("word " * 500)
    assert got is not None
    assert len(got) <= LONGEST
    assert got.endswith("word…")


def test_an_answer_in_parts_is_joined(service: Service) -> None:
    service.answers = [(200, said([{"type": "text", "text": "A man"}, {"type": "text", "text": "at a desk."}]))]
    assert eye(service).describe(b"x") == "A man at a desk."


@pytest.mark.parametrize("body", [b"<html>busy</html>", b"{}", b'{"choices": []}', b"[" * 100_000, b""])
def test_an_answer_outside_the_protocol_is_a_fault_of_the_server(service: Service, body: bytes) -> None:
    service.answers = [(200, body)]
    found = eye(service)
    found._client._sleep = lambda _: None
    with pytest.raises(EndpointFailed) as raised:
        found.describe(b"x")
    assert raised.value.code == "endpoint_protocol"
    assert len(service.asked) == 4


def test_a_passing_fault_is_asked_again(service: Service) -> None:
    service.answers = [(503, b"loading"), (200, said("A card."))]
    assert eye(service).describe(b"x") == "A card."


def test_a_refusal_is_not_asked_again(service: Service) -> None:
    service.answers = [(401, b"no key")]
    with pytest.raises(EndpointRefused):
        eye(service).describe(b"x")
    assert len(service.asked) == 1


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/v1", "file:///etc/passwd", "http://user:word@127.0.0.1/v1"])
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(ConfigInvalid):
        EndpointDescriber(EvidenceConfig(caption_endpoint_url=url))
