"""Engines that one process holds for many: the side that holds one, the side that asks it, and which of them this process uses.

A worker is handed a way to ask (:class:`Ask`) for each engine that is held elsewhere; what stands in for the engine here has the same
protocol, name and answers, so nothing above knows the difference. Arguments are texts, numbers and arrays of decoded sound or pixels:
never paths, never bytes of a file. How a call travels is the runner's business (jobs/ray_pools.py).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from inversion import asr
from inversion.asr import Heard, Recogniser
from inversion.config import AsrConfig
from inversion.speech import Samples
from jobs import models
from jobs.config import PoolConfig, WorkprintConfig
from media.ocr import RapidReader
from media.sandbox import open_sandbox
from replay.chat.config import ModelConfig
from replay.chat.model import ChatRequest
from replay.engines import SpeechEngine, TextReader
from replay.speech import open_speech
from schemas.errors import ConfigInvalid
from schemas.reply import ModelReply
from schemas.storyboard import TextBox

Engine = Literal["asr", "ocr", "tts"]
Part = Engine | models.Part
ENGINES: tuple[Engine, ...] = ("asr", "ocr", "tts")

_SAID: dict[str, tuple[str, ...]] = {
    "asr": ("name", "longest_us", "takes_whole", "gives_aligned", "at_once"),
    "ocr": ("name",),
    "tts": ("name", "version", "languages"),
}
"""What an engine says of itself."""
_ASKED: dict[str, tuple[str, ...]] = {"asr": ("detect", "recognise"), "ocr": ("read",), "tts": ("voice_for", "speak")}
"""What it may be asked; a chat model only ``complete``."""


class Ask(Protocol):
    """A way to an engine that another process holds."""

    slots: int
    """Calls that are answered at the same time, over all processes that hold it."""

    def __call__(self, method: str, *arguments: Any) -> Any:
        """Ask and wait. Raises what the engine raised, or ToolFailed where its process died or took too long."""
        ...


_SHARED: dict[str, Ask] = {}


def share(ways: Mapping[str, Ask], config: WorkprintConfig) -> None:
    """Ask these engines from now on in this process, and load the others here."""
    _SHARED.clear()
    _SHARED.update({part: way for part, way in ways.items() if part in ENGINES})
    chat = {part: cast(models.Part, part) for part in ways if part not in ENGINES}
    models.share({name: _Model(ways[name], models.named(part, config)) for name, part in chat.items()})
    reader.cache_clear()
    speech.cache_clear()


def pools(config: WorkprintConfig) -> dict[Part, PoolConfig]:
    """What is held apart in a run: each chat model that it asks, and the engines that its configuration names.

    Raises:
        ConfigInvalid: a pool for a judge that is no model.
    """
    actors = config.run.ray.actors
    if actors.judge is not None and config.repair.judge is None:
        raise ConfigInvalid(
            "no_judge",
            "run.ray.actors.judge is set and repair.judge names no model; the embedded judge reads with the engine of run.ray.actors.ocr",
            "set repair.judge.model, or take run.ray.actors.judge out",
        )
    out: dict[Part, PoolConfig] = {}
    for part in models.asked(config):
        threads = models.limits(part, config).concurrency + config.run.window
        own = PoolConfig(cpus=0, concurrency=threads, timeout_s=None, attempts=2, rise_s=60)
        out[part] = actors.judge if part == "judge" and actors.judge is not None else own
    for engine in ENGINES:
        pool = getattr(actors, engine)
        if pool is not None:
            out[engine] = pool
    return out


class Holder:
    """Holds one engine, opened at the first question."""

    def __init__(self, part: Part, config: WorkprintConfig) -> None:
        self._part = part
        self._config = config
        models.limit_services(config)
        self._lock = threading.Lock()
        self._engine: Any = None

    def answer(self, method: str, *arguments: Any) -> Any:
        """Ask the engine; ``about`` for what it says of itself.

        Raises:
            EngineMissing, ConfigInvalid: it cannot be opened; and whatever it raises.
            ValueError: it is not one to be asked that.
        """
        if method == "about":
            return {name: getattr(self._opened(), name) for name in _SAID[self._part]}
        if method not in _ASKED.get(self._part, ("complete",)):
            raise ValueError(f"{self._part} is not asked {method!r}")
        return getattr(self._opened(), method)(*arguments)

    def _opened(self) -> Any:
        with self._lock:
            if self._engine is None:
                self._engine = self._open()
            return self._engine

    def _open(self) -> Any:
        config = self._config
        match self._part:
            case "asr":
                return _Ears(asr.recogniser(config.inversion.asr))
            case "ocr":
                pool = config.run.ray.actors.ocr
                return RapidReader(threads=1 if pool is None else pool.concurrency)
            case "tts":
                return open_speech(config.replay.speech, open_sandbox(config.run.sandbox))
            case part:
                return models.connect(part, config)


class _Ears:
    """A recogniser whose questions have arguments by position alone."""

    def __init__(self, engine: Recogniser) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def recognise(self, sound: Samples, language: str | None, careful: bool) -> Heard:
        """As the protocol's."""
        return self._engine.recognise(sound, language, careful=careful)


def recogniser(config: AsrConfig) -> Recogniser:
    """Who listens in this process; raises as ``inversion.asr.recogniser``."""
    way = _SHARED.get("asr")
    return asr.recogniser(config) if way is None else _Recogniser(way)


@cache
def reader() -> TextReader | None:
    """Who reads, where that is another process."""
    way = _SHARED.get("ocr")
    return None if way is None else _Reader(way)


@cache
def speech() -> SpeechEngine | None:
    """Who speaks, where that is another process."""
    way = _SHARED.get("tts")
    return None if way is None else _Speech(way)


class _Recogniser:
    """A recogniser in another process. A worker gives it as many windows at once as are listened to there: each is 28 s of sound at most
    (1.8 MB), or the whole sound for an engine that takes it whole."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        about = ask("about")
        self.name: str = about["name"]
        self.longest_us: int = about["longest_us"]
        self.takes_whole: bool = about["takes_whole"]
        self.gives_aligned: bool = about["gives_aligned"]
        self.at_once = 1 if self.takes_whole else min(ask.slots, 16)

    def detect(self, sound: Samples) -> Mapping[str, float]:
        return cast(Mapping[str, float], self._ask("detect", sound))

    def recognise(self, sound: Samples, language: str | None, *, careful: bool = False) -> Heard:
        return cast(Heard, self._ask("recognise", sound, language, careful))


class _Reader:
    """Text recognition in another process; a picture travels as its pixels."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self.name: str = ask("about")["name"]

    def read(self, image: NDArray[np.uint8]) -> tuple[TextBox, ...]:
        return cast(tuple[TextBox, ...], self._ask("read", image))


class _Speech:
    """Speech in another process."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        about = ask("about")
        self.name: str = about["name"]
        self.version: str = about["version"]
        self.languages: tuple[str, ...] = about["languages"]
        self._voices: dict[tuple[str, str], str] = {}

    def voice_for(self, language: str, wanted: str) -> str:
        known = self._voices.get((language, wanted))
        if known is None:
            known = self._voices[language, wanted] = str(self._ask("voice_for", language, wanted))
        return known

    def speak(self, text: str, language: str, voice: str, speed: float) -> tuple[Samples, int]:
        return cast(tuple[Samples, int], self._ask("speak", text, language, voice, speed))


class _Model:
    """A chat model whose one connection lives in another process."""

    def __init__(self, ask: Ask, config: ModelConfig) -> None:
        self.config = config
        self._ask = ask

    def complete(self, request: ChatRequest) -> ModelReply:
        return cast(ModelReply, self._ask("complete", request))
