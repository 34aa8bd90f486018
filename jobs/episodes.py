"""Opens an episode: a runtime at a recorded state of a lake, or at the beginning of a storyboard, with all it needs beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from jobs.config import WorkprintConfig
from jobs.stages import Workshop, replay_settings, trajectory_done
from materialize.environment import Bench
from media.sandbox import open_sandbox
from repair.links import link
from repair.registry import full_registry
from replay.episode import trajectory_of
from replay.pool import cut_pool
from replay.runtime import Runtime
from replay.suite import Suite
from replay.task import build_task
from schemas.artifact import ArtifactKind
from schemas.canonical import Sha256, derive_id, stage_key
from schemas.errors import AlreadyDone, ConfigInvalid
from schemas.state import Task
from schemas.storyboard import Storyboard
from schemas.trajectory import Call, Trajectory
from storage.artifacts import ArtifactStore
from storage.lake import Lake, StageCommit
from storage.snapshots import SnapshotStore


@dataclass(frozen=True, slots=True)
class Start:
    """Where an episode begins."""

    state: Task | str
    """A task, or a snapshot's id."""
    history: tuple[Call, ...]
    """Calls that led there: they count against the budget and are shown in contexts."""


def recorded_start(lake: Lake, snapshot_id: str) -> Start:
    """The state of a snapshot with the calls that led to it.

    Raises:
        ConfigInvalid: the lake has no such snapshot.
        StorageFault: its artifacts cannot be read.
    """
    con = lake.connect()
    try:
        rows = con.execute(
            "select s.first_call_index, t.trajectory_sha256 from snapshots s join trajectories t using (trajectory_id) "
            "where s.snapshot_id = $id order by s.trajectory_id limit 1",
            {"id": snapshot_id},
        ).fetchall()
    finally:
        con.close()
    if not rows:
        step = 'find one with: workprint query "select snapshot_id from snapshots"'
        raise ConfigInvalid("unknown_snapshot", f"the lake has no snapshot {snapshot_id!r}", step)
    index, sha = rows[0]
    trajectory = Trajectory.model_validate_json(lake.store.read(sha))
    return Start(snapshot_id, trajectory.calls[:index])


@dataclass(frozen=True, slots=True)
class Episode:
    """An open episode."""

    runtime: Runtime
    config_digest: Sha256

    def trajectory(self, policy: str, seed: int = 0) -> Trajectory:
        """What has happened so far, with its repairs."""
        found = trajectory_of(self.runtime, policy, seed, config_digest=self.config_digest)
        return found.model_copy(update={"repairs": link(found)})

    @property
    def spent_us(self) -> dict[int, int]:
        """Clock time of the calls made here, by index."""
        return self.runtime.spent_us


@contextmanager
def open_episode(shop: Workshop, start: Start, config_digest: Sha256, *, budget: int | None = None) -> Iterator[Episode]:
    """The environment core (materialize.environment) at ``start``, open as long as the block.

    Raises:
        ConfigInvalid, SchemaMismatch, StorageFault: as :class:`replay.runtime.Runtime`.
    """
    shop.store.put_json(replay_settings(shop.config), ArtifactKind.OTHER)  # named by config_digest: an audit reads it back

    def suite(folder: Path) -> Suite:
        return Suite(shop.store, SnapshotStore(shop.store), shop.sandbox, shop.engines, shop.config.replay, folder)

    with Bench(shop.store, suite, full_registry()).open() as environment:
        environment.begin(start.state, start.history, budget=budget)
        yield Episode(environment.runtime, config_digest)


def storyboard_start(shop: Workshop, board: Storyboard, source: Path) -> Start:
    """The beginning of a storyboard's production: its source pool is cut and its task is made.

    Raises:
        PipelineError: the source cannot be read, or an engine is missing.
    """
    pool = cut_pool(board, source, sandbox=shop.sandbox, store=shop.store, config=shop.config.replay, note=lambda _text: None)
    return Start(build_task(board, pool, shop.config.replay, shop.engines, full_registry().digest()), ())


def workshop(config: WorkprintConfig, store: ArtifactStore) -> Workshop:
    """What stages work with, around a store."""
    return Workshop(config, store, open_sandbox(config.run.sandbox))


def commit_run(lake: Lake, trajectory: Trajectory, spent_us: Mapping[int, int]) -> None:
    """Put a run that was not part of a batch into the tables of a lake, beside the others of its project. Once only.

    Raises:
        StorageFault: the lake cannot be written.
    """
    done = trajectory_done(trajectory, lake.store, spent_us)
    sha = lake.store.put_bytes(trajectory.canonical(), ArtifactKind.TRAJECTORY, "application/json").sha256
    commit = StageCommit(
        stage="outside",
        stage_key=stage_key("outside", 1, trajectory.config_digest, (sha,)),
        subject=trajectory.project_id,
        scope=trajectory.trajectory_id,
        status="done",
        output_sha256=sha,
        rows=done.rows,
        artifacts=(*done.artifacts, sha),
        run_id=derive_id("run", ["outside", sha]),
    )
    with suppress(AlreadyDone):
        lake.commit(commit)
