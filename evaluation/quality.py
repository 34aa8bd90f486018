"""Final quality of a run: the rule score of six features and the blend with the render audit.

The six features and their weights are those of WeVisCut (arXiv 2610.38352, Appendix A.2); so is the blend
``Q_end = (1 - w_a) Q_rule + w_a Q_audit``. The paper names the features and does not define them: every definition below is this
project's own. The audit score is that of the judge that took part in the run, here the embedded judge over spotlight renders; the paper's
judge scores visual impact and clarity with a vision model.

Pure: reads a trajectory and its final state, no bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from repair.checks.plan import is_ordered, script_coverage
from repair.checks.sound import speech_units
from repair.inspect import is_seen
from replay import facts
from schemas.contract import Fact, Role
from schemas.state import ProductionState
from schemas.trajectory import Provenance, Trajectory
from schemas.verdict import DefectCode

WEIGHTS: dict[str, float] = {
    "plan_coverage": 0.353,
    "spotlight_decoration_coverage": 0.186,
    "inspection_coverage": 0.179,
    "plan_hygiene": 0.144,
    "completion": 0.081,
    "efficiency": 0.057,
}
"""Weights of the paper; they add up to 1."""

AUDIT_WEIGHT = 0.3
"""w_a. The paper fixes one and does not say which; this one is ours."""

_SPOTLIGHT = {
    DefectCode.SPOTLIGHT_MISSING,
    DefectCode.SPOTLIGHT_TEXT_WRONG,
    DefectCode.SPOTLIGHT_OVERFLOW,
    DefectCode.SPOTLIGHT_LOW_CONTRAST,
    DefectCode.RENDER_GRAPHIC_MISSING,
}

_SHOT_MIN_US, _SHOT_MAX_US = 500_000, 20_000_000
_RATE_MIN, _RATE_MAX = 2.0, 26.0
"""Speech units a second that a planned length may ask of a voice (repair.checks.sound.speech_units)."""

_MILESTONES = (
    Fact.SEGMENTS, Fact.SHOT_PLAN, Fact.ASSETS, Fact.NARRATION, Fact.DECORATIONS, Fact.MUSIC, Fact.TIMELINE, Fact.RENDERS, Fact.DELIVERY,
)  # fmt: skip

_TOOLS_NEEDED = (
    "segment_article", "plan_shots", "retrieve_visuals", "synthesize_narration", "search_music", "compose_timeline", "render_shots",
    "inspect_quality", "stitch_video",
)  # fmt: skip
"""The shortest run that delivers an inspected film; ``decorate_spotlights`` comes to it when a graphic is planned, and ``search_music``
goes where there is no music library."""


@dataclass(frozen=True, slots=True)
class RuleQuality:
    """The six features, each in 0..1, and what they come to."""

    features: dict[str, float]
    rule: float
    """Weighted sum of the features."""
    audit: float | None
    """Mean score of the judge over the spotlight shots it saw last; None when it saw none."""
    end: float
    """``(1 - w_a) rule + w_a audit``; the rule score where there is no audit."""


def rule_quality(trajectory: Trajectory, state: ProductionState, audit_weight: float = AUDIT_WEIGHT) -> RuleQuality:
    """Quality of a run.

    Args:
        trajectory: the run; its calls are counted and its verdicts read.
        state: the state it ended in.
        audit_weight: w_a, in 0..1.
    """
    features = {
        "plan_coverage": plan_coverage(state),
        "spotlight_decoration_coverage": spotlight_decoration_coverage(state),
        "inspection_coverage": inspection_coverage(state),
        "plan_hygiene": plan_hygiene(state),
        "completion": completion(state),
        "efficiency": efficiency(trajectory, state),
    }
    features = {name: round(value, 6) for name, value in features.items()}
    rule = round(sum(WEIGHTS[name] * value for name, value in features.items()), 6)
    audit = audit_score(trajectory)
    end = rule if audit is None else round((1 - audit_weight) * rule + audit_weight * audit, 6)
    return RuleQuality(features, rule, audit, end)


def plan_coverage(state: ProductionState) -> float:
    """Share of the script's characters (white space aside) that exactly one planned shot carries word for word; halved when the shots do
    not follow the script's order; 0 without shots."""
    if not state.film.shot_order:
        return 0.0
    return script_coverage(state) * (1.0 if is_ordered(state) else 0.5)


def spotlight_decoration_coverage(state: ProductionState) -> float:
    """Share of the planned graphics that exist and stand in their render without an open error; 1 when shots are planned and none has a
    graphic; 0 without shots."""
    if not state.film.shot_order:
        return 0.0
    planned = [s for s in state.shots.values() if s.planned.spotlight is not None]
    if not planned:
        return 1.0
    good = sum(
        1 for s in planned if s.decoration is not None and not any(d.code in _SPOTLIGHT and d.severity == "error" for d in s.open_defects)
    )
    return good / len(planned)


def inspection_coverage(state: ProductionState) -> float:
    """Share of the shots whose present render, narration and graphic an inspection has seen; 0 without shots."""
    order = state.film.shot_order
    return sum(1 for sid in order if is_seen(state, sid)) / len(order) if order else 0.0


def plan_hygiene(state: ProductionState) -> float:
    """Share of the planned shots that are well formed; 0 without shots.

    A shot is well formed when its visual query differs from that of the shot before it, its planned length is between 0.5 s and 20 s, and,
    if it is narrated, its text can be spoken in that length (2 to 26 speech units a second).
    """
    order = state.film.shot_order
    clean = 0
    for place, sid in enumerate(order):
        planned = state.shots[sid].planned
        before = state.shots[order[place - 1]].planned if place else None
        repeats = before is not None and _words(before.visual_query) == _words(planned.visual_query)
        length = planned.target_duration_us
        units = speech_units(planned.text)
        rate = units * 1e6 / length if length else 0.0
        if not repeats and _SHOT_MIN_US <= length <= _SHOT_MAX_US and (units == 0 or _RATE_MIN <= rate <= _RATE_MAX):
            clean += 1
    return clean / len(order) if order else 0.0


def completion(state: ProductionState) -> float:
    """Mean over nine milestones (segments, shot plan, assets, narration, graphics, music, timeline, renders, delivery) of the share of
    subjects that have it; 1 only for a delivered film of the present state. Music is no milestone where there is no music library."""
    milestones = [fact for fact in _MILESTONES if fact is not Fact.MUSIC or state.film.task.music_library]
    return sum(_reached(state, fact) for fact in milestones) / len(milestones)


def efficiency(trajectory: Trajectory, state: ProductionState) -> float:
    """How little of the budget went beyond the shortest run that delivers an inspected film, times :func:`completion`.

    ``1 - (calls - shortest) / (budget - shortest)``, cut to 0..1. Calls are those of the orchestrator, refused ones included; the runtime's
    own delivery attempt does not count.
    """
    calls = sum(1 for c in trajectory.calls if c.role is Role.ORCHESTRATOR and c.output.provenance is not Provenance.RUNTIME)
    spotlights = any(s.planned.spotlight is not None for s in state.shots.values())
    shortest = len(_TOOLS_NEEDED) + (1 if spotlights else 0) - (0 if state.film.task.music_library else 1)
    room = trajectory.budget - shortest
    spent = 1.0 if calls > shortest else 0.0
    if room > 0:
        spent = min(1.0, max(0.0, (calls - shortest) / room))
    return (1.0 - spent) * completion(state)


def audit_score(trajectory: Trajectory) -> float | None:
    """Mean over the spotlight shots of the score in their last verdict by a judge; None when no judge took part."""
    last: dict[str, float] = {}
    for call in trajectory.calls:
        for verdict in call.verdicts:
            if verdict.judge != "structured":
                last[verdict.subject] = verdict.score
    return round(sum(last.values()) / len(last), 6) if last else None


def _reached(state: ProductionState, fact: Fact) -> float:
    missing = facts.lacking(fact, state)
    if not missing:
        return 1.0
    of = facts.concerned(fact, state)
    return 0.0 if missing == facts.FILM or of == 0 else max(0.0, 1 - len(missing) / of)


def _words(text: str) -> str:
    return " ".join(text.casefold().split())
