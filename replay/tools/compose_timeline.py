"""``compose_timeline``: every shot gets its exact frames, and the narration its place."""

from __future__ import annotations

import json
from typing import Any

from replay.interchange import to_otio
from replay.lineage import timeline_inputs
from replay.state import film_change
from replay.timing import Wish, lay_out
from replay.tool import Arguments, Contents, Product, Refusal, ToolEnv
from schemas.artifact import ArtifactKind
from schemas.blocker import Blocker, BlockerCode
from schemas.contract import ContentRequest, Fact, ToolContract
from schemas.errors import ToolFailed
from schemas.state import ProductionState, Timeline, TimelineItem


class ComposeTimeline:
    """Lays the film out."""

    contract = ToolContract(
        name="compose_timeline",
        version=1,
        summary="Lay the film out on exact frames from planned lengths and measured narration, within the feasible duration.",
        args=(),
        needs=(Fact.ASSETS, Fact.NARRATION, Fact.DECORATIONS, Fact.MUSIC),
        produces=(Fact.TIMELINE,),
        checks=(
            "shots lie back to back from frame 0",
            "every narration ends before its slot does",
            "the film is within the feasible duration, or as near to it as the narration allows",
            "the OpenTimelineIO file reads back with the same frames",
        ),
        wall_s=60,
        max_output_bytes=64 * 1024 * 1024,
    )

    def resolve(self, state: ProductionState, arguments: Arguments) -> tuple[Blocker, ...]:
        """Nothing to resolve."""
        return ()

    def need(self, state: ProductionState, arguments: Arguments, given: Contents, env: ToolEnv) -> ContentRequest | None:
        """Nothing is asked."""
        return None

    def accept(self, state: ProductionState, arguments: Arguments, given: Contents, content: dict[str, Any]) -> tuple[Blocker, ...]:
        """Never called."""
        return ()

    def execute(self, state: ProductionState, arguments: Arguments, given: Contents, env: ToolEnv) -> Product | Refusal:
        """Lay out, write the interchange file, read it back."""
        task = state.film.task
        wishes = [_wish(state, sid) for sid in state.film.shot_order]
        layout = lay_out(wishes, task.frame_rate, gap_us=env.config.mix.gap_us, min_us=task.duration_min_us, max_us=task.duration_max_us)
        length = task.frame_rate.us_at(layout.total_frames)
        if not layout.is_feasible and all(w.narration_us is None for w in wishes):
            return Refusal((_infeasible(length, task.duration_min_us, task.duration_max_us),))
        late = [
            s.shot_id
            for s, w in zip(layout.slots, wishes, strict=True)
            if w.narration_us is not None and s.narration_offset_us + w.narration_us > task.frame_rate.us_at(s.frames) + 20_000
        ]
        data = to_otio(state, layout)
        if late or _picture_frames(data) != [s.frames for s in layout.slots]:
            raise ToolFailed("timeline_wrong", f"the timeline is not what was laid out: {', '.join(late[:3]) or 'frames differ'}")
        ref = env.store.put_bytes(data, ArtifactKind.TIMELINE, "application/vnd.opentimelineio+json")
        timeline = Timeline(
            ref=ref,
            items=tuple(
                TimelineItem(shot_id=s.shot_id, start_frame=s.start_frame, frames=s.frames, narration_offset_us=s.narration_offset_us)
                for s in layout.slots
            ),
            total_frames=layout.total_frames,
            inputs_digest=timeline_inputs(state),
        )
        results: dict[str, Any] = {
            "shots": len(layout.slots),
            "frames": layout.total_frames,
            "duration_ms": length // 1000,
            "feasible_ms": [task.duration_min_us // 1000, task.duration_max_us // 1000],
            "feasible": layout.is_feasible,
        }
        return Product(changes=(film_change("timeline", timeline),), results=results, artifacts=(ref,))


def _wish(state: ProductionState, sid: str) -> Wish:
    shot = state.shots[sid]
    spoken = shot.narration.duration_us if shot.narration is not None and shot.planned.text.strip() else None
    return Wish(sid, shot.planned.target_duration_us, spoken)


def _picture_frames(data: bytes) -> list[int]:
    track = json.loads(data)["tracks"]["children"][0]
    return [round(clip["source_range"]["duration"]["value"]) for clip in track["children"]]


def _infeasible(length: int, low: int, high: int) -> Blocker:
    return Blocker(
        code=BlockerCode.PRODUCT_REJECTED,
        subject="film",
        message=f"the planned lengths come to {length // 1000} ms; the film must last {low // 1000} to {high // 1000} ms",
        needs=(Fact.SHOT_PLAN.value,),
        remedies=("reflect_plan", "plan_shots"),
    )


TOOL = ComposeTimeline()
