"""Inspection, diagnosis and repair: closed codes and records."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from schemas.canonical import Frozen, Sha256


class DefectCode(StrEnum):
    """Faults that inspection can find. See repair.taxonomy for detection, taint and mends of each."""

    PLAN_UNCOVERED = "plan_uncovered"
    PLAN_REPETITION = "plan_repetition"
    PACING_TOO_LONG = "pacing_too_long"
    PACING_TOO_SHORT = "pacing_too_short"
    NARRATION_SILENT = "narration_silent"
    NARRATION_CLIPPED = "narration_clipped"
    NARRATION_TRUNCATED = "narration_truncated"
    NARRATION_LOUDNESS = "narration_loudness"
    ASSET_REPEATED = "asset_repeated"
    ASSET_MISMATCH = "asset_mismatch"
    ASSET_TOO_SHORT = "asset_too_short"
    SPOTLIGHT_MISSING = "spotlight_missing"
    SPOTLIGHT_TEXT_WRONG = "spotlight_text_wrong"
    SPOTLIGHT_OVERFLOW = "spotlight_overflow"
    SPOTLIGHT_LOW_CONTRAST = "spotlight_low_contrast"
    MUSIC_SILENT = "music_silent"
    MUSIC_CLIPPED = "music_clipped"
    RENDER_BLACK = "render_black"
    RENDER_FROZEN = "render_frozen"
    RENDER_WRONG_SIZE = "render_wrong_size"
    RENDER_WRONG_LENGTH = "render_wrong_length"
    RENDER_GRAPHIC_MISSING = "render_graphic_missing"
    DELIVERY_SILENT = "delivery_silent"
    DELIVERY_DRIFT = "delivery_drift"
    DELIVERY_LOUDNESS = "delivery_loudness"
    DELIVERY_CLIPPED = "delivery_clipped"
    DELIVERY_BLACK = "delivery_black"
    DELIVERY_GRAPHIC_MISSING = "delivery_graphic_missing"


class MendCode(StrEnum):
    """Bounded mends, cheapest first."""

    REMIX = "remix"
    RENARRATE = "renarrate"
    RERENDER = "rerender"
    REFILL_SLOTS = "refill_slots"
    RERETRIEVE = "reretrieve"
    NEW_MUSIC = "new_music"
    RETIME = "retime"
    REPLAN = "replan"
    ACCEPT = "accept"


class Defect(Frozen):
    """One found fault. ``defect_id`` is stable over (code, subject, artifact)."""

    defect_id: str
    code: DefectCode
    subject: str = Field(description="shot id or 'film'")
    severity: Literal["warning", "error"]
    artifact_sha256: Sha256 | None = None
    measured: str = Field(description="the figure that was seen and its limit")


class Verdict(Frozen):
    """What one inspection says of one subject."""

    subject: str
    passed: bool
    score: float = Field(ge=0, le=1)
    defects: tuple[Defect, ...]
    judge: Literal["structured", "embedded", "endpoint"]


class Diagnosis(Frozen):
    """The critic's account of one defect and the mend it asks for."""

    defect_id: str
    subject: str
    cause: str
    mend: MendCode
    reason: str


class RepairLink(Frozen):
    """Failure-repair link: from the finding over the mend to its verification."""

    defect: Defect
    diagnosis: Diagnosis
    call_found: int
    call_mended: int
    call_verified: int | None
    artifact_before: Sha256 | None
    artifact_after: Sha256 | None
    score_before: float
    score_after: float | None
    outcome: Literal["verified", "not_verified", "kept_previous"]
    injected_fault: str | None = Field(default=None, description="fault_id of the fault put in on purpose that this mends; None: natural")
    mend_calls: tuple[int, ...] = Field(
        default=(), description="committed calls from the mend to its verification that made something of the subject or the film anew"
    )
    calls_spent: int = Field(default=0, description="orchestrator calls from the repair to its verification, both included")
    artifacts_made: int = Field(default=0, description="artifacts that those calls made for the subject or the film")
