"""The recorded decisions of one lake, ready to be executed again: which run a row names, the bench it is restored on, and who plays on.

Owns the way from a lake to :class:`materialize.environment.Bench`: every run is restored in its own settings, tools and faults. What is
done with a restored state is not decided here. One :class:`LakeRuns` serves all threads of a process; in another process it is opened
again from the lake's place, which is also what pickling does.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Protocol

from evaluation.audit import Settings, offered_tools
from materialize.branches import Continuation
from materialize.config import GroupConfig, RewardConfig
from materialize.environment import Bench
from media.command import Sandbox
from media.sandbox import open_sandbox
from repair.diagnose import ScriptedCritic
from repair.faults import FaultPlan
from repair.registry import full_registry
from replay.build_engines import build_engines
from replay.engines import Engines
from replay.policies.base import Policy
from replay.policies.scripted import ScriptedPolicy
from replay.registry import Registry
from replay.suite import Suite
from schemas.canonical import Sha256, digest_of
from schemas.errors import ConfigInvalid
from schemas.storyboard import Storyboard
from schemas.trajectory import Trajectory
from storage.lake import Lake
from storage.snapshots import SnapshotStore

EngineMaker = Callable[[Settings, Sandbox], Engines]
"""Opens the engines of a run's settings."""

ROW = "give trajectory_sha256 (or trajectory_id) and call_index, columns of the tables trajectories and calls, or a snapshot_id"


class RecordedRuns(Protocol):
    """Runs whose decisions can be executed again."""

    @property
    def registry(self) -> Registry:
        """All tools that are offered anywhere."""
        ...

    @property
    def groups(self) -> GroupConfig:
        """Paired seeds and limits of comparisons."""
        ...

    def find(self, row: Mapping[str, Any]) -> tuple[Trajectory, int]:
        """The run and the call that a row of a data set names."""
        ...

    def bench(self, trajectory: Trajectory) -> Bench:
        """What the run is executed with."""
        ...

    def continuation(self, trajectory: Trajectory) -> Continuation:
        """The frozen policy that plays on."""
        ...


class LakeRuns:
    """All runs of a lake.

    Args:
        sandbox: 'bubblewrap', or 'process' by name.
        engines: opens the engines of a run's settings; the embedded ones by default.
        rewards: weights of eq. 9 to 11.
        groups: paired seeds of the continuation.
    """

    def __init__(
        self,
        lake: Lake,
        *,
        sandbox: Literal["bubblewrap", "process"] = "bubblewrap",
        engines: EngineMaker | None = None,
        rewards: RewardConfig | None = None,
        groups: GroupConfig | None = None,
    ) -> None:
        self.lake = lake
        self.rewards = rewards or RewardConfig()
        self._groups = groups or GroupConfig()
        self._kind, self._engines = sandbox, engines
        self._sandbox = open_sandbox(sandbox)
        self._registry = full_registry()
        self._lock = threading.Lock()
        self._benches: dict[tuple[Sha256, str], Bench] = {}
        self._built: dict[Sha256, Engines] = {}
        self._located = lru_cache(maxsize=65536)(self._locate)
        self._runs = lru_cache(maxsize=64)(self._read_run)
        self._boards = lru_cache(maxsize=64)(self._read_board)

    @classmethod
    def at(cls, place: str | Path) -> LakeRuns:
        """The runs of the lake at a place, opened once in this process.

        Raises:
            ConfigInvalid: there is no lake.
            SandboxUnavailable: the sandbox misses a layer.
        """
        return _opened(str(place))

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.lake, self._kind, self._engines, self.rewards, self._groups)

    @property
    def registry(self) -> Registry:
        """The tools of this release."""
        return self._registry

    @property
    def groups(self) -> GroupConfig:
        """Paired seeds and limits of comparisons."""
        return self._groups

    def find(self, row: Mapping[str, Any]) -> tuple[Trajectory, int]:
        """The run and the call that a row names: ``trajectory_sha256`` or ``trajectory_id`` with ``call_index``, or ``snapshot_id``
        (the first call made in that state; two runs may reach the same one, and ``trajectory_id`` says which). Other columns do not matter.

        Raises:
            ConfigInvalid: the row names none, or the lake has it not.
            StorageFault, DigestMismatch: it is missing or damaged.
        """
        given = {name: value for name, value in row.items() if value is not None}
        if "call_index" in given and "trajectory_sha256" in given:
            return self.run(str(given["trajectory_sha256"])), int(given["call_index"])
        if "call_index" in given and "trajectory_id" in given:
            sha, _ = self._located(str(given["trajectory_id"]), None)
            return self.run(sha), int(given["call_index"])
        if "snapshot_id" in given:
            sha, index = self._located(given.get("trajectory_id"), str(given["snapshot_id"]))
            return self.run(sha), index
        raise ConfigInvalid("row", "a row has to name a recorded decision", ROW)

    def run(self, sha256: Sha256) -> Trajectory:
        """A recorded run; the last 64 are remembered.

        Raises:
            StorageFault, DigestMismatch: it is missing or damaged.
        """
        return self._runs(sha256)

    def storyboard(self, trajectory: Trajectory) -> Storyboard:
        """What was recovered of the film that the run produces.

        Raises:
            ConfigInvalid: the lake has no storyboard of its project.
            StorageFault, DigestMismatch: it is missing or damaged.
        """
        return self._boards(trajectory.project_id)[1]

    def bench(self, trajectory: Trajectory) -> Bench:
        """What a run is executed with: its own settings, tools and faults. Runs of one setting share it.

        Raises:
            ConfigInvalid: its settings or tools are not known to this release.
            EngineMissing: an engine of its settings is not installed.
            StorageFault, DigestMismatch: an artifact of its is missing or damaged.
        """
        store = self.lake.store
        start = self.lake.snapshots.load(trajectory.first_snapshot)
        key = (trajectory.config_digest, start.film.task.tools_digest)
        with self._lock:
            if key in self._benches:
                return self._benches[key]
            settings = Settings.of(trajectory, store)
            registry = self._registry.reproducing(start.film.task.tools_digest, offered_tools(trajectory, store))
            if registry is None:
                raise ConfigInvalid(
                    "tools_gone", f"{trajectory.trajectory_id} was recorded with tools that this release cannot put together"
                )
            engines, sandbox = self._engines_of(settings), self._sandbox

            def suite(folder: Path) -> Suite:
                own = copy.copy(store)  # the same folder or bucket, nothing shared in memory
                return Suite(own, SnapshotStore(own), sandbox, engines, settings.replay, folder)

            faults = settings.repair.faults
            plan = (lambda: FaultPlan(faults)) if faults.count or faults.explicit else None
            self._benches[key] = Bench(store, suite, registry, plan, self.rewards)
            return self._benches[key]

    def continuation(self, trajectory: Trajectory) -> Continuation:
        """The scripted policy over the recovered storyboard, without mistakes, in the settings of the run.

        Raises:
            ConfigInvalid, StorageFault, DigestMismatch: as :meth:`storyboard` and for the settings.
        """
        board, replay = self.storyboard(trajectory), Settings.of(trajectory, self.lake.store).replay
        still = replay.model_copy(update={"policy": replay.policy.model_copy(update={"mistake_rate": 0.0})})

        def policy(seed: int) -> Policy:
            return ScriptedPolicy(board, seed, still, ScriptedCritic())

        return policy

    def continuation_name(self, trajectory: Trajectory) -> str:
        """Digest of everything that decides what :meth:`continuation` says."""
        replay = Settings.of(trajectory, self.lake.store).replay
        still = replay.model_copy(update={"policy": replay.policy.model_copy(update={"mistake_rate": 0.0})})
        return digest_of(["scripted", self._boards(trajectory.project_id)[0], still.model_dump(mode="json")])

    def _engines_of(self, settings: Settings) -> Engines:
        key = digest_of([settings.replay.model_dump(mode="json", exclude={"policy"}), settings.repair.model_dump(mode="json")])
        if key not in self._built:
            make = self._engines or embedded_engines
            self._built[key] = make(settings, self._sandbox)
        return self._built[key]

    def _locate(self, trajectory_id: str | None, snapshot_id: str | None) -> tuple[Sha256, int]:
        """Digest of a run, and the first call made in a state."""
        if snapshot_id is None:
            found = self.lake.query("select trajectory_sha256, 0 from trajectories where trajectory_id = $1", [trajectory_id]).rows
        else:
            found = self.lake.query(
                "select t.trajectory_sha256, s.first_call_index from snapshots s join trajectories t using (trajectory_id) "
                "where s.snapshot_id = $1 and ($2 is null or trajectory_id = $2) order by t.trajectory_id limit 1",
                [snapshot_id, trajectory_id],
            ).rows
        if not found:
            raise ConfigInvalid("row", f"the lake has no {snapshot_id or trajectory_id!r}", ROW)
        return str(found[0][0]), int(found[0][1])

    def _read_run(self, sha256: Sha256) -> Trajectory:
        return Trajectory.model_validate_json(self.lake.store.read(sha256))

    def _read_board(self, project_id: str) -> tuple[Sha256, Storyboard]:
        rows = self.lake.query("select storyboard_sha256 from storyboards where project_id = $1", [project_id]).rows
        if not rows:
            raise ConfigInvalid("no_storyboard", f"the lake has no storyboard of {project_id}")
        sha = str(rows[0][0])
        return sha, Storyboard.model_validate_json(self.lake.store.read(sha))


def embedded_engines(settings: Settings, sandbox: Sandbox) -> Engines:
    """The engines of this machine.

    Raises:
        ConfigInvalid: the run was judged by a remote model, which somebody has to connect.
        EngineMissing: an engine is not installed.
    """
    if settings.repair.judge is not None:
        raise ConfigInvalid("judge", f"the run was judged by {settings.repair.judge.model}", "name its endpoint in the configuration")
    return build_engines(settings.replay, sandbox)


@lru_cache(maxsize=8)
def _opened(place: str) -> LakeRuns:
    return LakeRuns(Lake(place, create=False))


def _again(
    lake: Lake, kind: Literal["bubblewrap", "process"], engines: EngineMaker | None, rewards: RewardConfig, groups: GroupConfig
) -> LakeRuns:
    return LakeRuns(lake, sandbox=kind, engines=engines, rewards=rewards, groups=groups)
