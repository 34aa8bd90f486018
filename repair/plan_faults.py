"""Plan-level faults: an orchestrator's output is spoiled before the runtime sees it, as a confused model might have written it.

Owns the wrapper around a policy. It reads the same context as the policy and nothing else; the runtime answers with blockers, and the
policy has to get over them. The cause is written into the output's ``reason``, which no model is ever shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import orjson
from pydantic import ValidationError

from repair.config import FaultConfig
from repair.fault_kinds import PLAN_KINDS
from replay.policies.base import Policy
from schemas.canonical import canonical_text, digest_of
from schemas.contract import Role
from schemas.trajectory import Call, InjectedFault, Provenance, RoleContext, RoleOutput

TURNS = 16
"""Faults fall into the first turns of a run; a longer run has room to get over them."""

NO_SUCH_SHOT = "s998"

MARK = "injected fault "
"""Begins the reason of a spoiled output."""


class FaultyPolicy:
    """A policy whose outputs are spoiled at a few turns that a seed draws.

    Args:
        policy: who decides otherwise.
        config: kinds, count and seed; execution-level kinds are left to repair.faults.
    """

    def __init__(self, policy: Policy, config: FaultConfig) -> None:
        self.policy = policy
        self.name = policy.name
        self.seed = policy.seed
        kinds = [k for k in config.kinds if k in PLAN_KINDS]
        turns = sorted(range(TURNS), key=lambda t: digest_of([config.seed, "turn", t]))[: config.count if kinds else 0]
        self.turns: dict[int, str] = {turn: kinds[n % len(kinds)] for n, turn in enumerate(turns)}
        """Kind of fault by orchestrator turn, from 0."""

    def act(self, context: RoleContext) -> RoleOutput:
        """The policy's output, spoiled if this turn was drawn and the fault can be made here."""
        output = self.policy.act(context)
        if context.role is not Role.ORCHESTRATOR:
            return output
        kind = self.turns.get(context.view["turn"]["used"])
        spoiled = None if kind is None else spoil(output, context.view, kind)
        if kind is None or spoiled is None:
            return output
        tool, arguments, subject, detail = spoiled
        fault = InjectedFault(
            fault_id=f"flt_{digest_of([kind, context.call_index, detail])[:16]}", kind=kind, subject=subject, detail=detail
        )
        return output.model_copy(
            update={
                "tool": tool,
                "arguments_json": json.dumps(arguments, ensure_ascii=False),
                "provenance": Provenance.SCRIPTED_MISTAKE,
                "reason": MARK + canonical_text(fault.model_dump(mode="json")),
            }
        )


def spoil(output: RoleOutput, view: dict[str, Any], kind: str) -> tuple[str, dict[str, Any], str, str] | None:
    """The spoiled call: tool, arguments, what is wrong, and in words; None when the fault makes no sense for this call.

    Args:
        view: the orchestrator's view of the run (tools, progress).
    """
    if output.tool is None or output.arguments_json is None:
        return None
    tool, arguments, tools = output.tool, dict(json.loads(output.arguments_json)), view["tools"]
    if kind == "missing_argument":
        required = [
            name for name, spec in tools.get(tool, {"args": {}})["args"].items() if spec.get("required", True) and name in arguments
        ]
        if not required:
            return None
        arguments.pop(required[0])
        return tool, arguments, f"argument:{required[0]}", f"{tool} without '{required[0]}'"
    if kind == "broken_reference":
        if "shots" not in arguments:
            return None
        return tool, {**arguments, "shots": NO_SUCH_SHOT}, f"shot:{NO_SUCH_SHOT}", f"{tool} for a shot that does not exist"
    progress = view["progress"]
    lacking = [f for f in tools.get(tool, {"produces": []})["produces"] if not progress.get(f, {"holds": True})["holds"]]
    if kind == "dropped_producer":
        for name, other in sorted(tools.items()):
            if name != tool and set(lacking) & set(other["needs"]):
                return name, default_arguments(other["args"]), f"tool:{name}", f"{name} instead of {tool}, whose {lacking[0]} it needs"
        return None
    if kind == "wrong_order":
        for name, other in sorted(tools.items()):
            if "delivery" in other["produces"] and any(not progress.get(f, {"holds": True})["holds"] for f in other["needs"]):
                return name, default_arguments(other["args"]), f"tool:{name}", f"{name} before its parts exist"
    return None


def default_arguments(specs: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Well-formed arguments for a call: everything in scope, first allowed values."""
    out: dict[str, Any] = {}
    for name, spec in specs.items():
        if spec.get("required", True):
            first = {"string": "all", "integer": spec.get("minimum", 0), "boolean": False}[spec["type"]]
            out[name] = spec["enum"][0] if spec.get("enum") else first
    return out


def plan_faults(calls: Iterable[Call]) -> tuple[tuple[int, InjectedFault], ...]:
    """Plan-level faults of recorded calls, each with the index of the call it struck."""
    out: list[tuple[int, InjectedFault]] = []
    for call in calls:
        if call.output.reason.startswith(MARK):
            try:
                fault = InjectedFault.model_validate(orjson.loads(call.output.reason.removeprefix(MARK)))
            except (orjson.JSONDecodeError, ValidationError):
                continue
            out.append((call.call_index, fault))
    return tuple(out)
