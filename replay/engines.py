"""Protocols of the engines that tools use: speech, text embedding, music, templates, text recognition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from schemas.storyboard import SpotlightKind, TextBox
from storage.artifacts import ArtifactStore

Samples = NDArray[np.float32]
"""Mono sound in -1..1, shape [n]."""
Image = NDArray[np.uint8]
"""sRGB picture, shape [height, width, 3]."""


class SpeechEngine(Protocol):
    """Text to speech."""

    name: str
    version: str
    languages: tuple[str, ...]

    def voice_for(self, language: str, wanted: str) -> str:
        """Resolve a configured voice name ('default' allowed). Raises EngineMissing if the language has none."""
        ...

    def speak(self, text: str, language: str, voice: str, speed: float) -> tuple[Samples, int]:
        """Speak one text; returns samples and sample rate. Deterministic for equal input."""
        ...


class Embedder(Protocol):
    """Text to vectors."""

    name: str

    def encode(self, texts: Sequence[str], *, is_query: bool) -> NDArray[np.float32]:
        """Unit vectors, shape [len(texts), d]."""
        ...


class ImageText(Protocol):
    """Pictures and texts to vectors of one space."""

    name: str

    def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, shape [len(texts), d]."""
        ...

    def encode_images(self, images: Sequence[Image]) -> NDArray[np.float32]:
        """Unit vectors, shape [len(images), d]."""
        ...


@dataclass(frozen=True, slots=True)
class MusicTrack:
    """One track of a library."""

    track_id: str
    path: Path
    title: str
    moods: tuple[str, ...]
    licence: str
    attribution: str | None
    duration_us: int
    energy: float | None = None
    """0 (still) to 1 (driving), as its tags say; None when they do not."""
    bpm: int = 0
    """Beats a minute; 0 when nobody measured them."""


class MusicLibrary(Protocol):
    """A tagged library."""

    name: str
    tracks: tuple[MusicTrack, ...]


@dataclass(frozen=True, slots=True)
class Slot:
    """One text slot of a template."""

    name: str
    description: str
    max_chars: int
    required: bool = True
    form: Literal["text", "percent", "question", "sentence", "time"] = "text"
    """What kind of text it takes. Only 'percent' is enforced; the others say what the layout is made for."""


@dataclass(frozen=True, slots=True)
class Template:
    """A template of ours: layout, motion and style are fixed; a policy fills text slots and never writes markup."""

    name: str
    version: int
    kind: SpotlightKind
    placement: Literal["full_frame", "lower_third"]
    slots: tuple[Slot, ...]
    duration_us: int
    digest: str
    """sha256 over all files of the template."""
    about: str = ""
    """What it is good for, in a few words: the choice between several templates of a kind is the generator's."""


class TextReader(Protocol):
    """Optical character recognition."""

    name: str

    def read(self, image: Image) -> tuple[TextBox, ...]:
        """Text lines with boxes in pixels of ``image``, top to bottom."""
        ...


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a judge says of a picture."""

    score: float
    """0 to 1."""
    problems: tuple[str, ...]
    """Defect codes (schemas.verdict.DefectCode) that the judge is sure of."""
    parts: dict[str, float]
    """The scores it gave, by name."""


class SpotlightJudge(Protocol):
    """A model that looks at rendered graphics."""

    name: str
    """Model and version of its rubric."""

    def judge(self, picture: Image, slots: Mapping[str, str], store: ArtifactStore) -> Opinion:
        """Judge one picture against the texts it should show; the same picture always gets the same opinion.

        Raises:
            EndpointFailed: it could not be asked.
        """
        ...


@dataclass(frozen=True, slots=True)
class Engines:
    """The engines of one run."""

    speech: SpeechEngine
    embedder: Embedder
    music: MusicLibrary
    templates: dict[str, Template]
    reader: TextReader
    judge: SpotlightJudge | None = None
    """Looks at graphics besides the embedded judge; None where no endpoint is configured."""
    sight: ImageText | None = None
    """Compares clips with queries by their pictures; None where no model is configured."""

    def versions(self) -> dict[str, Any]:
        """Names and versions for the trajectory."""
        optional = {"judge": self.judge, "sight": self.sight}
        return {
            **{role: engine.name for role, engine in optional.items() if engine is not None},
            "speech": f"{self.speech.name} {self.speech.version}",
            "embedder": self.embedder.name,
            "music": self.music.name,
            "reader": self.reader.name,
            "templates": {name: t.digest[:12] for name, t in sorted(self.templates.items())},
        }
