"""The environment core: a recorded state of a lake, restored to be executed in. ``restore, tools, step, reward, close``.

One :class:`Bench` serves a lake in one process; any number of :class:`Environment` objects may be open on it at once, each used by one
thread at a time, and any number of processes on one lake. Engines are shared, everything that changes is an environment's own. Products
go into the lake's artifact store under their digests; no table of the lake is written.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any

from evaluation.quality import rule_quality
from materialize.config import RewardConfig
from materialize.rewards import DeliveryChecks, Reward, milestones, orchestrator_reward, potential
from replay.episode import trajectory_of
from replay.registry import Registry
from replay.runtime import FaultFilter, Runtime
from replay.suite import Suite
from schemas.artifact import ArtifactKind
from schemas.blocker import BlockerCode
from schemas.canonical import Sha256, canonical_bytes, sha256_bytes
from schemas.errors import ConfigInvalid
from schemas.state import ProductionState, Task
from schemas.trajectory import Call, Observation, ObservationStatus, Outcome, RoleContext, RoleOutput, Trajectory
from storage.artifacts import ArtifactStore
from storage.reach import reachable
from storage.snapshots import SnapshotStore, snapshot_sha256

SCHEMA_CODES = frozenset(
    {
        BlockerCode.UNPARSABLE_OUTPUT,
        BlockerCode.UNKNOWN_TOOL,
        BlockerCode.ROLE_MISMATCH,
        BlockerCode.MISSING_ARGUMENT,
        BlockerCode.WRONG_TYPE,
        BlockerCode.VALUE_NOT_ALLOWED,
        BlockerCode.UNKNOWN_ARGUMENT,
        BlockerCode.CONTENT_CONTRACT_BROKEN,
    }
)
"""Blockers of an output that does not fit its schema."""

PREREQUISITE_CODES = frozenset({BlockerCode.PREREQUISITE_MISSING, BlockerCode.WRONG_STAGE_ORDER, BlockerCode.UNRESOLVED_REFERENCE})

LOOP = 3
"""The same call this often in a row, changing nothing, is a loop."""

SuiteMaker = Callable[[Path], Suite]
"""Gives a suite with stores of its own that works in an existing, empty folder."""


class Bench:
    """Recorded trajectories of one lake, and what is needed to execute in their states.

    Args:
        store: the lake's artifacts.
        suite: makes a suite for one environment.
        registry: the tools offered; the restored state must have been recorded with them.
        faults: makes the filter that puts faults in as they were in the recorded run. A filter remembers what it met, so every restored
            run gets its own.
        apart: a folder for a second store, in which all environments work: what a restored snapshot refers to is put there, nothing else of
            ``store`` is used, and nothing is added to it. For audits.
    """

    def __init__(
        self,
        store: ArtifactStore,
        suite: SuiteMaker,
        registry: Registry,
        faults: Callable[[], FaultFilter] | None = None,
        rewards: RewardConfig | None = None,
        apart: Path | None = None,
    ) -> None:
        self.store = store
        self.folder_apart = apart
        self.registry = registry
        self.faults = faults
        self.rewards = rewards or RewardConfig()
        self._suite = suite
        self._lock = threading.Lock()
        self._read = lru_cache(maxsize=32)(self._load)

    def _load(self, sha256: Sha256) -> Trajectory:
        return Trajectory.model_validate_json(self.store.read(sha256))

    def trajectory(self, sha256: Sha256) -> Trajectory:
        """A recorded trajectory; the last 32 are remembered.

        Raises:
            StorageFault, DigestMismatch: it is missing or damaged.
        """
        with self._lock:
            return self._read(sha256)

    def apart(self, folder: Path, rewards: RewardConfig | None = None) -> Bench:
        """The same bench, working in an empty folder apart from the lake's store."""
        return Bench(self.store, self._suite, self.registry, self.faults, rewards or self.rewards, apart=folder)

    def open(self) -> Environment:
        """A new environment; close it when done."""
        return Environment(self, self._suite)


class Environment:
    """One restored run. Not for several threads at once; open one each."""

    def __init__(self, bench: Bench, suite: SuiteMaker) -> None:
        self.bench = bench
        self._folder = tempfile.TemporaryDirectory(prefix="workprint-env-")
        self._suite = suite(Path(self._folder.name))
        if bench.folder_apart is not None:
            own = ArtifactStore(bench.folder_apart)
            self._suite = replace(self._suite, store=own, snapshots=SnapshotStore(own))
        self._runtime: Runtime | None = None
        self._start = 0
        self._potentials: list[float] = []

    def __enter__(self) -> Environment:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def runtime(self) -> Runtime:
        """The restored run.

        Raises:
            ConfigInvalid: nothing was restored yet, or the environment is closed.
        """
        if self._runtime is None:
            raise ConfigInvalid("not_restored", "the environment has no state", "call restore first")
        return self._runtime

    def restore(self, trajectory: Trajectory, call_index: int, *, budget: int | None = None) -> RoleContext:
        """Go back to the state before a recorded call and show what the policy saw there.

        Args:
            call_index: 0 for the beginning; the number of calls for the end.
            budget: orchestrator calls of the whole run; the recorded one by default.

        Raises:
            ConfigInvalid: there is no such call, or the context is not the recorded one (other prompts, tools or settings).
            StorageFault, DigestMismatch: the snapshot is missing or damaged.
        """
        calls = trajectory.calls
        if not 0 <= call_index <= len(calls):
            raise ConfigInvalid("no_such_call", f"{trajectory.trajectory_id} has {len(calls)} calls, asked for {call_index}")
        snapshot = calls[call_index].snapshot_before if call_index < len(calls) else trajectory.last_snapshot
        context = self.begin(snapshot, calls[:call_index], budget=trajectory.budget if budget is None else budget)
        seen = sha256_bytes(canonical_bytes(context.visible()))
        if budget is None and call_index < len(calls) and seen != calls[call_index].context_sha256:
            self._runtime = None
            raise ConfigInvalid(
                "context_differs",
                f"call {call_index} of {trajectory.trajectory_id} would see another context now than was recorded",
                "restore it with the settings and the release it was recorded with",
            )
        return context

    def begin(self, start: Task | str, history: Sequence[Call] = (), *, budget: int | None = None) -> RoleContext:
        """Start from a task, or from a snapshot with the calls that led to it; nothing is compared with a recording.

        Raises:
            ConfigInvalid, SchemaMismatch, StorageFault, DigestMismatch: as :class:`replay.runtime.Runtime`.
        """
        if self.bench.folder_apart is not None and isinstance(start, str):
            for name in sorted(reachable(self.bench.store, [snapshot_sha256(start)])):
                if not self._suite.store.has(name):
                    self._suite.store.put_file(self.bench.store.path(name), ArtifactKind.OTHER, "application/octet-stream")
        faults = None if self.bench.faults is None else self.bench.faults()
        runtime = Runtime(start, self.bench.registry, self._suite, budget=budget, history=history, fault_filter=faults)
        self._runtime, self._start = runtime, len(history)
        self._potentials = [self._phi(runtime.state)]
        return runtime.context()

    def tools(self) -> list[dict[str, Any]]:
        """Schemas of the tools that may be called, as OpenAI functions; empty while content is asked for."""
        return list(self.runtime.context().tools)

    def context(self) -> RoleContext:
        """What the role whose turn it is sees now."""
        return self.runtime.context()

    def step(self, output: RoleOutput) -> Observation:
        """Execute one role output.

        Raises:
            PipelineError: a fault of ours; the state is as before.
        """
        runtime = self.runtime
        before = len(runtime.calls)
        observation = runtime.step(output)
        if len(runtime.calls) > before:
            self._potentials.append(self._phi(runtime.state))
        return observation

    @property
    def finished(self) -> bool:
        """The run is over."""
        return self.runtime.finished

    @property
    def branch(self) -> tuple[Call, ...]:
        """Calls made since the restored state."""
        return self.runtime.calls[self._start :]

    @property
    def potentials(self) -> tuple[float, ...]:
        """Phi of the restored state and after every step since (eq. 9)."""
        return tuple(self._potentials)

    def reward(self) -> Reward:
        """R^O of eq. 10 of everything since the restored state, as if the branch ended here."""
        runtime = self.runtime
        run = trajectory_of(runtime, "environment", 0)
        quality = rule_quality(run, runtime.state)
        return orchestrator_reward(
            delivery_checks(self.branch, run, runtime.suite.store), self._potentials, quality.rule, quality.audit, self.bench.rewards
        )

    def close(self) -> None:
        """Drop the state and the scratch folder. May be called again."""
        self._runtime = None
        self._folder.cleanup()

    def _phi(self, state: ProductionState) -> float:
        return potential(milestones(state, self.bench.rewards), self.bench.rewards)


def delivery_checks(branch: tuple[Call, ...], run: Trajectory, store: ArtifactStore) -> DeliveryChecks:
    """What a branch passed: it ended with a delivery, none of its outputs broke a schema or ran ahead of a prerequisite, the film's bytes
    are there, and no call was repeated to no effect."""
    codes = {b.code for c in branch for b in c.observation.blockers}
    delivered = run.outcome is Outcome.DELIVERED
    parts = [a.sha256 for a in (run.video, run.manifest) if a is not None]
    return DeliveryChecks(
        termination=delivered,
        schema=not codes & SCHEMA_CODES,
        prerequisite=not codes & PREREQUISITE_CODES,
        artifact=delivered and len(parts) == 2 and all(store.has(p) for p in parts),
        loop=not _loops(branch),
    )


def _loops(branch: tuple[Call, ...]) -> bool:
    row = 0
    last: tuple[str | None, str | None] | None = None
    for call in branch:
        said = (call.output.tool, call.output.arguments_json)
        idle = call.observation.status is ObservationStatus.REFUSED
        row = row + 1 if idle and said == last else 1 if idle else 0
        last = said
        if row >= LOOP:
            return True
    return False
