"""Groups of a lake: chooses decisions of stored runs, executes candidates, commits their rows. For ``workprint groups`` and ``reward``."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from evaluation.audit import Settings
from jobs import models
from jobs.config import WorkprintConfig
from jobs.questions import open_lake
from materialize.branches import Continuation, Executor
from materialize.config import RewardConfig
from materialize.groups import Decision, Group, choose, form_group
from materialize.matched import matched_key
from materialize.proposals import propose, sample
from materialize.recorded import EngineMaker, LakeRuns
from media.command import Sandbox
from repair.endpoint_judge import EndpointJudge
from replay.build_engines import build_engines
from replay.engines import Engines
from replay.policies.base import Policy
from replay.policies.chat import ChatPolicy
from schemas.artifact import ArtifactKind
from schemas.canonical import derive_id, digest_of, stage_key
from schemas.errors import AlreadyDone, ConfigInvalid, PipelineError, StorageFault
from schemas.trajectory import RoleContext, RoleOutput, Trajectory
from storage.artifacts import ArtifactStore
from storage.lake import Lake, StageCommit

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
    config: WorkprintConfig,
    roles: tuple[str, ...],
    note: Callable[[str], None],
) -> Grouped:
    """Make groups of decisions of a lake and commit them.

    Args:
        snapshot: only the decision made in this state; else ``sample`` decisions over all, by quotas.
        config: its parts ``groups`` and ``rewards``; for chat models also ``replay.policy`` and ``run.endpoints``. A decision is executed
            in the settings that it was recorded with.
        roles: only decisions of these roles; all when empty.

    Raises:
        ConfigInvalid: no lake, nothing to decide on, or a chat model is asked for and not configured.
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
    chosen = tuple(decisions) if snapshot else choose(decisions, sample, seed, config.groups, queued)
    runs = LakeRuns(lake, sandbox=config.run.sandbox, engines=_engines(config), rewards=config.rewards, groups=config.groups)
    players = Players(config, lake.store)
    for decision in chosen[:1] if snapshot else chosen:
        try:
            group = _one(runs, players, decision, seed, note)
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


def _engines(config: WorkprintConfig) -> EngineMaker:
    """Engines of a run's settings; the judge that they name is reached as this configuration says."""

    def make(settings: Settings, sandbox: Sandbox) -> Engines:
        built = build_engines(settings.replay, sandbox)
        if settings.repair.judge is None:
            return built
        named = config.model_copy(update={"repair": config.repair.model_copy(update={"judge": settings.repair.judge})})
        return replace(built, judge=EndpointJudge(models.model("judge", named)))

    return make


class Players:
    """Who proposes candidates, and who plays on.

    Raises:
        ConfigInvalid: a chat model is to do it and none is configured, or it always says the same.
    """

    def __init__(self, config: WorkprintConfig, store: ArtifactStore) -> None:
        self.config, self._store = config, store
        self._part: models.Owner | None = None
        if "chat" in (config.groups.sampler, config.groups.continuation):
            policy = config.replay.policy
            self._part = "student" if policy.student is not None else "teacher"
            named = policy.student or policy.teacher
            if named is None:
                raise ConfigInvalid("no_model", "groups of a chat model need one", "set replay.policy.student.model")
            if config.groups.sampler == "chat" and named.temperature == 0:
                raise ConfigInvalid("one_answer", "at temperature 0 all samples are one", "set the temperature of replay.policy.student")
            self._model = named.digest()
            models.connect(self._part, config)

    def continuation(self, runs: LakeRuns, trajectory: Trajectory) -> tuple[Continuation, str]:
        """The frozen policy with its name: what decides its outputs."""
        if self.config.groups.continuation == "scripted":
            return runs.continuation(trajectory), runs.continuation_name(trajectory)
        return self._chat, digest_of(["chat", self._model])

    def proposals(
        self, runs: LakeRuns, trajectory: Trajectory, context: RoleContext, recorded: RoleOutput, seed: int, number: int
    ) -> tuple[tuple[RoleOutput, str], ...]:
        """Candidates of one round, with their origins."""
        config, first = self.config.groups, 1 + number * ALTERNATIVES
        if config.sampler == "chat":
            return sample(context, [self._chat(seed * 1000 + n) for n in range(first, first + config.candidates)])
        scripted = runs.continuation(trajectory)
        others = [scripted(seed * 1000 + n) for n in range(first, first + ALTERNATIVES)]
        return propose(context, recorded, others, config.candidates + number, seed + number)

    @property
    def name(self) -> str | None:
        """Digest of the model that samples; None without one."""
        return self._model if self.config.groups.sampler == "chat" else None

    def _chat(self, seed: int) -> Policy:
        assert self._part is not None  # noqa: S101  only asked for where a model is configured
        return ChatPolicy(models.model(self._part, self.config), self._store, owner=self._part, seed=seed)


def _decisions(lake: Lake, snapshot: str | None, roles: tuple[str, ...]) -> list[Decision]:
    rows = lake.query(
        "select trajectory_id, project_id, call_index, role, tool from calls where provenance != 'runtime' and tool is not null "
        "and status != 'refused' and ($snapshot is null or snapshot_before = $snapshot) "
        "and (len($roles) = 0 or list_contains($roles, role)) order by all",
        {"snapshot": snapshot, "roles": list(roles)},
    ).rows
    return [Decision(str(t), str(p), int(i), str(r), str(tool)) for t, p, i, r, tool in rows]


def _one(runs: LakeRuns, players: Players, decision: Decision, seed: int, note: Callable[[str], None]) -> Group | None:
    """Make one group and commit it; None when the very same group is known."""
    lake, config = runs.lake, runs.groups
    (sha,) = lake.query("select trajectory_sha256 from trajectories where trajectory_id = $1", [decision.trajectory_id]).rows[0]
    trajectory = runs.run(str(sha))
    bench = runs.bench(trajectory)
    policy, frozen = players.continuation(runs, trajectory)
    with bench.open() as env:
        context = env.restore(trajectory, decision.call_index)
        key = matched_key(env.runtime, frozen, config)
    settings = [config.model_dump(mode="json"), runs.rewards.model_dump(mode="json"), seed]
    name = stage_key("groups", VERSION, digest_of([*settings, players.name] if players.name else settings), (str(sha), key.group_id))
    if lake.done(name) is not None:
        return None
    recorded = trajectory.calls[decision.call_index].output

    def round_of(number: int) -> tuple[tuple[RoleOutput, str], ...]:
        return players.proposals(runs, trajectory, context, recorded, seed, number)

    executor = Executor(bench, trajectory, decision.call_index, policy, config, runs.rewards)
    group = form_group(trajectory, decision.call_index, key, round_of, executor, config)
    replies = [c.output.reply for c in group.candidates if c.output.reply is not None]
    weights = lake.store.put_json(runs.rewards.model_dump(mode="json"), ArtifactKind.OTHER).sha256
    kept = (trajectory.calls[decision.call_index].context_sha256, weights, *replies)
    commit = StageCommit("groups", name, decision.project_id, key.group_id, "done", weights, group.rows(), kept, derive_id("run", [name]))
    try:
        lake.commit(commit)
    except AlreadyDone:
        return None
    values = ", ".join(f"{c.origin} {c.outcome.reward.value:.3f}" for c in group.candidates)
    note(f"{group.key.group_id} {decision.role} {decision.tool}: {group.status} after {group.rounds}: {values}")
    return group


def reward_weights(lake: Lake, project_id: str, group_id: str) -> RewardConfig:
    """The weights that a stored group was rewarded with; the defaults for one of a release that did not keep them.

    Raises:
        StorageFault, DigestMismatch: they are missing or damaged.
    """
    kept = [r.output_sha256 for r in lake.live(project_id) if (r.stage, r.scope) == ("groups", group_id)]
    return RewardConfig() if not kept or kept[-1] is None else RewardConfig.model_validate(lake.store.read_json(kept[-1]))


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
