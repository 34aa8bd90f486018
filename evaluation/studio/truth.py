"""What is true of a made film, as it is written beside it: words, sentences, shots, joins, text on the screen, spotlights, sources.

Clock: microseconds from the first presented picture. Ranges are half-open. Boxes are pixels of the film's own size. Owns the schema only.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from schemas.canonical import Frozen, Sha256
from schemas.storyboard import SpotlightKind

TRUTH_VERSION: Literal["film_truth.1"] = "film_truth.1"

JoinKind = Literal["cut", "dissolve", "fade_black", "fade_white", "wipe", "push"]


class TrueWord(Frozen):
    """One spoken word as written (punctuation attached; in Mandarin a word of one or more characters)."""

    text: str
    start_us: int
    end_us: int
    sentence: int
    shot: int = Field(description="the shot the editor meant it for: cuts that come a little early or late change nothing")
    space_after: bool


class TrueSentence(Frozen):
    """One sentence: words[first_word:end_word], laid over ``shots`` by the edit."""

    text: str
    start_us: int
    end_us: int
    first_word: int
    end_word: int
    shots: tuple[int, ...]


class TrueLine(Frozen):
    """One line of lettering: the box of its ink, and when it is there."""

    text: str
    x: int
    y: int
    width: int
    height: int
    since_us: int
    until_us: int
    role: Literal["card", "lower_third", "caption"]


class TrueSpotlight(Frozen):
    """The graphic a shot presents; slots are named as in the template of that kind."""

    kind: SpotlightKind
    slots: dict[str, str]


class TrueShot(Frozen):
    """One shot. A gradual join lies half before and half after its start."""

    start_us: int
    end_us: int
    start_frame: int
    end_frame: int
    what: str = Field(description="the kind of scene: still, live, dark, whip, handheld, card, lower_third, blink")
    spotlight: TrueSpotlight | None = None
    lines: tuple[TrueLine, ...] = ()


class TrueJoin(Frozen):
    """What joins two shots: frames [start_frame, end_frame) are mixed, none for a cut; ``at`` is the first of the new shot."""

    kind: JoinKind
    at_us: int
    start_us: int
    end_us: int
    at_frame: int
    start_frame: int
    end_frame: int


class Flashed(Frozen):
    """A camera flash inside a shot: no boundary."""

    start_us: int
    end_us: int


class Credit(Frozen):
    """Something the film was made of that somebody else made."""

    what: str
    author: str
    licence: str


class FilmTruth(Frozen):
    """The exact truth of one made film. Frames are numbered as presented; where frames were left out (``vfr``) numbers and times are those
    of the frames that are there."""

    schema_version: Literal["film_truth.1"] = TRUTH_VERSION
    seed: int
    kind: str
    language: str
    width: int
    height: int
    rate: int = Field(description="frames a second before any were left out")
    vfr: bool
    frames: int
    duration_us: int
    frame_us: tuple[int, ...] = Field(description="presentation time of every frame")
    speech: str = Field(description="engine and voice")
    word_times: Literal["exact", "sentence"] = Field(description="sentence: times of words are not known, only those of sentences")
    music: str | None
    captions: bool
    words: tuple[TrueWord, ...]
    sentences: tuple[TrueSentence, ...]
    shots: tuple[TrueShot, ...]
    joins: tuple[TrueJoin, ...]
    flashes: tuple[Flashed, ...]
    credits: tuple[Credit, ...]
    film_sha256: Sha256
