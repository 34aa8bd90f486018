"""WhisperX as a recogniser: batched Whisper with its own voice activity, then wav2vec2 forced alignment. The choice on GPUs.

An extra (``pip install 'workprint[whisperx]'``, several GB); without it :class:`EngineMissing`. Models may be local folders.
"""

from __future__ import annotations

import importlib
import importlib.util
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from inversion.asr import Heard, model_path
from inversion.config import AsrConfig
from inversion.sidecar import SidecarUnreadable, sidecar_of
from inversion.speech import Samples
from inversion.transcript import SpokenWord
from schemas.errors import EngineMissing
from schemas.storyboard import WordTiming
from schemas.time import US

_NEXT = "pip install 'workprint[whisperx]'"
_PUNKT = ("collocations.tab", "sent_starters.txt", "abbrev_types.txt", "ortho_context.tab")
"""Files of nltk's sentence splitter that WhisperX insists on; empty ones do, because sentences are split elsewhere."""


class WhisperXRecogniser:
    """Recognises a whole film at once."""

    longest_us = 28 * US
    takes_whole = True
    gives_aligned = True
    at_once = 1

    def __init__(self, config: AsrConfig) -> None:
        self._whisperx = _module()
        self._config = config
        self._device = "cpu" if config.device == "auto" and not self._has_cuda() else config.device.replace("auto", "cuda")
        self._model: Any = None
        self._aligners: dict[str, tuple[Any, Any]] = {}
        self.name = f"whisperx {metadata.version('whisperx')} {Path(config.model).name} {config.compute_type}"

    def detect(self, sound: Samples) -> Mapping[str, float]:
        """Nothing: WhisperX names the language when it recognises."""
        return {}

    def recognise(self, sound: Samples, language: str | None, *, careful: bool = False) -> Heard:
        """The whole sound: recognised in batches, then aligned where there is an alignment model for the language.

        Raises:
            EngineMissing: the Whisper model or the alignment model is not here and cannot be fetched.
        """
        found = self._load().transcribe(sound, batch_size=self._config.whisperx_batch_size, language=language)
        spoken = str(found.get("language") or language or "en")
        segments = found.get("segments") or []
        if segments:
            model, about = self._aligner(spoken)
            found = self._whisperx.align(segments, model, about, sound, self._device, return_char_alignments=False)
        try:
            heard = sidecar_of({"segments": found.get("segments") or [], "language": spoken})
        except SidecarUnreadable:
            return Heard((), spoken)
        return Heard(tuple(replace(s, words=tuple(_aligned(w) for w in s.words)) for s in heard.segments), spoken)

    def _load(self) -> Any:
        if self._model is None:
            try:
                self._model = self._whisperx.load_model(
                    str(model_path(self._config.model)),
                    self._device,
                    compute_type=self._config.compute_type,
                    threads=self._config.cpu_threads,
                    vad_method="pyannote",
                    asr_options={"beam_size": self._config.beam_size, "temperatures": [0.0]},
                )
            except (OSError, ValueError, RuntimeError) as error:
                raise EngineMissing(
                    "asr_model_missing", f"WhisperX cannot load {self._config.model!r}: {error}", "set inversion.asr.model"
                ) from error
        return self._model

    def _aligner(self, language: str) -> tuple[Any, Any]:
        if language not in self._aligners:
            _provide_punkt()
            try:
                self._aligners[language] = self._whisperx.load_align_model(
                    language, self._device, model_name=self._config.whisperx_align_model
                )
            except (OSError, ValueError, RuntimeError) as error:
                raise EngineMissing(
                    "align_model_missing",
                    f"no wav2vec2 alignment model for {language!r}: {error}",
                    "set inversion.asr.whisperx_align_model",
                ) from error
        return self._aligners[language]

    def _has_cuda(self) -> bool:
        torch = importlib.import_module("torch")
        return bool(torch.cuda.is_available())


def _aligned(word: SpokenWord) -> SpokenWord:
    return word if word.start_us is None else replace(word, timing=WordTiming.ALIGNED)


def _module() -> Any:
    if importlib.util.find_spec("whisperx") is None:
        raise EngineMissing("whisperx_missing", "asr.engine is 'whisperx' and the package is not installed", _NEXT)
    try:
        return importlib.import_module("whisperx")
    except ImportError as error:
        raise EngineMissing("whisperx_broken", f"whisperx cannot be imported: {error}", _NEXT) from error


def _provide_punkt() -> None:
    """Put an empty punkt_tab where nltk finds it, unless it has one, so that nothing is downloaded."""
    nltk = importlib.import_module("nltk")
    try:
        nltk.data.find("tokenizers/punkt_tab/english")
        return
    except LookupError:
        pass
    root = Path(_punkt_folder().name)
    folder = root / "tokenizers" / "punkt_tab" / "english"
    folder.mkdir(parents=True, exist_ok=True)
    for name in _PUNKT:
        (folder / name).touch()
    nltk.data.path.insert(0, str(root))


@lru_cache(maxsize=1)
def _punkt_folder() -> tempfile.TemporaryDirectory[str]:
    """A scratch folder that lives as long as the process."""
    return tempfile.TemporaryDirectory(prefix="workprint-nltk-")
