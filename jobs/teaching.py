"""Replay-safe RFT over a lake: the valid prefix of every failed run kept, its suffix made anew by the teacher, replayed, checked, admitted.

Owns the order of work and the commits; what is a failure, a check and a quota is evaluation.rft's. The teacher is the scripted policy over
the recovered storyboard, without mistakes; its outputs are marked as the teacher's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.rft import Case, Decision, RftConfig, decide, failed_checks, first_failure, quality_of, rft_row
from jobs.again import Note, Opened, commit, opened, targets
from jobs.config import WorkprintConfig
from jobs.questions import open_lake
from jobs.stages import trajectory_done
from materialize.config import MaterializeConfig
from materialize.examples import materialize
from materialize.tokens import open_counter
from repair.config import FaultConfig
from repair.faults import FaultPlan
from repair.links import link
from replay.episode import run_episode
from replay.policies.base import Policy
from replay.policies.recorded import RecordedPolicy
from replay.runtime import Runtime
from replay.tool import ToolEnv
from schemas.canonical import Sha256
from schemas.errors import ConfigInvalid
from schemas.example import Split
from schemas.storyboard import Storyboard
from schemas.trajectory import Call, Provenance, RoleContext, RoleOutput, Trajectory
from storage.lake import Lake
from storage.snapshots import SnapshotStore

RFT_VERSION = 1
"""Raise it when the same run may be continued or judged otherwise."""

NOT_TAUGHT = (
    "trajectory_id not in (select trajectory_id from rft where trajectory_id is not null and trajectory_id <> student_trajectory_id)"
)
"""Runs that are no teacher's continuation themselves."""


class Teacher:
    """A policy whose outputs are marked as the teacher's."""

    def __init__(self, policy: Policy, student: Trajectory) -> None:
        self._policy = policy
        self.name = f"{student.policy}+teacher"
        self.seed = policy.seed

    def act(self, context: RoleContext) -> RoleOutput:
        """The policy's output, marked."""
        return self._policy.act(context).model_copy(update={"provenance": Provenance.TEACHER})


@dataclass(frozen=True, slots=True)
class Taught:
    """A case with what has to be committed for it."""

    sha: Sha256
    case: Case
    rows: dict[str, Any]


def teach(lake_path: Path, target: str | None, config: RftConfig, settings: WorkprintConfig, note: Note) -> tuple[Decision, ...]:
    """Finish failed runs by the teacher, check and admit them, commit the outcome.

    Args:
        target: beginning of a trajectory's or a project's id; None takes every run that is no teacher's continuation.
        settings: how the examples of admitted runs are made, and as :func:`jobs.again.opened`.

    Raises:
        ConfigInvalid: no such run, or the lake cannot be read.
        PipelineError: a fault of ours.
    """
    lake = open_lake(lake_path)
    taught: list[Taught] = []
    for sha in targets(lake, target, NOT_TAUGHT):
        with opened(lake, sha, settings, note) as one:
            taught.append(_teach(sha, one, note))
    decisions = decide([t.case for t in taught], config)
    asked = [t.case.student.trajectory_id for t in taught]
    written: set[str] = set()
    for made, decision in sorted(zip(taught, decisions, strict=True), key=lambda pair: not pair[1].admitted):
        _commit(lake, made, decision, config, settings.materialize, asked, written)
    return decisions


def _teach(sha: Sha256, one: Opened, note: Note) -> Taught:
    student = one.base
    failure = first_failure(student)
    cut = 0 if failure is None else failure.call_index
    prefix = student.calls[:cut]
    start = student.calls[cut].snapshot_before if student.calls else student.first_snapshot
    own = one.settings.repair.faults
    kept = own if failure is None else _struck(own, prefix)
    digest = student.config_digest if failure is None else one.settings_with(kept)

    def runtime() -> Runtime:
        return Runtime(start, one.registry, one.suite, budget=student.budget, history=prefix, fault_filter=FaultPlan(kept))

    repaired, spent_us = student, dict[int, int]()
    if failure is not None:
        note(f"{student.trajectory_id}: restored before call {cut} ({failure.code})")
        try:
            taught = runtime()
            repaired = run_episode(
                taught, Teacher(one.policy(mistakes=False), student), lambda _text: None, config_digest=digest, link=link
            )
            spent_us = taught.spent_us
        except ConfigInvalid as error:
            return Taught(sha, Case(student, failure, None, False, problem=f"the teacher could not go on: {error.code}"), {})
    again = run_episode(runtime(), RecordedPolicy(repaired), lambda _text: None, config_digest=digest, link=link)
    suffix = again.calls[cut:]
    same = [c.state_after for c in suffix] == [c.state_after for c in repaired.calls[cut:]]
    final = one.suite.snapshots.load(again.last_snapshot)
    folder = one.suite.scratch / "checks"
    folder.mkdir(exist_ok=True)
    env = ToolEnv(one.suite.store, one.suite.sandbox, one.suite.engines, one.suite.config, folder)
    case = Case(student, failure, repaired, same, failed_checks(again, suffix, final, env), quality_of(again, final))
    rows = {} if failure is None else dict(trajectory_done(repaired, one.suite.store, spent_us).rows)
    return Taught(sha, case, rows)


def _struck(own: FaultConfig, prefix: Sequence[Call]) -> FaultConfig:
    """The faults that struck the kept prefix, and no others: the continuation meets none."""
    names = tuple(dict.fromkeys(f"{f.kind}@{f.subject}" for c in prefix for f in c.faults))
    return FaultConfig(seed=own.seed, explicit=names)


def _commit(
    lake: Lake, made: Taught, decision: Decision, config: RftConfig, examples: MaterializeConfig, asked: list[str], written: set[str]
) -> None:
    """Commit a decision. A run that several students share is written once, with the first that has it."""
    case, rows = made.case, dict(made.rows)
    row = rft_row(decision, config)
    run = case.repaired if case.failure is not None else None
    if run is not None and (run.trajectory_id in written or _is_others(lake, run, asked)):
        run, rows = None, {}
    if run is not None:
        written.add(run.trajectory_id)
    if decision.admitted and run is not None:
        rows["examples"] = _examples(lake, run, examples, asked)
    commit(lake, "rft", RFT_VERSION, [config.model_dump(), row], made.sha, run, {**rows, "rft": [row]}, case.student.trajectory_id)


def _is_others(lake: Lake, run: Trajectory, asked: list[str]) -> bool:
    """A student that is not asked about now has the very same run as its continuation."""
    con = lake.connect()
    try:
        sql = "select 1 from rft where trajectory_id = $1 and not list_contains($2, student_trajectory_id)"
        return bool(con.execute(sql, [run.trajectory_id, asked]).fetchall())
    finally:
        con.close()


_OTHERS = """select example_id from examples where project_id = $1 and trajectory_id not in (
    select trajectory_id from rft where trajectory_id <> student_trajectory_id and list_contains($2, student_trajectory_id))"""
"""Examples that this commit does not replace."""


def _examples(lake: Lake, run: Trajectory, config: MaterializeConfig, asked: list[str]) -> list[dict[str, Any]]:
    """Examples of an admitted run that the lake does not hold yet."""
    con = lake.connect()
    try:
        ids = con.execute(_OTHERS, [run.project_id, asked]).fetchall()
        boards = con.execute("select storyboard_sha256 from storyboards where project_id = $1", [run.project_id]).fetchall()
        split = con.execute("select split from projects where project_id = $1", [run.project_id]).fetchone()
    finally:
        con.close()
    board = Storyboard.model_validate_json(lake.store.read(boards[0][0]))
    known = frozenset(str(i[0]) for i in ids)
    counter = open_counter(config)
    decided = Split(split[0]) if split and split[0] else None
    done = materialize(run, board, lake.store, SnapshotStore(lake.store), config, counter, split=decided, known=known)
    return list(done.rows["examples"])
