"""Recognisers: who turns sound into text with times. One protocol, faster-whisper as the embedded default.

A recogniser hears one window of 16 kHz sound and answers on that window's own clock; guards, forced alignment and the film's clock are
the business of inversion.listen. No recogniser samples at random: a second, slower try uses a wider beam instead.
"""

from __future__ import annotations

import importlib.util
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

from inversion.config import AsrConfig
from inversion.guards import split_at_stops
from inversion.speech import RATE, Samples
from inversion.transcript import SpokenSegment, TimedPiece, clean_text, words_from_pieces
from schemas.canonical import sha256_bytes
from schemas.errors import ConfigInvalid, EngineMissing
from schemas.storyboard import WordTiming
from schemas.time import US

ASSETS = ("whisper-base", "whisper-tiny-en")
"""Model names that come from package registries (media.assets)."""

SIZES = (
    "large-v3", "large-v3-turbo", "large-v2", "medium", "small", "base", "tiny", "turbo", "large", "large-v1", "medium.en", "small.en",
    "base.en", "tiny.en", "distil-large-v2", "distil-large-v3", "distil-large-v3.5", "distil-medium.en", "distil-small.en",
)  # fmt: skip
"""Names that faster-whisper and WhisperX themselves turn into repositories of a hub."""

BOUNDARY_BIAS_US = {"whisper-base": -70_000, "whisper-tiny-en": 70_000}
"""How much too early (negative) or too late a model's attention dates word borders: mean distance from forced alignment over four
recordings (docs/inversion.md). Taken off again; other models are left as they are."""

_TAIL_S = 0.5
"""Less sound than this behind the last word is not decoded by itself: it costs a whole window and holds the padding only."""
_KEPT = 12
"""Encodings kept, 3 to 8 MB each."""

PROMPTS = {"zh": "以下是普通话的句子。这是简体中文。"}
"""Text shown to Whisper before the sound: keeps Chinese simplified and punctuated."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What a recogniser heard in one window; times count from the window's first sample."""

    segments: tuple[SpokenSegment, ...]
    language: str | None = None

    @property
    def confidence(self) -> float | None:
        """Mean confidence of the segments that have one."""
        known = [s.confidence for s in self.segments if s.confidence is not None]
        return sum(known) / len(known) if known else None


class Recogniser(Protocol):
    """Turns sound into words."""

    name: str
    """Engine, version and model, for the record."""
    longest_us: int
    """Longest window it takes at once."""
    takes_whole: bool
    """Wants the whole sound at once, silences included, because it finds speech itself."""
    gives_aligned: bool
    """Its word times are already forced-aligned."""
    at_once: int
    """Windows it may be given at the same time, from as many threads."""

    def detect(self, sound: Samples) -> Mapping[str, float]:
        """Probability of each language, ISO 639-1; empty where the engine cannot tell without recognising."""
        ...

    def recognise(self, sound: Samples, language: str | None, *, careful: bool = False) -> Heard:
        """Recognise one window. ``careful`` asks for a slower second try."""
        ...


def probability(average_log: float | None) -> float | None:
    """Mean token probability from a mean log probability, in 0..1."""
    return None if average_log is None else min(1.0, max(0.0, math.exp(average_log)))


class FasterWhisper:
    """Whisper through CTranslate2, greedy or with a small beam, not conditioned on its own earlier text.

    On a processor two windows are recognised at once, each on half of the threads: a decoder makes one token after the other and has little
    use for a second thread. A window is decoded in one pass without time tokens, which gives whole sentences and costs one encoding; what
    such a pass passes over is found by inversion.listen. A careful try goes through the window sequentially with time tokens and beam 5.
    """

    longest_us = 28 * US
    takes_whole = False
    gives_aligned = False

    def __init__(self, config: AsrConfig) -> None:
        self._config = config
        self._bias_us = BOUNDARY_BIAS_US.get(config.model, 0)
        self.at_once = 1 if config.device == "cuda" else min(2, config.cpu_threads)
        self._model = _load(config.model, config.device, config.compute_type, config.cpu_threads, self.at_once)
        self.name = f"faster-whisper {metadata.version('faster-whisper')} {Path(config.model).name} {config.compute_type}"

    def detect(self, sound: Samples) -> Mapping[str, float]:
        """Probability of each language from the first 28 s; the encoding is kept for the recognition of the same sound."""
        if not self._model.model.is_multilingual:
            return {"en": 1.0}
        from faster_whisper.audio import pad_or_trim

        features = self._model.feature_extractor(sound)[..., :-1]
        encoded = self._model.encode(pad_or_trim(features[..., : self._model.feature_extractor.nb_max_frames]))
        return {token[2:-2]: float(p) for token, p in self._model.model.detect_language(encoded)[0]}

    def recognise(self, sound: Samples, language: str | None, *, careful: bool = False) -> Heard:
        """One window of at most 28 s. A result that looks like a loop or a guess is tried once more with a wider beam."""
        first = self._once(sound, language, 5 if careful else self._config.beam_size, careful)
        if careful or not first[1]:
            return first[0]
        second = self._once(sound, language, 5, True)
        return second[0] if (second[0].confidence or 0.0) > (first[0].confidence or 0.0) or not second[1] else first[0]

    def _once(self, sound: Samples, language: str | None, beam: int, careful: bool) -> tuple[Heard, bool]:
        """(what was heard, whether it looks wrong), sentence by sentence."""
        prompt = PROMPTS.get(language or "")
        found, info = self._model.transcribe(
            sound,
            language=language,
            beam_size=beam,
            temperature=[0.0],
            condition_on_previous_text=False,
            initial_prompt=prompt,
            vad_filter=False,
            word_timestamps=True,
            without_timestamps=not careful,
            no_speech_threshold=self._config.no_speech_threshold,
            no_repeat_ngram_size=6 if careful else 0,
        )
        segments: list[SpokenSegment] = []
        is_doubtful = False
        for s in found:
            if prompt is not None and clean_text(s.text) in prompt:
                continue
            is_doubtful = is_doubtful or s.compression_ratio > 2.4 or s.avg_logprob < -1.0
            pieces = [TimedPiece(w.word, self._us(w.start), self._us(w.end), float(w.probability)) for w in s.words or ()]
            if not pieces:
                pieces = [TimedPiece(s.text, None, None, probability(s.avg_logprob))]
            whole = SpokenSegment(
                words_from_pieces(pieces, WordTiming.RECOGNISED),
                round(s.start * US),
                round(s.end * US),
                probability(s.avg_logprob),
                float(s.no_speech_prob),
            )
            segments.extend(split_at_stops(whole))
            if not careful or len(sound) / RATE - s.end <= _TAIL_S:
                break
        return Heard(tuple(segments), info.language), is_doubtful

    def _us(self, seconds: float) -> int:
        """A word border in microseconds, without the model's bias."""
        return max(0, round(seconds * US) - self._bias_us)


@lru_cache(maxsize=2)
def _load(model: str, device: str, compute_type: str, threads: int, workers: int) -> Any:
    try:
        from faster_whisper import WhisperModel
    except ImportError as error:
        raise EngineMissing(
            "faster_whisper_missing", f"speech recognition needs faster-whisper: {error}", "pip install faster-whisper"
        ) from error
    try:
        loaded = WhisperModel(
            str(model_path(model)), device=device, compute_type=compute_type, cpu_threads=threads // workers, num_workers=workers
        )
    except (OSError, ValueError, RuntimeError) as error:
        raise EngineMissing(
            "asr_model_missing",
            f"no Whisper model at {model!r}: {error}",
            f"set inversion.asr.model to one of {', '.join(ASSETS)}, a folder with a CTranslate2 model, or a hub name that can be reached",
        ) from error
    loaded.encode = _Encoder(loaded.encode)
    return loaded


class _Encoder:
    """Remembers the last encodings, so that asking for the language and recognising do not encode the same sound twice."""

    def __init__(self, encode: Callable[[Any], Any]) -> None:
        self._encode = encode
        self._kept: OrderedDict[str, Any] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, features: Any) -> Any:
        """The encoding of one 30-s window of features."""
        key = sha256_bytes(features.tobytes())
        with self._lock:
            known = self._kept.pop(key, None)
        encoded = self._encode(features) if known is None else known
        with self._lock:
            self._kept[key] = encoded
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return encoded


def model_path(model: str) -> Path | str:
    """Where a model lies: an asset's folder, or the folder or hub name as configured."""
    if model not in ASSETS:
        return model
    from media.assets import asset

    return asset(model)


def check(config: AsrConfig) -> None:
    """Refuse a configuration that names no recogniser at all, without opening one.

    Raises:
        ConfigInvalid: an endpoint without URL, or a model that is no asset, no folder, no name that the engine knows and no hub repository.
    """
    if config.engine == "endpoint":
        if config.endpoint_url is None:
            raise ConfigInvalid(
                "endpoint_url_missing", "asr.engine is 'endpoint' and asr.endpoint_url is not set", "set inversion.asr.endpoint_url"
            )
        return
    if config.model in ASSETS or config.model in SIZES or "/" in config.model or Path(config.model).is_dir():
        return
    raise ConfigInvalid(
        "asr_model_unknown",
        f"inversion.asr.model is {config.model!r}, which is no model that comes with workprint, no Whisper size and no folder",
        f"set it to {' or '.join(ASSETS)}, a CTranslate2 model's folder, a size ({', '.join(SIZES[:4])} ...), or OWNER/NAME of the hub",
    )


def check_installed(config: AsrConfig) -> None:
    """Refuse a recogniser of which a part is known not to be on this machine, without opening it. (A model on a hub may still be fetched.)

    Raises:
        EngineMissing: the engine or its model is not installed.
    """
    if config.engine == "endpoint":
        return
    package = {"faster_whisper": "faster_whisper", "whisperx": "whisperx"}[config.engine]
    if importlib.util.find_spec(package) is None:
        brings = "pip install faster-whisper" if package == "faster_whisper" else "pip install 'workprint[whisperx]'"
        raise EngineMissing(f"{package}_missing", f"inversion.asr.engine {config.engine!r} is not installed", brings)
    found = Path(model_path(config.model))
    is_folder = config.model.startswith(("/", ".")) or config.model.count("/") > 1
    if is_folder and not found.is_dir():
        raise EngineMissing("asr_model_missing", f"no Whisper model at {config.model!r}: no such folder", "set inversion.asr.model")


def recogniser(config: AsrConfig) -> Recogniser:
    """The configured recogniser; models are loaded once a process.

    Raises:
        EngineMissing: the engine or its model is not installed.
        ConfigInvalid: the endpoint has no URL.
    """
    if config.engine == "endpoint":
        from inversion.endpoint import EndpointRecogniser

        check(config)  # it has an address
        return EndpointRecogniser(config)
    if config.engine == "whisperx":
        from inversion.whisperx import WhisperXRecogniser

        return WhisperXRecogniser(config)
    return FasterWhisper(config)
