"""The OpenAI-compatible recogniser, over a real loopback server."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from inversion.asr import recogniser
from inversion.config import AsrConfig, InversionConfig
from inversion.endpoint import EndpointRecogniser
from inversion.listen import finish
from media.audio import read_wav
from schemas.errors import ConfigInvalid, EndpointFailed, EndpointRefused
from tests.media.servers import Reply, serve

SECOND = np.full(16_000, 0.25, dtype=np.float32)


def engine(url: str, **more: Any) -> EndpointRecogniser:
    found = recogniser(AsrConfig(engine="endpoint", endpoint_url=url, endpoint_model="whisper-1", **more))
    assert isinstance(found, EndpointRecogniser)
    found._client._sleep = lambda _: None
    return found


def test_a_window_is_posted_as_wav_and_the_answer_becomes_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASR_KEY", "s3cret")
    answer = {
        "language": "english",
        "text": "Hi there.",
        "segments": [{"id": 0, "start": 0.0, "end": 0.9, "text": " Hi there.", "avg_logprob": -0.2, "no_speech_prob": 0.01}],
        "words": [{"word": "Hi", "start": 0.1, "end": 0.3}, {"word": "there", "start": 0.4, "end": 0.8}],
    }
    with serve([Reply(json.dumps(answer).encode())]) as server:
        found = engine(server.url, endpoint_key_env="ASR_KEY").recognise(SECOND, "en")
    assert [(w.text, w.start_us, w.end_us) for w in found.segments[0].words] == [("Hi", 100_000, 300_000), ("there.", 400_000, 800_000)]
    assert found.language == "en"
    assert server.paths == ["/v1/audio/transcriptions"]
    assert server.headers[0]["Authorization"] == "Bearer s3cret"
    data = server.requests[0]["bytes"]
    assert b'name="response_format"\r\n\r\nverbose_json' in data
    assert data.count(b'name="timestamp_granularities[]"') == 2
    assert b'name="language"\r\n\r\nen' in data
    sound, rate = read_wav(data[data.index(b"RIFF") : data.rindex(b"\r\n--")])
    assert (len(sound), rate) == (16_000, 16_000)


def test_a_plain_answer_without_times_lies_in_its_window() -> None:
    with serve([Reply(b'{"text": "Hello."}')]) as server:
        (segment,) = engine(server.url).recognise(SECOND, None).segments
    assert (segment.text, segment.start_us, segment.end_us) == ("Hello.", 0, 1_000_000)


def test_an_empty_answer_is_silence() -> None:
    with serve([Reply(b'{"text": "", "segments": []}')]) as server:
        assert engine(server.url).recognise(SECOND, "en").segments == ()


@pytest.mark.parametrize(
    ("reply", "error", "code", "asked"),
    [
        (Reply(b"oops", 500), EndpointFailed, "endpoint_status", 3),
        (Reply(b"slow down", 429), EndpointFailed, "endpoint_status", 3),
        (Reply(b"no", 401), EndpointRefused, "endpoint_status", 1),
        (Reply(b"<html>"), EndpointFailed, "endpoint_protocol", 3),
        (Reply(b"[1, 2]"), EndpointFailed, "endpoint_protocol", 3),
        (Reply(b""), EndpointFailed, "endpoint_protocol", 3),
        (Reply(b"\xff\xfe\x00"), EndpointFailed, "endpoint_protocol", 3),
        (Reply(b"[" * 100_000), EndpointFailed, "endpoint_protocol", 3),
        (Reply(b'{"error": {"message": "model is loading"}}'), EndpointFailed, "endpoint_protocol", 3),
        (Reply(b'{"text": "Hello.", "segments": []}', cut=13), EndpointFailed, "endpoint_unreachable", 3),
    ],
    ids=["500", "429", "401", "html", "numbers", "empty", "no text", "deep", "loading", "cut"],
)
def test_failures_are_typed(reply: Reply, error: type[EndpointFailed], code: str, asked: int) -> None:
    with serve([reply]) as server, pytest.raises(EndpointFailed) as caught:
        engine(server.url).recognise(SECOND, "en")
    assert (type(caught.value), caught.value.code, len(server.requests)) == (error, code, asked)


def test_a_server_that_stumbles_is_asked_again() -> None:
    with serve([Reply(b"loading", 503), Reply(b'{"text": "Hello."}')]) as server:
        assert engine(server.url).recognise(SECOND, "en").segments[0].text == "Hello."


@pytest.mark.parametrize(
    ("start", "end"),
    [(-1.0, 0.5), (0.9, 0.2), ("0.1", "0.6"), (None, None), (1e308, float("inf")), (float("nan"), float("nan")), ([], {}), (True, False)],
)
def test_times_that_make_no_sense_lose_no_words(start: object, end: object) -> None:
    """Whatever the server dates, the words come through the last guards inside the sound, in order."""
    answer = json.dumps({"text": "Hi.", "segments": [{"start": start, "end": end, "text": "Hi."}]}).encode()
    with serve([Reply(answer)]) as server:
        found = finish(engine(server.url).recognise(SECOND, "en").segments, 1_000_000, InversionConfig())
    words = [w for s in found for w in s.words]
    assert [w.text for w in words] == ["Hi."]
    assert all(0 <= (w.start_us or 0) < (w.end_us or 0) <= 1_000_000 for w in words)


@pytest.mark.parametrize("url", [None, "file:///etc/passwd", "ftp://host/v1", "http://user:pw@host/v1", "nonsense"])
def test_only_plain_web_addresses_are_accepted(url: str | None) -> None:
    with pytest.raises(ConfigInvalid):
        recogniser(AsrConfig(engine="endpoint", endpoint_url=url))
