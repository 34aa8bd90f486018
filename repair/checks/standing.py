"""Whether the graphic of a shot is really on screen when it should stand there: in its render, and in the film.

The picture at the moment before the graphic leaves (replay.picture.stand_of) is compared with the graphic's own picture of that moment.
Where they differ, text recognition says whether its words can be read all the same: words may lie in the footage itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from repair.checks.plan import item_of
from repair.findings import Finding, found
from repair.judge import similarity
from repair.limits import LIMITS, InspectionLimits
from repair.measurements import Area, Likeness, Measurements
from replay.picture import Canvas, Stand, stand_of
from replay.tool import ToolEnv
from schemas.artifact import ArtifactRef
from schemas.state import Decoration, ProductionState
from schemas.verdict import DefectCode

LOOK_SIDE = 1280
"""Longest side of a picture that text is read in, pixels."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What is seen of a graphic at its moment in some picture."""

    shot_id: str
    at_us: int
    """Moment in the picture that was looked at, microseconds."""
    like: Likeness
    text: float | None
    """Lowest similarity over the slots with the text read on screen; None when nobody had to read."""

    def is_there(self, limits: InspectionLimits) -> bool:
        """The picture shows the graphic."""
        return is_like(self.like, limits)


def is_like(like: Likeness, limits: InspectionLimits) -> bool:
    """Detail decides where the graphic has any, the tone where it is one colour."""
    if like.detail < limits.graphic_flat:
        return like.apart <= limits.graphic_apart
    return like.correlation >= limits.graphic_like


def graphic_findings(
    state: ProductionState, shot_id: str, env: ToolEnv, measured: Measurements, limits: InspectionLimits = LIMITS
) -> Iterator[Finding]:
    """The finding on a render, of the right size and length, that lacks the graphic it was to be made with."""
    shot = state.shots[shot_id]
    seen = None if shot.render is None else standing(state, shot_id, shot.render.ref, 0, env, measured, limits)
    if shot.render is None or seen is None or seen.is_there(limits):
        return
    readable = seen.text is not None and seen.text >= limits.text_sure
    read = "its words are read there all the same" if readable else f"its text reads back with similarity {seen.text or 0.0:.2f}"
    words = f"{_unlike(seen.like, limits)} at {seen.at_us // 1000} ms; {read}"
    context = {"graphic": shot.decoration.template if shot.decoration else None, "text": seen.text}
    yield found(
        DefectCode.RENDER_GRAPHIC_MISSING, shot_id, words, seen.like.correlation, limits.graphic_like,
        artifact=shot.render.ref.sha256, hard=not readable, context=context,
    )  # fmt: skip


def lost_graphics(
    state: ProductionState, film: ArtifactRef, env: ToolEnv, measured: Measurements, limits: InspectionLimits = LIMITS
) -> tuple[Standing, ...]:
    """Graphics that stand in the render of their shot and not in the film, in film order."""
    out: list[Standing] = []
    for item in state.film.timeline.items if state.film.timeline is not None else ():
        render = state.shots[item.shot_id].render
        if render is None:
            continue
        in_film = standing(state, item.shot_id, film, item.start_frame, env, measured, limits)
        if in_film is None or in_film.is_there(limits):
            continue
        in_render = standing(state, item.shot_id, render.ref, 0, env, measured, limits)
        if in_render is not None and in_render.is_there(limits):
            out.append(in_film)
    return tuple(out)


def standing(
    state: ProductionState,
    sid: str,
    picture: ArtifactRef,
    first: int,
    env: ToolEnv,
    measured: Measurements,
    limits: InspectionLimits = LIMITS,
) -> Standing | None:
    """What a picture, in which the shot begins with frame ``first``, shows of the shot's graphic; None for a shot without one."""
    shot, item, task = state.shots[sid], item_of(state, sid), state.film.task
    graphic = shot.decoration
    if shot.planned.spotlight is None or graphic is None or item is None or item.frames == 0:
        return None
    rate = task.frame_rate
    place = stand_of(graphic, item.frames, Canvas(task.width, task.height, rate, env.config.render.crf, env.config.render.preset))
    at_us = rate.us_at(first + place.frame) + rate.us_at(1) // 2
    own_us = rate.us_at(place.graphic_frame) + rate.us_at(1) // 2
    like = measured.likeness(picture, at_us, graphic.ref, own_us, _area(graphic, place, task.width, task.height), env)
    text = None if is_like(like, limits) else _read(picture, at_us, graphic, env, measured)
    return Standing(sid, at_us, like, text)


def _area(graphic: Decoration, place: Stand, width: int, height: int) -> Area:
    if graphic.placement == "full_frame":
        return Area(0, 0, width, height)
    return Area(place.x, place.y, min(graphic.width, width - place.x), min(graphic.height, height - place.y))


def _read(picture: ArtifactRef, at_us: int, graphic: Decoration, env: ToolEnv, measured: Measurements) -> float:
    lines = [b.text for b in measured.still(picture, at_us, LOOK_SIDE, env).boxes]
    return min((similarity(text, lines) for text in graphic.slots.values() if text.strip()), default=0.0)


def _unlike(like: Likeness, limits: InspectionLimits) -> str:
    if like.detail < limits.graphic_flat:
        return f"the picture is {like.apart:.0f} luma steps from its one-coloured graphic, allowed {limits.graphic_apart:g}"
    return f"the picture is like its graphic by {like.correlation:.2f}, at least {limits.graphic_like:g}"
