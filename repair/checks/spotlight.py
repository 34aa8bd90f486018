"""Checks of spotlight graphics: the embedded judge looks at the graphic as it stands when everything has come in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from repair.findings import Finding, found
from repair.judge import Judgment, judge
from repair.limits import LIMITS, InspectionLimits
from repair.measurements import Measurements, Still
from replay.engines import Opinion
from replay.tool import ToolEnv
from schemas.state import Decoration, ProductionState
from schemas.verdict import DefectCode

LOOK_SIDE = 1280
"""Longest side of the judged picture, pixels: text recognition is exact at 720p and gains nothing above."""


def look(decoration: Decoration, env: ToolEnv, measured: Measurements, limits: InspectionLimits = LIMITS) -> Judgment:
    """Judge a rendered graphic late in its length, after its texts have come in (our templates never take them away)."""
    still = settled(decoration, env, measured)
    return judge(still.image, still.boxes, decoration.slots, limits)


def settled(decoration: Decoration, env: ToolEnv, measured: Measurements) -> Still:
    """The graphic late in its length, with the lines read in it."""
    length = measured.video(decoration.ref, env).duration_us
    at = max(0, min(decoration.duration_us, length) - 150_000)
    return measured.still(decoration.ref, at, LOOK_SIDE, env)


def opinion(decoration: Decoration, env: ToolEnv, measured: Measurements) -> Opinion | None:
    """What the configured model says of the same picture; None without one. Raises EndpointFailed."""
    if env.engines.judge is None:
        return None
    return env.engines.judge.judge(settled(decoration, env, measured).image, decoration.slots, env.store)


def spotlight_findings(
    state: ProductionState, shots: Iterable[str], env: ToolEnv, measured: Measurements, limits: InspectionLimits = LIMITS
) -> Iterator[Finding]:
    """Findings on the graphics of the given shots."""
    for sid in shots:
        shot = state.shots[sid]
        if shot.planned.spotlight is None:
            continue
        if shot.decoration is None:
            yield found(DefectCode.SPOTLIGHT_MISSING, sid, f"no {shot.planned.spotlight.kind.value} graphic was made", 0.0, 1.0)
            continue
        seen = look(shot.decoration, env, measured, limits)
        findings = list(_graphic(sid, shot.decoration, seen, limits))
        yield from findings
        said = opinion(shot.decoration, env, measured)
        if said is not None:
            yield from _named(sid, shot.decoration, said, {f.code for f in findings}, env)


def _named(sid: str, decoration: Decoration, said: Opinion, known: set[DefectCode], env: ToolEnv) -> Iterator[Finding]:
    """Problems that only the model named. They are its word, no measurement: the critic may dismiss them."""
    judge_name = env.engines.judge.name if env.engines.judge is not None else ""
    for code in said.problems:
        if DefectCode(code) not in known:
            context = {"template": decoration.template, "judge": judge_name, "scores": said.parts, "texts": _expected(decoration)}
            words = f"the judge {judge_name} sees it; its score is {said.score:.2f}"
            yield found(
                DefectCode(code), sid, words, said.score, 1.0, artifact=decoration.ref.sha256, severity="error", hard=False, context=context
            )


def _expected(decoration: Decoration) -> list[dict[str, str]]:
    return [{"name": name, "expected": text[:120]} for name, text in sorted(decoration.slots.items())]


def _graphic(sid: str, decoration: Decoration, seen: Judgment, limits: InspectionLimits) -> Iterator[Finding]:
    artifact = decoration.ref.sha256
    context = {"template": decoration.template, **seen.context()}
    if seen.blank_share >= limits.blank_share and seen.text < limits.text_sure:
        words = f"{seen.blank_share:.1%} of the picture is one colour and its text is not read; limit {limits.blank_share:.1%}"
        yield found(DefectCode.SPOTLIGHT_MISSING, sid, words, seen.blank_share, limits.blank_share, artifact=artifact, context=context)
        return
    least = limits.contrast_min if seen.lines else limits.contrast_flat
    pale = seen.contrast is not None and seen.contrast < least
    unread = pale and seen.text < limits.text_wrong
    if pale and seen.contrast is not None:
        words = f"contrast {seen.contrast:.2f} between text and background; at least {least:g}"
        yield found(
            DefectCode.SPOTLIGHT_LOW_CONTRAST, sid, words, seen.contrast, least,
            artifact=artifact, severity="error" if unread or seen.contrast < (1 + limits.contrast_min) / 2 else "warning", context=context,
        )  # fmt: skip
    if unread:
        return
    cut = [s for s in seen.slots if s.similarity < limits.text_sure and 0.3 <= s.beginning < 0.9 and len(s.expected) >= 8]
    at_edge = seen.edge_px is not None and seen.edge_px < seen.edge_limit_px
    if at_edge or cut:
        where = f"text {seen.edge_px} px from the border, at least {seen.edge_limit_px}" if at_edge else ""
        rest = f"only the first {cut[0].beginning:.0%} of '{cut[0].name}' can be read" if cut else ""
        words = "; ".join(w for w in (where, rest) if w)
        value = float(seen.edge_px or 0) if at_edge else cut[0].beginning
        limit = float(seen.edge_limit_px) if at_edge else limits.text_sure
        yield found(DefectCode.SPOTLIGHT_OVERFLOW, sid, words, value, limit, artifact=artifact, context=context)
        return
    if seen.text < limits.text_sure:
        worst = min(seen.slots, key=lambda s: s.similarity)
        range_ = f"wrong below {limits.text_wrong:g}, sure from {limits.text_sure:g}"
        words = f"slot '{worst.name}' reads back with similarity {worst.similarity:.2f}; {range_}"
        yield found(
            DefectCode.SPOTLIGHT_TEXT_WRONG, sid, words, seen.text, limits.text_wrong,
            artifact=artifact, hard=seen.text < limits.text_wrong / 2, context=context,
        )  # fmt: skip
