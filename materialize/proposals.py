"""Candidate outputs for one decision: the recorded one, seeded legal alternatives, mistakes, and samples of a policy.

Owns where outputs come from; it executes nothing. Every output says in its ``reason`` (never shown to a model) where it came from, and
equal outputs are proposed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import orjson

from repair.fault_kinds import PLAN_KINDS
from repair.plan_faults import spoil
from replay.policies.base import Policy
from schemas.canonical import canonical_text
from schemas.contract import Role
from schemas.trajectory import Provenance, RoleContext, RoleOutput

SHARE_OF_MISTAKES = 0.34
"""At most this share of a group's outputs are mistakes, but one where there is one."""


def propose(
    context: RoleContext, recorded: RoleOutput | None, policies: Sequence[Policy], count: int, seed: int
) -> tuple[tuple[RoleOutput, str], ...]:
    """Up to ``count`` different outputs for a context, each with its origin: recorded, alternative or mistake.

    Args:
        recorded: what the recorded run said here; comes first.
        policies: sampled in order, one output each; equal ones count once.
        seed: decides which mistakes are made.
    """
    out: dict[str, tuple[RoleOutput, str]] = {}

    def add(output: RoleOutput, origin: str) -> None:
        name = canonical_text([output.tool, output.arguments_json, output.text])
        if output.provenance is Provenance.SCRIPTED_MISTAKE:
            origin = "mistake"
        out.setdefault(name, (output.model_copy(update={"reason": f"{origin}: {output.reason}"[:300]}), origin))

    if recorded is not None:
        add(recorded, "recorded")
    wrong = max(1, int(count * SHARE_OF_MISTAKES))
    for policy in policies:
        if len(out) >= count - wrong:
            break
        add(policy.act(context), "alternative")
    base = next(iter(out.values()))[0] if out else None
    if base is not None:
        for output in _mistakes(context, base, seed):
            if len(out) >= count:
                break
            add(output, "mistake")
    return tuple(out.values())[:count]


def sample(context: RoleContext, policies: Sequence[Policy]) -> tuple[tuple[RoleOutput, str], ...]:
    """What policies say to a context, one output each; equal ones count once. Nothing else is put among them, so a group of them is the
    policy's own.

    Raises:
        PipelineError: a policy could not be asked.
    """
    out: dict[str, tuple[RoleOutput, str]] = {}
    for policy in policies:
        output = policy.act(context)
        out.setdefault(canonical_text([output.tool, output.arguments_json, output.text]), (output, "sample"))
    return tuple(out.values())


def _mistakes(context: RoleContext, base: RoleOutput, seed: int) -> Iterator[RoleOutput]:
    rng = Random(f"mistakes:{seed}:{context.call_index}")  # noqa: S311 - seeded choice, no secret
    made = list(_calls(context, base) if context.role is Role.ORCHESTRATOR else _contents(context.role, base))
    rng.shuffle(made)
    yield from made


def _calls(context: RoleContext, base: RoleOutput) -> Iterator[RoleOutput]:
    for kind in PLAN_KINDS:
        spoiled = spoil(base, context.view, kind)
        if spoiled is not None:
            tool, arguments, _, detail = spoiled
            yield _mistake(base, f"{kind}: {detail}", tool=tool, arguments_json=canonical_text(arguments))
    if base.tool is not None and base.arguments_json is not None:  # these make sense for every call, so no group is without a mistake
        invented = {**orjson.loads(base.arguments_json), "style": "cinematic"}
        yield _mistake(base, "an argument that does not exist", arguments_json=canonical_text(invented))
        yield _mistake(base, "a tool that does not exist", tool=f"{base.tool}_now")


def _contents(role: Role, base: RoleOutput) -> Iterator[RoleOutput]:
    """Spoiled contents: broken JSON, an item left out, a subject that does not exist, judgements and mends turned round."""
    yield _mistake(base, "cut off", text=base.text[: max(1, len(base.text) // 2)])
    try:
        value = orjson.loads(base.text)
    except orjson.JSONDecodeError:
        return
    name, items = next(((k, v) for k, v in value.items() if isinstance(v, list) and v), (None, None))
    if name is None or items is None:
        return
    if len(items) > 1:
        yield _mistake(base, "one left out", text=canonical_text({**value, name: items[:-1]}))
    if isinstance(items[0], dict):
        for field, other in (("shot_id", "s998"), ("visual_query", "something nice"), ("query", "something nice")):
            if field in items[0]:
                yield _mistake(base, f"{field} wrong", text=canonical_text({**value, name: [{**items[0], field: other}, *items[1:]]}))
        if isinstance(items[0].get("confirmed"), bool):
            turned = [{**i, "confirmed": not i["confirmed"]} for i in items]
            yield _mistake(base, "judgements turned round", text=canonical_text({**value, name: turned}))
        if "mend" in items[0]:
            yield _mistake(base, "all accepted", text=canonical_text({**value, name: [{**i, "mend": "accept"} for i in items]}))
            if len(items) > 1:
                yield _mistake(base, "only the first mended", text=canonical_text({**value, name: items[:1]}))
    elif len(items) > 1:
        yield _mistake(base, "order turned round", text=canonical_text({**value, name: items[::-1]}))


def _mistake(base: RoleOutput, reason: str, **update: Any) -> RoleOutput:
    return base.model_copy(update={**update, "provenance": Provenance.SCRIPTED_MISTAKE, "reason": reason, "usage": {}, "reply": None})
