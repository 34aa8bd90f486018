"""What inversion recovers from a finished video: narration, shots, alignment, evidence, intent.

Clock: microseconds from the first presented video frame. Ranges are half-open. Indices count from 0 and are dense.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from schemas.canonical import Frozen, Sha256
from schemas.media import MediaInfo, SourceItem
from schemas.time import Rate

STORYBOARD_VERSION: Literal["storyboard.1"] = "storyboard.1"


class WordTiming(StrEnum):
    """Where a word's times come from."""

    ALIGNED = "aligned"
    RECOGNISED = "recognised"
    INTERPOLATED = "interpolated"
    SIDECAR = "sidecar"


class Transition(StrEnum):
    """How a shot begins."""

    START = "start"
    CUT = "cut"
    DISSOLVE = "dissolve"
    FADE_BLACK = "fade_black"
    FADE_WHITE = "fade_white"


class SpotlightKind(StrEnum):
    """Kinds of graphic presentation that templates exist for."""

    TITLE = "title"
    LIST = "list"
    NUMBER = "number"
    QUOTE = "quote"
    COMPARISON = "comparison"
    CHART = "chart"
    LOWER_THIRD = "lower_third"


class Word(Frozen):
    """One spoken word (one character in languages written without spaces is allowed)."""

    index: int
    text: str
    start_us: int
    end_us: int
    confidence: float | None = Field(default=None, description="0 to 1; None when the back end gives none")
    timing: WordTiming
    sentence: int
    shot: int | None = Field(description="the one shot this word belongs to; None only for words after the last frame")
    space_after: bool = True


class Sentence(Frozen):
    """One sentence of narration: words[first_word:end_word]."""

    index: int
    text: str
    start_us: int
    end_us: int
    first_word: int
    end_word: int
    script_start: int = Field(description="character offset in Storyboard.script, inclusive")
    script_end: int = Field(description="character offset in Storyboard.script, exclusive")
    language: str
    confidence: float | None = None
    shots: tuple[int, ...] = Field(description="shots this sentence lies over, in order; empty only when it starts after the last frame")
    flags: tuple[str, ...] = ()


class Shot(Frozen):
    """One camera shot of the source. ``words[first_word:end_word]`` are spoken over it."""

    index: int
    start_us: int
    end_us: int
    start_frame: int
    end_frame: int
    transition_in: Transition
    transition_start_us: int | None = Field(default=None, description="start of a gradual transition; None for cuts")
    transition_end_us: int | None = None
    cut_confidence: float = Field(ge=0, le=1)
    first_word: int
    end_word: int
    alignment_confidence: float = Field(ge=0, le=1, description="how clear the assignment of words at both borders is")
    has_narration: bool


class TextBox(Frozen):
    """One line of on-screen text. Box in pixels of the display-size key frame."""

    text: str
    x: int
    y: int
    width: int
    height: int
    confidence: float = Field(ge=0, le=1)


class KeyFrame(Frozen):
    """A still that stands for a shot."""

    at_us: int
    sha256: Sha256
    width: int
    height: int


class Evidence(Frozen):
    """What can be seen in one shot."""

    key_frames: tuple[KeyFrame, ...]
    text: tuple[TextBox, ...] = ()
    burned_captions: tuple[str, ...] = Field(default=(), description="lines taken as burned-in subtitles, not as cards")
    motion: float = Field(ge=0, le=1, description="mean absolute luma change between frames over 255")
    luma: float = Field(ge=0, le=1, description="mean luma")
    colour: tuple[int, int, int] = Field(description="mean colour, sRGB 0..255")
    nearest_shot: int | None = Field(default=None, description="most similar other shot")
    nearest_similarity: float | None = None
    caption: str = Field(description="one sentence on what is seen")
    caption_source: Literal["composed", "endpoint"] = "composed"


class Spotlight(Frozen):
    """A graphic presentation: kind and text slots (names as in the template of that kind)."""

    kind: SpotlightKind
    slots: dict[str, str]
    origin: Literal["screen", "narration"]


class BoardShot(Frozen):
    """The intent behind one shot, and what was seen of it."""

    shot: Shot
    narration: str = Field(description="text spoken over this shot; empty if none")
    script_start: int
    script_end: int
    communicates: str
    visual_query: str
    target_duration_us: int
    spotlight: Spotlight | None = None
    constraints: tuple[str, ...] = ()
    evidence: Evidence


class BoardSegment(Frozen):
    """A run of whole sentences that belong together: sentences[first_sentence:end_sentence]."""

    index: int
    title: str
    first_sentence: int
    end_sentence: int
    script_start: int
    script_end: int


class Admission(Frozen):
    """Figures the admission was decided on."""

    narration_share: float = Field(ge=0, le=1, description="speech microseconds over video microseconds")
    mean_confidence: float | None
    speech_covered: float = Field(ge=0, le=1, description="share of detected speech that words cover")
    flags: tuple[str, ...] = ()


class Storyboard(Frozen):
    """The recovered storyboard of one project.

    ``script`` is the joined sentence text; every sentence, segment and shot span is a character range of it, in order,
    covering it exactly.
    """

    schema_version: Literal["storyboard.1"] = STORYBOARD_VERSION
    project_id: str
    source: SourceItem
    media: MediaInfo
    frame_rate: Rate
    language: str
    title: str
    script: str
    words: tuple[Word, ...]
    sentences: tuple[Sentence, ...]
    shots: tuple[BoardShot, ...]
    segments: tuple[BoardSegment, ...]
    aspect_ratio: Literal["16:9", "9:16", "1:1", "4:3"]
    duration_min_us: int
    duration_max_us: int
    music_moods: tuple[str, ...]
    admission: Admission
    engines: dict[str, str] = Field(description="name and version of every engine that took part")
