"""Checks of the plan and of lengths: coverage of the script, repeated queries, pacing against plan and task. Pure: reads records only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from repair.findings import FILM, Finding, found
from repair.limits import LIMITS, InspectionLimits
from repair.respan import respanned
from replay import lineage
from replay.picture import card_frames
from schemas.state import ProductionState, TimelineItem
from schemas.verdict import DefectCode


def script_gaps(state: ProductionState) -> tuple[int, int]:
    """Script characters that no shot carries, and characters that more than one shot carries; white space does not count.

    A planned span whose text is not the script's text at that place carries nothing.
    """
    script = state.film.task.script
    carried = [0] * len(script)
    for sid in state.film.shot_order:
        planned = state.shots[sid].planned
        start, end = max(0, planned.script_start), min(len(script), planned.script_end)
        if _same(planned.text, script[start:end]):
            for at in range(start, end):
                carried[at] += 1
    left_out = sum(1 for c, n in zip(script, carried, strict=True) if n == 0 and not c.isspace())
    repeated = sum(1 for c, n in zip(script, carried, strict=True) if n > 1 and not c.isspace())
    return left_out, repeated


def script_coverage(state: ProductionState) -> float:
    """Share of the script's characters, white space aside, that exactly one shot carries; 1 for an empty script."""
    total = sum(1 for c in state.film.task.script if not c.isspace())
    left_out, repeated = script_gaps(state)
    return 1.0 - (left_out + repeated) / total if total else 1.0


def is_ordered(state: ProductionState) -> bool:
    """Planned spans follow each other in film order."""
    starts = [state.shots[sid].planned.script_start for sid in state.film.shot_order if state.shots[sid].planned.text.strip()]
    return starts == sorted(starts)


def plan_findings(state: ProductionState, shots: Iterable[str], limits: InspectionLimits = LIMITS) -> Iterator[Finding]:
    """Findings on the plan and on lengths, for the film and for the given shots."""
    wanted = tuple(shots)
    yield from _coverage(state, wanted)
    yield from _film_length(state)
    for sid in wanted:
        yield from _repetition(state, sid)
        yield from _pacing(state, sid, limits)


def item_of(state: ProductionState, shot_id: str) -> TimelineItem | None:
    """The shot's place on the timeline; None without one."""
    timeline = state.film.timeline
    return next((i for i in timeline.items if i.shot_id == shot_id), None) if timeline else None


def slot_us(state: ProductionState, shot_id: str) -> int | None:
    """Length of the shot's slot, microseconds; None without a timeline."""
    item = item_of(state, shot_id)
    return state.film.task.frame_rate.us_at(item.frames) if item else None


def covered_us(state: ProductionState, shot_id: str) -> int:
    """How long a full-frame graphic stands before the clip in the shot's slot, microseconds; 0 without one."""
    item, shot, rate = item_of(state, shot_id), state.shots[shot_id], state.film.task.frame_rate
    if item is None or shot.planned.spotlight is None or shot.decoration is None or shot.decoration.placement != "full_frame":
        return 0
    return rate.us_at(card_frames(shot.decoration, item.frames, rate))


def _same(planned: str, script: str) -> bool:
    return "".join(planned.split()) == "".join(script.split())


def _coverage(state: ProductionState, shots: tuple[str, ...]) -> Iterator[Finding]:
    """Named on the shots that do not carry the stretch between their beginning and that of the next one; on the film without any."""
    if not state.film.shot_order:
        return
    left_out, repeated = script_gaps(state)
    ordered = is_ordered(state)
    if not (left_out or repeated) and ordered:
        return
    place = "in" if ordered else "out of"
    words = f"{left_out} script characters in no shot, {repeated} in several, spans {place} order; allowed: 0, 0, in order"
    due = {sid: planned for sid, planned in respanned(state).items() if planned != state.shots[sid].planned}
    if not due:
        yield found(DefectCode.PLAN_UNCOVERED, FILM, words, left_out + repeated, 0.0)
    for sid in shots:
        if sid in due:
            has, needs = len(state.shots[sid].planned.text), len(due[sid].text)
            own = f"text of {has} characters, its stretch of the script has {needs}; film: {words}"
            yield found(DefectCode.PLAN_UNCOVERED, sid, own, left_out + repeated, 0.0)


def _film_length(state: ProductionState) -> Iterator[Finding]:
    task, timeline = state.film.task, state.film.timeline
    if timeline is None or not lineage.timeline_is_current(state):
        return
    length = task.frame_rate.us_at(timeline.total_frames)
    artifact = timeline.ref.sha256
    if length > task.duration_max_us:
        words = f"film is {length // 1000} ms, allowed at most {task.duration_max_us // 1000} ms"
        yield found(DefectCode.PACING_TOO_LONG, FILM, words, length / 1e6, task.duration_max_us / 1e6, artifact=artifact)
    elif length < task.duration_min_us:
        words = f"film is {length // 1000} ms, allowed at least {task.duration_min_us // 1000} ms"
        yield found(DefectCode.PACING_TOO_SHORT, FILM, words, length / 1e6, task.duration_min_us / 1e6, artifact=artifact)


def _query(state: ProductionState, shot_id: str) -> str:
    shot = state.shots[shot_id]
    return _words(shot.asset.query if shot.asset else shot.planned.visual_query)


def _words(text: str) -> str:
    return " ".join(text.casefold().split())


def _repetition(state: ProductionState, shot_id: str) -> Iterator[Finding]:
    place = state.film.shot_order.index(shot_id)
    if place == 0:
        return
    before, shot = state.film.shot_order[place - 1], state.shots[shot_id]
    if _query(state, shot_id) == _query(state, before):
        own = _words(shot.planned.visual_query) not in ("", _query(state, before))
        words = f"same visual query as {before}; neighbours must differ" + ("; the plan gives the shot one of its own" if own else "")
        context = {
            "query": _query(state, shot_id),
            "planned_query": shot.planned.visual_query[:160],
            "same_as": before,
            "narration": shot.planned.text[:160],
        }
        artifact = shot.asset.ref.sha256 if shot.asset is not None else None
        severity: Literal["warning", "error"] = "error" if own else "warning"
        yield found(DefectCode.PLAN_REPETITION, shot_id, words, 1.0, 0.0, artifact=artifact, severity=severity, context=context)


def _pacing(state: ProductionState, shot_id: str, limits: InspectionLimits) -> Iterator[Finding]:
    item, slot, timeline = item_of(state, shot_id), slot_us(state, shot_id), state.film.timeline
    if item is None or slot is None or timeline is None or not lineage.timeline_is_current(state):
        return
    shot = state.shots[shot_id]
    planned = shot.planned.target_duration_us
    spoken = shot.narration.duration_us if shot.narration else 0
    artifact = timeline.ref.sha256
    context = {"slot_ms": slot // 1000, "planned_ms": planned // 1000, "narration_ms": spoken // 1000}
    over = item.narration_offset_us + spoken - slot
    if over > limits.slot_overrun_us:
        words = f"narration ends {over // 1000} ms after its slot, allowed {limits.slot_overrun_us // 1000} ms"
        yield found(
            DefectCode.PACING_TOO_SHORT, shot_id, words, over / 1e6, limits.slot_overrun_us / 1e6,
            artifact=artifact, severity="error", hard=True, context=context,
        )  # fmt: skip
    elif slot > limits.pacing_factor * planned and slot - planned > limits.pacing_slack_us:
        words = f"slot is {slot // 1000} ms, planned {planned // 1000} ms, allowed {limits.pacing_factor:g} times that"
        bursts = state.film.task.frame_rate.us_at(timeline.total_frames) > state.film.task.duration_max_us
        yield found(
            DefectCode.PACING_TOO_LONG, shot_id, words, slot / planned, limits.pacing_factor, artifact=artifact, context=context,
            severity="error" if bursts or slot > 2 * limits.pacing_factor * planned else "warning",
        )  # fmt: skip
    elif slot * limits.pacing_factor < planned and planned - slot > limits.pacing_slack_us:
        words = f"slot is {slot // 1000} ms, planned {planned // 1000} ms, allowed 1/{limits.pacing_factor:g} of that"
        yield found(
            DefectCode.PACING_TOO_SHORT, shot_id, words, slot / planned, 1 / limits.pacing_factor, artifact=artifact, context=context
        )
