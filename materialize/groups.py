"""Comparison groups: several outputs of one decision, executed under one matched key, with rewards that differ enough to learn from.

Owns the gate, the resampling cap, the coverage queue and the choice of decisions by quotas. What an output is worth is measured by
materialize.branches; what may be compared is said by materialize.matched.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from materialize.branches import Executor, Outcome
from materialize.config import GroupConfig
from materialize.matched import MatchedKey, Scored, advantages, variance
from materialize.rows import Row
from schemas.canonical import canonical_text, digest_of
from schemas.trajectory import RoleOutput, Trajectory

Propose = Callable[[int], Sequence[tuple[RoleOutput, str]]]
"""Gives the candidates of one round: outputs with their origins."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One executed output."""

    output: RoleOutput
    origin: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Group:
    """All candidates of one decision."""

    key: MatchedKey
    trajectory: Trajectory
    call_index: int
    candidates: tuple[Candidate, ...]
    rounds: int
    status: Literal["accepted", "queued"]
    advantages: dict[str, float]

    @property
    def variance(self) -> float:
        """Of the rewards."""
        return variance([c.outcome.reward.value for c in self.candidates])

    def name(self, index: int) -> str:
        """Name of a candidate, as ``workprint reward explain`` takes it."""
        return f"{self.key.group_id}.{index}"

    def rows(self) -> dict[str, list[Row]]:
        """Rows of tables ``groups`` and ``candidates``."""
        call = self.trajectory.calls[self.call_index]
        group: Row = {
            "group_id": self.key.group_id,
            "project_id": self.trajectory.project_id,
            "trajectory_id": self.trajectory.trajectory_id,
            "call_index": self.call_index,
            "role": self.key.role.value,
            "snapshot_id": call.snapshot_before,
            "matched_key_json": self.key.text(),
            "tool": call.tool,
            "candidates": len(self.candidates),
            "variance": self.variance,
            "rounds": self.rounds,
            "status": self.status,
        }
        candidates: list[Row] = [
            {
                "group_id": self.key.group_id,
                "project_id": self.trajectory.project_id,
                "candidate_index": i,
                "origin": c.origin,
                "output_json": canonical_text(c.output.model_dump(mode="json", exclude=set() if c.output.reply else {"reply"})),
                "refused": c.outcome.refused,
                "observation_json": canonical_text(c.outcome.first.observation.model_dump(mode="json")),
                "state_after": c.outcome.first.state_after,
                "calls": c.outcome.calls,
                "reward": c.outcome.reward.value,
                "reward_parts_json": canonical_text(c.outcome.reward.parts),
                "advantage": self.advantages.get(self.name(i)),
            }
            for i, c in enumerate(self.candidates)
        ]
        return {"groups": [group], "candidates": candidates}


def form_group(
    trajectory: Trajectory, call_index: int, key: MatchedKey, propose: Propose, executor: Executor, config: GroupConfig
) -> Group:
    """Draw and execute candidates until their rewards differ enough, or the cap is reached.

    A later round keeps the best and the worst that were seen and fills up with outputs not seen before; every output is executed once. A
    group that stays without variance goes to the coverage queue: its rows are kept, it gives no advantages.

    Raises:
        PipelineError: a fault of ours while executing; the group is to be made again.
    """
    done: dict[str, Candidate] = {}
    members: list[Candidate] = []
    rounds = 0
    for rounds in range(1, config.rounds + 1):
        kept = _extremes(members)
        fresh: list[Candidate] = []
        for output, origin in propose(rounds - 1):
            name = digest_of([output.tool, output.arguments_json, output.text])
            if name in done or len(kept) + len(fresh) >= config.candidates:
                continue
            done[name] = Candidate(output, origin, executor.execute(output))
            fresh.append(done[name])
        if not fresh and rounds > 1:
            break
        members = kept + fresh
        if variance([m.outcome.reward.value for m in members]) > config.delta:
            break
    candidates = tuple(members)
    accepted = variance([m.outcome.reward.value for m in candidates]) > config.delta
    scored = [Scored(key, f"{key.group_id}.{i}", c.outcome.reward.value) for i, c in enumerate(candidates)]
    return Group(key, trajectory, call_index, candidates, rounds, "accepted" if accepted else "queued", advantages(scored, config))


def _extremes(members: Sequence[Candidate]) -> list[Candidate]:
    if not members:
        return []
    best = max(members, key=lambda c: c.outcome.reward.value)
    worst = min(members, key=lambda c: c.outcome.reward.value)
    return [best] if best is worst else [best, worst]


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision of a stored run that a group may be made of."""

    trajectory_id: str
    project_id: str
    call_index: int
    role: str
    tool: str


def choose(
    decisions: Iterable[Decision], count: int, seed: int, config: GroupConfig, queued: frozenset[tuple[str, int]] = frozenset()
) -> tuple[Decision, ...]:
    """Decisions to make groups of: evenly over role, task and tool.

    Cells (role, project, tool) are visited in turn, in an order drawn by the seed, roles alternating; a cell gives at most
    ``config.per_cell``. Decisions in the coverage queue come after all others of their cell: they are for imitation.

    Args:
        count: how many are wanted.
        queued: (trajectory id, call index) of decisions whose groups had too little variance before.
    """
    cells: defaultdict[tuple[str, str, str], list[Decision]] = defaultdict(list)
    for d in decisions:
        cells[d.role, d.project_id, d.tool].append(d)
    for members in cells.values():
        members.sort(key=lambda d: ((d.trajectory_id, d.call_index) in queued, digest_of([seed, d.trajectory_id, d.call_index])))
    by_role: defaultdict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for cell in sorted(cells, key=lambda c: digest_of([seed, *c])):
        by_role[cell[0]].append(cell)
    out: list[Decision] = []
    for turn in range(config.per_cell):
        place = 0
        while len(out) < count and any(place < len(c) for c in by_role.values()):
            for role in sorted(by_role):
                if place < len(by_role[role]) and turn < len(cells[by_role[role][place]]) and len(out) < count:
                    out.append(cells[by_role[role][place]][turn])
            place += 1
    return tuple(out)
