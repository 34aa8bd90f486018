"""A remote recogniser that speaks the OpenAI transcription protocol (vLLM, speaches, whisper.cpp server, LocalAI and others).

Sends PCM16 WAV in one multipart request a window, reads ``verbose_json`` with word times where the server gives them. How it is asked
(key, time-outs, tries) is media.endpoint's business.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from inversion.asr import Heard
from inversion.config import AsrConfig
from inversion.sidecar import SidecarUnreadable, parse_sidecar
from inversion.speech import RATE, Samples
from inversion.transcript import SpokenSegment
from media.audio import write_wav
from media.endpoint import Endpoint, EndpointClient
from schemas.errors import EndpointFailed
from schemas.time import US


class EndpointRecogniser:
    """POSTs windows of up to ten minutes to ``{endpoint_url}/audio/transcriptions``.

    Raises:
        ConfigInvalid: the address is no plain http or https address.
    """

    longest_us = 600 * US
    takes_whole = False
    gives_aligned = False
    at_once = 1

    def __init__(self, config: AsrConfig) -> None:
        self._config = config
        self._client = EndpointClient(
            Endpoint(config.endpoint_url or "", "inversion.asr.endpoint_url", config.endpoint_key_env, config.endpoint_timeout_s, 3)
        )
        self.name = f"endpoint {self._client.host} {config.endpoint_model}"

    def detect(self, sound: Samples) -> Mapping[str, float]:
        """Nothing: the protocol cannot tell a language without recognising; the first answer names it."""
        return {}

    def recognise(self, sound: Samples, language: str | None, *, careful: bool = False) -> Heard:
        """One request.

        Raises:
            EndpointFailed: no answer, or one outside the protocol; a later try may help.
            EndpointRefused: the server refused the request.
        """
        form: dict[str, str | Sequence[str]] = {
            "model": self._config.endpoint_model,
            "response_format": "verbose_json",
            "temperature": "0",
            "timestamp_granularities[]": ("word", "segment"),
        }
        if language:
            form["language"] = language
        wav = ("sound.wav", write_wav(sound, RATE), "audio/wav")
        end = len(sound) * US // RATE
        answer = self._client.post(
            "audio/transcriptions", form=form, files={"file": wav}, check=lambda body: self._heard(body, language, end)
        )
        return self._heard(answer.body, language, end)

    def _heard(self, answer: bytes, language: str | None, end_us: int) -> Heard:
        try:
            root = json.loads(answer)
            if isinstance(root, dict) and not root.keys() & {"text", "segments", "words"}:
                raise ValueError("neither text nor segments")
            if isinstance(root, dict) and not str(root.get("text") or "").strip() and not root.get("segments") and not root.get("words"):
                return Heard((), language)
            found = parse_sidecar(answer)
        except (SidecarUnreadable, ValueError, RecursionError) as error:
            raise EndpointFailed(
                "endpoint_protocol",
                f"{self.name} answered something that is no transcription",
                "check inversion.asr.endpoint_url and inversion.asr.endpoint_model",
            ) from error
        segments = tuple(s if s.end_us is not None else _inside(s, end_us) for s in found.segments)
        return Heard(segments, found.language or language)


def _inside(segment: SpokenSegment, end_us: int) -> SpokenSegment:
    """A segment without times lies somewhere in its window."""
    return SpokenSegment(segment.words, 0, end_us, segment.confidence, segment.no_speech, segment.language, segment.flags)
