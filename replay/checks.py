"""The validation ladder: what a role output must pass before anything is executed.

Owns the order of checks (parse, tool, role, arguments, references, prerequisites, repair limits) and the blockers they give. Pure: it
executes nothing and changes nothing. Budget and turn order are the runtime's.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from pydantic import ValidationError

from replay import facts, views
from replay.config import ReplayConfig
from replay.registry import Registry
from replay.tool import Tool
from schemas.blocker import Blocker, BlockerCode
from schemas.canonical import canonical_bytes
from schemas.contract import ArgSpec, Fact, Role
from schemas.errors import ToolFailed
from schemas.state import Pending, ProductionState
from schemas.trajectory import RoleOutput

MAX_ARGUMENT_TEXT = 65_536
"""Characters of an orchestrator's arguments; a flat call needs a few hundred."""
MAX_CONTENT_TEXT = 1_048_576
"""Characters of a generator's or critic's answer."""
MAX_BLOCKERS = 8
"""Blockers shown for one refusal: the first of each kind teach more than the hundredth."""

_TYPES: dict[str, type] = {"string": str, "integer": int, "boolean": bool}


@dataclass(frozen=True, slots=True)
class ToolCall:
    """An orchestrator output that passed the ladder."""

    tool: Tool
    arguments: Mapping[str, Any]


Blockers = tuple[Blocker, ...]


def orchestrator(output: RoleOutput, state: ProductionState, registry: Registry, config: ReplayConfig) -> ToolCall | Blockers:
    """Check an orchestrator output up to the point where it could be executed."""
    wrong = _role(output, Role.ORCHESTRATOR)
    if wrong:
        return wrong
    if not output.tool:
        return (_blocker(BlockerCode.UNPARSABLE_OUTPUT, "output", "the output holds no tool call; expected exactly one"),)
    parsed = _parse(output.arguments_json or "", "arguments", MAX_ARGUMENT_TEXT)
    if isinstance(parsed, Blocker):
        return (parsed,)
    tool = registry.get(output.tool)
    if tool is None:
        return (_unknown_tool(output.tool, registry),)
    problems = arguments(tool.contract.args, parsed)
    if problems:
        return problems[:MAX_BLOCKERS]
    problems = tool.resolve(state, parsed)
    if problems:
        return problems[:MAX_BLOCKERS]
    problems = prerequisites(tool, state, registry)
    if problems:
        return problems[:MAX_BLOCKERS]
    if tool.contract.repairable and state.film.repairs_used >= config.run_repairs:
        limit = config.run_repairs
        return (
            _blocker(
                BlockerCode.REPAIR_LIMIT_REACHED,
                f"tool:{tool.contract.name}",
                f"the run has used its {limit} repair calls; open warnings do not hold a delivery back, missing products do",
                remedies=facts.PRODUCERS[Fact.DELIVERY],
            ),
        )
    return ToolCall(tool, parsed)


def arguments(specs: tuple[ArgSpec, ...], given: Mapping[str, Any]) -> Blockers:
    """Check arguments against their specs: missing, unknown, wrong type, value not allowed."""
    out: list[Blocker] = []
    known = {a.name: a for a in specs}
    for spec in specs:
        if spec.required and spec.name not in given:
            out.append(_argument(BlockerCode.MISSING_ARGUMENT, spec.name, f"the argument '{spec.name}' is missing; {_expected(spec)}"))
    for name, value in given.items():
        found = known.get(name)
        if found is None:
            names = ", ".join(known) or "none"
            out.append(_argument(BlockerCode.UNKNOWN_ARGUMENT, name, f"there is no argument '{views.clip(name, 40)}'; known: {names}"))
            continue
        problem = _value(found, value)
        if problem is not None:
            out.append(problem)
    return tuple(out)


def prerequisites(tool: Tool, state: ProductionState, registry: Registry) -> Blockers:
    """One blocker for each fact the tool needs and the state lacks, with the subjects and the tools that can produce it."""
    out: list[Blocker] = []
    for fact in tool.contract.needs:
        missing = facts.lacking(fact, state)
        if not missing:
            continue
        if missing == facts.FILM:
            what = "the film has none yet"
        else:
            what = f"missing for {len(missing)} of {facts.concerned(fact, state)}: {views.ranges(missing, state.film.shot_order, 160)}"
        out.append(
            _blocker(
                BlockerCode.PREREQUISITE_MISSING,
                f"tool:{tool.contract.name}",
                f"{tool.contract.name} needs {fact.value}; {what}",
                needs=(fact.value,),
                remedies=remedies(fact, registry),
            )
        )
    return tuple(out)


def remedies(fact: Fact, registry: Registry) -> tuple[str, ...]:
    """Offered tools that bring a fact about: the usual producers first, then any other whose contract promises it."""
    usual = tuple(name for name in facts.PRODUCERS[fact] if registry.get(name) is not None)
    return (*usual, *(name for name in registry.producers(fact) if name not in usual))


def content(output: RoleOutput, pending: Pending, state: ProductionState, tool: Tool, registry: Registry) -> dict[str, Any] | Blockers:
    """Check a generator's or critic's answer to the open request.

    Returns:
        the content in normal form (defaults filled in, JSON values), or the blockers.
    """
    request = pending.request
    wrong = _role(output, request.role)
    if wrong:
        return wrong
    parsed = _parse(output.text, "content", MAX_CONTENT_TEXT)
    if isinstance(parsed, Blocker):
        return (parsed,)
    model = registry.content_model(request.kind)
    if model is None:
        raise ToolFailed(
            "unknown_content_kind",
            f"{request.tool} asks for content of kind {request.kind!r}, which neither it nor replay.contents defines",
        )
    try:
        value = model.model_validate(parsed).model_dump(mode="json")
    except ValidationError as error:
        return tuple(
            _blocker(
                BlockerCode.CONTENT_CONTRACT_BROKEN,
                "content:" + views.clip(".".join(str(p) for p in e["loc"]) or request.kind, 120),
                e["msg"],
            )
            for e in error.errors(include_url=False, include_input=False, include_context=False)[:MAX_BLOCKERS]
        )
    problems = tool.accept(state, pending.arguments, pending.given, value)
    return problems[:MAX_BLOCKERS] if problems else value


def _role(output: RoleOutput, expected: Role) -> Blockers:
    if output.role is expected:
        return ()
    message = f"it is the {expected.value}'s turn, the output is the {output.role.value}'s"
    return (_blocker(BlockerCode.ROLE_MISMATCH, f"role:{output.role.value}", message),)


def _parse(text: str, what: str, limit: int) -> dict[str, Any] | Blocker:
    """Strict JSON: one object, no repeated keys, no NaN, nothing that canonical JSON cannot hold."""
    if len(text) > limit:
        return _unparsable(what, f"the {what} have {len(text)} characters; at most {limit} are read")
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
        canonical_bytes(value)
    except (ValueError, TypeError, RecursionError) as error:
        return _unparsable(what, f"the {what} are not one JSON object: {views.clip(str(error), 160)}")
    if not isinstance(value, dict):
        return _unparsable(what, f"the {what} must be a JSON object, got {_kind(value)}")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("a key occurs twice")
    return out


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _value(spec: ArgSpec, value: Any) -> Blocker | None:
    if not isinstance(value, _TYPES[spec.type]) or (spec.type == "integer" and isinstance(value, bool)):
        return _argument(BlockerCode.WRONG_TYPE, spec.name, f"'{spec.name}' must be {_article(spec.type)}, got {_kind(value)}")
    too_long = spec.max_length is not None and isinstance(value, str) and len(value) > spec.max_length
    not_listed = spec.enum is not None and value not in spec.enum
    below = spec.minimum is not None and isinstance(value, int) and value < spec.minimum
    above = spec.maximum is not None and isinstance(value, int) and value > spec.maximum
    if too_long or not_listed or below or above:
        seen = views.clip(json.dumps(value, ensure_ascii=False), 60)
        return _argument(BlockerCode.VALUE_NOT_ALLOWED, spec.name, f"'{spec.name}' is {seen}; {_expected(spec)}")
    return None


def _expected(spec: ArgSpec) -> str:
    if spec.enum is not None:
        return "expected one of " + ", ".join(spec.enum)
    if spec.type == "integer" and (spec.minimum is not None or spec.maximum is not None):
        low = "" if spec.minimum is None else f" from {spec.minimum}"
        high = "" if spec.maximum is None else f" up to {spec.maximum}"
        return f"expected an integer{low}{high}"
    if spec.max_length is not None:
        return f"expected {_article(spec.type)} of at most {spec.max_length} characters"
    return f"expected {_article(spec.type)}"


def _unknown_tool(name: str, registry: Registry) -> Blocker:
    near = difflib.get_close_matches(name[:80], registry.names(), n=3)
    hint = f"; close names: {', '.join(near)}" if near else ""
    return _blocker(BlockerCode.UNKNOWN_TOOL, f"tool:{views.clip(name, 60)}", f"there is no tool of that name{hint}", remedies=tuple(near))


def _unparsable(what: str, message: str) -> Blocker:
    return _blocker(BlockerCode.UNPARSABLE_OUTPUT, what, message)


def _argument(code: BlockerCode, name: str, message: str) -> Blocker:
    return _blocker(code, f"argument:{views.clip(name, 60)}", message)


def _blocker(code: BlockerCode, subject: str, message: str, *, needs: tuple[str, ...] = (), remedies: tuple[str, ...] = ()) -> Blocker:
    return Blocker(code=code, subject=subject, message=message, needs=needs, remedies=remedies)


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "a boolean", int: "an integer", float: "a number", str: "a string", list: "an array", dict: "an object"}
    return names.get(type(value), "something else")
