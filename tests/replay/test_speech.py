"""Speech engines in the real sandbox, and the endpoint over loopback."""

from __future__ import annotations

import io
import wave
from concurrent.futures import ThreadPoolExecutor
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
from tests.media.servers import Reply, Server, serve


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


def speech(server: Server, sandbox: Sandbox) -> EndpointSpeech:
    engine = EndpointSpeech(server.url, "tts-1", sandbox)
    engine._client._sleep = lambda _: None
    return engine


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


def test_an_endpoint_is_asked_and_its_sound_decoded(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKPRINT_SPEECH_API_KEY", "k")
    with serve([Reply(TONE)]) as server:
        samples, rate = speech(server, sandbox).speak("Hello  there.", "en", "alloy", 1.25)
    assert (rate, round(len(samples) / rate, 2)) == (24_000, 1.0)
    assert server.paths == ["/v1/audio/speech"]
    assert server.requests == [{"model": "tts-1", "input": "Hello there.", "voice": "alloy", "speed": 1.25, "response_format": "wav"}]
    assert server.headers[0]["Authorization"] == "Bearer k"


def test_an_endpoint_gets_the_text_as_it_is_written(sandbox: Sandbox) -> None:
    with serve([Reply(TONE)]) as server:
        speech(server, sandbox).speak("At 10:30 it cost ¥100.", "en", "alloy", 1.0)
    assert server.requests[0]["input"] == "At 10:30 it cost ¥100."


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
def test_forms_of_sound_that_servers_send(sandbox: Sandbox, body: bytes, seconds: float) -> None:
    with serve([Reply(body)]) as server:
        samples, rate = speech(server, sandbox).speak("Hello.", "en", "alloy", 1.0)
    assert round(len(samples) / rate, 2) == pytest.approx(seconds, abs=0.02)


@pytest.mark.parametrize("codec", ["libmp3lame", "flac"])
def test_a_server_that_sends_another_format_is_understood(sandbox: Sandbox, tmp_path: Path, codec: str) -> None:
    name = {"libmp3lame": "a.mp3", "flac": "a.flac"}[codec]
    argv = ("-f", "lavfi", "-i", "sine=frequency=300:duration=1", "-c:a", codec, f"/out/{name}")
    done = run_ffmpeg(argv, outputs=(name,), sandbox=sandbox, workdir=tmp_path)
    with serve([Reply(done.outputs[name].read_bytes())]) as server:
        samples, rate = speech(server, sandbox).speak("Hello.", "en", "alloy", 1.0)
    assert len(samples) / rate == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize(
    "stumbles",
    [
        [Reply(b"no", 500), Reply(b"slow", 429)],
        [Reply(TONE[:20_000])],
        [Reply(TONE, cut=20_000)],
        [Reply(b"<html>bad gateway</html>", 502), Reply(b"", 408)],
    ],
    ids=["busy", "cut file", "cut connection", "gateway"],
)
def test_an_endpoint_that_stumbles_is_asked_again(sandbox: Sandbox, stumbles: list[Reply]) -> None:
    with serve([*stumbles, Reply(TONE)]) as server:
        samples, rate = speech(server, sandbox).speak("Hello.", "en", "alloy", 1.0)
    assert round(len(samples) / rate, 2) == 1.0
    assert len(server.requests) == len(stumbles) + 1


@pytest.mark.parametrize(
    ("answer", "code", "asked"),
    [
        (Reply(b"who", 401), "endpoint_status", 1),
        (Reply(b"", 302, {"Location": "file:///etc/passwd"}), "endpoint_status", 1),
        (Reply(b"", 503), "endpoint_status", 3),
        (Reply(TONE[:20_000]), "answer_cut", 3),
        (Reply(TONE[:30]), "answer_cut", 3),
        (Reply(TONE, cut=20_000), "endpoint_unreachable", 3),
        (Reply(b"<html>sorry</html>"), "answer_not_sound", 1),
        (Reply(b'{"error": {"message": "no such voice"}}'), "answer_not_sound", 1),
        (Reply(b""), "answer_not_sound", 1),
        (Reply(TONE[:24] + bytes(4) + TONE[28:]), "answer_not_sound", 1),
        (Reply(b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n"), "answer_not_sound", 1),
        (Reply(b"ffconcat version 1.0\nfile /etc/passwd\n"), "answer_not_sound", 1),
    ],
    ids=["key", "elsewhere", "busy", "cut file", "cut header", "cut", "html", "json", "empty", "zeroed", "playlist", "concat"],
)
def test_what_an_endpoint_does_wrong_is_named(sandbox: Sandbox, answer: Reply, code: str, asked: int) -> None:
    with serve([answer]) as server, pytest.raises(EndpointFailed) as error:
        speech(server, sandbox).speak("Hello.", "en", "alloy", 1.0)
    assert (error.value.code, len(server.requests)) == (code, asked)


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
