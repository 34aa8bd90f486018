"""What is known of a media file after probing it. All times on the project's clock unless said otherwise."""

from __future__ import annotations

from pydantic import Field

from schemas.canonical import Frozen, Sha256
from schemas.time import Rate


class VideoStream(Frozen):
    """The chosen picture stream (cover art never counts)."""

    index: int
    codec: str
    pix_fmt: str
    coded_width: int = Field(gt=0)
    coded_height: int = Field(gt=0)
    rotation: int = Field(description="degrees clockwise to turn for display: 0, 90, 180 or 270")
    sar_num: int = Field(gt=0, description="sample aspect ratio, numerator")
    sar_den: int = Field(gt=0)
    display_width: int = Field(gt=0, description="after SAR and rotation, pixels")
    display_height: int = Field(gt=0)
    rate: Rate = Field(description="mean frame rate; never used to date a frame")
    is_vfr: bool
    start_us: int = Field(description="container time of the first presented frame, microseconds")
    duration_us: int = Field(ge=0, description="from the first presented frame to the end of the last one")
    frames: int = Field(ge=0)
    is_hdr: bool = False


class AudioStream(Frozen):
    """The chosen narration track."""

    index: int
    codec: str
    sample_rate: int = Field(gt=0)
    channels: int = Field(gt=0)
    start_us: int = Field(description="start on the project's clock (0 = first presented video frame); may be negative")
    duration_us: int = Field(ge=0)
    language: str | None = None
    title: str | None = None
    is_default: bool = False
    is_comment: bool = False


class MediaInfo(Frozen):
    """Result of a probe."""

    sha256: Sha256
    size_bytes: int = Field(ge=0)
    container: str
    video: VideoStream | None
    audio: AudioStream | None
    audio_choice: str = Field(description="why this audio track was chosen, in words")
    ignored_streams: tuple[str, ...] = Field(default=(), description="streams left out, each with its reason")
    duration_us: int = Field(ge=0, description="longest of picture and sound, on the project's clock")


class SourceItem(Frozen):
    """One input as the user named it. ``uri`` is kept as given; nothing is ever derived from its text."""

    uri: str
    title: str | None = None
    language: str | None = None
    licence: str | None = Field(default=None, description="SPDX id or the user's own words")
    attribution: str | None = None
    source_url: str | None = None
    subtitles: str | None = Field(default=None, description="path of sidecar subtitles")
    script: str | None = Field(default=None, description="path of a known script")
