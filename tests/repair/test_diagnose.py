"""The scripted critic decides from the evidence alone."""

from __future__ import annotations

from typing import Any

import pytest

from repair.diagnose import ScriptedCritic
from repair.findings import found
from repair.taxonomy import TAXONOMY
from replay.contents import Inspection, RepairRequest, SeverityOrder
from schemas.contract import ContentRequest, Role
from schemas.errors import ConfigInvalid
from schemas.verdict import DefectCode as Code
from schemas.verdict import MendCode as Mend


def ask(kind: str, evidence: dict[str, Any]) -> dict[str, Any]:
    request = ContentRequest(
        role=Role.CRITIC, tool="t", tool_version=1, kind=kind, instruction="decide", content_schema={}, evidence=evidence
    )
    return ScriptedCritic().decide(request)


def finding(code: Code, standing: str = "new", **fields: Any) -> dict[str, Any]:
    made = found(code, "s001", "measured", fields.pop("value", 1.0), fields.pop("limit", 0.5), **fields)
    return {**made.evidence(), "standing": standing, "mends_tried": []}


def broken_off(**context: Any) -> dict[str, Any]:
    return finding(Code.NARRATION_TRUNCATED, context={"end_level_db": -3.0, **context})


def defect(code: Code, severity: str = "error", subject: str = "s001", tried: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "defect_id": f"def_{code.value}_{subject}",
        "subject": subject,
        "code": code.value,
        "severity": severity,
        "measured": "so much",
        "allowed": [{"mend": m.value, "does": ""} for m in TAXONOMY[code].mends],
        "tried": list(tried),
    }


def test_no_findings_no_judgements() -> None:
    assert ask("inspection", {"findings": []}) == {"judgements": []}


@pytest.mark.parametrize(
    ("shown", "confirmed", "severity"),
    [
        (finding(Code.RENDER_BLACK), True, "error"),
        (finding(Code.ASSET_REPEATED, severity="error", context={"others": 0}), True, "warning"),
        (finding(Code.ASSET_REPEATED, severity="error", context={"others": 3}), True, "error"),
        (finding(Code.RENDER_FROZEN, standing="accepted"), True, "warning"),
        (broken_off(sign="rate", rate=30.0, usual_rate=14.0), True, "error"),
        (broken_off(sign="end", rate=None, usual_rate=14.0), True, "error"),
        (broken_off(sign="end", rate=16.0, usual_rate=14.0), True, "error"),
        (broken_off(sign="end", rate=14.0, usual_rate=14.0), False, "error"),  # a voice that ends hard
        (
            finding(
                Code.SPOTLIGHT_TEXT_WRONG, value=0.8, limit=0.6,
                context={"slots": [{"expected": "能量守恒定律", "read": "能量守亘定律", "similarity": 0.8}]},
            ),
            False,
            "error",
        ),
        (
            finding(
                Code.SPOTLIGHT_TEXT_WRONG, value=0.7, limit=0.6,
                context={"slots": [{"expected": "Why pendulums keep time", "read": "Why pendulums", "similarity": 0.7}]},
            ),
            True,
            "error",
        ),
    ],
)  # fmt: skip
def test_judgement_on_one_finding(shown: dict[str, Any], confirmed: bool, severity: str) -> None:
    answer = Inspection.model_validate(ask("inspection", {"findings": [shown]}))
    assert [(j.confirmed, j.severity) for j in answer.judgements] == [(confirmed, severity)]


def test_errors_come_before_warnings_and_upstream_before_downstream() -> None:
    shown = [
        defect(Code.SPOTLIGHT_LOW_CONTRAST, "warning"),
        defect(Code.RENDER_BLACK),
        defect(Code.NARRATION_SILENT, subject="s003"),
        defect(Code.NARRATION_SILENT, subject="s002"),
    ]
    order = SeverityOrder.model_validate(ask("severity", {"defects": shown})).order
    assert order == (
        "def_narration_silent_s002",
        "def_narration_silent_s003",
        "def_render_black_s001",
        "def_spotlight_low_contrast_s001",
    )


@pytest.mark.parametrize(
    ("shown", "mend"),
    [
        (defect(Code.RENDER_BLACK), Mend.RERENDER),
        (defect(Code.RENDER_BLACK, tried=("rerender",)), Mend.RERETRIEVE),
        (defect(Code.NARRATION_SILENT, tried=("renarrate",)), Mend.RENARRATE),
        (defect(Code.RENDER_FROZEN, tried=("rerender", "reretrieve")), Mend.ACCEPT),
        (defect(Code.NARRATION_LOUDNESS, "warning"), Mend.RENARRATE),
        (defect(Code.ASSET_TOO_SHORT, "warning"), Mend.ACCEPT),
        (defect(Code.PACING_TOO_SHORT, "error"), Mend.RETIME),
    ],
)
def test_the_cheapest_untried_mend_is_asked_for(shown: dict[str, Any], mend: Mend) -> None:
    (item,) = RepairRequest.model_validate(ask("repair_request", {"defects": [shown]})).mends
    assert item.mend is mend
    assert item.cause.startswith(TAXONOMY[Code(shown["code"])].cause)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ConfigInvalid, match="no rule"):
        ask("fills", {})
