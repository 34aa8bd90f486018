"""The audit: stored trajectories executed again in an empty store, and compared with what they recorded.

Owns what is compared and where the first difference is looked for. A trajectory is executed from its first snapshot with the tools,
settings and faults it names; its recorded outputs are given to the runtime one by one, and every call must lead through the same state.
The film that comes out must show the same pictures and sound the same. Nothing of the lake is written, and no product of it is used: the
scratch store begins with the first snapshot and what that refers to (the task and its pool).
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from media.command import Sandbox
from media.fingerprint import fingerprint
from repair.config import RepairConfig
from repair.faults import FaultPlan
from repair.registry import full_registry
from replay.build_engines import build_engines
from replay.config import ReplayConfig
from replay.engines import Engines
from replay.registry import Registry
from replay.runtime import Runtime
from replay.suite import Suite
from replay.tool import Product, Refusal, ToolEnv
from schemas.artifact import ArtifactKind
from schemas.canonical import Sha256, digest_of
from schemas.contract import Role
from schemas.errors import ConfigInvalid, PipelineError
from schemas.state import ProductionState
from schemas.trajectory import Call, InjectedFault, Outcome, Provenance, Trajectory
from storage.artifacts import ArtifactStore
from storage.lake import Lake
from storage.reach import reachable
from storage.snapshots import SnapshotStore, snapshot_sha256

Note = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a re-execution first left its recording."""

    where: Literal["tools", "settings", "call", "frame", "sound", "fault"]
    call_index: int | None
    tool: str | None
    what: str
    """In words: which parts of a call differ, which frame, or the error that ended the audit."""
    fields: tuple[str, ...] = ()
    """``subject.field`` of changes with another value, for a call."""


@dataclass(frozen=True, slots=True)
class Audited:
    """One trajectory, executed again."""

    trajectory_id: str
    project_id: str
    calls: int
    equal_states: int
    """Calls whose state after them has the recorded digest."""
    equal_contexts: int
    """Calls whose context has the recorded digest; prompts may have changed since."""
    faults: int
    """Faults that were put in on purpose, recorded and put in again."""
    frames: int
    """Pictures of the delivered film; 0 without one."""
    equal_frames: bool
    """The film shows the same pictures, or neither run delivered one."""
    equal_sound: bool
    first: Difference | None
    wall_s: float = field(compare=False)

    @property
    def equal(self) -> bool:
        """Nothing is other than recorded: no state, observation, product or verdict, no picture, no sample."""
        return self.first is None


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What an audit found."""

    audited: tuple[Audited, ...]
    stored: int
    """Trajectories there are; fewer are audited when a sample was asked for."""

    @property
    def passed(self) -> bool:
        """Every audited trajectory is equal; an audit of nothing has not passed."""
        return bool(self.audited) and all(a.equal for a in self.audited)

    def as_json(self) -> dict[str, Any]:
        """Stable form of ``workprint audit --json``."""
        count = len(self.audited)
        return {
            "stored": self.stored,
            "audited": count,
            "equal": sum(a.equal for a in self.audited),
            "equal_states_share": _share(sum(a.equal_states == a.calls for a in self.audited), count),
            "equal_frames_share": _share(sum(a.equal_frames for a in self.audited), count),
            "equal_sound_share": _share(sum(a.equal_sound for a in self.audited), count),
            "calls": sum(a.calls for a in self.audited),
            "calls_equal_states": sum(a.equal_states for a in self.audited),
            "calls_equal_contexts": sum(a.equal_contexts for a in self.audited),
            "injected_faults": sum(a.faults for a in self.audited),
            "passed": self.passed,
            "trajectories": [
                {
                    "trajectory_id": a.trajectory_id,
                    "project_id": a.project_id,
                    "equal": a.equal,
                    "calls": a.calls,
                    "equal_states": a.equal_states,
                    "equal_contexts": a.equal_contexts,
                    "injected_faults": a.faults,
                    "frames": a.frames,
                    "equal_frames": a.equal_frames,
                    "equal_sound": a.equal_sound,
                    "first_difference": None
                    if a.first is None
                    else {
                        "where": a.first.where,
                        "call_index": a.first.call_index,
                        "tool": a.first.tool,
                        "what": a.first.what,
                        "fields": list(a.first.fields),
                    },
                    "wall_s": round(a.wall_s, 2),
                }
                for a in self.audited
            ],
        }

    def print(self) -> None:
        """For a person: one line a trajectory, then the shares."""
        for a in self.audited:
            same = "equal" if a.equal_frames and a.equal_sound else "DIFFERENT"
            film = f"{a.frames} frames and sound {same}" if a.frames else "no film"
            print(f"{a.trajectory_id}  {a.equal_states} of {a.calls} states equal, {film}, {a.faults} faults, {a.wall_s:.1f} s")
            if a.first is not None:
                at = f"call {a.first.call_index}, {a.first.tool}: " if a.first.call_index is not None else ""
                print(f"    first difference: {a.first.where}: {at}{a.first.what}")
        count, j = len(self.audited), self.as_json()
        print(
            f"\n{j['equal']} of {count} trajectories equal ({self.stored} stored): states {100 * j['equal_states_share']:.1f} %, "
            f"frames {100 * j['equal_frames_share']:.1f} %, sound {100 * j['equal_sound_share']:.1f} %; "
            f"{j['calls_equal_states']} of {j['calls']} calls"
        )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


# -- one trajectory ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Settings:
    """What decided a run, read back from the artifact that its ``config_digest`` names."""

    replay: ReplayConfig
    repair: RepairConfig

    @classmethod
    def of(cls, trajectory: Trajectory, store: ArtifactStore) -> Settings:
        """The settings of a stored trajectory.

        Raises:
            ConfigInvalid: they were not stored, or this release does not know them any more.
            StorageFault, DigestMismatch: they cannot be read.
        """
        name = trajectory.config_digest
        if not store.has(name):
            raise ConfigInvalid("settings_missing", f"the settings {name[:12]} of {trajectory.trajectory_id} are not in the store")
        stored = store.read_json(name)
        try:
            return cls(ReplayConfig.model_validate(stored["replay"]), RepairConfig.model_validate(stored["repair"]))
        except (ValidationError, KeyError, TypeError) as error:
            raise ConfigInvalid("settings_unknown", f"the settings {name[:12]} cannot be read by this release: {error}") from error


def audit_trajectory(
    trajectory: Trajectory, store: ArtifactStore, sandbox: Sandbox, *, registry: Registry | None = None, engines: Engines | None = None
) -> Audited:
    """Execute one trajectory again in a scratch store and compare.

    Args:
        store: where the trajectory's artifacts lie; read only.
        registry: all tools there are; those of this release by default.
        engines: built from the trajectory's settings by default; a caller with many trajectories of one setting passes them in.

    Returns:
        the comparison. A fault of ours while executing is a difference too (``where='fault'``): it is what an audit looks for.

    Raises:
        StorageFault, DigestMismatch: the stored trajectory's own artifacts cannot be read.
    """
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="workprint-audit-") as folder:
        scratch = Path(folder)
        copy = ArtifactStore(scratch / "artifacts")
        try:
            run = _runtime(trajectory, store, copy, scratch, sandbox, registry or full_registry(), engines)
        except ConfigInvalid as error:
            where: Literal["tools", "settings"] = "tools" if error.code == "tools_gone" else "settings"
            return _ended(trajectory, Difference(where, None, None, error.message), started)
        found = _follow(run, trajectory)
        return _compared(run, trajectory, store, sandbox, found, started)


def _runtime(
    trajectory: Trajectory,
    store: ArtifactStore,
    copy: ArtifactStore,
    scratch: Path,
    sandbox: Sandbox,
    registry: Registry,
    engines: Engines | None,
) -> Runtime:
    """A run that starts where the trajectory did, in a store that holds what its first snapshot refers to."""
    settings = Settings.of(trajectory, store)
    for name in sorted(reachable(store, [snapshot_sha256(trajectory.first_snapshot)])):
        copy.put_file(store.path(name), ArtifactKind.OTHER, "application/octet-stream")
    snapshots = SnapshotStore(copy)
    start = snapshots.load(trajectory.first_snapshot)
    then = registry.reproducing(start.film.task.tools_digest, offered_tools(trajectory, store))
    if then is None:
        raise ConfigInvalid("tools_gone", f"the tool space {start.film.task.tools_digest[:12]} cannot be put together from today's tools")
    work = scratch / "work"
    work.mkdir()
    suite = Suite(copy, snapshots, sandbox, engines or build_engines(settings.replay, sandbox), settings.replay, work)
    faults = _RecordedFaults(settings.repair, trajectory)
    return Runtime(trajectory.first_snapshot, then, suite, budget=trajectory.budget, fault_filter=faults)


class _RecordedFaults:
    """A fault filter that strikes in the calls where the recording has faults, and nowhere else: a run may have begun without any, or have
    been given settings whose faults it never used."""

    def __init__(self, repair: RepairConfig, trajectory: Trajectory) -> None:
        self._plan = FaultPlan(repair.faults)
        self._struck = {c.call_index for c in trajectory.calls if c.faults}

    def __call__(
        self, call_index: int, tool: str, product: Product, env: ToolEnv, state: ProductionState
    ) -> tuple[Product | Refusal, tuple[InjectedFault, ...]]:
        return self._plan(call_index, tool, product, env, state) if call_index in self._struck else (product, ())


def offered_tools(trajectory: Trajectory, store: ArtifactStore) -> list[str] | None:
    """Names of the tools that were offered, from the first orchestrator's context."""
    for call in trajectory.calls:
        if call.role is Role.ORCHESTRATOR:
            return [tool["function"]["name"] for tool in store.read_json(call.context_sha256)["tools"]]
    return None


def _follow(run: Runtime, trajectory: Trajectory) -> Difference | None:
    """Give the runtime the recorded outputs; the first fault of ours, if any. What the runtime authored itself it must author again."""
    try:
        run.settle()
        while not run.finished and len(run.calls) < len(trajectory.calls):
            output = trajectory.calls[len(run.calls)].output
            if output.provenance is Provenance.RUNTIME:
                break
            run.step(output)
    except PipelineError as error:
        at = len(run.calls)
        return Difference("fault", at, trajectory.calls[at].tool, str(error))
    return None


def _compared(
    run: Runtime, trajectory: Trajectory, store: ArtifactStore, sandbox: Sandbox, fault: Difference | None, started: float
) -> Audited:
    pairs = list(zip(trajectory.calls, run.calls, strict=False))
    first = next((d for d in (_call_difference(was, now) for was, now in pairs) if d is not None), None)
    if first is None and len(run.calls) != len(trajectory.calls):
        at = len(pairs)
        tool = trajectory.calls[at].tool if at < len(trajectory.calls) else run.calls[at].tool
        what = f"{len(trajectory.calls)} calls were recorded, {len(run.calls)} came about"
        first = fault or Difference("call", at, tool, what)
    frames, pictures, sound = _film_differences(run, trajectory, store, sandbox)
    return Audited(
        trajectory_id=trajectory.trajectory_id,
        project_id=trajectory.project_id,
        calls=max(len(trajectory.calls), len(run.calls)),
        equal_states=sum(was.state_after == now.state_after for was, now in pairs),
        equal_contexts=sum(was.context_sha256 == now.context_sha256 for was, now in pairs),
        faults=sum(len(c.faults) for c in trajectory.calls),
        frames=frames,
        equal_frames=pictures is None,
        equal_sound=sound is None,
        first=first or fault or pictures or sound,
        wall_s=time.monotonic() - started,
    )


def _call_difference(was: Call, now: Call) -> Difference | None:
    """What of a call is other than recorded, apart from its context (prompts may change) and its key (settings may gain defaults)."""
    parts = [
        name
        for name in ("state_after", "observation", "artifacts", "verdicts", "faults", "tool_version", "changes")
        if getattr(was, name) != getattr(now, name)
    ]
    if not parts:
        return None
    old = Counter((c.subject, c.field, digest_of(c.value)) for c in was.changes)
    new = Counter((c.subject, c.field, digest_of(c.value)) for c in now.changes)
    fields = sorted({f"{subject}.{name}" for subject, name, _ in ((old - new) + (new - old))})
    return Difference("call", was.call_index, was.tool, f"differs in {', '.join(parts)}", tuple(fields))


def _film_differences(
    run: Runtime, trajectory: Trajectory, store: ArtifactStore, sandbox: Sandbox
) -> tuple[int, Difference | None, Difference | None]:
    """Pictures of the recorded film; where the film made again first looks otherwise; and whether it sounds otherwise."""
    made = run.state.film.delivery if run.outcome is Outcome.DELIVERED else None
    if trajectory.video is None or made is None:
        if trajectory.video is None and made is None:
            return 0, None, None
        lost = Difference("frame", None, None, "only one of the two runs delivered a film")
        return 0, lost, lost
    was = fingerprint(store.path(trajectory.video.sha256), sandbox)
    now = fingerprint(run.suite.store.path(made.video.sha256), sandbox)
    at = was.first_difference(now)
    pictures = None if at is None else Difference("frame", None, "stitch_video", f"picture {at} of {len(was.frames)} differs")
    sound = None if was.sound == now.sound else Difference("sound", None, "stitch_video", "the samples differ")
    return len(was.frames), pictures, sound


def _ended(trajectory: Trajectory, first: Difference, started: float) -> Audited:
    """A trajectory that could not be executed at all."""
    calls, faults = len(trajectory.calls), sum(len(c.faults) for c in trajectory.calls)
    wall = time.monotonic() - started
    return Audited(trajectory.trajectory_id, trajectory.project_id, calls, 0, 0, faults, 0, False, False, first, wall)


# -- a lake --------------------------------------------------------------------------------------------------------------------


def sampled(names: Iterable[str], sample: int | None, seed: int) -> list[str]:
    """A seeded sample, in an order that does not depend on how the names came."""
    order = sorted(names, key=lambda name: digest_of([seed, name]))
    return order if sample is None else order[:sample]


def audit_lake(lake: Lake, sandbox: Sandbox, *, sample: int | None = None, seed: int = 0, note: Note = lambda _text: None) -> AuditReport:
    """Audit the trajectories of a lake's newest version.

    Args:
        sample: at most this many, drawn by ``seed``; all by default.
        note: gets a line for a person before every trajectory.

    Raises:
        ConfigInvalid: ``sample`` is not positive.
        StorageFault, DigestMismatch: the lake's own files cannot be read.
    """
    if sample is not None and sample < 1:
        raise ConfigInvalid("sample", f"a sample of {sample} trajectories", "name a number from 1 up, or leave --sample out for all")
    rows = lake.query("select trajectory_id, trajectory_sha256 from trajectories order by all").rows
    stored = {str(row[0]): str(row[1]) for row in rows}
    chosen = sampled(stored, sample, seed)
    return audit_all(
        [Trajectory.model_validate_json(lake.store.read(stored[name])) for name in chosen], lake.store, sandbox, len(stored), note
    )


def audit_all(
    trajectories: Sequence[Trajectory], store: ArtifactStore, sandbox: Sandbox, stored: int | None = None, note: Note = lambda _text: None
) -> AuditReport:
    """Audit trajectories whose artifacts lie in one store; engines are built once a setting."""
    registry, built = full_registry(), dict[Sha256, Engines]()
    audited: list[Audited] = []
    for number, trajectory in enumerate(sorted(trajectories, key=lambda t: t.config_digest)):
        note(f"{number + 1} of {len(trajectories)}: {trajectory.trajectory_id}, {len(trajectory.calls)} calls")
        if trajectory.config_digest not in built and store.has(trajectory.config_digest):
            built.clear()
            built[trajectory.config_digest] = build_engines(Settings.of(trajectory, store).replay, sandbox)
        audited.append(audit_trajectory(trajectory, store, sandbox, registry=registry, engines=built.get(trajectory.config_digest)))
    return AuditReport(tuple(audited), len(trajectories) if stored is None else stored)
