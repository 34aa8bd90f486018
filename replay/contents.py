"""Content contracts: what generator and critic must answer, one closed model for each kind."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from schemas.canonical import Frozen
from schemas.storyboard import SpotlightKind
from schemas.verdict import DefectCode, MendCode


class SegmentItem(Frozen):
    """One segment: the last word range is implied by the next segment's start."""

    title: str = Field(min_length=1, max_length=80)
    starts_with: str = Field(min_length=1, max_length=60, description="first words of the segment, copied exactly from the script")
    sentences: int = Field(ge=1, description="number of script sentences in the segment")


class Segments(Frozen):
    """The whole script as consecutive segments."""

    segments: tuple[SegmentItem, ...] = Field(min_length=1)


class ShotItem(Frozen):
    """One planned shot. ``text`` must be the next stretch of the segment's script, character for character (may be empty)."""

    segment: int = Field(ge=0)
    text: str
    visual_query: str = Field(min_length=1, max_length=200)
    target_ms: int = Field(ge=200, le=600_000)
    spotlight: SpotlightKind | None = None
    spotlight_brief: str = Field(default="", max_length=160)


class ShotPlan(Frozen):
    """Shots of the requested segments, in order; their texts joined give the segments' script exactly."""

    shots: tuple[ShotItem, ...] = Field(min_length=1)


class PlanFinding(Frozen):
    """One remark on the plan."""

    shot_id: str
    code: Literal["coverage", "pacing", "repetition", "query", "spotlight"]
    note: str = Field(max_length=200)


class PlanPatch(Frozen):
    """A bounded change of one planned shot; fields left out stay."""

    shot_id: str
    visual_query: str | None = Field(default=None, max_length=200)
    target_ms: int | None = Field(default=None, ge=200, le=600_000)


class PlanReflection(Frozen):
    """The critic's findings on the plan, and a patch."""

    findings: tuple[PlanFinding, ...] = ()
    patch: tuple[PlanPatch, ...] = ()


class QueryItem(Frozen):
    """A search query for one shot."""

    shot_id: str
    query: str = Field(min_length=1, max_length=200)


class Queries(Frozen):
    """One query for every requested shot."""

    queries: tuple[QueryItem, ...] = Field(min_length=1)


class MusicQuery(Frozen):
    """What the background music should be like."""

    query: str = Field(min_length=1, max_length=120)
    moods: tuple[str, ...] = ()


class FillItem(Frozen):
    """Template and slot texts for one spotlight shot."""

    shot_id: str
    template: str
    slots: dict[str, str]


class Fills(Frozen):
    """One fill for every requested spotlight shot."""

    fills: tuple[FillItem, ...] = Field(min_length=1)


class Judgement(Frozen):
    """The critic's decision on one finding of the inspection."""

    subject: str
    code: DefectCode
    confirmed: bool
    severity: Literal["warning", "error"]


class Inspection(Frozen):
    """One judgement for every finding in the evidence; nothing else."""

    judgements: tuple[Judgement, ...] = ()


class SeverityOrder(Frozen):
    """Open defects, most severe first; every open defect exactly once."""

    order: tuple[str, ...] = Field(min_length=1, description="defect ids")


class MendItem(Frozen):
    """One diagnosed defect and the mend asked for."""

    defect_id: str
    cause: str = Field(min_length=1, max_length=200)
    mend: MendCode
    reason: str = Field(default="", max_length=200)


class RepairRequest(Frozen):
    """The bounded repair the critic asks for."""

    mends: tuple[MendItem, ...] = Field(min_length=1)


CONTENTS: dict[str, type[Frozen]] = {
    "segments": Segments,
    "shot_plan": ShotPlan,
    "plan_reflection": PlanReflection,
    "queries": Queries,
    "music_query": MusicQuery,
    "fills": Fills,
    "inspection": Inspection,
    "severity": SeverityOrder,
    "repair_request": RepairRequest,
}


def content_schema(kind: str) -> dict[str, Any]:
    """JSON Schema of a content kind."""
    return CONTENTS[kind].model_json_schema()
