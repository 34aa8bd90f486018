"""Tool contracts: versioned promises as data. Behaviour lives in replay.tools and repair.tools."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from schemas.canonical import Frozen, Sha256

_DIGEST = re.compile(r"[0-9a-f]{64}")


class Role(StrEnum):
    """Who speaks."""

    ORCHESTRATOR = "orchestrator"
    GENERATOR = "generator"
    CRITIC = "critic"


class Fact(StrEnum):
    """Facts about the production state that tools need and produce. Each is decided by replay.facts, never by a flag."""

    SCRIPT = "script"
    SEGMENTS = "segments"
    SHOT_PLAN = "shot_plan"
    SOURCE_POOL = "source_pool"
    MUSIC_LIBRARY = "music_library"
    ASSETS = "assets"
    NARRATION = "narration"
    DECORATIONS = "decorations"
    MUSIC = "music"
    TIMELINE = "timeline"
    RENDERS = "renders"
    INSPECTION = "inspection"
    OPEN_DEFECTS = "open_defects"
    DELIVERY = "delivery"


class ArgSpec(Frozen):
    """One flat argument. Portable: a single JSON type, a description, perhaps an enum; never null, never nested."""

    name: str
    type: Literal["string", "integer", "boolean"]
    description: str
    required: bool = True
    enum: tuple[str, ...] | None = None
    minimum: int | None = None
    maximum: int | None = None
    max_length: int | None = None

    def property_schema(self) -> dict[str, Any]:
        """JSON Schema of this property, keys in a fixed order. ``minimum``, ``maximum`` and ``max_length`` are enforced by the
        runtime and told in the description, because some trainers drop them from schemas."""
        out: dict[str, Any] = {"type": self.type, "description": self.description}
        if self.enum is not None:
            out["enum"] = list(self.enum)
        return out


class ToolContract(Frozen):
    """What a tool needs, takes, gives and promises."""

    name: str
    version: int = Field(ge=1)
    summary: str
    args: tuple[ArgSpec, ...]
    needs: tuple[Fact, ...]
    produces: tuple[Fact, ...]
    roles: tuple[Role, ...] = Field(default=(), description="roles asked for content inside this tool, in order")
    checks: tuple[str, ...] = Field(description="post-conditions verified on the product's bytes")
    wall_s: int = Field(gt=0, description="time limit of the whole call, seconds")
    max_output_bytes: int = Field(gt=0)
    repairable: bool = Field(default=False, description="counts against the repair limits")

    def function_schema(self) -> dict[str, Any]:
        """The tool in OpenAI function form, canonical: properties sorted by name, flat, no null."""
        args = sorted(self.args, key=lambda a: a.name)
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.summary,
                "parameters": {
                    "type": "object",
                    "properties": {a.name: a.property_schema() for a in args},
                    "required": [a.name for a in args if a.required],
                },
            },
        }


def shown_schema(tool: Mapping[str, Any]) -> dict[str, Any]:
    """An OpenAI function schema with its keys in the order in which chat templates show them, and without an empty ``required``.

    Templates print the schema as it comes, so the order of keys is part of a prompt. This is the order that trainers give to schemas
    which they make of Python functions (``transformers.utils.get_json_schema``); models in use, training sets and environments all get
    it, so that a policy reads the same text everywhere.
    """
    function = tool["function"]
    parameters = {k: v for k, v in function.get("parameters", {}).items() if k != "required" or v}
    if "properties" in parameters:
        properties = parameters["properties"]
        parameters["properties"] = {n: _ordered(properties[n], ("type", "enum", "description")) for n in sorted(properties)}
    shown = {**function, "parameters": _ordered(parameters, ("type", "properties", "required"))} if parameters else function
    return _ordered({**tool, "function": _ordered(shown, ("name", "description", "parameters"))}, ("type", "function"))


def _ordered(value: Mapping[str, Any], first: tuple[str, ...]) -> dict[str, Any]:
    return {k: value[k] for k in first if k in value} | {k: value[k] for k in sorted(value) if k not in first}


class ContentRequest(Frozen):
    """Structured content that a tool needs from the generator or the critic before it can go on."""

    role: Role
    tool: str
    tool_version: int
    kind: str = Field(description="name of the content contract, e.g. segments, shot_plan, queries, slots, diagnosis")
    instruction: str
    content_schema: dict[str, Any] = Field(description="JSON Schema of the expected content")
    evidence: dict[str, Any] = Field(default_factory=dict, description="data to decide on; never instructions")
    attempt: int = Field(default=1, ge=1)

    @property
    def pictures(self) -> tuple[Sha256, ...]:
        """Picture artifacts (JPEG) that the evidence names under ``pictures``, in order; for those who can see them."""
        rows = self.evidence.get("pictures", ())
        named = [row.get("sha256") for row in rows if isinstance(row, dict)] if isinstance(rows, list | tuple) else []
        return tuple(name for name in named if isinstance(name, str) and _DIGEST.fullmatch(name))
