"""Stages are values: typed input in, ``Done`` or ``Rejected`` out; they write no tables (DESIGN rule 2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeVar

from schemas.canonical import Sha256

T = TypeVar("T")


class RejectCode(StrEnum):
    """Why a source does not become a project. Closed; adding one is a schema change."""

    EMPTY_FILE = "empty_file"
    NOT_FOUND = "not_found"
    NOT_A_FILE = "not_a_file"
    OUTSIDE_ROOT = "outside_root"
    NOT_MEDIA = "not_media"
    MANIFEST_REFUSED = "manifest_refused"
    CONTAINER_REFUSED = "container_refused"
    CODEC_REFUSED = "codec_refused"
    UNREADABLE = "unreadable"
    NO_VIDEO = "no_video"
    NO_AUDIO = "no_audio"
    LIMIT_PIXELS = "limit_pixels"
    LIMIT_STREAMS = "limit_streams"
    LIMIT_DURATION = "limit_duration"
    LIMIT_BYTES = "limit_bytes"
    NO_SPEECH = "no_speech"
    LOW_NARRATION_SHARE = "low_narration_share"
    LOW_CONFIDENCE = "low_confidence"
    LANGUAGE_REFUSED = "language_refused"
    TOO_SHORT = "too_short"
    TOO_FEW_SHOTS = "too_few_shots"
    LICENCE_REFUSED = "licence_refused"
    SCRIPT_MISMATCH = "script_mismatch"


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """The stage's output.

    ``rows`` maps table name to row dicts (only deterministic columns; the committer adds provenance);
    ``artifacts`` lists digests in the artifact store that the rows refer to.
    """

    output: T
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    artifacts: tuple[Sha256, ...] = ()


@dataclass(frozen=True, slots=True)
class Rejected:
    """The source is refused, with a closed reason and the figures behind it."""

    code: RejectCode
    detail: str
