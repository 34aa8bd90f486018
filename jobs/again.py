"""Stored runs of a lake taken up again: what each needs to be restored, and the commits of what came of it.

Owns the opening of a stored trajectory (storyboard, settings, engines, suite) and the two commands that go on from one: faults put in on
purpose (``workprint inject``) and failed runs finished by a teacher (``workprint rft``).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from evaluation.audit import Settings
from jobs.config import WorkprintConfig, load_config
from jobs.questions import open_lake
from jobs.single import STORE, replay_one
from jobs.stages import Workshop, replay_settings, trajectory_done
from media.sandbox import open_sandbox
from repair.config import FaultConfig
from repair.diagnose import ScriptedCritic
from repair.fault_kinds import KINDS
from repair.injection import Injected, NothingToStrike, inject
from repair.outcomes import FaultOutcome, fault_rows, outcomes
from repair.registry import full_registry
from replay.policies.scripted import ScriptedPolicy
from replay.registry import Registry
from replay.suite import Suite
from schemas.artifact import ArtifactKind
from schemas.canonical import Sha256, digest_of, stage_key
from schemas.errors import AlreadyDone, ConfigInvalid
from schemas.storyboard import Storyboard
from schemas.trajectory import Trajectory
from storage.artifacts import ArtifactStore
from storage.lake import Lake, StageCommit
from storage.snapshots import SnapshotStore

INJECT_VERSION = 1
"""Raise it when the same request may give another run."""

Note = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Opened:
    """A stored run, ready to be taken up again."""

    base: Trajectory
    board: Storyboard
    settings: Settings
    suite: Suite
    registry: Registry

    def policy(self, *, mistakes: bool = True) -> ScriptedPolicy:
        """The scripted policy over the run's storyboard; without mistakes where it is to teach."""
        config = self.settings.replay
        if not mistakes:
            config = config.model_copy(update={"policy": config.policy.model_copy(update={"mistake_rate": 0.0})})
        return ScriptedPolicy(self.board, self.base.seed, config, ScriptedCritic())

    def settings_with(self, faults: FaultConfig) -> Sha256:
        """Store the run's settings with other faults, as an audit reads them back; their digest."""
        config = WorkprintConfig(replay=self.settings.replay, repair=self.settings.repair.model_copy(update={"faults": faults}))
        return self.suite.store.put_json(replay_settings(config), ArtifactKind.OTHER).sha256


def targets(lake: Lake, target: str | None, where: str) -> list[str]:
    """Digests of stored trajectories whose id, or whose project's id, begins with ``target``; all where it is None.

    Args:
        where: a condition over table ``trajectories``.

    Raises:
        ConfigInvalid: there is none.
    """
    con = lake.connect()
    try:
        rows = con.execute(
            f"select trajectory_sha256 from trajectories where ({where}) "  # noqa: S608 - a condition of ours, never a user's
            "and (starts_with(trajectory_id, $1) or starts_with(project_id, $1)) order by project_id, seed, trajectory_id",
            [target or ""],
        ).fetchall()
    finally:
        con.close()
    if not rows:
        raise ConfigInvalid(
            "no_trajectory",
            f"no stored trajectory begins with {target!r}" if target else "the lake holds no trajectory for this",
            'see: workprint query "select trajectory_id, project_id, outcome from trajectories"',
        )
    return [str(r[0]) for r in rows]


@contextmanager
def opened(lake: Lake, sha: Sha256, config: WorkprintConfig, note: Note) -> Iterator[Opened]:
    """Open one stored run, whoever decided it: a script, chat models, a recording, an outside agent.

    Args:
        config: where a judge is reached that the run's settings name, and which sandbox there is; all else is the run's own.

    Raises:
        ConfigInvalid: its settings or its storyboard are not in the lake, or its tools are not all here.
    """
    base = Trajectory.model_validate_json(lake.store.read(sha))
    settings = Settings.of(base, lake.store)
    own = config.model_copy(update={"replay": settings.replay, "repair": settings.repair})
    shop = Workshop(own, lake.store, open_sandbox(config.run.sandbox))
    con = lake.connect()
    try:
        boards = con.execute("select storyboard_sha256 from storyboards where project_id = $1", [base.project_id]).fetchall()
    finally:
        con.close()
    if not boards:
        raise ConfigInvalid("no_storyboard", f"the lake holds no storyboard of {base.project_id}")
    board = Storyboard.model_validate_json(lake.store.read(boards[0][0]))
    with tempfile.TemporaryDirectory(prefix="workprint-") as scratch:
        snapshots = SnapshotStore(lake.store)
        suite = Suite(lake.store, snapshots, shop.sandbox, shop.engines, settings.replay, Path(scratch), note)
        wanted = snapshots.load(base.first_snapshot).film.task.tools_digest
        registry = full_registry().reproducing(wanted)
        if registry is None:
            raise ConfigInvalid("tools_gone", f"the tools of {base.trajectory_id} are not all here any more", "make the run anew")
        yield Opened(base, board, settings, suite, registry)


def commit(
    lake: Lake, stage: str, version: int, request: object, base_sha: Sha256, run: Trajectory | None, rows: dict[str, Any], scope: str
) -> None:
    """Commit what came of a stored run. A request that was committed before stays as it is."""
    subject = next(str(row["project_id"]) for table in rows.values() for row in table)
    sha = None if run is None else lake.store.put_bytes(run.canonical(), ArtifactKind.TRAJECTORY, "application/json").sha256
    kept = () if run is None else (*trajectory_done(run, lake.store, {}).artifacts, sha or "", run.config_digest)
    one = StageCommit(
        stage=stage,
        stage_key=stage_key(stage, version, digest_of(request), (base_sha,)),
        subject=subject,
        scope=scope,
        status="done",
        output_sha256=sha,
        rows=rows,
        artifacts=kept,
        run_id=stage,
    )
    try:
        lake.commit(one)
    except AlreadyDone:
        return


@dataclass(frozen=True, slots=True)
class Report:
    """What became of the faults of one run."""

    trajectory: Trajectory
    base_id: str | None
    kept_calls: int
    found: tuple[FaultOutcome, ...]

    def as_json(self) -> dict[str, Any]:
        """Stable form for ``--json``."""
        t = self.trajectory
        return {
            "trajectory_id": t.trajectory_id,
            "base_trajectory_id": self.base_id,
            "project_id": t.project_id,
            "outcome": t.outcome.value,
            "kept_calls": self.kept_calls,
            "calls": len(t.calls),
            "faults": [
                {
                    "fault_id": o.fault.fault_id,
                    "kind": o.fault.kind,
                    "level": o.level,
                    "subject": o.fault.subject,
                    "detail": o.fault.detail,
                    "call_struck": o.call_struck,
                    "call_found": o.call_found,
                    "code": o.code,
                    "located": o.located,
                    "diagnosed": o.diagnosed,
                    "mends": list(o.mends),
                    "recovered": o.recovered,
                }
                for o in self.found
            ],
        }


def inject_into_lake(lake_path: Path, target: str | None, faults: FaultConfig, runs: int, config: str | None, note: Note) -> list[Report]:
    """Put faults into stored runs and commit the new ones. Runs that no drawn fault can strike are told and left out.

    Args:
        target: beginning of a trajectory's or a project's id; None takes every run that holds no injected faults.
        runs: new runs of each, with seeds from ``faults.seed`` on.
        config: as :func:`opened`.

    Raises:
        ConfigInvalid: no such run, nothing to strike in any, or the lake cannot be read.
        PipelineError: a fault of ours.
    """
    lake, settings = open_lake(lake_path), load_config(config)
    again = "trajectory_id not in (select trajectory_id from faults where base_trajectory_id is not null)"
    reports: list[Report] = []
    unstruck: ConfigInvalid | None = None
    for sha in targets(lake, target, "true" if target else again):
        with opened(lake, sha, settings, note) as one:
            for seed in range(faults.seed, faults.seed + runs):
                asked = faults.model_copy(update={"seed": seed})
                try:
                    done = inject(
                        one.base, asked, one.policy(), one.registry, one.suite,
                        own=one.settings.repair.faults, digest=one.settings_with, note=note,
                    )  # fmt: skip
                except NothingToStrike as error:
                    note(f"{one.base.trajectory_id}, seed {seed}: {error.message}")
                    unstruck = error
                    continue
                reports.append(_committed(lake, sha, one, done, asked))
    if unstruck is not None and not reports:
        raise unstruck
    return reports


def _committed(lake: Lake, sha: Sha256, one: Opened, done: Injected, asked: FaultConfig) -> Report:
    made = trajectory_done(done.trajectory, lake.store, done.spent_us)
    final = one.suite.snapshots.load(done.trajectory.last_snapshot)
    base = one.base.trajectory_id
    rows = {**made.rows, "faults": fault_rows(done.trajectory, final, done.broken_down, base)}
    request = asked.model_dump(mode="json")
    commit(lake, "inject", INJECT_VERSION, request, sha, done.trajectory, rows, f"{base}#{digest_of(request)[:16]}")
    for retried in done.retried:
        lake.record_failure(
            stage="inject",
            subject=one.base.project_id,
            uri=one.board.source.uri,
            error_type=str(retried.error["type"]),
            code=str(retried.error["code"]),
            message=f"call {retried.call_index}, {retried.tool}: {retried.error['message']}",
            attempts=1,
            quarantined=False,
            run_id="inject",
        )
    return Report(done.trajectory, base, done.kept_calls, outcomes(done.trajectory, final, done.broken_down))


def inject_into_storyboard(
    storyboard: Path, out: Path | None, source: Path | None, faults: FaultConfig, config_name: str | None, *, quiet: bool
) -> Report:
    """Produce the film of a storyboard with faults of every level drawn. The causes are in the calls of its trajectory.json; the settings
    of the run lie beside it.

    Args:
        source: the video, if it is not where the storyboard says.

    Raises:
        ConfigInvalid: no folder was named, or as ``jobs.single.replay_one``.
        PipelineError: a fault of ours.
    """
    if out is None:
        raise ConfigInvalid("no_folder", "a storyboard is produced into a folder", "name one with -o")
    config = load_config(config_name)
    spoiled = faults if faults.kinds else faults.model_copy(update={"kinds": tuple(KINDS)})
    config = config.model_copy(update={"repair": config.repair.model_copy(update={"faults": spoiled})})
    out.mkdir(parents=True, exist_ok=True)
    settings = out / "settings.yaml"
    settings.write_text(yaml.safe_dump(config.model_dump(mode="json")), "utf-8")
    done = replay_one(storyboard, out, source, str(settings), None, quiet=quiet).trajectory
    final = SnapshotStore(ArtifactStore(out / STORE)).load(done.last_snapshot)
    return Report(done, None, 0, outcomes(done, final))
