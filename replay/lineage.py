"""What each product was made from, as digests: the one place that decides staleness and taint."""

from __future__ import annotations

from typing import Any

from schemas.canonical import Sha256, digest_of, sha256_bytes
from schemas.state import ProductionState

RENDER_PROFILE = "house.1"
"""Version of the encoder profile; part of every render's inputs."""


def text_digest(text: str) -> Sha256:
    """Digest of a narration text."""
    return sha256_bytes(text.encode())


def narration_is_current(state: ProductionState, shot_id: str) -> bool:
    """The shot needs no narration, or has one of its present text and voice."""
    shot = state.shots[shot_id]
    if not shot.planned.text.strip():
        return True
    n = shot.narration
    return n is not None and n.text_sha256 == text_digest(shot.planned.text) and n.voice == state.film.task.voice


def decoration_is_current(state: ProductionState, shot_id: str) -> bool:
    """The shot needs no decoration, or has one."""
    shot = state.shots[shot_id]
    return shot.planned.spotlight is None or shot.decoration is not None


def timeline_inputs(state: ProductionState) -> Sha256:
    """Over all that decides positions and lengths: order, planned durations, narration lengths, rate."""
    task = state.film.task
    rows: list[Any] = []
    for sid in state.film.shot_order:
        shot = state.shots[sid]
        rows.append([sid, shot.planned.target_duration_us, shot.narration.duration_us if shot.narration else None])
    return digest_of(["timeline", task.frame_rate.num, task.frame_rate.den, task.duration_min_us, task.duration_max_us, rows])


def frames_of(state: ProductionState, shot_id: str) -> int | None:
    """Length of a shot on the present timeline, frames; None without a timeline."""
    if state.film.timeline is None:
        return None
    for item in state.film.timeline.items:
        if item.shot_id == shot_id:
            return item.frames
    return None


def render_inputs(state: ProductionState, shot_id: str) -> Sha256 | None:
    """Over all that decides the pixels of a shot's render; None while something is missing. Position on the timeline is not in it."""
    shot = state.shots[shot_id]
    frames = frames_of(state, shot_id)
    if shot.asset is None or frames is None or not decoration_is_current(state, shot_id):
        return None
    task = state.film.task
    return digest_of(
        [
            "render",
            RENDER_PROFILE,
            shot.asset.ref.sha256,
            shot.decoration.ref.sha256 if shot.decoration else None,
            shot.decoration.placement if shot.decoration else None,
            frames,
            task.width,
            task.height,
            task.frame_rate.num,
            task.frame_rate.den,
        ]
    )


def timeline_is_current(state: ProductionState) -> bool:
    """There is a timeline and it was composed from the present lengths."""
    t = state.film.timeline
    return t is not None and t.inputs_digest == timeline_inputs(state)


def render_is_current(state: ProductionState, shot_id: str) -> bool:
    """The shot's render was made from the present inputs."""
    render = state.shots[shot_id].render
    return render is not None and render.inputs_digest == render_inputs(state, shot_id)


def renders_digest(state: ProductionState) -> Sha256:
    """Over everything an inspection looks at: renders, narration, decorations, music."""
    rows: list[Any] = []
    for sid in state.film.shot_order:
        shot = state.shots[sid]
        rows.append(
            [
                sid,
                shot.render.ref.sha256 if shot.render else None,
                shot.narration.ref.sha256 if shot.narration else None,
                shot.decoration.ref.sha256 if shot.decoration else None,
            ]
        )
    return digest_of(["inspected", rows, state.film.music.ref.sha256 if state.film.music else None])


def delivery_inputs(state: ProductionState) -> Sha256:
    """Over everything the film is stitched from."""
    return digest_of(["delivery", renders_digest(state), timeline_inputs(state)])
