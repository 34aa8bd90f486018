"""Speech engines in the real sandbox, and the endpoint over loopback."""

from __future__ import annotations

import io
import json
import threading
import wave
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from media.command import Sandbox
from media.sandbox import open_sandbox
from replay.config import SpeechConfig
from replay.sound import pcm16
from replay.speech import EndpointSpeech, FliteSpeech, open_speech
from schemas.errors import ConfigInvalid, EndpointFailed, EngineMissing


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    return open_sandbox()


def rms(samples: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(samples, dtype=np.float64))))


def test_flite_speaks_and_repeats(sandbox: Sandbox) -> None:
    engine = FliteSpeech(sandbox)
    one, rate = engine.speak("The bridge was never used.", "en", "slt", 1.0)
    two, _ = engine.speak("The bridge was never used.", "en", "slt", 1.0)
    assert rate == 16_000
    assert 1.0 < len(one) / rate < 3.0
    assert rms(one) > 0.02
    assert np.array_equal(one, two)


def test_flite_reads_hostile_text_as_words(sandbox: Sandbox) -> None:
    engine = FliteSpeech(sandbox)
    one, _ = engine.speak("':voice=kal,aevalsrc=0;[x] \\ %{pts} café", "en", "slt", 1.0)
    assert len(one) > 8_000


def test_flite_has_nothing_to_say_for_a_dash(sandbox: Sandbox) -> None:
    assert len(FliteSpeech(sandbox).speak("— … 桥", "en", "slt", 1.0)[0]) == 0


def test_flite_speaks_faster(sandbox: Sandbox) -> None:
    engine = FliteSpeech(sandbox)
    text = "The bridge was never used by anybody at all."
    assert len(engine.speak(text, "en", "slt", 1.5)[0]) < 0.75 * len(engine.speak(text, "en", "slt", 1.0)[0])


@pytest.mark.parametrize(("language", "wanted", "code"), [("zh", "default", "language_without_voice"), ("en", "nobody", "unknown_voice")])
def test_flite_refuses_what_it_cannot_speak(sandbox: Sandbox, language: str, wanted: str, code: str) -> None:
    with pytest.raises(EngineMissing) as error:
        FliteSpeech(sandbox).voice_for(language, wanted)
    assert error.value.code == code


class Server(ThreadingHTTPServer):
    """A speech server that answers as it is told, in order."""

    answers: list[tuple[int, bytes]]
    asked: list[dict[str, Any]]
    keys: list[str | None]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        self.server.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.server.keys.append(self.headers.get("Authorization"))
        status, body = self.server.answers.pop(0)
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        return


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server(("127.0.0.1", 0), Handler)
    made.answers, made.asked, made.keys = [], [], []
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def speech(server: Server, sandbox: Sandbox) -> EndpointSpeech:
    return EndpointSpeech(f"http://127.0.0.1:{server.server_address[1]}/v1", "tts-1", sandbox, wait_s=0.01)


def tone_wav() -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(48_000)
        file.writeframes(pcm16((0.4 * np.sin(np.arange(48_000) / 20)).astype(np.float32)))
    return out.getvalue()


def test_an_endpoint_is_asked_and_its_sound_decoded(server: Server, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKPRINT_SPEECH_API_KEY", "k")
    server.answers = [(200, tone_wav())]
    samples, rate = speech(server, sandbox).speak("Hello  there.", "en", "alloy", 1.25)
    assert (rate, round(len(samples) / rate, 2)) == (24_000, 1.0)
    assert server.asked == [{"model": "tts-1", "input": "Hello there.", "voice": "alloy", "speed": 1.25, "response_format": "wav"}]
    assert server.keys == ["Bearer k"]


def test_an_endpoint_that_stumbles_is_asked_again(server: Server, sandbox: Sandbox) -> None:
    server.answers = [(500, b"no"), (429, b"slow"), (200, tone_wav())]
    assert len(speech(server, sandbox).speak("Hello.", "en", "alloy", 1.0)[0]) > 0
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("answers", "code", "asked"),
    [
        ([(401, b"who")], "refused", 1),
        ([(503, b""), (503, b""), (503, b"")], "no_answer", 3),
        ([(200, b"<html>sorry</html>")], "answer_not_sound", 1),
        ([(200, b"")], "answer_not_sound", 1),
    ],
)
def test_what_an_endpoint_does_wrong_is_named(
    server: Server, sandbox: Sandbox, answers: list[tuple[int, bytes]], code: str, asked: int
) -> None:
    server.answers = list(answers)
    with pytest.raises(EndpointFailed) as error:
        speech(server, sandbox).speak("Hello.", "en", "alloy", 1.0)
    assert (error.value.code, len(server.asked)) == (code, asked)


def test_an_endpoint_needs_an_address(sandbox: Sandbox) -> None:
    with pytest.raises(ConfigInvalid):
        open_speech(SpeechConfig(engine="endpoint"), sandbox)
    with pytest.raises(ConfigInvalid):
        EndpointSpeech("file:///etc/passwd", "m", sandbox)


def kokoro(sandbox: Sandbox) -> Any:
    try:
        return open_speech(SpeechConfig(engine="kokoro"), sandbox)
    except EngineMissing as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize(
    ("language", "wanted", "voice"), [("en", "default", "af_heart"), ("en-GB", "bm_george", "bm_george"), ("zh", "default", "zf_xiaoxiao")]
)
def test_kokoro_voices(sandbox: Sandbox, language: str, wanted: str, voice: str) -> None:
    assert kokoro(sandbox).voice_for(language, wanted) == voice


@pytest.mark.parametrize(
    ("language", "wanted", "code"),
    [
        ("ru", "default", "language_without_voice"),
        ("en", "../af_heart", "unknown_voice"),
        ("en", "af_nobody", "unknown_voice"),
        ("zh", "af_heart", "voice_of_another_language"),
    ],
)
def test_kokoro_refuses_voices(sandbox: Sandbox, language: str, wanted: str, code: str) -> None:
    with pytest.raises(EngineMissing) as error:
        kokoro(sandbox).voice_for(language, wanted)
    assert error.value.code == code


@pytest.mark.parametrize(
    ("text", "language", "part"),
    [("The bridge.", "en", "bɹˈɪʤ"), ("桥。", "zh", "ʨʰjau↗"), ("用 GPU 训练。", "zh", "ʤˌipˌijˈu"), ("— …", "en", "")],
)
def test_sounds_of_texts(text: str, language: str, part: str) -> None:
    from replay.kokoro import phonemes, symbol_ids

    pytest.importorskip("misaki.zh") if language == "zh" else None
    found = phonemes(text, language)
    assert part in found
    assert len(symbol_ids(found)) == len(found) if part else not found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "language", "words"),
    [
        ("The old bridge was built in nineteen seventy four. Nobody ever used it.", "en", ["bridge", "built", "nobody", "used"]),
        ("这座桥是一九七四年建成的，但是从来没有人使用过。", "zh", ["桥", "没有人", "使用"]),
    ],
)
def test_kokoro_is_understood_by_a_recogniser(sandbox: Sandbox, text: str, language: str, words: list[str]) -> None:
    from faster_whisper import WhisperModel

    from media.assets import asset
    from replay.sound import resample

    engine = kokoro(sandbox)
    samples, rate = engine.speak(text, language, engine.voice_for(language, "default"), 1.0)
    again, _ = engine.speak(text, language, engine.voice_for(language, "default"), 1.0)
    assert np.array_equal(samples, again)
    model = WhisperModel(str(asset("whisper-base")), device="cpu", compute_type="int8", cpu_threads=1)
    segments, _ = model.transcribe(resample(samples, rate, 16_000), language=language, beam_size=1, condition_on_previous_text=False)
    heard = " ".join(s.text for s in segments).lower()
    assert [w for w in words if w not in heard] == []
