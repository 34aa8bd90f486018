"""The timeline as an OpenTimelineIO file: shots, narration and music on exact frames.

Owns the mapping. The file refers to products by their place in a film (``renders/s001.mp4``), not by bytes: it says when, not what.
"""

from __future__ import annotations

from typing import Any

import opentimelineio as otio

from replay.timing import Layout
from schemas.state import ProductionState
from schemas.time import Rate


def to_otio(state: ProductionState, layout: Layout) -> bytes:
    """The film's timeline in OTIO's JSON form; equal input gives equal bytes."""
    task = state.film.task
    rate = float(task.frame_rate.fraction)
    timeline = otio.schema.Timeline(name=task.title)
    timeline.metadata["workprint"] = {"project_id": task.project_id, "frame_rate": f"{task.frame_rate.num}/{task.frame_rate.den}"}
    picture = otio.schema.Track(name="picture", kind=otio.schema.TrackKind.Video)
    voice = otio.schema.Track(name="narration", kind=otio.schema.TrackKind.Audio)
    music = otio.schema.Track(name="music", kind=otio.schema.TrackKind.Audio)
    spoken_to = 0
    for slot in layout.slots:
        shot = state.shots[slot.shot_id]
        meta = {"shot_id": slot.shot_id, "text": shot.planned.text, "visual_query": shot.planned.visual_query}
        picture.append(_clip(slot.shot_id, f"renders/{slot.shot_id}.mp4", slot.frames, rate, meta))
        if shot.narration is None or not shot.planned.text.strip():
            continue
        start, length = _narration_frames(task.frame_rate, slot.start_frame, slot.narration_offset_us, shot.narration.duration_us)
        start = max(start, spoken_to)
        if start > spoken_to:
            voice.append(otio.schema.Gap(source_range=_span(start - spoken_to, rate)))
        voice.append(
            _clip(
                slot.shot_id,
                f"narration/{slot.shot_id}.wav",
                length,
                rate,
                {"shot_id": slot.shot_id, "offset_us": slot.narration_offset_us},
            )
        )
        spoken_to = start + length
    if state.film.music is not None:
        music.append(_clip("music", "music", layout.total_frames, rate, {"looped": True, "track_id": state.film.music.track_id}))
    timeline.tracks.extend([picture, voice, music])
    text: str = otio.adapters.write_to_string(timeline, "otio_json")
    return text.encode()


def _narration_frames(rate: Rate, start_frame: int, offset_us: int, duration_us: int) -> tuple[int, int]:
    start = rate.us_at(start_frame) + offset_us
    first = rate.frame_at(start)
    return first, max(1, rate.frame_at(start + duration_us) - first)


def _span(frames: int, rate: float) -> Any:
    return otio.opentime.TimeRange(otio.opentime.RationalTime(0, rate), otio.opentime.RationalTime(frames, rate))


def _clip(name: str, url: str, frames: int, rate: float, metadata: dict[str, Any]) -> Any:
    reference = otio.schema.ExternalReference(target_url=url, available_range=_span(frames, rate))
    return otio.schema.Clip(name=name, media_reference=reference, source_range=_span(frames, rate), metadata={"workprint": metadata})
