"""Groups of a lake: chooses decisions of stored runs, executes candidates, commits their rows. For ``workprint groups`` and ``reward``."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from evaluation.audit import Settings
from jobs.config import load_config
from jobs.questions import open_lake
from jobs.stages import Workshop
from materialize.branches import Executor
from materialize.config import GroupConfig, RewardConfig
from materialize.environment import Bench
from materialize.groups import Decision, Group, choose, form_group
from materialize.matched import matched_key
from materialize.proposals import propose
from media.sandbox import open_sandbox
from repair.diagnose import ScriptedCritic
from repair.faults import FaultPlan
from repair.registry import full_registry
from replay.policies.base import Policy
from replay.policies.scripted import ScriptedPolicy
from replay.suite import Suite
from schemas.canonical import derive_id, digest_of, stage_key
from schemas.errors import AlreadyDone, ConfigInvalid, PipelineError, StorageFault
from schemas.storyboard import Storyboard
from schemas.trajectory import RoleOutput, Trajectory
from storage.artifacts import ArtifactStore
from storage.lake import Lake, StageCommit
from storage.snapshots import SnapshotStore

VERSION = 1

ALTERNATIVES = 24
"""Seeds that legal alternatives are drawn from in one round."""


@dataclass(slots=True)
class Grouped:
    """What ``workprint groups`` did."""

    groups: list[Group] = field(default_factory=list)
    skipped: list[tuple[Decision, str]] = field(default_factory=list)
    known: int = 0
    wall_s: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Stable form of ``workprint groups --json``."""
        return {
            "groups": [
                {
                    "group_id": g.key.group_id,
                    "role": g.key.role.value,
                    "trajectory_id": g.trajectory.trajectory_id,
                    "call_index": g.call_index,
                    "tool": g.trajectory.calls[g.call_index].tool,
                    "status": g.status,
                    "variance": round(g.variance, 6),
                    "rounds": g.rounds,
                    "candidates": [
                        {
                            "candidate": g.name(i),
                            "origin": c.origin,
                            "refused": c.outcome.refused,
                            "reward": round(c.outcome.reward.value, 6),
                        }
                        for i, c in enumerate(g.candidates)
                    ],
                }
                for g in self.groups
            ],
            "known": self.known,
            "failed": [{"trajectory_id": d.trajectory_id, "call_index": d.call_index, "reason": why} for d, why in self.skipped],
            "wall_s": round(self.wall_s, 1),
        }


def make_groups(
    path: Path,
    *,
    snapshot: str | None,
    sample: int,
    seed: int,
    config: GroupConfig,
    rewards: RewardConfig,
    roles: tuple[str, ...],
    note: Callable[[str], None],
) -> Grouped:
    """Make groups of decisions of a lake and commit them.

    Args:
        snapshot: only the decision made in this state; else ``sample`` decisions over all, by quotas.
        roles: only decisions of these roles; all when empty.

    Raises:
        ConfigInvalid: no lake, or nothing to decide on.
        StorageFault: the lake cannot be read or written.
    """
    started = time.monotonic()
    lake = open_lake(path)
    found = Grouped()
    decisions = _decisions(lake, snapshot, roles)
    if not decisions:
        what = f"no decision was made in {snapshot}" if snapshot else "the lake has no trajectories"
        raise ConfigInvalid("no_decisions", what, 'find snapshots with: workprint query "select snapshot_before from calls"')
    queued = frozenset((t, i) for t, i in lake.query("select trajectory_id, call_index from groups where status = 'queued'").rows)
    chosen = tuple(decisions) if snapshot else choose(decisions, sample, seed, config, queued)
    for decision in chosen[:1] if snapshot else chosen:
        try:
            group = _one(lake, decision, seed, config, rewards, note)
        except StorageFault:
            raise
        except PipelineError as error:
            found.skipped.append((decision, str(error)))
            note(f"{decision.trajectory_id} call {decision.call_index}: {error}")
            continue
        if group is None:
            found.known += 1
        else:
            found.groups.append(group)
    found.wall_s = time.monotonic() - started
    return found


def _decisions(lake: Lake, snapshot: str | None, roles: tuple[str, ...]) -> list[Decision]:
    rows = lake.query(
        "select trajectory_id, project_id, call_index, role, tool from calls where provenance != 'runtime' and tool is not null "
        "and status != 'refused' and ($snapshot is null or snapshot_before = $snapshot) "
        "and (len($roles) = 0 or list_contains($roles, role)) order by all",
        {"snapshot": snapshot, "roles": list(roles)},
    ).rows
    return [Decision(str(t), str(p), int(i), str(r), str(tool)) for t, p, i, r, tool in rows]


def _one(
    lake: Lake, decision: Decision, seed: int, config: GroupConfig, rewards: RewardConfig, note: Callable[[str], None]
) -> Group | None:
    """Make one group and commit it; None when the very same group is known."""
    sha, board_sha = lake.query(
        "select t.trajectory_sha256, s.storyboard_sha256 from trajectories t join storyboards s using (project_id) "
        "where t.trajectory_id = $1",
        [decision.trajectory_id],
    ).rows[0]
    trajectory = Trajectory.model_validate_json(lake.store.read(sha))
    board = Storyboard.model_validate_json(lake.store.read(board_sha))
    bench, settings = open_bench(lake, trajectory, rewards)
    replay = settings.replay.model_copy(update={"policy": settings.replay.policy.model_copy(update={"mistake_rate": 0.0})})
    frozen = digest_of(["scripted", board_sha, replay.model_dump(mode="json")])

    def policy(number: int) -> Policy:
        return ScriptedPolicy(board, number, replay, ScriptedCritic())

    with bench.open() as env:
        context = env.restore(trajectory, decision.call_index)
        key = matched_key(env.runtime, frozen, config)
    settings_digest = digest_of([config.model_dump(mode="json"), rewards.model_dump(mode="json"), seed])
    name = stage_key("groups", VERSION, settings_digest, (sha, key.group_id))
    if lake.done(name) is not None:
        return None
    recorded = trajectory.calls[decision.call_index].output

    def round_of(number: int) -> tuple[tuple[RoleOutput, str], ...]:
        first = 1 + number * ALTERNATIVES
        others = [policy(seed * 1000 + n) for n in range(first, first + ALTERNATIVES)]
        return propose(context, recorded, others, config.candidates + number, seed + number)

    executor = Executor(bench, trajectory, decision.call_index, policy, config, rewards)
    group = form_group(trajectory, decision.call_index, key, round_of, executor, config)
    kept = (trajectory.calls[decision.call_index].context_sha256,)
    commit = StageCommit("groups", name, decision.project_id, key.group_id, "done", None, group.rows(), kept, derive_id("run", [name]))
    try:
        lake.commit(commit)
    except AlreadyDone:
        return None
    values = ", ".join(f"{c.origin} {c.outcome.reward.value:.3f}" for c in group.candidates)
    note(f"{group.key.group_id} {decision.role} {decision.tool}: {group.status} after {group.rounds}: {values}")
    return group


def open_bench(lake: Lake, trajectory: Trajectory, rewards: RewardConfig | None = None) -> tuple[Bench, Settings]:
    """What a stored run is executed with: its own settings, tools and faults."""
    settings = Settings.of(trajectory, lake.store)
    base = load_config(None)
    config = base.model_copy(update={"replay": settings.replay, "repair": settings.repair})
    shop = Workshop(config, lake.store, open_sandbox(config.run.sandbox))
    engines = shop.engines

    def suite(folder: Path) -> Suite:
        store = ArtifactStore(lake.store.root)
        return Suite(store, SnapshotStore(store), shop.sandbox, engines, settings.replay, folder)

    faults = settings.repair.faults
    start = lake.snapshots.load(trajectory.first_snapshot)
    offered = next(
        ([t["function"]["name"] for t in lake.store.read_json(c.context_sha256)["tools"]] for c in trajectory.calls if not c.request), None
    )
    registry = full_registry().reproducing(start.film.task.tools_digest, offered)
    if registry is None:
        raise ConfigInvalid("tools_gone", f"{trajectory.trajectory_id} was recorded with tools that this release cannot put together")
    return Bench(lake.store, suite, registry, FaultPlan(faults) if faults.count else None, rewards), settings


def explain(path: Path, candidate: str) -> dict[str, Any]:
    """Everything behind the reward of one candidate.

    Args:
        candidate: ``GROUP.INDEX``, as ``workprint groups`` prints it.

    Raises:
        ConfigInvalid: there is no such candidate.
    """
    group_id, _, index = candidate.partition(".")
    rows = open_lake(path).query(
        "select g.role, g.tool, g.trajectory_id, g.call_index, g.snapshot_id, g.status, g.variance, g.matched_key_json, c.origin, "
        "c.refused, c.calls, c.reward, c.reward_parts_json, c.advantage, c.output_json from candidates c join groups g using (group_id) "
        "where c.group_id = $1 and c.candidate_index = try_cast($2 as int)",
        [group_id, index],
    )
    if not rows.rows:
        raise ConfigInvalid(
            "no_candidate",
            f"there is no candidate {candidate!r}",
            'list them: workprint query "select group_id, candidate_index from candidates"',
        )
    row = dict(zip(rows.columns, rows.rows[0], strict=True))
    return {
        "candidate": candidate,
        **{k: v for k, v in row.items() if not k.endswith("_json")},
        "matched_key": orjson.loads(row["matched_key_json"]),
        "parts": orjson.loads(row["reward_parts_json"]),
        "output": orjson.loads(row["output_json"]),
    }
