"""What became of every fault that was put in on purpose: found where, taken for what, mended by what, and is the film sound again.

Owns the definitions of localization, diagnosis, recovery and needless repair. Pure: reads recorded calls and the final state.

- *found*: the first inspection or blocker after the strike that shows a symptom of the fault on its subject.
- *located*: that finding names the faulty artifact itself (the shot alone, where nothing faulty was made).
- *diagnosed*: the fault's first symptom was reported then, and of the faulty artifact nothing that the fault does not show by.
- *recovered*: the film was delivered, nothing the fault shows by is open as an error, and its artifact is no part of the final state.
- *needless*: a mend that made a product again for a defect that no injected fault explains.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from repair.fault_kinds import KINDS, FaultKind
from repair.findings import FILM
from repair.inspect import open_defects
from repair.plan_faults import plan_faults
from schemas.canonical import Sha256
from schemas.state import ProductionState
from schemas.trajectory import Call, InjectedFault, ObservationStatus, Outcome, Trajectory
from schemas.verdict import DefectCode, MendCode


@dataclass(frozen=True, slots=True)
class FaultOutcome:
    """One injected fault and what became of it."""

    fault: InjectedFault
    level: str
    call_struck: int | None
    """None for an infrastructure fault: no call shows it."""
    artifact: Sha256 | None
    """The faulty artifact."""
    call_found: int | None
    code: str | None
    """Code of the defect or blocker it was found by."""
    located: bool
    diagnosed: bool
    mends: tuple[str, ...]
    call_closed: int | None
    """The call that confirmed the mend, or that made what had been refused."""
    recovered: bool


def outcomes(run: Trajectory, final: ProductionState, broken_down: Iterable[InjectedFault] = ()) -> tuple[FaultOutcome, ...]:
    """One outcome for every fault of a run.

    Args:
        final: the state the run ended in.
        broken_down: infrastructure faults that struck.
    """
    delivered = run.outcome is Outcome.DELIVERED
    out = [_refusal(run.calls, at, fault, delivered) for at, fault in plan_faults(run.calls)]
    for call in run.calls:
        for fault in call.faults:
            refused = call.observation.status is ObservationStatus.REFUSED
            out.append(_refusal(run.calls, call.call_index, fault, delivered) if refused else _product(run, call, fault, final))
    for fault in broken_down:
        shown = any(fault.kind in c.model_dump_json() for c in run.calls)
        out.append(FaultOutcome(fault, _kind(fault).level, None, None, None, None, True, True, ("retry",), None, delivered and not shown))
    return tuple(out)


def fault_rows(
    run: Trajectory, final: ProductionState, broken_down: Iterable[InjectedFault] = (), base: str | None = None
) -> list[dict[str, Any]]:
    """Rows of table ``faults``, one for each fault by its id.

    Args:
        base: trajectory that was taken up again to put the faults in.
    """
    return [
        {
            "trajectory_id": run.trajectory_id,
            "fault_id": o.fault.fault_id,
            "project_id": run.project_id,
            "kind": o.fault.kind,
            "level": o.level,
            "subject": o.fault.subject,
            "detail": o.fault.detail,
            "base_trajectory_id": base,
            "call_struck": o.call_struck,
            "artifact_sha256": o.artifact,
            "call_found": o.call_found,
            "code": o.code,
            "located": o.located,
            "diagnosed": o.diagnosed,
            "mends": list(o.mends),
            "call_closed": o.call_closed,
            "recovered": o.recovered,
        }
        for o in {o.fault.fault_id: o for o in reversed(outcomes(run, final, broken_down))}.values()
    ]


def needless(run: Trajectory, natural: Iterable[tuple[str, DefectCode]] = ()) -> int:
    """Mends that made something again for a defect that no injected fault explains.

    Args:
        natural: (subject, code) of defects that the film has without any injected fault.
    """
    known = set(natural)
    found = [r for r in run.repairs if r.diagnosis.mend is not MendCode.ACCEPT]
    return sum(1 for r in found if r.injected_fault is None and (r.defect.subject, r.defect.code) not in known)


def artifacts_of(state: ProductionState) -> dict[str, Sha256]:
    """Digest of every product of a film by ``subject.field``."""
    out: dict[str, Sha256] = {}
    for sid, shot in state.shots.items():
        for name in ("asset", "narration", "decoration", "render"):
            part = getattr(shot, name)
            if part is not None:
                out[f"{sid}.{name}"] = part.ref.sha256
    if state.film.music is not None:
        out[f"{FILM}.music"] = state.film.music.ref.sha256
    return out


def _kind(fault: InjectedFault) -> FaultKind:
    """The fault's kind; one that this release does not know has no symptoms and no product."""
    return KINDS.get(fault.kind) or FaultKind(fault.kind, "execution", "of another release")


def _refusal(calls: Sequence[Call], at: int, fault: InjectedFault, delivered: bool) -> FaultOutcome:
    """A fault that shows as a blocker: got over when the refused call's tool, or one of its remedies, is committed afterwards."""
    call = calls[at]
    blockers = call.observation.blockers
    refused = call.observation.status is ObservationStatus.REFUSED
    later = [c for c in calls[at + 1 :] if c.observation.status is ObservationStatus.COMMITTED]
    helps = {call.tool, *(r for b in blockers for r in b.remedies)}
    closed = next((c.call_index for c in later if c.tool in helps), later[0].call_index if later else None)
    return FaultOutcome(
        fault=fault,
        level=_kind(fault).level,
        call_struck=at,
        artifact=None,
        call_found=at if refused else None,
        code=blockers[0].code.value if blockers else None,
        located=any(fault.subject in b.subject or b.subject in fault.subject for b in blockers),
        diagnosed=_EXPECTED.get(fault.kind) in {b.code.value for b in blockers},
        mends=("call_again",) if closed is not None else (),
        call_closed=closed,
        recovered=delivered and refused and closed is not None,
    )


_EXPECTED: dict[str, str] = {
    "missing_argument": "missing_argument",
    "broken_reference": "unresolved_reference",
    "dropped_producer": "prerequisite_missing",
    "wrong_order": "prerequisite_missing",
    "product_rejected": "product_rejected",
}
"""Code of the blocker that names the cause of a fault that is refused."""


def _product(run: Trajectory, struck: Call, fault: InjectedFault, final: ProductionState) -> FaultOutcome:
    kind, subject = _kind(fault), fault.subject
    artifact = _artifact(struck, FILM if kind.on_film else subject, kind.field)
    found = code = None
    located = diagnosed = False
    for call in run.calls[struck.call_index :]:
        seen = [d for v in call.verdicts if v.subject == subject for d in v.defects]
        shown = sorted((d for d in seen if d.code in kind.symptoms), key=lambda d: kind.symptoms.index(d.code))
        if shown:
            found, code = call.call_index, shown[0].code.value
            located = artifact is None or any(d.artifact_sha256 == artifact for d in shown)
            own = [d for d in seen if d.severity == "error" and d.artifact_sha256 == artifact and artifact is not None]
            diagnosed = shown[0].code is kind.symptoms[0] and all(d.code in kind.symptoms for d in own)
            break
    links = [r for r in run.repairs if r.injected_fault == fault.fault_id]
    still = any(d.subject == subject and d.severity == "error" and d.code in kind.symptoms for d in open_defects(final))
    gone = artifact is None or artifact != _now(final, FILM if kind.on_film else subject, kind.field)
    return FaultOutcome(
        fault=fault,
        level=kind.level,
        call_struck=struck.call_index,
        artifact=artifact,
        call_found=found,
        code=code,
        located=located,
        diagnosed=diagnosed,
        mends=tuple(r.diagnosis.mend.value for r in links),
        call_closed=next((r.call_verified for r in links if r.outcome == "verified"), None),
        recovered=run.outcome is Outcome.DELIVERED and not still and gone,
    )


def _artifact(call: Call, record: str, field: str) -> Sha256 | None:
    for change in call.changes if field else ():
        if change.subject == record and change.field == field and isinstance(change.value, dict):
            ref = change.value.get("ref") or change.value.get("video")
            return ref["sha256"] if isinstance(ref, dict) else None
    return None


def _now(state: ProductionState, record: str, field: str) -> Sha256 | None:
    holder = state.film if record == FILM else state.shots.get(record)
    part = getattr(holder, field, None) if field else None
    ref = getattr(part, "ref", None) or getattr(part, "video", None)
    return None if ref is None else str(ref.sha256)
