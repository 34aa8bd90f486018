"""Speech engines: the neural voice, a fast voice for tests, and a remote endpoint; and the one function that opens what is configured.

Owns how each engine is reached. Sound that comes from outside this program (a server's answer) is decoded in the sandbox only.
"""

from __future__ import annotations

import tempfile
import unicodedata
from pathlib import Path

import numpy as np

from media.assets import asset
from media.command import MIB, Command, Limits, Sandbox
from media.endpoint import Endpoint, EndpointClient
from replay.config import SpeechConfig
from replay.engines import Samples, SpeechEngine
from replay.kokoro import KokoroSpeech
from replay.sound import fade_edges, trim_silence
from replay.speech_forms import spoken
from replay.speech_text import is_speakable, plain
from schemas.canonical import sha256_bytes
from schemas.errors import ConfigInvalid, EndpointFailed, EngineMissing, ToolFailed

API_KEY = "WORKPRINT_SPEECH_API_KEY"
"""Environment variable with the endpoint's key; none is sent when it is empty."""

_LIMITS = Limits(wall_s=60, cpu_s=60, data_bytes=512 * MIB, tree_bytes=512 * MIB, stdout_bytes=128 * MIB)


def open_speech(config: SpeechConfig, sandbox: Sandbox) -> SpeechEngine:
    """The configured engine.

    Raises:
        EngineMissing: its model or voices are not installed.
        ConfigInvalid: an endpoint without an address.
    """
    if config.engine == "kokoro":
        return KokoroSpeech(asset("kokoro-model"), asset("kokoro-voices"))
    if config.engine == "flite":
        return FliteSpeech(sandbox)
    if not config.endpoint_url:
        raise ConfigInvalid("no_endpoint", "replay.speech.engine is 'endpoint' but replay.speech.endpoint_url is empty", "set the address")
    return EndpointSpeech(config.endpoint_url, config.endpoint_model, sandbox)


def _decode(argv: tuple[str, ...], sandbox: Sandbox, *, texts: dict[str, bytes], inputs: dict[str, Path], what: str) -> Samples:
    with tempfile.TemporaryDirectory() as folder:
        done = sandbox.run(Command(argv=argv, texts=texts, inputs=inputs, limits=_LIMITS), Path(folder))
    if done.returncode != 0:
        raise ToolFailed("speech_failed", f"{what} ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return np.frombuffer(done.stdout, "<f4").astype(np.float32)


class FliteSpeech:
    """flite's small English voices through ffmpeg: hundreds of times faster than real time, and sounds like it."""

    name = "flite"
    version = "3"
    languages: tuple[str, ...] = ("en",)
    voices = ("awb", "kal", "kal16", "rms", "slt")

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def voice_for(self, language: str, wanted: str) -> str:
        """Resolve a configured voice name. Raises EngineMissing for other languages than English and unknown voices."""
        if language.split("-")[0].lower() not in self.languages:
            raise EngineMissing(
                "language_without_voice",
                f"flite speaks English only; the film is in '{language[:20]}'",
                "set replay.speech.engine to 'kokoro'",
            )
        voice = "slt" if wanted == "default" else wanted
        if voice not in self.voices:
            raise EngineMissing("unknown_voice", f"flite has no voice '{voice[:40]}'", f"choose one of {', '.join(self.voices)}")
        return voice

    def speak(self, text: str, language: str, voice: str, speed: float) -> tuple[Samples, int]:
        """Speak one text at 16 kHz. The text travels in a file. Raises ToolFailed."""
        words = unicodedata.normalize("NFKD", spoken(plain(text), "en")).encode("ascii", "ignore").decode()
        if not is_speakable(words):
            return np.zeros(0, np.float32), 16_000
        tempo = () if speed == 1.0 else ("-af", f"atempo={speed:.3f}")
        argv = (
            "ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", f"flite=textfile=/in/words.txt:voice={voice}",
            *tempo, "-ac", "1", "-ar", "16000", "-f", "f32le", "pipe:1",
        )  # fmt: skip
        wave = _decode(argv, self._sandbox, texts={"words.txt": words.encode()}, inputs={}, what="flite")
        return fade_edges(trim_silence(wave, 16_000), 16_000), 16_000


class EndpointSpeech:
    """An OpenAI-compatible ``/audio/speech`` server. Its answers need not repeat; the artifact store keeps the first one."""

    languages: tuple[str, ...] = ()

    def __init__(self, url: str, model: str, sandbox: Sandbox) -> None:
        """Talk to a server.

        Args:
            url: base address such as ``https://host/v1``.
            model: name of the model.

        Raises:
            ConfigInvalid: the address is no plain http or https address.
        """
        self._client = EndpointClient(Endpoint(url, "replay.speech.endpoint_url", API_KEY, attempts=3))
        self._model = model
        self._sandbox = sandbox
        self.name = f"endpoint {model}"
        self.version = f"1 {sha256_bytes((url.rstrip('/') + '/audio/speech').encode())[:12]}"

    def voice_for(self, language: str, wanted: str) -> str:
        """The configured name; 'default' becomes ``alloy``. The server decides whether it exists."""
        return "alloy" if wanted == "default" else wanted

    def speak(self, text: str, language: str, voice: str, speed: float) -> tuple[Samples, int]:
        """Ask the server and decode its answer at 24 kHz.

        Raises:
            EndpointFailed: the server could not be reached, refused (EndpointRefused), or sent nothing that decodes.
        """
        if not is_speakable(text):
            return np.zeros(0, np.float32), 24_000
        body = {"model": self._model, "input": plain(text), "voice": voice, "speed": speed, "response_format": "wav"}
        answer = self._client.post("audio/speech", json=body, accept="audio/wav", check=_whole).body
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "answer"
            file.write_bytes(answer)
            argv = (
                "ffmpeg", "-nostdin", "-v", "error", "-protocol_whitelist", "file,pipe", "-format_whitelist", "wav,mp3,flac,ogg,aac,mov",
                "-i", "/in/answer", "-map", "0:a:0", "-ac", "1", "-ar", "24000", "-f", "f32le", "pipe:1",
            )  # fmt: skip
            try:
                wave = _decode(argv, self._sandbox, texts={}, inputs={"answer": file}, what="decoding the endpoint's answer")
            except ToolFailed as error:
                raise EndpointFailed("answer_not_sound", error.message, "see what the server sends for response_format 'wav'") from error
        return fade_edges(trim_silence(wave, 24_000), 24_000), 24_000


def _whole(data: bytes) -> None:
    if is_cut(data):
        raise EndpointFailed("answer_cut", "the server sent a WAV file that ends before its sound does", "check that the server runs")


def is_cut(data: bytes) -> bool:
    """A WAV file whose header promises more sound than is there. Streamed files, which promise nothing (0 or all ones), are not cut."""
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        return False
    at = 12
    while at + 8 <= len(data):
        name, size = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "little")
        if name == b"data":
            return 0 < size < 0x7FFF_0000 and at + 8 + size > len(data)
        at += 8 + size + size % 2
    return True
