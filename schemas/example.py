"""Training examples: one role output with the context it was authored under."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from schemas.canonical import Frozen, Sha256
from schemas.contract import Role
from schemas.trajectory import Provenance

EXAMPLE_VERSION: Literal["example.1"] = "example.1"


class ExampleKind(StrEnum):
    """What the example teaches."""

    TOOL_CALL = "tool_call"
    BLOCKER_RECOVERY = "blocker_recovery"
    SEGMENTS = "segments"
    SHOT_PLAN = "shot_plan"
    QUERIES = "queries"
    MUSIC_QUERY = "music_query"
    SLOTS = "slots"
    PLAN_REFLECTION = "plan_reflection"
    LOCALIZATION = "localization"
    SEVERITY = "severity"
    REPAIR_REQUEST = "repair_request"
    VERIFICATION = "verification"


class Split(StrEnum):
    """Split by source project."""

    TRAIN = "train"
    VALIDATION = "validation"
    HELD_OUT = "held_out"


class Example(Frozen):
    """One example. Loss only on ``completion``; ``prompt`` is byte for byte what the policy saw."""

    schema_version: Literal["example.1"] = EXAMPLE_VERSION
    example_id: str
    project_id: str
    trajectory_id: str
    call_index: int
    role: Role
    kind: ExampleKind
    provenance: Provenance
    licence: str
    attribution: str | None
    split: Split
    config_digest: Sha256
    verified: bool = Field(description="the output was accepted by the runtime and the run delivered")
    snapshot_id: str
    context_sha256: Sha256
    prompt: tuple[dict[str, str], ...]
    tools_json: str = Field(description="exact JSON text of the tool schemas; '[]' for generator and critic")
    completion: dict[str, Any] = Field(description="assistant message: content, and tool_calls with arguments as exact JSON text")
    prompt_tokens: int | None
    completion_tokens: int | None
