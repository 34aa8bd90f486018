"""Failure-repair links, read off recorded calls."""

from __future__ import annotations

import json
from typing import Any

import pytest

from repair.findings import found
from repair.links import link
from schemas.artifact import ArtifactKind, ArtifactRef
from schemas.canonical import sha256_bytes
from schemas.contract import ContentRequest, Role
from schemas.state import Change
from schemas.trajectory import Call, InjectedFault, Observation, ObservationStatus, Provenance, RoleOutput
from schemas.verdict import Defect, DefectCode, Verdict

BLACK = sha256_bytes(b"black render")
GOOD = sha256_bytes(b"good render")
DEFECT = found(DefectCode.RENDER_BLACK, "s002", "100% black", 1.0, 0.3, artifact=BLACK).defect()


def call(index: int, tool: str, **fields: Any) -> Call:
    role = fields.pop("role", Role.ORCHESTRATOR)
    results = fields.pop("results", {})
    text = fields.pop("text", "")
    status = fields.pop("status", ObservationStatus.COMMITTED)
    return Call(
        call_index=index,
        role=role,
        tool=tool,
        tool_version=1,
        context_sha256="0" * 64,
        output=RoleOutput(role=role, tool=tool, text=text, provenance=Provenance.SCRIPTED),
        observation=Observation(status=status, tool=tool, results=results),
        snapshot_before="snp_0",
        snapshot_after="snp_0",
        state_before="0" * 64,
        state_after="0" * 64,
        orchestrator_call=fields.pop("orchestrator_call", index),
        **fields,
    )


def request(kind: str) -> ContentRequest:
    return ContentRequest(role=Role.CRITIC, tool="repair_shots", tool_version=1, kind=kind, instruction="", content_schema={})


def verdict(*defects: Defect, score: float) -> tuple[Verdict, ...]:
    return (Verdict(subject="s002", passed=not defects, score=score, defects=defects, judge="structured"),)


def render(index: int, sha: str, **fields: Any) -> Call:
    value = {"ref": {"sha256": sha, "kind": "render", "media_type": "video/mp4", "size_bytes": 1}, "frames": 60, "inputs_digest": "1" * 64}
    return call(index, "render_shots", changes=(Change(subject="s002", field="render", value=value),), **fields)


def run(outcome: str = "redone", mend: str = "rerender", after: tuple[Verdict, ...] | None = None) -> list[Call]:
    fault = InjectedFault(fault_id="flt_1", kind="render_black", subject="s002", detail="drawn black")
    content = {"mends": [{"defect_id": DEFECT.defect_id, "cause": "lost in rendering", "mend": mend, "reason": "cheapest"}]}
    row = {"defect_id": DEFECT.defect_id, "subject": "s002", "code": "render_black", "mend": mend, "outcome": outcome}
    remade = {"ref": {"sha256": GOOD, "kind": "render", "media_type": "video/mp4", "size_bytes": 1}}
    changes = (Change(subject="s002", field="render", value=remade),) if outcome == "redone" else ()
    calls = [
        render(0, BLACK, faults=(fault,)),
        call(1, "inspect_quality", status=ObservationStatus.CONTENT_REQUESTED),
        call(2, "inspect_quality", role=Role.CRITIC, orchestrator_call=1, verdicts=verdict(DEFECT, score=0.4)),
        call(3, "repair_shots", status=ObservationStatus.CONTENT_REQUESTED),
        call(
            4, "repair_shots", role=Role.CRITIC, orchestrator_call=3, text=json.dumps(content), request=request("repair_request"),
            results={"mends": [row]}, changes=changes,
        ),
    ]  # fmt: skip
    if after is not None:
        calls.append(call(5, "inspect_quality", role=Role.CRITIC, verdicts=after))
    return calls


def test_a_verified_mend_is_linked_from_finding_to_verification() -> None:
    (one,) = link(run(after=verdict(score=1.0)))
    assert one.defect == DEFECT
    assert (one.diagnosis.cause, one.diagnosis.mend.value) == ("lost in rendering", "rerender")
    assert (one.call_found, one.call_mended, one.call_verified) == (2, 4, 5)
    assert (one.artifact_before, one.artifact_after) == (BLACK, GOOD)
    assert (one.score_before, one.score_after, one.outcome) == (0.4, 1.0, "verified")
    assert one.injected_fault == "flt_1"


@pytest.mark.parametrize(
    ("calls", "outcome", "verified", "made"),
    [
        (run(), "not_verified", None, GOOD),
        (run(after=verdict(DEFECT, score=0.4)), "not_verified", 5, GOOD),
        (run(outcome="kept_previous", after=verdict(DEFECT, score=0.4)), "kept_previous", 5, None),
        (
            run(outcome="accepted", mend="accept", after=verdict(DEFECT.model_copy(update={"severity": "warning"}), score=0.85)),
            "verified",
            5,
            None,
        ),
        (run(outcome="accepted", mend="accept", after=verdict(DEFECT, score=0.4)), "not_verified", 5, None),
    ],
)
def test_outcomes(calls: list[Call], outcome: str, verified: int | None, made: str | None) -> None:
    (one,) = link(calls)
    assert (one.outcome, one.call_verified, one.artifact_after) == (outcome, verified, made)


def test_a_render_made_later_is_the_replacement() -> None:
    calls = run(outcome="cleared")
    calls += [render(5, GOOD), call(6, "inspect_quality", role=Role.CRITIC, verdicts=verdict(score=1.0))]
    (one,) = link(calls)
    assert (one.artifact_after, one.call_verified, one.outcome) == (GOOD, 6, "verified")


def test_a_natural_defect_has_no_injected_fault() -> None:
    calls = run(after=verdict(score=1.0))
    calls[0] = calls[0].model_copy(update={"faults": ()})
    assert link(calls)[0].injected_fault is None


def test_a_fault_of_another_kind_is_not_the_cause() -> None:
    calls = run(after=verdict(score=1.0))
    other = InjectedFault(fault_id="flt_2", kind="narration_silent", subject="s002", detail="")
    calls[0] = calls[0].model_copy(update={"faults": (other,)})
    assert link(calls)[0].injected_fault is None


def test_a_refused_repair_gives_no_link() -> None:
    calls = run()
    refused = calls[4].observation.model_copy(update={"status": ObservationStatus.REFUSED})
    assert link([*calls[:4], calls[4].model_copy(update={"observation": refused})]) == ()


def test_the_cost_of_a_mend_is_its_calls_and_what_they_made() -> None:
    calls = run(outcome="cleared")
    made = ArtifactRef(sha256=GOOD, kind=ArtifactKind.RENDER, media_type="video/mp4", size_bytes=1)
    calls += [
        render(5, GOOD, artifacts=(made,)),
        call(6, "inspect_quality", status=ObservationStatus.CONTENT_REQUESTED),
        call(7, "inspect_quality", role=Role.CRITIC, orchestrator_call=6, verdicts=verdict(score=1.0)),
    ]
    (one,) = link(calls)
    assert (one.call_mended, one.call_verified) == (4, 7)
    assert (one.mend_calls, one.calls_spent, one.artifacts_made) == ((5,), 3, 1)
    (bought,) = link(run(after=verdict(score=1.0)))
    assert (bought.mend_calls, bought.calls_spent, bought.artifacts_made) == ((4,), 2, 0)
