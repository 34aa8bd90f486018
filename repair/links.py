"""Failure-repair links: which inspection found a fault, which call mended it, which inspection confirmed the mend.

Read off the recorded calls alone, so that anybody can recompute them. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from repair.fault_kinds import SYMPTOMS
from repair.findings import FILM
from repair.taxonomy import TAXONOMY, Product
from schemas.canonical import Sha256, canonical_text
from schemas.trajectory import Call, InjectedFault, ObservationStatus, Trajectory
from schemas.verdict import Defect, Diagnosis, MendCode, RepairLink, Verdict

_FIELD: dict[Product, str] = {
    Product.PLAN: "planned",
    Product.ASSET: "asset",
    Product.NARRATION: "narration",
    Product.DECORATION: "decoration",
    Product.MUSIC: "music",
    Product.TIMELINE: "timeline",
    Product.RENDER: "render",
    Product.DELIVERY: "delivery",
}

_FILM_FIELDS = ("music", "timeline", "delivery")


def link(run: Trajectory | Sequence[Call], injected: Iterable[InjectedFault] = ()) -> tuple[RepairLink, ...]:
    """One link for every mend of every committed repair call, in order.

    Args:
        run: a trajectory, or its calls.
        injected: faults put in on purpose besides those that the calls themselves record.

    A mend is ``verified`` when the next inspection of its subject no longer reports the defect's code, ``not_verified`` when it still
    does or when there was none, ``kept_previous`` when the new product was no better and was dropped. An accepted defect is a mend
    too: nothing was made, and it counts as verified when the inspection no longer holds it for an error.
    """
    calls = run.calls if isinstance(run, Trajectory) else tuple(run)
    out: list[RepairLink] = []
    for call in calls:
        if call.tool == "repair_shots" and call.observation.status is ObservationStatus.COMMITTED:
            for mend in call.observation.results.get("mends", ()):
                made = _link(calls, call, mend, tuple(injected))
                if made is not None:
                    out.append(made)
    return tuple(out)


def _link(calls: Sequence[Call], mended: Call, mend: dict[str, Any], injected: tuple[InjectedFault, ...]) -> RepairLink | None:
    finding = _found(calls, mended.call_index, mend["defect_id"])
    diagnosis = _diagnosis(calls, mended, mend)
    if finding is None or diagnosis is None:
        return None
    found_at, defect, before = finding
    verified = _next_verdict(calls, mended.call_index, defect.subject)
    until = verified[0] if verified else len(calls)
    accepted = diagnosis.mend is MendCode.ACCEPT
    if mend["outcome"] == "kept_previous":
        outcome = "kept_previous"
    elif verified and not any(d.code is defect.code and not (accepted and d.severity == "warning") for d in verified[1].defects):
        outcome = "verified"
    else:
        outcome = "not_verified"
    return RepairLink(
        defect=defect,
        diagnosis=diagnosis,
        call_found=found_at,
        call_mended=mended.call_index,
        call_verified=verified[0] if verified else None,
        artifact_before=defect.artifact_sha256,
        artifact_after=None if accepted or outcome == "kept_previous" else _made(calls, mended.call_index, until, defect),
        score_before=before.score,
        score_after=verified[1].score if verified else None,
        outcome=outcome,
        injected_fault=_cause(calls, defect, found_at, injected),
        **_cost(calls, mended, verified[0] if verified else mended.call_index, defect.subject),
    )


def _cost(calls: Sequence[Call], mended: Call, end: int, subject: str) -> dict[str, Any]:
    """What a mend took: calls, and what they made for the subject and for the film (timeline, film) anew."""
    between = calls[mended.orchestrator_call : end + 1]
    making: list[int] = []
    made: set[str] = set()
    for call in between:
        fields = {c.field for c in call.changes if c.subject in (subject, FILM) and c.value is not None}
        if call.observation.status is ObservationStatus.COMMITTED and fields & set(_FIELD.values()):
            making.append(call.call_index)
            shown = canonical_text([c.value for c in call.changes if c.subject in (subject, FILM)])
            made |= {a.sha256 for a in call.artifacts if a.sha256 in shown}
    spent = sum(1 for c in between if c.call_index == c.orchestrator_call)
    return {"mend_calls": tuple(making), "calls_spent": spent, "artifacts_made": len(made)}


def _found(calls: Sequence[Call], before: int, defect_id: str) -> tuple[int, Defect, Verdict] | None:
    """The last inspection before the mend that reported the defect."""
    for call in reversed(calls[:before]):
        for verdict in call.verdicts:
            for defect in verdict.defects:
                if defect.defect_id == defect_id:
                    return call.call_index, defect, verdict
    return None


def _diagnosis(calls: Sequence[Call], mended: Call, mend: dict[str, Any]) -> Diagnosis | None:
    """What the critic said of the defect inside this repair call."""
    for call in calls[mended.orchestrator_call : mended.call_index + 1]:
        if call.request is None or call.request.kind != "repair_request" or call.observation.status is ObservationStatus.REFUSED:
            continue
        for item in orjson.loads(call.output.text)["mends"]:
            if item["defect_id"] == mend["defect_id"]:
                return Diagnosis(
                    defect_id=item["defect_id"],
                    subject=mend["subject"],
                    cause=item["cause"],
                    mend=MendCode(item["mend"]),
                    reason=item.get("reason", ""),
                )
    return None


def _next_verdict(calls: Sequence[Call], after: int, subject: str) -> tuple[int, Verdict] | None:
    for call in calls[after + 1 :]:
        for verdict in call.verdicts:
            if verdict.subject == subject:
                return call.call_index, verdict
    return None


def _made(calls: Sequence[Call], first: int, until: int, defect: Defect) -> Sha256 | None:
    """The last replacement of the faulty artifact between the mend and its verification."""
    product = TAXONOMY[defect.code].product
    field = _FIELD[product]
    subject = FILM if field in _FILM_FIELDS else defect.subject
    made: Sha256 | None = None
    for call in calls[first:until]:
        for change in call.changes:
            if change.subject == subject and change.field == field and isinstance(change.value, dict):
                ref = change.value.get("video" if product is Product.DELIVERY else "ref")
                made = ref["sha256"] if isinstance(ref, dict) else made
    return made


def _cause(calls: Sequence[Call], defect: Defect, found_at: int, extra: tuple[InjectedFault, ...]) -> str | None:
    """The latest fault put in on purpose that such a defect of this subject comes from; a delivery is looked at in its own call."""
    known = [f for call in calls[: found_at + 1] for f in call.faults] + list(extra)
    for fault in reversed(known):
        if fault.subject == defect.subject and defect.code in SYMPTOMS.get(fault.kind, ()):
            return fault.fault_id
    return None
