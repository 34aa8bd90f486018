"""What a delivery is: the files of its folder and the manifest's form.

Owns the names and the form only; making one is the work of ``stitch_video``, checking one of replay.delivery.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field

from schemas.canonical import Frozen
from schemas.time import Rate

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Name = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f/\\]{1,200}$")]
"""Of a shot, a clip, a template: no path and no control characters."""
VIDEO: Final = "video.mp4"
MANIFEST: Final = "manifest.json"
CAPTIONS: Final = "captions.srt"
ATTRIBUTION: Final = "ATTRIBUTION.txt"


class FileEntry(Frozen):
    """A file of the delivery."""

    file: Literal["video.mp4", "captions.srt", "ATTRIBUTION.txt"]
    sha256: Sha256
    size_bytes: int = Field(ge=0)


class PictureEntry(Frozen):
    """The picture, measured. ``stream_sha256``: over its coded packets, whatever file they lie in."""

    codec: str
    stream_sha256: Sha256
    width: int
    height: int
    frame_rate: Rate
    frames: int
    duration_us: int
    black_share: float
    frozen_share: float


class SoundEntry(Frozen):
    """The sound, measured. ``drift_us``: largest distance between a sound in the film and where it was put, found by correlation."""

    codec: str
    stream_sha256: Sha256
    sample_rate: int
    channels: int
    duration_us: int
    loudness_lufs: float
    peak_dbfs: float
    true_peak_dbtp: float
    silent_share: float
    drift_us: int


class SpokenEntry(Frozen):
    """A narration in the film."""

    sha256: Sha256
    start_us: int
    end_us: int


class ShotEntry(Frozen):
    """A shot of the film and what it was made from."""

    shot_id: Name
    start_frame: int
    frames: int
    render_sha256: Sha256
    clip_id: Name
    clip_sha256: Sha256
    narration: SpokenEntry | None
    graphic: Name | None = Field(description="name of the template; None for a shot without a graphic")
    graphic_sha256: Sha256 | None


class Credit(Frozen):
    """Something of others that is in the film."""

    kind: Literal["footage", "music", "voice", "font"]
    name: str
    licence: str
    attribution: str | None


class Manifest(Frozen):
    """Everything a receiver needs to know of a delivered film."""

    schema_version: Literal["delivery.2"] = "delivery.2"
    project_id: Name
    title: str
    language: str
    video: FileEntry
    captions: FileEntry | None
    attribution: FileEntry = Field(description="who must be named for what is in the film, as a text for people")
    picture: PictureEntry
    sound: SoundEntry
    script_characters: int = Field(ge=0)
    spoken_characters: int = Field(ge=0, description="characters of the script that shots with narration carry; white space does not count")
    coverage: float = Field(ge=0, le=1)
    feasible_us: tuple[int, int]
    shots: tuple[ShotEntry, ...]
    credits: tuple[Credit, ...]
    engines: dict[str, Any]
