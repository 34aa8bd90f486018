"""``render_shots``: the finished picture of each shot, video only, in the house profile, with exactly its frames on the timeline."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from media.ffmpeg import run_ffmpeg
from media.measure import VideoMeasure
from replay import facts
from replay.encoder import ffmpeg_version
from replay.lineage import frames_of, render_inputs
from replay.measured import measured_video
from replay.picture import Canvas, shot_argv
from replay.scope import SHOTS_ARG, scope_blockers, selected
from replay.state import shot_change
from replay.tool import Arguments, Contents, Product, Refusal, ToolEnv
from schemas.artifact import ArtifactKind, ArtifactRef
from schemas.blocker import Blocker, BlockerCode
from schemas.contract import ContentRequest, Fact, ToolContract
from schemas.errors import ToolFailed
from schemas.state import Decoration, ProductionState, Render

WORKERS = 2
"""Shots rendered at once. Each has one encoder thread, so that the bytes do not depend on this number."""
PICTURE = "picture.2"
"""Version of replay.picture; part of every render's key in the store."""
MAX_BLACK = 0.9


class RenderShots:
    """Renders shots."""

    contract = ToolContract(
        name="render_shots",
        version=1,
        summary="Render shots: the clip fitted to the canvas for exactly its frames on the timeline, with its graphic over it.",
        args=(SHOTS_ARG,),
        needs=(Fact.ASSETS, Fact.DECORATIONS, Fact.TIMELINE),
        produces=(Fact.RENDERS,),
        checks=(
            "the render decodes",
            "it has exactly the frames of its slot",
            "it has the canvas size",
            "it is not black unless its clip is",
        ),
        wall_s=3600,
        max_output_bytes=4 * 1024 * 1024 * 1024,
    )

    def resolve(self, state: ProductionState, arguments: Arguments) -> tuple[Blocker, ...]:
        """The shots exist, and some are left to render."""
        problems = scope_blockers(state, arguments["shots"])
        if problems or not all(facts.holds(fact, state) for fact in self.contract.needs) or _chosen(state, arguments):
            return problems
        message = "every shot has a current render; name the shots to render again"
        return (Blocker(code=BlockerCode.VALUE_NOT_ALLOWED, subject="argument:shots", message=message),)

    def need(self, state: ProductionState, arguments: Arguments, given: Contents, env: ToolEnv) -> ContentRequest | None:
        """Nothing is asked."""
        return None

    def accept(self, state: ProductionState, arguments: Arguments, given: Contents, content: dict[str, Any]) -> tuple[Blocker, ...]:
        """Never called."""
        return ()

    def execute(self, state: ProductionState, arguments: Arguments, given: Contents, env: ToolEnv) -> Product | Refusal:
        """Render what the store does not hold yet, two shots at a time, and verify every one."""
        shots = _chosen(state, arguments)

        def one(sid: str) -> Render:
            made = _render(state, sid, env)
            env.note(f"{sid}: {made.frames} frames rendered")
            return made

        with ThreadPoolExecutor(WORKERS) as pool:
            made = dict(zip(shots, pool.map(one, shots), strict=True))
        rows = [{"shot": sid, "frames": r.frames, "graphic": _graphic(state, sid)} for sid, r in made.items()]
        return Product(
            changes=tuple(shot_change(sid, "render", r) for sid, r in made.items()),
            results={
                "rendered": len(made),
                "frames": sum(r.frames for r in made.values()),
                "shots": [{k: v for k, v in row.items() if v is not None} for row in rows[:24]],
            },
            artifacts=tuple(dict.fromkeys(r.ref for r in made.values())),
        )


def _chosen(state: ProductionState, arguments: Arguments) -> tuple[str, ...]:
    missing = tuple(s for s in facts.lacking(Fact.RENDERS, state) if s in state.shots)
    return selected(state, arguments["shots"], missing)


def _graphic(state: ProductionState, sid: str) -> str | None:
    decoration = state.shots[sid].decoration
    return decoration.template if decoration is not None else None


def _render(state: ProductionState, sid: str, env: ToolEnv) -> Render:
    """The verified render of one shot; out of the store when the same was rendered before.

    Raises:
        ToolFailed: the encoder failed, or its product is not what was asked for.
    """
    shot, task = state.shots[sid], state.film.task
    digest, frames = render_inputs(state, sid), frames_of(state, sid)
    if digest is None or frames is None or shot.asset is None:
        raise ToolFailed("render_inputs", f"{sid} lacks a clip, a graphic or a slot although its prerequisites hold")
    decoration = shot.decoration if shot.planned.spotlight is not None else None
    canvas = Canvas(task.width, task.height, task.frame_rate, env.config.render.crf, env.config.render.preset)
    key = f"render {PICTURE} {digest} crf {canvas.crf} {canvas.preset} {ffmpeg_version(env.sandbox)}"
    ref = env.store.recall(key)
    source = measured_video(shot.asset.ref, env.store, env.sandbox)
    if ref is None:
        folder = Path(env.workdir) / f"shot-{sid}"
        folder.mkdir()
        inputs = {"clip": env.store.path(shot.asset.ref.sha256)}
        if decoration is not None:
            inputs["card"] = env.store.path(decoration.ref.sha256)
        run_ffmpeg(
            shot_argv((source.width, source.height), frames, canvas, decoration),
            inputs=inputs,
            outputs=("shot.mp4",),
            sandbox=env.sandbox,
            workdir=folder,
        )
        ref = env.store.put_file(folder / "shot.mp4", ArtifactKind.RENDER, "video/mp4")
        _verify(sid, ref, frames, canvas, source, decoration, env)
        env.store.remember(key, ref)
    else:
        _verify(sid, ref, frames, canvas, source, decoration, env)
    return Render(ref=ref, frames=frames, inputs_digest=digest)


def _verify(
    sid: str, ref: ArtifactRef, frames: int, canvas: Canvas, source: VideoMeasure, decoration: Decoration | None, env: ToolEnv
) -> None:
    m = measured_video(ref, env.store, env.sandbox)
    if (m.frames, m.width, m.height) != (frames, canvas.width, canvas.height):
        raise ToolFailed(
            "render_wrong",
            f"the render of {sid} has {m.frames} frames of {m.width}x{m.height}; expected {frames} of {canvas.width}x{canvas.height}",
        )
    is_card = decoration is not None and decoration.placement == "full_frame"
    if is_card and decoration is not None and measured_video(decoration.ref, env.store, env.sandbox).black_share > MAX_BLACK:
        return  # a black card gives a black picture: that is for an inspection to find, not for a retry to mend
    if m.black_share > MAX_BLACK and source.black_share <= MAX_BLACK:
        raise ToolFailed("render_black", f"{m.black_share:.0%} of the render of {sid} is black, {source.black_share:.0%} of its clip")


TOOL = RenderShots()
