"""Inspection: all checks over the present artifacts, as findings; and the quality of single products, so that the better one is kept.

Owns what an inspection looks at, what it has seen, and how findings become verdicts. The checks themselves live in repair.checks, the
judge in repair.judge. Never decides for the critic: a finding becomes a defect only when it was confirmed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from repair.checks.assets import asset_findings
from repair.checks.delivery import delivery_findings
from repair.checks.picture import picture_findings
from repair.checks.plan import plan_findings
from repair.checks.sound import music_findings, narration_findings
from repair.checks.spotlight import look, opinion, spotlight_findings
from repair.findings import FILM, Finding, in_order, score
from repair.limits import LIMITS, InspectionLimits
from repair.measurements import MEASURED, Measurements
from repair.taxonomy import Product
from replay.tool import ToolEnv
from schemas.canonical import Sha256, digest_of
from schemas.state import ProductionState
from schemas.verdict import Defect, DefectCode, MendCode, Verdict

Severity = Literal["warning", "error"]


@dataclass(frozen=True, slots=True)
class Report:
    """What one inspection found. ``judged`` holds the judge's score of every spotlight shot it looked at."""

    shots: tuple[str, ...]
    findings: tuple[Finding, ...]
    judged: dict[str, float]
    judge: Literal["embedded", "endpoint"] = "embedded"


def examine(
    state: ProductionState,
    shots: Iterable[str],
    env: ToolEnv,
    measured: Measurements = MEASURED,
    limits: InspectionLimits = LIMITS,
) -> Report:
    """Run every check over the given shots and the film.

    Raises:
        ToolFailed, LimitExceeded, SandboxUnavailable, StorageFault: an artifact could not be measured.
    """
    wanted = tuple(shots)
    findings: list[Finding] = []
    findings += plan_findings(state, wanted, limits)
    findings += asset_findings(state, wanted, env, measured, limits)
    findings += narration_findings(state, wanted, env, measured, limits)
    findings += spotlight_findings(state, wanted, env, measured, limits)
    findings += music_findings(state, env, measured, limits)
    findings += picture_findings(state, wanted, env, measured, limits)
    findings += delivery_findings(state, env, measured, limits)
    judged = {sid: value for sid in wanted if (value := judge_score(state, sid, env, measured, limits)) is not None}
    return Report(wanted, in_order(findings, state.film.shot_order), judged, "embedded" if env.engines.judge is None else "endpoint")


def examine_film(state: ProductionState, env: ToolEnv, measured: Measurements = MEASURED, limits: InspectionLimits = LIMITS) -> Report:
    """Run every check over the film as a whole, none over its shots. Raises as :func:`examine`."""
    findings = [f for f in plan_findings(state, state.film.shot_order, limits) if f.subject == FILM]
    findings += music_findings(state, env, measured, limits)
    findings += delivery_findings(state, env, measured, limits)
    return Report((), in_order(findings, state.film.shot_order), {})


def judge_score(
    state: ProductionState, shot_id: str, env: ToolEnv, measured: Measurements = MEASURED, limits: InspectionLimits = LIMITS
) -> float | None:
    """The judge's score of a shot's graphic, 0 to 1: the configured model's, else the embedded judge's; 0 for a planned graphic that is
    missing, None where none is planned."""
    shot = state.shots[shot_id]
    if shot.planned.spotlight is None:
        return None
    if shot.decoration is None:
        return 0.0
    said = opinion(shot.decoration, env, measured)
    return look(shot.decoration, env, measured, limits).score if said is None else said.score


def verdicts(report: Report, confirmed: Mapping[str, Severity]) -> tuple[Verdict, ...]:
    """One verdict for the film and for every inspected shot.

    Args:
        confirmed: severity of every confirmed finding by its defect id; findings left out were dismissed.
    """
    out: list[Verdict] = []
    for subject in (FILM, *report.shots):
        defects = tuple(f.defect(confirmed[f.defect_id]) for f in report.findings if f.subject == subject and f.defect_id in confirmed)
        value = score(d.severity for d in defects)
        judged = report.judged.get(subject)
        out.append(
            Verdict(
                subject=subject,
                passed=all(d.severity != "error" for d in defects),
                score=value if judged is None else round(value * judged, 4),
                defects=defects,
                judge="structured" if judged is None else report.judge,
            )
        )
    return tuple(out)


def product_quality(
    state: ProductionState,
    shot_id: str,
    product: Product,
    env: ToolEnv,
    measured: Measurements = MEASURED,
    limits: InspectionLimits = LIMITS,
) -> tuple[float, frozenset[DefectCode]]:
    """Quality of one product of a shot (or of the film: its music, its delivery), 0 to 1, and the defects the checks see in it.

    The score is that of the findings at their proposed severity, times the judge's score for a graphic. A missing product has 0.
    """
    findings: list[Finding] = []
    if not _exists(state, shot_id, product):
        return 0.0, frozenset()
    if product is Product.ASSET:
        findings += asset_findings(state, [shot_id], env, measured, limits)
        findings += (f for f in plan_findings(state, [shot_id], limits) if f.code is DefectCode.PLAN_REPETITION)
    elif product is Product.NARRATION:
        findings += narration_findings(state, [shot_id], env, measured, limits)
    elif product is Product.DECORATION:
        findings += spotlight_findings(state, [shot_id], env, measured, limits)
    elif product is Product.RENDER:
        findings += picture_findings(state, [shot_id], env, measured, limits)
    elif product is Product.MUSIC:
        findings += music_findings(state, env, measured, limits)
    elif product is Product.DELIVERY:
        findings += delivery_findings(state, env, measured, limits)
    value = score(f.severity for f in findings)
    judged = judge_score(state, shot_id, env, measured, limits) if product is Product.DECORATION else None
    return round(value * (1.0 if judged is None else judged), 4), frozenset(f.code for f in findings)


def shot_seen(state: ProductionState, shot_id: str) -> Sha256:
    """Digest over the artifacts of a shot that an inspection looks at."""
    shot = state.shots[shot_id]
    parts = [a.ref.sha256 if a else None for a in (shot.asset, shot.narration, shot.decoration, shot.render)]
    return digest_of(["seen", shot_id, *parts])


def is_seen(state: ProductionState, shot_id: str) -> bool:
    """The last inspection of the shot saw its present artifacts."""
    return state.shots[shot_id].inspected == shot_seen(state, shot_id)


def unseen(state: ProductionState) -> tuple[str, ...]:
    """Shots whose present artifacts no inspection has seen, in film order."""
    return tuple(sid for sid in state.film.shot_order if not is_seen(state, sid))


def open_defects(state: ProductionState) -> tuple[Defect, ...]:
    """All open defects, the film's first, then by shot."""
    return (*state.film.film_defects, *(d for sid in state.film.shot_order for d in state.shots[sid].open_defects))


def mends_tried(state: ProductionState, subject: str, code: DefectCode) -> tuple[MendCode, ...]:
    """Mends tried on this kind of defect of a subject, in order."""
    entries = state.film.mends_tried if subject == FILM else state.shots[subject].mends_tried
    return tuple(MendCode(e.split(":")[1]) for e in entries if e.split(":")[0] == code.value)


def is_accepted(state: ProductionState, defect_id: str, subject: str) -> bool:
    """The defect, of these very bytes, was accepted as a warning before."""
    entries = state.film.mends_tried if subject == FILM else state.shots[subject].mends_tried
    return any(e.split(":")[1:] == [MendCode.ACCEPT.value, defect_id] for e in entries)


def _exists(state: ProductionState, shot_id: str, product: Product) -> bool:
    if product is Product.MUSIC:
        return state.film.music is not None
    if product is Product.DELIVERY:
        return state.film.delivery is not None
    shot = state.shots[shot_id]
    found = {
        Product.ASSET: shot.asset,
        Product.NARRATION: shot.narration,
        Product.DECORATION: shot.decoration,
        Product.RENDER: shot.render,
    }
    return found.get(product) is not None
