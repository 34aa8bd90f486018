"""Captions from a vision model, over a real loopback server, well and badly behaved."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.studio.edit import Cutaway, frames
from evaluation.studio.scenes import Slide, TextLine
from inversion.config import EvidenceConfig, InversionConfig
from inversion.evidence import gather_evidence
from inversion.shots import detect_shots
from inversion.vision import LONGEST, EndpointDescriber, caption_of, describer
from media.images import decode_image
from media.probe import probe
from media.sandbox import open_sandbox
from schemas.errors import ConfigInvalid, EndpointFailed, EndpointRefused
from schemas.storyboard import Evidence
from storage.artifacts import ArtifactStore
from tests.inversion.films import SIZE, encode
from tests.media.servers import Reply, Server, serve


def said(text: object) -> Reply:
    return Reply(json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode())


def eye(server: Server, **more: Any) -> EndpointDescriber:
    return EndpointDescriber(EvidenceConfig(caption_endpoint_url=server.url, caption_endpoint_model="looker", **more))


def evidence_of(server: Server, folder: Path) -> list[Evidence]:
    sandbox = open_sandbox()
    edit = [Cutaway(Slide(c, (TextLine("Chapter", 0.2, 0.3, 0.2),)), 20) for c in ((20, 20, 30), (200, 60, 40))]
    path = encode(sandbox, folder / "film.mp4", frames(edit, SIZE))
    info = probe(path, sandbox)
    config = InversionConfig(evidence=EvidenceConfig(caption_endpoint_url=server.url, caption_requests=1))
    track = detect_shots(path, info, sandbox, config)
    assert len(track.shots) == 2
    return gather_evidence(path, info, sandbox, track.shots, None, ArtifactStore(folder / "store"), config)


def test_the_still_is_sent_and_the_answer_is_the_caption(tmp_path: Path) -> None:
    with serve([said("A dark card with one word."), said("A red card with one word.")]) as server:
        found = evidence_of(server, tmp_path)
    assert [(e.caption, e.caption_source) for e in found] == [
        ("A dark card with one word.", "endpoint"),
        ("A red card with one word.", "endpoint"),
    ]
    assert server.paths[0] == "/v1/chat/completions"
    url = server.requests[0]["messages"][0]["content"][1]["image_url"]["url"]
    assert decode_image(base64.b64decode(url.removeprefix("data:image/jpeg;base64,"))).shape == (108, 192, 3)


def test_a_shot_the_model_says_nothing_of_keeps_its_composed_caption(tmp_path: Path) -> None:
    with serve([said(""), said("A red card.")]) as server:
        first, second = evidence_of(server, tmp_path)
    assert first.caption_source == "composed"
    assert first.caption.startswith("Dark still")
    assert (second.caption, second.caption_source) == ("A red card.", "endpoint")


def test_the_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EYE_KEY", "s3cret")
    with serve([said("A card.")]) as server:
        eye(server, caption_endpoint_key_env="EYE_KEY").describe(b"x")
    assert server.headers[0]["Authorization"] == "Bearer s3cret"


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


def test_an_answer_in_parts_is_joined() -> None:
    with serve([said([{"type": "text", "text": "A man"}, {"type": "text", "text": "at a desk."}])]) as server:
        assert eye(server).describe(b"x") == "A man at a desk."


@pytest.mark.parametrize("body", [b"<html>busy</html>", b"{}", b'{"choices": []}', b"[" * 100_000, b""])
def test_an_answer_outside_the_protocol_is_a_fault_of_the_server(body: bytes) -> None:
    with serve([Reply(body)]) as server:
        found = eye(server)
        found._client._sleep = lambda _: None
        with pytest.raises(EndpointFailed) as raised:
            found.describe(b"x")
    assert raised.value.code == "endpoint_protocol"
    assert len(server.requests) == 4


def test_a_passing_fault_is_asked_again() -> None:
    with serve([Reply(b"loading", 503, {"Retry-After": "0"}), said("A card.")]) as server:
        assert eye(server).describe(b"x") == "A card."


def test_a_refusal_is_not_asked_again() -> None:
    with serve([Reply(b"no key", 401)]) as server, pytest.raises(EndpointRefused):
        eye(server).describe(b"x")
    assert len(server.requests) == 1


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/v1", "file:///etc/passwd", "http://user:word@127.0.0.1/v1"])
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(ConfigInvalid):
        EndpointDescriber(EvidenceConfig(caption_endpoint_url=url))
