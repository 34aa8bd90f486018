"""Replay-safe RFT: where a student's run first failed, whether its repaired run may be learned from, and which ones are kept.

Owns the first failure, the eight admission checks, the quality threshold, quotas and the hard-case pool (arXiv 2610.38352, A.1). The paper
names the checks; what each looks at is defined here. Pure but for the inspection of bytes that an admission needs. Restores and executes
nothing itself: the caller replays, and hands in what came of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from evaluation.quality import plan_hygiene, rule_quality
from repair.checks.plan import is_ordered, script_coverage
from repair.findings import Finding
from repair.inspect import examine
from replay import facts
from replay.tool import ToolEnv
from schemas.blocker import BlockerCode
from schemas.canonical import Frozen
from schemas.contract import Fact
from schemas.errors import MediaRejected, StorageFault
from schemas.state import ProductionState
from schemas.trajectory import Call, ObservationStatus, Outcome, Provenance, Trajectory
from schemas.verdict import DefectCode as Code
from storage.artifacts import ArtifactStore

Check = Literal["schema", "prerequisite", "artifact_reference", "render", "duration", "narration", "lint", "black_frame"]
CHECKS: tuple[Check, ...] = ("schema", "prerequisite", "artifact_reference", "render", "duration", "narration", "lint", "black_frame")

_SCHEMA = {
    BlockerCode.UNPARSABLE_OUTPUT, BlockerCode.UNKNOWN_TOOL, BlockerCode.MISSING_ARGUMENT, BlockerCode.UNKNOWN_ARGUMENT,
    BlockerCode.WRONG_TYPE, BlockerCode.VALUE_NOT_ALLOWED, BlockerCode.CONTENT_CONTRACT_BROKEN, BlockerCode.ROLE_MISMATCH,
}  # fmt: skip
_PREREQUISITE = {BlockerCode.PREREQUISITE_MISSING, BlockerCode.WRONG_STAGE_ORDER, BlockerCode.DELIVERY_INCOMPLETE}

_SHOWN_BY: dict[Code, Check] = {
    Code.RENDER_WRONG_SIZE: "render", Code.RENDER_FROZEN: "render", Code.ASSET_MISMATCH: "render", Code.ASSET_REPEATED: "render",
    Code.RENDER_GRAPHIC_MISSING: "render", Code.DELIVERY_GRAPHIC_MISSING: "render",
    Code.RENDER_WRONG_LENGTH: "duration", Code.PACING_TOO_LONG: "duration", Code.PACING_TOO_SHORT: "duration",
    Code.DELIVERY_DRIFT: "duration", Code.ASSET_TOO_SHORT: "duration",
    Code.NARRATION_SILENT: "narration", Code.NARRATION_CLIPPED: "narration", Code.NARRATION_TRUNCATED: "narration",
    Code.NARRATION_LOUDNESS: "narration", Code.DELIVERY_SILENT: "narration", Code.DELIVERY_LOUDNESS: "narration",
    Code.DELIVERY_CLIPPED: "narration", Code.MUSIC_SILENT: "narration", Code.MUSIC_CLIPPED: "narration",
    Code.RENDER_BLACK: "black_frame", Code.DELIVERY_BLACK: "black_frame",
}  # fmt: skip
"""Which check an error found on the bytes belongs to; plan and graphics are the lint's."""


class RftConfig(Frozen):
    """Settings of admission. Figures of ours: the paper selects q_RFT on its development set and names no quota."""

    quality: float = 0.8
    """q_RFT: lowest final quality."""
    student_quota: int = 4
    """Complete student successes kept of one source project."""
    assisted_quota: int = 4
    """Teacher-assisted runs kept of one source project."""
    pool: int = 64
    """Hard cases kept in all."""
    eta: float = 0.1
    """Probability with which a later rollout starts from a hard case; recorded with every one."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The first call of a run that failed (t*), and how."""

    call_index: int
    """The orchestrator call that the failing output belongs to: the run is restored before it."""
    kind: Literal["blocker", "defect", "incomplete"]
    code: str
    subject: str
    message: str


@dataclass(frozen=True, slots=True)
class Case:
    """One student run and what became of it."""

    student: Trajectory
    failure: Failure | None
    repaired: Trajectory | None
    """The run that is to be learned from: the student's own where it succeeded, the teacher's continuation, or None."""
    replayed: bool
    """The suffix was executed again from the snapshot and led through the same states."""
    failed_checks: tuple[Check, ...] = ()
    quality: float | None = None
    problem: str = ""

    @property
    def provenance(self) -> Literal["student", "teacher_assisted", "scripted"]:
        """Who authored what is learned: the student alone, a teacher in whole or part, or scripts alone."""
        run = self.repaired or self.student
        authors = {c.output.provenance for c in run.calls if c.output.provenance is not Provenance.RUNTIME}
        if Provenance.TEACHER in authors:
            return "teacher_assisted"
        return "student" if authors & {Provenance.STUDENT, Provenance.OUTSIDE} else "scripted"

    def passes(self, config: RftConfig) -> bool:
        """Replayed, all checks passed, and good enough."""
        return self.replayed and not self.failed_checks and self.quality is not None and self.quality >= config.quality

    @property
    def hard_class(self) -> str:
        """What the hard-case pool balances by."""
        return self.failure.code if self.failure is not None else "none"


@dataclass(frozen=True, slots=True)
class Decision:
    """What is done with a case."""

    case: Case
    admitted: bool
    pooled: bool
    reason: str


def first_failure(run: Trajectory) -> Failure | None:
    """t*: the first call that was refused, or that made what an inspection later held for an error; None for a complete success."""
    refused = next((c for c in run.calls if c.observation.status is ObservationStatus.REFUSED), None)
    errors = [
        (_maker(run.calls, d.artifact_sha256, c), d) for c in run.calls for v in c.verdicts for d in v.defects if d.severity == "error"
    ]
    made = min(errors, key=lambda e: e[0].call_index, default=None)
    if refused is not None and (made is None or refused.orchestrator_call <= made[0].orchestrator_call):
        blocker = refused.observation.blockers[0]
        return Failure(refused.orchestrator_call, "blocker", blocker.code.value, blocker.subject, blocker.message)
    if made is not None:
        return Failure(made[0].orchestrator_call, "defect", made[1].code.value, made[1].subject, made[1].measured)
    if run.outcome is not Outcome.DELIVERED:
        last = run.calls[-1].orchestrator_call if run.calls else 0
        return Failure(last, "incomplete", "incomplete", "film", "the run ended without a film")
    return None


def _maker(calls: Sequence[Call], artifact: str | None, found: Call) -> Call:
    """The call that made an artifact; the one that found the fault where nothing was made."""
    if artifact is None:
        return found
    return next((c for c in calls if any(a.sha256 == artifact for a in c.artifacts)), found)


def failed_checks(run: Trajectory, suffix: Sequence[Call], final: ProductionState, env: ToolEnv) -> tuple[Check, ...]:
    """Which of the eight checks a repaired run does not pass, on its bytes.

    Args:
        suffix: calls after the restored snapshot, as replayed.
        final: the state the replay ended in.

    Raises:
        ToolFailed, LimitExceeded, SandboxUnavailable: the film could not be looked at.
    """
    found: set[Check] = set()
    for call in suffix:
        codes = {b.code for b in call.observation.blockers}
        if codes & _SCHEMA:
            found.add("schema")
        if codes & _PREREQUISITE:
            found.add("prerequisite")
        if BlockerCode.UNRESOLVED_REFERENCE in codes:
            found.add("artifact_reference")
    if run.outcome is not Outcome.DELIVERED or not facts.holds(Fact.DELIVERY, final):
        found.add("prerequisite")
    if not _references(final, env.store):
        return (*_in_order(found | {"artifact_reference"}),)
    if not facts.holds(Fact.RENDERS, final):
        found.add("render")
    if script_coverage(final) < 1 or not is_ordered(final):
        found.add("narration")
    if plan_hygiene(final) < 0.5:
        found.add("lint")
    findings: Iterable[Finding] = ()
    try:
        findings = examine(final, final.film.shot_order, env).findings
    except MediaRejected:
        found.add("render")
    found |= {_SHOWN_BY.get(f.code, "lint") for f in findings if f.severity == "error"}
    return _in_order(found)


def _in_order(found: Iterable[Check]) -> tuple[Check, ...]:
    seen = set(found)
    return tuple(c for c in CHECKS if c in seen)


def _references(final: ProductionState, store: ArtifactStore) -> bool:
    """Every artifact that the final state points to is in the store, with the bytes its name promises."""
    names = [a for a in _names(final.film.model_dump(mode="json", exclude={"task", "pending"}))]
    names += [a for shot in final.shots.values() for a in _names(shot.model_dump(mode="json"))]
    try:
        return all(store.has(name) and store.read(name) is not None for name in dict.fromkeys(names))
    except StorageFault:
        return False


def _names(value: Any) -> Iterable[str]:
    if isinstance(value, dict):
        if {"sha256", "kind", "media_type"} <= value.keys():
            yield value["sha256"]
        for part in value.values():
            yield from _names(part)
    elif isinstance(value, list):
        for part in value:
            yield from _names(part)


def quality_of(run: Trajectory, final: ProductionState) -> float:
    """Q_RFT: the final quality of the run (evaluation.quality)."""
    return rule_quality(run, final).end


def decide(cases: Iterable[Case], config: RftConfig) -> tuple[Decision, ...]:
    """Admit what passes, within the quotas of its source project, best first; put what nobody could mend into the hard-case pool.

    The pool takes classes in turn, so that a frequent failure does not fill it. The result is in the order of the cases and depends on
    nothing but them.
    """
    listed = list(cases)
    admitted: set[int] = set()
    known: set[str] = set()
    used: dict[tuple[str, bool], int] = defaultdict(int)
    order = sorted(range(len(listed)), key=lambda n: (-(listed[n].quality or 0.0), listed[n].student.trajectory_id))
    for n in order:
        case = listed[n]
        owner = (case.student.project_id, case.failure is not None or case.provenance == "teacher_assisted")
        name = case.repaired.trajectory_id if case.repaired is not None else ""
        quota = config.assisted_quota if owner[1] else config.student_quota
        if case.passes(config) and used[owner] < quota and name not in known:
            used[owner] += 1
            admitted.add(n)
            known.add(name)
    pooled = _pool([n for n in range(len(listed)) if not listed[n].passes(config)], listed, config)
    return tuple(Decision(case, n in admitted, n in pooled, _reason(case, n in admitted, config, known)) for n, case in enumerate(listed))


def _pool(hard: list[int], cases: list[Case], config: RftConfig) -> set[int]:
    classes: dict[str, list[int]] = defaultdict(list)
    for n in sorted(hard, key=lambda n: cases[n].student.trajectory_id):
        classes[cases[n].hard_class].append(n)
    out: set[int] = set()
    while len(out) < config.pool and any(classes.values()):
        for name in sorted(classes):
            if classes[name] and len(out) < config.pool:
                out.add(classes[name].pop(0))
    return out


def _reason(case: Case, admitted: bool, config: RftConfig, known: set[str]) -> str:
    if admitted:
        return "admitted"
    if case.passes(config):
        return "repeats an admitted run" if case.repaired is not None and case.repaired.trajectory_id in known else "quota"
    if case.problem:
        return case.problem
    if not case.replayed:
        return "replay differs"
    return "failed " + ", ".join(case.failed_checks) if case.failed_checks else f"quality {case.quality} below {config.quality}"


def rft_row(decision: Decision, config: RftConfig) -> dict[str, Any]:
    """The row of a decision."""
    case = decision.case
    failure, run = case.failure, case.repaired
    before = next((c for c in case.student.calls if failure is not None and c.call_index == failure.call_index), None)
    return {
        "student_trajectory_id": case.student.trajectory_id,
        "project_id": case.student.project_id,
        "failure_call": None if failure is None else failure.call_index,
        "failure_kind": None if failure is None else failure.kind,
        "failure_code": None if failure is None else failure.code,
        "failure_message": None if failure is None else f"{failure.subject}: {failure.message}",
        "snapshot_id": None if before is None else before.snapshot_before,
        "trajectory_id": None if run is None else run.trajectory_id,
        "provenance": case.provenance,
        "replayed": case.replayed,
        "failed_checks": list(case.failed_checks),
        "quality": case.quality,
        "admitted": decision.admitted,
        "reason": decision.reason,
        "hard_case": decision.pooled,
        "hard_class": case.hard_class if decision.pooled else None,
        "mixing": config.eta,
    }
