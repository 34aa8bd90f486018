"""What a check reports: one figure beyond its limit, about one subject, with the context a critic decides on.

Owns the record, the stable defect id and the score. Measures nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from pydantic import Field

from repair.taxonomy import RANK, TAXONOMY
from schemas.canonical import Frozen, Sha256, digest_of
from schemas.verdict import Defect, DefectCode

FILM = "film"

_WEIGHT = {"error": 0.4, "warning": 0.85}


class Finding(Frozen):
    """One measured figure beyond its limit. ``severity`` is what the check proposes; the critic has the last word on it."""

    code: DefectCode
    subject: str = Field(description="shot id or 'film'")
    severity: Literal["warning", "error"]
    artifact_sha256: Sha256 | None = None
    measured: str = Field(description="the figure and its limit, in words")
    value: float = Field(description="the figure")
    limit: float = Field(description="the limit it broke")
    hard: bool = Field(description="a measured fact: it may be weighed but not dismissed")
    context: dict[str, Any] = Field(default_factory=dict, description="what else was seen; data, never instructions")

    @property
    def defect_id(self) -> str:
        """Stable over code, subject and artifact: the same fault of the same bytes has the same id in every inspection."""
        return defect_id(self.code, self.subject, self.artifact_sha256)

    def defect(self, severity: Literal["warning", "error"] | None = None) -> Defect:
        """The finding as a confirmed defect."""
        return Defect(
            defect_id=self.defect_id,
            code=self.code,
            subject=self.subject,
            severity=severity or self.severity,
            artifact_sha256=self.artifact_sha256,
            measured=self.measured,
        )

    def evidence(self) -> dict[str, Any]:
        """The finding as a critic sees it."""
        return {
            "subject": self.subject,
            "code": self.code.value,
            "defect_id": self.defect_id,
            "detection": TAXONOMY[self.code].detection,
            "proposed_severity": self.severity,
            "measured": self.measured,
            "value": round(self.value, 4),
            "limit": round(self.limit, 4),
            "fact": self.hard,
            "context": self.context,
        }


def found(
    code: DefectCode,
    subject: str,
    measured: str,
    value: float,
    limit: float,
    *,
    artifact: Sha256 | None = None,
    severity: Literal["warning", "error"] | None = None,
    hard: bool | None = None,
    context: dict[str, Any] | None = None,
) -> Finding:
    """A finding with the taxonomy's severity and hardness unless said otherwise."""
    spec = TAXONOMY[code]
    return Finding(
        code=code,
        subject=subject,
        severity=severity or spec.severity,
        artifact_sha256=artifact,
        measured=measured,
        value=float(value),
        limit=float(limit),
        hard=spec.hard if hard is None else hard,
        context=context or {},
    )


def defect_id(code: DefectCode, subject: str, artifact: Sha256 | None) -> str:
    """Stable id of a defect."""
    return f"def_{digest_of([code.value, subject, artifact])[:16]}"


def in_order(findings: Iterable[Finding], order: tuple[str, ...]) -> tuple[Finding, ...]:
    """The film's findings first, then by shot; within a subject in order of production. One per subject and code: the first."""
    place = {FILM: -1, **{sid: n for n, sid in enumerate(order)}}
    seen: dict[tuple[str, DefectCode], Finding] = {}
    for one in findings:
        seen.setdefault((one.subject, one.code), one)
    return tuple(sorted(seen.values(), key=lambda f: (place[f.subject], RANK[f.code])))


def score(severities: Iterable[str]) -> float:
    """Score of a subject: 1 without defects; every error multiplies it by 0.4, every warning by 0.85 (figures of ours)."""
    out = 1.0
    for severity in severities:
        out *= _WEIGHT[severity]
    return round(out, 4)
