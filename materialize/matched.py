"""Matched keys: what must be equal before two outputs may be compared (Appendix A.2).

Owns the fields of the key of each role, and the one function that normalises rewards: inside a key, never across.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from materialize.config import GroupConfig
from repair.limits import LIMITS
from replay.runtime import Runtime
from schemas.canonical import canonical_bytes, canonical_text, derive_id, digest_of, sha256_bytes
from schemas.contract import Role
from schemas.errors import SchemaMismatch


@dataclass(frozen=True, slots=True)
class MatchedKey:
    """kappa of the paper, as named digests. ``group_id`` is derived from all of them."""

    role: Role
    fields: tuple[tuple[str, Any], ...]

    @property
    def group_id(self) -> str:
        """Name of the group of this key."""
        return derive_id("group", [self.role.value, list(self.fields)])

    def text(self) -> str:
        """Exact JSON of the key."""
        return canonical_text({"role": self.role.value, **dict(self.fields)})


def matched_key(runtime: Runtime, continuation: str, config: GroupConfig) -> MatchedKey:
    """The key of the decision that is due in a restored run.

    Orchestrator: task input, context, restored state, tool space, budget left, continuation policy. Generator: the local request, its
    artifacts (evidence), tool, schema and version, budget, and the state. Critic: these, the open defects, and the verification contract
    (the limits of inspection). Every key holds the paired seeds.

    Args:
        continuation: names the frozen policy with everything that decides its outputs.
    """
    context, state = runtime.context(), runtime.state
    common: dict[str, Any] = {
        "context": sha256_bytes(canonical_bytes(context.visible())),
        "state": runtime.state_digest,
        "budget_left": runtime.budget - runtime.orchestrator_calls,
        "continuation": continuation,
        "seeds": tuple(config.seeds),
    }
    pending = state.film.pending
    if pending is None:
        common |= {"task": state.film.task.digest(), "tools": runtime.registry.digest()}
        return _key(Role.ORCHESTRATOR, common)
    request = pending.request
    common |= {
        "request": digest_of([request.kind, request.instruction, context.view["turn"]["attempt"], pending.arguments, list(pending.given)]),
        "artifacts": digest_of(request.evidence),
        "tool": f"{pending.tool}.{pending.tool_version}",
        "schema": digest_of(request.content_schema),
    }
    if request.role is Role.CRITIC:
        open_defects = [d for shot in state.shots.values() for d in shot.open_defects] + list(state.film.film_defects)
        common |= {"defects": digest_of(sorted(d.defect_id for d in open_defects)), "verification": LIMITS.digest()}
    return _key(request.role, common)


def _key(role: Role, fields: dict[str, Any]) -> MatchedKey:
    return MatchedKey(role, tuple(sorted(fields.items())))


@dataclass(frozen=True, slots=True)
class Scored:
    """A reward under its key."""

    key: MatchedKey
    candidate: str
    reward: float


def variance(rewards: Sequence[float]) -> float:
    """Population variance; 0 for fewer than two."""
    if len(rewards) < 2:
        return 0.0
    mean = math.fsum(rewards) / len(rewards)
    return math.fsum((r - mean) ** 2 for r in rewards) / len(rewards)


def advantages(scored: Sequence[Scored], config: GroupConfig) -> dict[str, float]:
    """A_i of eq. 8 for every candidate: its reward less the mean of its own group, over the group's deviation and epsilon.

    Groups are told apart by their whole key, so nothing of another role, state, budget or seed set can enter a mean. Groups whose variance
    is not above delta give no advantages.

    Raises:
        SchemaMismatch: a candidate's name occurs twice.
    """
    groups: defaultdict[MatchedKey, list[Scored]] = defaultdict(list)
    for s in scored:
        groups[s.key].append(s)
    out: dict[str, float] = {}
    for members in groups.values():
        rewards = [m.reward for m in members]
        spread = variance(rewards)
        if spread <= config.delta:
            continue
        mean = math.fsum(rewards) / len(rewards)
        for m in members:
            if m.candidate in out:
                raise SchemaMismatch("candidate_twice", f"candidate {m.candidate} occurs twice")
            out[m.candidate] = (m.reward - mean) / (math.sqrt(spread) + config.epsilon)
    return out
