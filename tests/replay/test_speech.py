"""Speech engines in the real sandbox, and the endpoint over loopback."""

from __future__ import annotations

import contextlib
import io
import json
import socket
import threading
import time
import wave
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from media.command import Sandbox
from media.ffmpeg import run_ffmpeg
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


@dataclass(frozen=True)
class Answer:
    """What a server sends. ``promised``: bytes its header speaks of, if not those it sends; ``drip_s``: pause before every byte."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    promised: int | None = None
    drip_s: float = 0.0


class Server(ThreadingHTTPServer):
    """A speech server that answers as it is told, in order."""

    daemon_threads = True
    answers: list[Answer]
    asked: list[dict[str, Any]]
    keys: list[str | None]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        self.server.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.server.keys.append(self.headers.get("Authorization"))
        answer = self.server.answers.pop(0)
        self.send_response(answer.status)
        for name, value in answer.headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body) if answer.promised is None else answer.promised))
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            if not answer.drip_s:
                self.wfile.write(answer.body)
            for n in range(len(answer.body) if answer.drip_s else 0):
                time.sleep(answer.drip_s)
                self.wfile.write(answer.body[n : n + 1])

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


def wav(rate: int = 48_000, channels: int = 1, seconds: float = 1.0, level: float = 0.4) -> bytes:
    out = io.BytesIO()
    samples = level * np.sin(np.arange(round(seconds * rate)) * 2 * np.pi * 400 / rate)
    with wave.open(out, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(pcm16(np.repeat(samples.astype(np.float32), channels)))
    return out.getvalue()


def with_sizes(data: bytes, size: int) -> bytes:
    """The header of a WAV file that is sent before its length is known."""
    return data[:4] + size.to_bytes(4, "little") + data[8:40] + size.to_bytes(4, "little") + data[44:]


TONE = wav()


def test_an_endpoint_is_asked_and_its_sound_decoded(server: Server, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKPRINT_SPEECH_API_KEY", "k")
    server.answers = [Answer(200, TONE)]
    samples, rate = speech(server, sandbox).speak("Hello  there.", "en", "alloy", 1.25)
    assert (rate, round(len(samples) / rate, 2)) == (24_000, 1.0)
    assert server.asked == [{"model": "tts-1", "input": "Hello there.", "voice": "alloy", "speed": 1.25, "response_format": "wav"}]
    assert server.keys == ["Bearer k"]


def test_an_endpoint_gets_the_text_as_it_is_written(server: Server, sandbox: Sandbox) -> None:
    server.answers = [Answer(200, TONE)]
    speech(server, sandbox).speak("At 10:30 it cost ¥100.", "en", "alloy", 1.0)
    assert server.asked[0]["input"] == "At 10:30 it cost ¥100."


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        (wav(44_100, 2), 1.0),
        (wav(8_000), 1.0),
        (with_sizes(TONE, 0xFFFF_FFFF), 1.0),
        (with_sizes(TONE, 0), 1.0),
        (wav(level=0.0), 0.0),
        (wav(seconds=0.0), 0.0),
    ],
    ids=["stereo", "telephone", "streamed", "streamed, zero", "silence", "nothing"],
)
def test_forms_of_sound_that_servers_send(server: Server, sandbox: Sandbox, body: bytes, seconds: float) -> None:
    server.answers = [Answer(200, body)]
    samples, rate = speech(server, sandbox).speak("Hello.", "en", "alloy", 1.0)
    assert round(len(samples) / rate, 2) == pytest.approx(seconds, abs=0.02)


@pytest.mark.parametrize("codec", ["libmp3lame", "flac"])
def test_a_server_that_sends_another_format_is_understood(server: Server, sandbox: Sandbox, tmp_path: Path, codec: str) -> None:
    name = {"libmp3lame": "a.mp3", "flac": "a.flac"}[codec]
    argv = ("-f", "lavfi", "-i", "sine=frequency=300:duration=1", "-c:a", codec, f"/out/{name}")
    done = run_ffmpeg(argv, outputs=(name,), sandbox=sandbox, workdir=tmp_path)
    server.answers = [Answer(200, done.outputs[name].read_bytes())]
    samples, rate = speech(server, sandbox).speak("Hello.", "en", "alloy", 1.0)
    assert len(samples) / rate == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize(
    "stumbles",
    [
        [Answer(500, b"no"), Answer(429, b"slow")],
        [Answer(200, TONE[:20_000])],
        [Answer(200, TONE[:20_000], promised=len(TONE))],
        [Answer(502, b"<html>bad gateway</html>"), Answer(408)],
    ],
    ids=["busy", "cut file", "cut connection", "gateway"],
)
def test_an_endpoint_that_stumbles_is_asked_again(server: Server, sandbox: Sandbox, stumbles: list[Answer]) -> None:
    server.answers = [*stumbles, Answer(200, TONE)]
    samples, rate = speech(server, sandbox).speak("Hello.", "en", "alloy", 1.0)
    assert round(len(samples) / rate, 2) == 1.0
    assert len(server.asked) == len(stumbles) + 1


@pytest.mark.parametrize(
    ("answer", "code", "asked"),
    [
        (Answer(401, b"who"), "refused", 1),
        (Answer(404), "refused", 1),
        (Answer(302, headers=(("Location", "file:///etc/passwd"),)), "refused", 1),
        (Answer(503), "no_answer", 3),
        (Answer(200, TONE[:20_000]), "no_answer", 3),
        (Answer(200, TONE[:30]), "no_answer", 3),
        (Answer(200, TONE[:20_000], promised=len(TONE)), "no_answer", 3),
        (Answer(200, TONE, drip_s=0.05), "no_answer", 3),
        (Answer(200, b"<html>sorry</html>"), "answer_not_sound", 1),
        (Answer(200, b'{"error": {"message": "no such voice"}}'), "answer_not_sound", 1),
        (Answer(200), "answer_not_sound", 1),
        (Answer(200, TONE[:24] + bytes(4) + TONE[28:]), "answer_not_sound", 1),
        (Answer(200, b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n"), "answer_not_sound", 1),
        (Answer(200, b"ffconcat version 1.0\nfile /etc/passwd\n"), "answer_not_sound", 1),
        (Answer(200, bytes(3_000_000)), "answer_too_large", 1),
    ],
    ids=lambda value: (
        "" if not isinstance(value, Answer) else f"{value.status} {value.body[:12]!r}{value.promised or ''}{value.drip_s or ''}"
    ),
)
def test_what_an_endpoint_does_wrong_is_named(
    server: Server, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, answer: Answer, code: str, asked: int
) -> None:
    monkeypatch.setattr(EndpointSpeech, "max_bytes", 1_000_000)
    monkeypatch.setattr(EndpointSpeech, "timeout_s", 0.4)
    server.answers = [answer] * 3
    with pytest.raises(EndpointFailed) as error:
        speech(server, sandbox).speak("Hello.", "en", "alloy", 1.0)
    assert (error.value.code, len(server.asked)) == (code, asked)


def test_nobody_listens(sandbox: Sandbox) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(EndpointFailed) as error:
        EndpointSpeech(f"http://127.0.0.1:{port}/v1", "m", sandbox, wait_s=0.01).speak("Hello.", "en", "alloy", 1.0)
    assert error.value.code == "no_answer"


@pytest.mark.parametrize(("asked_for", "waited"), [("7", 7.0), ("600", 30.0), ("soon", 0.01), ("Wed, 21 Oct 2026 07:28:00 GMT", 0.01)])
def test_a_busy_server_says_how_long_to_wait(
    server: Server, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, asked_for: str, waited: float
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("replay.speech.time.sleep", pauses.append)
    server.answers = [Answer(429, headers=(("Retry-After", asked_for),)), Answer(200, TONE)]
    speech(server, sandbox).speak("Hello.", "en", "alloy", 1.0)
    assert pauses == [waited]


def test_an_endpoint_needs_an_address(sandbox: Sandbox) -> None:
    with pytest.raises(ConfigInvalid):
        open_speech(SpeechConfig(engine="endpoint"), sandbox)
    with pytest.raises(ConfigInvalid):
        EndpointSpeech("file:///etc/passwd", "m", sandbox)


@pytest.mark.parametrize("url", ["http://me:hunter2@127.0.0.1/v1", "https://host/v1?key=hunter2", "https://host/v1#hunter2"])
def test_a_secret_in_an_address_is_refused_and_not_repeated(sandbox: Sandbox, url: str) -> None:
    with pytest.raises(ConfigInvalid) as error:
        EndpointSpeech(url, "m", sandbox)
    assert "hunter2" not in str(error.value)


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
def test_kokoro_says_the_same_alone_and_beside_others(sandbox: Sandbox) -> None:
    engine = kokoro(sandbox)
    texts = ["The bridge stood.", "Nobody came.", "It fell at 10:30."]
    alone = [engine.speak(text, "en", "af_heart", 1.0)[0] for text in texts]
    with ThreadPoolExecutor(2) as pool:
        beside = list(pool.map(lambda text: engine.speak(text, "en", "af_heart", 1.0)[0], texts))
    assert [np.array_equal(a, b) for a, b in zip(alone, beside, strict=True)] == [True, True, True]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "language", "words"),
    [
        ("At 10:30 the bag weighed 5kg and cost $3.5 million in 1974.", "en", ["bag", "kilograms", "million", "1974"]),
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
