"""Spans and texts of shots that carry the whole script exactly once again, with as few borders moved as can be.

Pure. Knows the script and the present plan, nothing of how the plan came to be wrong.
"""

from __future__ import annotations

from schemas.state import PlannedShot, ProductionState


def respanned(state: ProductionState) -> dict[str, PlannedShot]:
    """Planned shots that carry the script in film order, each character once; by shot id.

    Every narrated shot keeps its beginning and reaches to where the next one begins; the first reaches back to the script's start, the
    last to its end. A shot that begins before the one ahead of it has nothing left. Shots that carry their stretch stay as they are.
    """
    script = state.film.task.script
    spoken = [sid for sid in state.film.shot_order if state.shots[sid].planned.text.strip()]
    starts: list[int] = []
    for place, sid in enumerate(spoken):
        wanted = min(max(0, state.shots[sid].planned.script_start), len(script))
        starts.append(0 if place == 0 else max(wanted, starts[-1]))
    ends = [*starts[1:], len(script)] if starts else []
    out: dict[str, PlannedShot] = {}
    for sid, start, end in zip(spoken, starts, ends, strict=True):
        planned, text = state.shots[sid].planned, script[start:end]
        first = start + len(text) - len(text.lstrip())
        last = max(first, end - len(text) + len(text.rstrip()))
        carried = script[planned.script_start : planned.script_end]
        if planned.text.split() == text.split() == carried.split():
            out[sid] = planned
        else:
            out[sid] = planned.model_copy(update={"script_start": first, "script_end": last, "text": script[first:last]})
    return out
