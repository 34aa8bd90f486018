"""The scripted critic: judges findings, orders defects and asks for mends, by rules over the evidence of the request alone.

It sees what any critic sees: the request's evidence. It never reads injected ground truth, the storyboard, or a file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from repair.taxonomy import RANK, TAXONOMY
from schemas.contract import ContentRequest
from schemas.errors import ConfigInvalid
from schemas.trajectory import RoleContext
from schemas.verdict import DefectCode, MendCode

MISREAD = 0.2
"""A slot read back with a length this close to the expected one was misread by the recogniser rather than shown wrong."""

LENIENT = frozenset(
    {
        DefectCode.PLAN_REPETITION,
        DefectCode.PACING_TOO_LONG,
        DefectCode.PACING_TOO_SHORT,
        DefectCode.ASSET_TOO_SHORT,
    }
)
"""Warnings about the plan and about lengths are accepted at once: mending them remakes much and moves other shots."""


class ScriptedCritic:
    """Deterministic answers for the content kinds ``inspection``, ``severity`` and ``repair_request``."""

    kinds: tuple[str, ...] = ("inspection", "severity", "repair_request")

    def answer(self, context: RoleContext) -> dict[str, Any]:
        """The content asked for, as JSON that fits its schema.

        Raises:
            ConfigInvalid: the context asks for nothing, or for a kind this critic does not know.
        """
        if context.request is None:
            raise ConfigInvalid("no_request", "the critic was asked for an answer without a request", "ask it only in a critic's turn")
        return self.decide(context.request)

    def decide(self, request: ContentRequest) -> dict[str, Any]:
        """As :meth:`answer`, from the request itself."""
        answers: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "inspection": _inspection,
            "severity": _severity,
            "repair_request": _repair_request,
        }
        if request.kind not in answers:
            raise ConfigInvalid("unknown_kind", f"the scripted critic has no rule for {request.kind!r}", f"known: {', '.join(answers)}")
        return answers[request.kind](request.evidence)


def _inspection(evidence: dict[str, Any]) -> dict[str, Any]:
    findings = evidence["findings"]
    return {"judgements": [_judgement(f, owed=_owed(f, findings)) for f in findings]}


def _owed(finding: dict[str, Any], findings: list[dict[str, Any]]) -> bool:
    """The better clip of a mismatch is free only because another shot shows a repeated clip in its place: it belongs there."""
    if finding["code"] != DefectCode.ASSET_MISMATCH.value or "better" not in finding.get("context", {}):
        return False
    repeated = {f["subject"] for f in findings if f["code"] == DefectCode.ASSET_REPEATED.value and f["proposed_severity"] == "error"}
    claimed = {
        f["subject"]
        for f in findings
        if f["code"] == finding["code"] and f.get("context", {}).get("better") == finding["context"]["better"]
    }
    return finding["subject"] not in repeated and bool(claimed & repeated)


def _judgement(finding: dict[str, Any], owed: bool = False) -> dict[str, Any]:
    severity = "warning" if owed else finding["proposed_severity"]
    confirmed = True
    context = finding.get("context", {})
    code = DefectCode(finding["code"])
    if not finding["fact"]:
        if code is DefectCode.SPOTLIGHT_TEXT_WRONG and finding["value"] >= finding["limit"]:
            confirmed = not _misread(context.get("slots", ()))
        elif code is DefectCode.NARRATION_TRUNCATED and "end_level_db" in context:
            confirmed = context["sign"] == "rate" or _hurried(context)
        elif code is DefectCode.ASSET_REPEATED and context.get("others", 1) == 0:
            severity = "warning"
    if finding["standing"] == "accepted":
        severity = "warning"
    return {"subject": finding["subject"], "code": code.value, "confirmed": confirmed, "severity": severity}


def _misread(slots: Any) -> bool:
    """Every doubtful slot was read with nearly the right length: letters confused, not another text."""
    return all(
        abs(len(s["read"]) - len(s["expected"])) <= MISREAD * max(1, len(s["expected"])) for s in slots if s["similarity"] < 1.0
    ) and bool(slots)


def _hurried(context: dict[str, Any]) -> bool:
    """A track that breaks off lacks words unless it is known to be spoken no faster than the others."""
    rate, usual = context["rate"], context["usual_rate"]
    return rate is None or usual is None or bool(rate >= 1.1 * usual)


def _severity(evidence: dict[str, Any]) -> dict[str, Any]:
    def rank(defect: dict[str, Any]) -> tuple[int, int, str, str]:
        return (
            0 if defect["severity"] == "error" else 1,
            RANK[DefectCode(defect["code"])],
            defect["subject"],
            defect["defect_id"],
        )

    return {"order": [d["defect_id"] for d in sorted(evidence["defects"], key=rank)]}


def _repair_request(evidence: dict[str, Any]) -> dict[str, Any]:
    return {"mends": [_mend(d) for d in evidence["defects"]]}


def _mend(defect: dict[str, Any]) -> dict[str, Any]:
    allowed = [MendCode(m["mend"]) for m in defect["allowed"]]
    tried = {MendCode(m) for m in defect["tried"]}
    code = DefectCode(defect["code"])
    untried = [m for m in allowed if m not in tried]
    if defect["severity"] == "warning" and code in LENIENT and MendCode.ACCEPT in allowed:
        mend, reason = MendCode.ACCEPT, "a warning of this kind costs more to mend than it harms"
    elif untried:
        mend = untried[0]
        reason = f"cheapest allowed mend after {', '.join(sorted(tried))}" if tried else "the cheapest allowed mend"
    else:
        mend, reason = allowed[-1], "all allowed mends were tried; the last one once more"
    return {
        "defect_id": defect["defect_id"],
        "cause": f"{TAXONOMY[code].cause}: {defect['measured']}"[:200],
        "mend": mend.value,
        "reason": reason[:200],
    }
