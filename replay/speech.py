"""Speech engines: the neural voice, a fast voice for tests, and a remote endpoint; and the one function that opens what is configured.

Owns how each engine is reached. Sound that comes from outside this program (a server's answer) is decoded in the sandbox only.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import tempfile
import time
import unicodedata
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np

from media.assets import asset
from media.command import MIB, Command, Limits, Sandbox
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
    version = "2"
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
    max_bytes = 64 * MIB
    attempts = 3
    timeout_s = 120.0
    """For one answer as a whole, however slowly it drips."""
    longest_wait_s = 30.0
    """What a server asks us to wait (Retry-After) is kept up to this."""

    def __init__(self, url: str, model: str, sandbox: Sandbox, *, wait_s: float = 1.0) -> None:
        """Talk to a server.

        Args:
            url: base address such as ``https://host/v1``.
            model: name of the model.
            wait_s: pause before the second attempt; doubled for the third.
        """
        if re.match(r"https?://[^/\s]+", url) is None:
            raise ConfigInvalid("bad_endpoint", f"'{url[:80]}' is no http or https address", "correct replay.speech.endpoint_url")
        if re.search(r"[@?#]", url):  # not repeated here: what stands there may be a secret, and errors go into rows and logs
            what = "replay.speech.endpoint_url holds a user name, a query or a fragment"
            raise ConfigInvalid("bad_endpoint", what, f"give the plain address; a key goes into {API_KEY}")
        self._url = url.rstrip("/") + "/audio/speech"
        self._model = model
        self._sandbox = sandbox
        self._wait_s = wait_s
        self.name = f"endpoint {model}"
        self.version = f"1 {sha256_bytes(self._url.encode())[:12]}"

    def voice_for(self, language: str, wanted: str) -> str:
        """The configured name; 'default' becomes ``alloy``. The server decides whether it exists."""
        return "alloy" if wanted == "default" else wanted

    def speak(self, text: str, language: str, voice: str, speed: float) -> tuple[Samples, int]:
        """Ask the server and decode its answer at 24 kHz.

        Raises:
            EndpointFailed: the server could not be reached, refused, or sent nothing that decodes.
        """
        if not is_speakable(text):
            return np.zeros(0, np.float32), 24_000
        body = json.dumps({"model": self._model, "input": plain(text), "voice": voice, "speed": speed, "response_format": "wav"}).encode()
        answer = self._post(body)
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

    def _post(self, body: bytes) -> bytes:
        headers = {"Content-Type": "application/json", "Accept": "audio/wav"}
        key = os.environ.get(API_KEY, "")
        if key:
            headers["Authorization"] = f"Bearer {key}"
        request = urllib.request.Request(self._url, data=body, headers=headers, method="POST")  # noqa: S310 - scheme checked above
        for attempt in range(1, self.attempts + 1):
            wait_s = self._wait_s * 2 ** (attempt - 1)
            try:
                data = self._answer(request)
                if is_cut(data):
                    message = f"{self._url} sent a WAV file that ends before its sound does"
                else:
                    return data
            except urllib.error.HTTPError as error:
                message = f"{self._url} answered {error.code}"
                if error.code not in (408, 425, 429) and error.code < 500:
                    raise EndpointFailed("refused", message, "check the model, the voice and the key") from error
                wait_s = max(wait_s, min(_seconds(error.headers.get("Retry-After")), self.longest_wait_s))
            except (urllib.error.URLError, TimeoutError, ConnectionError, http.client.HTTPException) as error:
                message = f"{self._url} cannot be reached: {error or type(error).__name__}"
            if attempt < self.attempts:
                time.sleep(wait_s)
        raise EndpointFailed("no_answer", f"{message} ({self.attempts} attempts)", "check that the server runs")

    def _answer(self, request: urllib.request.Request) -> bytes:
        """The body of one answer. Raises TimeoutError when it is not there in time, EndpointFailed when it is too large."""
        until = time.monotonic() + self.timeout_s
        parts: list[bytes] = []
        with urllib.request.urlopen(request, timeout=self.timeout_s) as response:  # noqa: S310
            size = 0
            while part := response.read1(1 << 16):
                parts.append(part)
                size += len(part)
                if size > self.max_bytes:
                    raise EndpointFailed("answer_too_large", f"the server sent more than {self.max_bytes} bytes")
                if time.monotonic() > until:
                    raise TimeoutError(f"no whole answer within {self.timeout_s:g} s")
            if response.length:
                raise http.client.IncompleteRead(b"", response.length)
        return b"".join(parts)


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


def _seconds(text: str | None) -> float:
    """A Retry-After in seconds; 0 for none and for dates."""
    return float(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 6 else 0.0
