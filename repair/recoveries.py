"""Failure-repair links of refusals: which call was refused and why, who answered how, and which call showed that it was got over.

The counterpart of repair.links, which does the same for verdicts. Read off the recorded calls alone, so that anybody can recompute them.
Changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from repair.plan_faults import MARK, plan_faults
from schemas.blocker import Blocker
from schemas.contract import Role
from schemas.trajectory import Call, ObservationStatus, Trajectory

Answered = Literal["corrected", "produced", "avoided", "open"]

DIAGNOSIS_CHARS = 400


@dataclass(frozen=True, slots=True)
class Recovery:
    """One blocker and what became of it."""

    refused: Call
    blocker_index: int
    blocker: Blocker
    answered: Answered
    """``corrected``: the same tool, or the same request, was answered anew and accepted. ``produced``: what it lacked was made by tools
    that the blocker names, then it was accepted. ``avoided``: it was never accepted, and the run went on by other calls. ``open``: no
    call was accepted after it."""
    diagnosis: str | None
    """What the author of the next output said of it; None without words."""
    mend_calls: tuple[int, ...]
    """Accepted calls that answered: those of tools that the blocker names, and the one that verified."""
    verified: Call | None
    """The call that shows that it was got over."""
    calls_spent: int
    """Orchestrator calls from the refused one to the verification, without the refused one."""
    artifacts_made: int
    """Artifacts that the answering calls made."""
    injected_fault: str | None


def recoveries(run: Trajectory | Sequence[Call]) -> tuple[Recovery, ...]:
    """One record for every blocker of a run, in order."""
    calls = run.calls if isinstance(run, Trajectory) else tuple(run)
    spoiled = {at: fault.fault_id for at, fault in plan_faults(calls)}
    return tuple(_recovery(calls, call, n, blocker, spoiled) for call in calls for n, blocker in enumerate(call.observation.blockers))


def _recovery(calls: Sequence[Call], refused: Call, number: int, blocker: Blocker, spoiled: dict[int, str]) -> Recovery:
    later = [c for c in calls[refused.call_index + 1 :] if _is_accepted(c)]
    verified = next((c for c in later if _answers(c, refused)), None)
    until = later if verified is None else [c for c in later if c.call_index <= verified.call_index]
    helping = [c for c in until if c.observation.status is ObservationStatus.COMMITTED and c.tool in blocker.remedies and c is not verified]
    answered: Answered = "open"
    if verified is not None:
        answered = "produced" if helping and refused.tool not in {c.tool for c in helping} else "corrected"
    elif later:
        answered = "avoided"
    mending = [*helping, *([verified] if verified is not None else [])]
    spent = [c for c in calls[refused.call_index + 1 : until[-1].call_index + 1] if c.role is Role.ORCHESTRATOR] if until else []
    return Recovery(
        refused=refused,
        blocker_index=number,
        blocker=blocker,
        answered=answered,
        diagnosis=_said(calls[refused.call_index + 1 :]),
        mend_calls=tuple(c.call_index for c in mending),
        verified=verified,
        calls_spent=len(spent),
        artifacts_made=len({a.sha256 for c in mending for a in c.artifacts}),
        injected_fault=spoiled.get(refused.call_index) or next((f.fault_id for f in refused.faults), None),
    )


def _is_accepted(call: Call) -> bool:
    return call.observation.status is not ObservationStatus.REFUSED and not call.observation.blockers


def _answers(call: Call, refused: Call) -> bool:
    """The refused request was answered, the refused tool did its work, or, where no tool was named that exists, any was called."""
    if refused.role is not Role.ORCHESTRATOR and refused.orchestrator_call == call.orchestrator_call:
        return call.role is refused.role
    if refused.tool_version is None:
        return call.role is Role.ORCHESTRATOR
    return call.tool == refused.tool and call.observation.status is ObservationStatus.COMMITTED


def _said(after: Sequence[Call]) -> str | None:
    words = next((c.output.reason or c.output.text for c in after), "")
    return None if not words or words.startswith(MARK) else words[:DIAGNOSIS_CHARS]


def recovery_rows(run: Trajectory, quality: Callable[[str], float]) -> list[dict[str, Any]]:
    """Rows of table ``recoveries``.

    Args:
        quality: share of the production that a snapshot's state has reached, by the snapshot's name.
    """
    return [
        {
            "trajectory_id": run.trajectory_id,
            "project_id": run.project_id,
            "call_index": r.refused.call_index,
            "blocker_index": r.blocker_index,
            "code": r.blocker.code.value,
            "subject": r.blocker.subject,
            "role": r.refused.role.value,
            "tool": r.refused.tool,
            "cause": r.blocker.message,
            "diagnosis": r.diagnosis,
            "answered": r.answered,
            "mend_calls": list(r.mend_calls),
            "call_verified": None if r.verified is None else r.verified.call_index,
            "calls_spent": r.calls_spent,
            "artifacts_made": r.artifacts_made,
            "state_before": r.refused.state_before,
            "state_after": None if r.verified is None else r.verified.state_after,
            "quality_before": quality(r.refused.snapshot_before),
            "quality_after": None if r.verified is None else quality(r.verified.snapshot_after),
            "injected_fault": r.injected_fault,
        }
        for r in recoveries(run)
    ]
