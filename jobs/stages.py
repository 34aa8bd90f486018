"""The three stages wired to their packages: what each needs, built once a process and used again."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from evaluation import fingerprints
from evaluation.quality import completion, rule_quality
from inversion.invert import invert
from jobs import held, models
from jobs.config import WorkprintConfig
from materialize.distillation import distillation_rows
from materialize.examples import materialize
from materialize.rows import example_rows, timing_rows, trajectory_rows
from materialize.splits import split_of
from materialize.tokens import open_counter
from media.command import Sandbox
from media.ocr import RapidReader
from repair.diagnose import ScriptedCritic
from repair.endpoint_judge import EndpointJudge
from repair.faults import FaultPlan
from repair.links import link
from repair.plan_faults import FaultyPolicy
from repair.recoveries import recovery_rows
from repair.registry import full_registry
from replay.build_engines import build_engines
from replay.contexts import prompts_digest
from replay.engines import Engines
from replay.episode import run_episode
from replay.policies.base import Policy
from replay.policies.chat import ChatPolicy
from replay.policies.mixed import MixedPolicy
from replay.policies.recorded import RecordedPolicy
from replay.policies.scripted import ScriptedPolicy
from replay.pool import cut_pool
from replay.runtime import Runtime
from replay.suite import Retried, Suite
from replay.task import build_task
from schemas.artifact import ArtifactKind
from schemas.canonical import digest_of, sha256_bytes
from schemas.errors import ConfigInvalid
from schemas.example import Example, Split
from schemas.media import SourceItem
from schemas.stage import Done, Rejected
from schemas.storyboard import Storyboard
from schemas.trajectory import Trajectory
from storage.artifacts import ArtifactStore
from storage.journal import Journal
from storage.snapshots import SnapshotStore

Note = Callable[[str], None]

STAGE_VERSIONS = {"intake": 1, "invert": 2, "replay": 1, "materialize": 3}
"""Raise one when the same input may give another output."""


@dataclass(frozen=True, slots=True)
class Workshop:
    """What the stages work with."""

    config: WorkprintConfig
    store: ArtifactStore
    sandbox: Sandbox

    def __post_init__(self) -> None:
        models.limit_services(self.config)

    @property
    def engines(self) -> Engines:
        """Speech, embedding, music, templates and text recognition; built once a process."""
        judge = self.config.repair.judge
        key = (self.config.replay.digest(), self.sandbox.name, "" if judge is None else judge.digest())
        if key not in _ENGINES:
            _ENGINES.clear()
            built = build_engines(self.config.replay, self.sandbox, speech=held.speech(), reader=held.reader())
            _ENGINES[key] = built if judge is None else replace(built, judge=EndpointJudge(models.model("judge", self.config)))
        return _ENGINES[key]


_ENGINES: dict[tuple[str, str, str], Engines] = {}


@lru_cache(maxsize=1)
def _reader() -> RapidReader:
    return RapidReader()


def variants(config: WorkprintConfig) -> tuple[WorkprintConfig, ...]:
    """One configuration for every trajectory of a project, in the order of the seeds.

    A variant differs in the seed of the policy and in that of the faults, which is moved as far; so it does not depend on which other
    seeds there are, and the one of ``replay.policy.seed`` is the configuration without seeds.
    """
    policy, faults = config.replay.policy, config.repair.faults
    out = []
    for seed in config.replay.seeds or (policy.seed,):
        replay = config.replay.model_copy(update={"policy": policy.model_copy(update={"seed": seed}), "seeds": ()})
        moved = faults.model_copy(update={"seed": faults.seed + seed - policy.seed})
        out.append(config.model_copy(update={"replay": replay, "repair": config.repair.model_copy(update={"faults": moved})}))
    return tuple(out)


def replay_settings(config: WorkprintConfig) -> dict[str, Any]:
    """The part of the configuration that decides a trajectory."""
    return {"replay": config.replay.model_dump(mode="json"), "repair": config.repair.model_dump(mode="json")}


def replay_digest(config: WorkprintConfig) -> str:
    """Digest of :func:`replay_settings`."""
    return digest_of(replay_settings(config))


def tool_space() -> str:
    """Names the tools and prompts of this release: an input of every trajectory, because another one gives another trajectory."""
    return digest_of([full_registry().digest(), prompts_digest()])


def run_invert(shop: Workshop, item: SourceItem, path: Path, note: Note) -> Done[Storyboard] | Rejected:
    """Source to storyboard, with the codes by which near-duplicates of the source are found."""
    out = invert(
        item,
        path,
        shop.config.inversion,
        sandbox=shop.sandbox,
        store=shop.store,
        reader=held.reader() or _reader(),
        open_recogniser=held.recogniser,
        note=note,
    )
    if isinstance(out, Done):
        rows = {**out.rows, "fingerprints": [fingerprints.take(out.output, path, shop.store, shop.sandbox).row()]}
        return Done(out.output, rows, out.artifacts)
    return out


def run_replay(
    shop: Workshop,
    board: Storyboard,
    source: Path,
    journal: Path,
    config_digest: str,
    note: Note,
    on_retry: Callable[[Retried], None] = lambda _retried: None,
) -> Done[Trajectory]:
    """Storyboard to trajectory, with inspection and repair.

    Args:
        journal: the call journal of this very run; one that holds calls already is continued at the next call.
        on_retry: told of every fault of ours that a second try got over; such a fault never reaches a policy.
    """
    config = shop.config.replay
    registry = full_registry()
    engines = shop.engines
    note("cutting the source pool")
    pool = cut_pool(board, source, sandbox=shop.sandbox, store=shop.store, config=config, note=note)
    task = build_task(board, pool, config, engines, registry.digest())
    journal.parent.mkdir(parents=True, exist_ok=True)
    shop.store.put_json(replay_settings(shop.config), ArtifactKind.OTHER)  # named by config_digest: an audit reads it back
    with tempfile.TemporaryDirectory(prefix="workprint-") as scratch:
        suite = Suite(shop.store, SnapshotStore(shop.store), shop.sandbox, engines, config, Path(scratch), note)
        plan = FaultPlan(shop.config.repair.faults)
        calls = Journal(journal)
        got_over: list[Retried] = []
        try:
            runtime = Runtime(task, registry, suite, journal=calls, fault_filter=plan)
            got_over = runtime.retried
            policy = FaultyPolicy(_policy(shop, board), shop.config.repair.faults)
            trajectory = run_episode(runtime, policy, note, config_digest=config_digest, link=link)
        finally:
            calls.close()
            for retried in got_over:  # told also when a later fault ended the try
                on_retry(retried)
    return trajectory_done(trajectory, shop.store, runtime.spent_us)


def trajectory_done(trajectory: Trajectory, store: ArtifactStore, spent_us: Mapping[int, int]) -> Done[Trajectory]:
    """A finished run as a stage result, with its rows.

    Args:
        spent_us: clock time of its calls by index, as far as they were made in this process.
    """
    snapshots = SnapshotStore(store)
    final = snapshots.load(trajectory.last_snapshot)
    quality = rule_quality(trajectory, final)
    digest = sha256_bytes(trajectory.canonical())
    rows = trajectory_rows(trajectory, final_state=final, quality=quality.end, trajectory_sha256=digest)
    reached = cache(lambda name: round(completion(snapshots.load(name)), 6))
    rows |= {"recoveries": recovery_rows(trajectory, reached), "timings": timing_rows(trajectory, spent_us)}
    kept = {row["sha256"] for row in rows["artifacts"]} | {row["snapshot_sha256"] for row in rows["snapshots"]}
    kept |= {c.context_sha256 for c in trajectory.calls}
    kept |= {c.output.reply for c in trajectory.calls if c.output.reply is not None}
    kept |= {picture for c in trajectory.calls if c.request is not None for picture in c.request.pictures}
    return Done(trajectory, rows, tuple(sorted(kept)))


def run_materialize(
    shop: Workshop, board: Storyboard, runs: tuple[Trajectory, ...], note: Note, split: Split | None = None
) -> Done[tuple[Example, ...]]:
    """All trajectories of a project to its examples and their rows. What an earlier trajectory gave already is left out.

    Args:
        split: as decided for the project; the one of its own hash when None.
    """
    config = shop.config.materialize
    counter = open_counter(config)
    snapshots = SnapshotStore(shop.store)
    examples: list[Example] = []
    for run in runs:
        known = frozenset(e.example_id for e in examples)
        examples += materialize(run, board, shop.store, snapshots, config, counter, split=split, known=known).output
    note(f"{len(examples)} examples")
    chosen = split or split_of(board.project_id, config)
    turns = [row for run in runs for row in distillation_rows(run, board, shop.store, chosen)]
    contexts = dict.fromkeys([*(e.context_sha256 for e in examples), *(row["context_sha256"] for row in turns)])
    return Done(tuple(examples), {"examples": example_rows(examples), "distillation": turns}, tuple(contexts))


def _policy(shop: Workshop, board: Storyboard) -> Policy:
    settings = shop.config.replay.policy
    if settings.name == "recorded":
        if settings.recording is None:
            raise ConfigInvalid("no_recording", "replay.policy.name is 'recorded' but replay.policy.recording names no trajectory artifact")
        return RecordedPolicy(Trajectory.model_validate_json(shop.store.read(settings.recording)))
    if settings.name == "chat":
        return _chat("teacher" if settings.student is None else "student", shop)
    scripted = ScriptedPolicy(board, settings.seed, shop.config.replay, ScriptedCritic())
    if settings.name == "mixed":
        teacher = scripted if settings.teacher is None else _chat("teacher", shop)
        return MixedPolicy(teacher, _chat("student", shop), settings.turns, settings.seed)
    return scripted


def _chat(part: models.Owner, shop: Workshop) -> ChatPolicy:
    return ChatPolicy(models.model(part, shop.config), shop.store, owner=part, seed=shop.config.replay.policy.seed)
