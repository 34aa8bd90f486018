"""Checks of shot renders: size, length, lost picture, picture that stands still although its clip moves,
graphic that is not on screen.

A render is judged against what it was made from. A static clip gives a static render and a dark clip a dark one: neither is a defect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from repair.checks.plan import covered_us, item_of
from repair.checks.standing import graphic_findings
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
    """What the clip and the graphic that fill a slot explain: shares of it that are black or still, and its mean brightness (0 to 1)."""

    black: float
    still: float
    luma: float


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
        return Expected(0.0, 0.0, 0.0)
    slot = rate.us_at(item.frames)
    card = covered_us(state, shot_id)
    parts: list[tuple[int, Expected]] = []
    if shot.decoration is not None and card > 0:
        parts.append((card, _over(shot.decoration.ref, card, env, measured)))
    if shot.asset is not None and slot > card:
        parts.append((slot - card, _over(shot.asset.ref, slot - card, env, measured)))
    return Expected(
        black=sum(us * e.black for us, e in parts) / slot,
        still=sum(us * e.still for us, e in parts) / slot,
        luma=sum(us * e.luma for us, e in parts) / slot,
    )


def _over(ref: ArtifactRef, length_us: int, env: ToolEnv, measured: Measurements) -> Expected:
    """Shares over a length that plays a source once and then holds its last frame."""
    m = measured.video(ref, env)
    played = min(m.duration_us, length_us)
    return Expected(m.black_share, (m.frozen_share * played + length_us - played) / length_us, m.mean_luma)


def motion_lost(
    state: ProductionState, shot_id: str, env: ToolEnv, measured: Measurements, limits: InspectionLimits = LIMITS
) -> tuple[int, int]:
    """Compare a render with its clip at several moments: intervals in which the clip moves, and those of them in which the render does not.

    The comparison is of the same moments of the same footage, so it holds however little the footage moves. Without a clip in the picture
    there is nothing to compare: (0, 0).
    """
    shot, item, rate = state.shots[shot_id], item_of(state, shot_id), state.film.task.frame_rate
    if shot.render is None or shot.asset is None or item is None:
        return 0, 0
    card = covered_us(state, shot_id)
    rendered = measured.video(shot.render.ref, env).duration_us
    played = min(measured.video(shot.asset.ref, env).duration_us, min(rate.us_at(item.frames), rendered) - card)
    if played < limits.still_excess_us:
        return 0, 0
    steps = limits.motion_looks
    times = tuple((played - 2 * rate.us_at(1)) * n // (steps - 1) + rate.us_at(1) // 2 for n in range(steps))
    clip = measured.motion(shot.asset.ref, times, env)
    seen = measured.motion(shot.render.ref, tuple(t + card for t in times), env)
    moving = [(c, s) for c, s in zip(clip, seen, strict=True) if c >= limits.motion_min]
    return len(moving), sum(1 for c, s in moving if s < limits.motion_kept * c)


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
        "expected_luma": round(expected.luma, 3),
        "expected_black": round(expected.black, 3),
        "expected_still": round(expected.still, 3),
    }
    if m.black_share - expected.black > limits.black_excess and m.mean_luma < limits.black_luma * expected.luma:
        words = (
            f"{m.black_share:.0%} of the frames black, its sources explain {expected.black:.0%}; allowed excess {limits.black_excess:.0%}"
        )
        limit = expected.black + limits.black_excess
        yield found(DefectCode.RENDER_BLACK, sid, words, m.black_share, limit, artifact=artifact, context=context)
        return
    if (m.frozen_share - expected.still) * m.duration_us > limits.still_excess_us:
        moving, lost = motion_lost(state, sid, env, measured, limits)
        if lost and lost / moving >= limits.motion_lost:
            words = (
                f"still for {m.frozen_share:.0%} of its length, its sources explain {expected.still:.0%}; "
                f"{lost} of {moving} moving intervals of the clip are missing, limit {limits.motion_lost:.0%}"
            )
            more = {**context, "moving_intervals": moving, "lost_intervals": lost}
            yield found(DefectCode.RENDER_FROZEN, sid, words, lost / moving, limits.motion_lost, artifact=artifact, context=more)
    if (m.width, m.height, m.frames) == (task.width, task.height, item.frames):
        yield from graphic_findings(state, sid, env, measured, limits)
