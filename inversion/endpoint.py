"""A remote recogniser that speaks the OpenAI transcription protocol (vLLM, speaches, whisper.cpp server, LocalAI and others).

Sends PCM16 WAV in one multipart request a window, reads ``verbose_json`` with word times where the server gives them. The key comes from
the environment variable that the configuration names and is never logged. Redirects are not followed.
"""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException, IncompleteRead
from typing import Any
from urllib.parse import urlsplit

from inversion.asr import Heard
from inversion.config import AsrConfig
from inversion.sidecar import SidecarUnreadable, parse_sidecar
from inversion.speech import RATE, Samples
from inversion.transcript import SpokenSegment
from media.audio import write_wav
from schemas.canonical import sha256_bytes
from schemas.errors import ConfigInvalid, EndpointFailed, Retry
from schemas.time import US

_MOST_BYTES = 32 * 1024 * 1024
"""Longest answer that is read."""


class EndpointRefused(EndpointFailed):
    """The server understood and refused (wrong key, unknown model): trying again will not help."""

    retry = Retry.NEVER


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        """Refuse."""
        return None


class EndpointRecogniser:
    """POSTs windows of up to ten minutes to ``{endpoint_url}/audio/transcriptions``."""

    longest_us = 600 * US
    takes_whole = False
    gives_aligned = False
    at_once = 1

    def __init__(self, config: AsrConfig) -> None:
        url = urlsplit(config.endpoint_url or "")
        if url.scheme not in ("http", "https") or not url.hostname or url.username is not None:
            raise ConfigInvalid(
                "endpoint_url_invalid", f"asr.endpoint_url is {config.endpoint_url!r}", "give a base URL such as http://127.0.0.1:8000/v1"
            )
        self._url = f"{(config.endpoint_url or '').rstrip('/')}/audio/transcriptions"
        self._config = config
        self._key = os.environ.get(config.endpoint_key_env, "") if config.endpoint_key_env else ""
        self._opener = urllib.request.build_opener(_NoRedirect, urllib.request.ProxyHandler({}))
        self.name = f"endpoint {url.hostname} {config.endpoint_model}"

    def detect(self, sound: Samples) -> Mapping[str, float]:
        """Nothing: the protocol cannot tell a language without recognising; the first answer names it."""
        return {}

    def recognise(self, sound: Samples, language: str | None, *, careful: bool = False) -> Heard:
        """One request.

        Raises:
            EndpointFailed: no answer, or one outside the protocol; a retry may help.
            EndpointRefused: the server refused the request.
        """
        fields = [("model", self._config.endpoint_model), ("response_format", "verbose_json"), ("temperature", "0")]
        fields += [("timestamp_granularities[]", "word"), ("timestamp_granularities[]", "segment")]
        fields += [("language", language)] if language else []
        answer = self._post(fields, write_wav(sound, RATE))
        try:
            root = json.loads(answer)
            if isinstance(root, dict) and not root.keys() & {"text", "segments", "words"}:
                raise ValueError("neither text nor segments")
            if isinstance(root, dict) and not str(root.get("text") or "").strip() and not root.get("segments") and not root.get("words"):
                return Heard((), language)
            found = parse_sidecar(answer)
        except (SidecarUnreadable, ValueError) as error:
            raise EndpointFailed(
                "endpoint_protocol",
                f"{self.name} answered something that is no transcription",
                "check asr.endpoint_url and asr.endpoint_model",
            ) from error
        end = len(sound) * US // RATE
        segments = tuple(s if s.end_us is not None else _inside(s, end) for s in found.segments)
        return Heard(segments, found.language or language)

    def _post(self, fields: list[tuple[str, str]], wav: bytes) -> bytes:
        mark = sha256_bytes(wav)[:32]
        parts: list[bytes] = []
        for name, value in fields:
            parts.append(f'--{mark}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode())
        parts.append(
            f'--{mark}\r\nContent-Disposition: form-data; name="file"; filename="sound.wav"\r\nContent-Type: audio/wav\r\n\r\n'.encode()
        )
        parts += [wav, f"\r\n--{mark}--\r\n".encode()]
        headers = {"Content-Type": f"multipart/form-data; boundary={mark}", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        request = urllib.request.Request(self._url, data=b"".join(parts), headers=headers, method="POST")  # noqa: S310  scheme checked above
        try:
            with self._opener.open(request, timeout=self._config.endpoint_timeout_s) as response:
                answer: bytes = response.read(_MOST_BYTES + 1)
                if (response.length or 0) > 0 and len(answer) <= _MOST_BYTES:
                    raise IncompleteRead(answer, response.length)
        except urllib.error.HTTPError as error:
            kind = EndpointRefused if 300 <= error.code < 500 and error.code not in (408, 429) else EndpointFailed
            raise kind(
                "endpoint_status", f"{self.name} answered HTTP {error.code}", "check the key, the model name and the server's log"
            ) from error
        except (OSError, HTTPException) as error:
            raise EndpointFailed(
                "endpoint_unreachable", f"{self.name}: {type(error).__name__}", "start the server or change asr.endpoint_url"
            ) from error
        if len(answer) > _MOST_BYTES:
            raise EndpointFailed("endpoint_protocol", f"{self.name} answered more than {_MOST_BYTES} bytes", "check the server")
        return answer


def _inside(segment: SpokenSegment, end_us: int) -> SpokenSegment:
    """A segment without times lies somewhere in its window."""
    return SpokenSegment(segment.words, 0, end_us, segment.confidence, segment.no_speech, segment.language, segment.flags)
