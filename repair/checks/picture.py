"""Checks of shot renders: size, length, lost picture, picture that stands still although its clip moves.

A render is judged against what it was made from. A static clip gives a static render and a dark clip a dark one: neither is a defect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from repair.checks.plan import covered_us, item_of
from repair.findings import Finding, found
from repair.limits import LIMITS, InspectionLimits
from repair.measurements import Measurements
from replay import lineage
from replay.tool import ToolEnv
from schemas.artifact import ArtifactRef
from schemas.state import ProductionState
from schemas.verdict import DefectCode


@dataclass(frozen=True, slots=True)
class Expected:
    """Shares of a slot that may be black or still, given the clip and the graphic that fill it."""

    black: float
    still: float


def picture_findings(
    state: ProductionState, shots: Iterable[str], env: ToolEnv, measured: Measurements, limits: InspectionLimits = LIMITS
) -> Iterator[Finding]:
    """Findings on the renders of the given shots; stale renders are left out, they will be made again anyway."""
    for sid in shots:
        if lineage.render_is_current(state, sid):
            yield from _render(state, sid, env, measured, limits)


def expected_shares(state: ProductionState, shot_id: str, env: ToolEnv, measured: Measurements) -> Expected:
    """What the clip and the graphic of a shot explain of a black or still picture in its slot.

    As shots are rendered (replay.picture): a full-frame graphic plays and is held for its reading time, then the clip plays and its last
    frame is held to the end.
    """
    shot, item, rate = state.shots[shot_id], item_of(state, shot_id), state.film.task.frame_rate
    if item is None or item.frames == 0:
        return Expected(0.0, 0.0)
    slot = rate.us_at(item.frames)
    card = covered_us(state, shot_id)
    parts: list[tuple[int, Expected]] = []
    if shot.decoration is not None and card > 0:
        parts.append((card, _over(shot.decoration.ref, card, env, measured)))
    if shot.asset is not None and slot > card:
        parts.append((slot - card, _over(shot.asset.ref, slot - card, env, measured)))
    return Expected(sum(us * e.black for us, e in parts) / slot, sum(us * e.still for us, e in parts) / slot)


def _over(ref: ArtifactRef, length_us: int, env: ToolEnv, measured: Measurements) -> Expected:
    """Shares over a length that plays a source once and then holds its last frame."""
    m = measured.video(ref, env)
    played = min(m.duration_us, length_us)
    return Expected(m.black_share, (m.frozen_share * played + length_us - played) / length_us)


def _render(state: ProductionState, sid: str, env: ToolEnv, measured: Measurements, limits: InspectionLimits) -> Iterator[Finding]:
    shot, item, task = state.shots[sid], item_of(state, sid), state.film.task
    if shot.render is None or item is None:
        return
    artifact = shot.render.ref.sha256
    m = measured.video(shot.render.ref, env)
    if (m.width, m.height) != (task.width, task.height):
        words = f"{m.width}x{m.height}, task asks for {task.width}x{task.height}"
        yield found(DefectCode.RENDER_WRONG_SIZE, sid, words, m.width * m.height, task.width * task.height, artifact=artifact)
    if m.frames != item.frames:
        words = f"{m.frames} frames, timeline has {item.frames}"
        yield found(DefectCode.RENDER_WRONG_LENGTH, sid, words, m.frames, item.frames, artifact=artifact)
    expected = expected_shares(state, sid, env, measured)
    context = {
        "clip": shot.asset.clip_id if shot.asset else None,
        "graphic": shot.decoration.template if shot.decoration else None,
        "mean_luma": round(m.mean_luma, 3),
        "expected_black": round(expected.black, 3),
        "expected_still": round(expected.still, 3),
    }
    if m.black_share - expected.black > limits.black_excess:
        words = (
            f"{m.black_share:.0%} of the frames black, its sources explain {expected.black:.0%}; allowed excess {limits.black_excess:.0%}"
        )
        limit = expected.black + limits.black_excess
        yield found(DefectCode.RENDER_BLACK, sid, words, m.black_share, limit, artifact=artifact, context=context)
        return
    still = m.frozen_share - expected.still
    if still > limits.frozen_excess and still * m.duration_us > limits.still_excess_us:
        allowed = f"its sources explain {expected.still:.0%}; allowed excess {limits.frozen_excess:.0%}"
        words = f"still for {m.frozen_share:.0%} of its length, {allowed}"
        limit = expected.still + limits.frozen_excess
        yield found(DefectCode.RENDER_FROZEN, sid, words, m.frozen_share, limit, artifact=artifact, context=context)
