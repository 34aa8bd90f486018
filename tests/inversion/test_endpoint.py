"""The OpenAI-compatible recogniser, over a real loopback server."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from inversion.asr import recogniser
from inversion.config import AsrConfig, InversionConfig
from inversion.endpoint import EndpointRecogniser, EndpointRefused
from inversion.listen import finish
from media.audio import read_wav
from schemas.errors import ConfigInvalid, EndpointFailed

SECOND = np.full(16_000, 0.25, dtype=np.float32)


@dataclass
class Service:
    """What the server answers and what it was asked."""

    url: str = ""
    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    promised: int = 0
    """Bytes announced beyond those that are sent."""
    delay_s: float = 0.0
    asked: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)


@pytest.fixture
def service() -> Iterator[Service]:
    state = Service()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            state.asked.append((self.path, dict(self.headers.items()), data))
            self.send_response(state.status)
            for name, value in state.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(state.body) + state.promised))
            self.end_headers()
            time.sleep(state.delay_s)
            with contextlib.suppress(OSError):  # whoever asked may have gone
                self.wfile.write(state.body)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield state
    server.shutdown()
    server.server_close()


def engine(service: Service, **more: Any) -> EndpointRecogniser:
    found = recogniser(AsrConfig(engine="endpoint", endpoint_url=service.url, endpoint_model="whisper-1", **more))
    assert isinstance(found, EndpointRecogniser)
    return found


def test_a_window_is_posted_as_wav_and_the_answer_becomes_words(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASR_KEY", "s3cret")
    service.body = json.dumps(
        {
            "language": "english",
            "text": "Hi there.",
            "segments": [{"id": 0, "start": 0.0, "end": 0.9, "text": " Hi there.", "avg_logprob": -0.2, "no_speech_prob": 0.01}],
            "words": [{"word": "Hi", "start": 0.1, "end": 0.3}, {"word": "there", "start": 0.4, "end": 0.8}],
        }
    ).encode()
    found = engine(service, endpoint_key_env="ASR_KEY").recognise(SECOND, "en")
    assert [(w.text, w.start_us, w.end_us) for w in found.segments[0].words] == [("Hi", 100_000, 300_000), ("there.", 400_000, 800_000)]
    assert found.language == "en"
    path, headers, data = service.asked[0]
    assert path == "/v1/audio/transcriptions"
    assert headers["Authorization"] == "Bearer s3cret"
    assert b'name="response_format"\r\n\r\nverbose_json' in data
    assert b'name="language"\r\n\r\nen' in data
    sound, rate = read_wav(data[data.index(b"RIFF") : data.rindex(b"\r\n--")])
    assert (len(sound), rate) == (16_000, 16_000)


def test_a_plain_answer_without_times_lies_in_its_window(service: Service) -> None:
    service.body = b'{"text": "Hello."}'
    (segment,) = engine(service).recognise(SECOND, None).segments
    assert (segment.text, segment.start_us, segment.end_us) == ("Hello.", 0, 1_000_000)


def test_an_empty_answer_is_silence(service: Service) -> None:
    service.body = b'{"text": "", "segments": []}'
    assert engine(service).recognise(SECOND, "en").segments == ()


@pytest.mark.parametrize(
    ("status", "body", "error", "code"),
    [
        (500, b"oops", EndpointFailed, "endpoint_status"),
        (429, b"slow down", EndpointFailed, "endpoint_status"),
        (401, b"no", EndpointRefused, "endpoint_status"),
        (200, b"<html>", EndpointFailed, "endpoint_protocol"),
        (200, b"[1, 2]", EndpointFailed, "endpoint_protocol"),
        (200, b"", EndpointFailed, "endpoint_protocol"),
        (200, b"\xff\xfe\x00", EndpointFailed, "endpoint_protocol"),
        (200, b'{"error": {"message": "model is loading"}}', EndpointFailed, "endpoint_protocol"),
        (503, b'{"error": "overloaded"}', EndpointFailed, "endpoint_status"),
        (408, b"", EndpointFailed, "endpoint_status"),
        (404, b"no such model", EndpointRefused, "endpoint_status"),
        (302, b"", EndpointRefused, "endpoint_status"),
    ],
)
def test_failures_are_typed(service: Service, status: int, body: bytes, error: type[EndpointFailed], code: str) -> None:
    service.status, service.body = status, body
    service.headers = {"Location": "http://127.0.0.1:1/elsewhere"} if status == 302 else {}
    with pytest.raises(EndpointFailed) as caught:
        engine(service).recognise(SECOND, "en")
    assert (type(caught.value), caught.value.code) == (error, code)


def test_an_answer_that_is_cut_off(service: Service) -> None:
    service.body, service.promised = b'{"text": "Hel', 50
    with pytest.raises(EndpointFailed) as caught:
        engine(service).recognise(SECOND, "en")
    assert (type(caught.value), caught.value.code) == (EndpointFailed, "endpoint_unreachable")


def test_an_answer_that_does_not_come(service: Service) -> None:
    service.body, service.delay_s = b'{"text": "Hello."}', 3.0
    with pytest.raises(EndpointFailed) as caught:
        engine(service, endpoint_timeout_s=1).recognise(SECOND, "en")
    assert (type(caught.value), caught.value.code) == (EndpointFailed, "endpoint_unreachable")


def test_an_answer_without_end_is_not_read_to_its_end(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inversion.endpoint._MOST_BYTES", 1_000)
    service.body = b'{"text": "' + b"a" * 5_000 + b'"}'
    with pytest.raises(EndpointFailed) as caught:
        engine(service).recognise(SECOND, "en")
    assert caught.value.code == "endpoint_protocol"


@pytest.mark.parametrize(
    ("start", "end"),
    [(-1.0, 0.5), (0.9, 0.2), ("0.1", "0.6"), (None, None), (1e308, float("inf")), (float("nan"), float("nan")), ([], {}), (True, False)],
)
def test_times_that_make_no_sense_lose_no_words(service: Service, start: object, end: object) -> None:
    """Whatever the server dates, the words come through the last guards inside the sound, in order."""
    service.body = json.dumps({"text": "Hi.", "segments": [{"start": start, "end": end, "text": "Hi."}]}).encode()
    found = finish(engine(service).recognise(SECOND, "en").segments, 1_000_000, InversionConfig())
    words = [w for s in found for w in s.words]
    assert [w.text for w in words] == ["Hi."]
    assert all(0 <= (w.start_us or 0) < (w.end_us or 0) <= 1_000_000 for w in words)


def test_a_server_that_is_not_there_is_unreachable() -> None:
    with pytest.raises(EndpointFailed) as caught:
        EndpointRecogniser(AsrConfig(engine="endpoint", endpoint_url="http://127.0.0.1:9/v1")).recognise(SECOND, "en")
    assert caught.value.code == "endpoint_unreachable"


@pytest.mark.parametrize("url", [None, "file:///etc/passwd", "ftp://host/v1", "http://user:pw@host/v1", "nonsense"])
def test_only_plain_web_addresses_are_accepted(url: str | None) -> None:
    with pytest.raises(ConfigInvalid):
        recogniser(AsrConfig(engine="endpoint", endpoint_url=url))
