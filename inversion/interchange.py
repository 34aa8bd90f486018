"""Storyboards in the forms other programs read: SubRip, OpenTimelineIO, and the stable public JSON. Documented in docs/storyboard.md.

Both foreign forms can be read back: shots and sentences survive a round trip exactly (SubRip times to the millisecond).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import opentimelineio as otio

from schemas.errors import SchemaMismatch
from schemas.storyboard import Storyboard, Transition
from schemas.time import US

PUBLIC_VERSION = "workprint.storyboard.public.1"
_CUE = re.compile(r"^(\d+):(\d\d):(\d\d),(\d\d\d) --> (\d+):(\d\d):(\d\d),(\d\d\d)$")


@dataclass(frozen=True, slots=True)
class Cue:
    """One sentence of a subtitle file."""

    start_us: int
    end_us: int
    text: str


@dataclass(frozen=True, slots=True)
class Cut:
    """One shot of a timeline file."""

    start_us: int
    end_us: int
    transition_in: Transition


def to_srt(board: Storyboard) -> str:
    """SubRip text: one cue a sentence, on one line. Cues never overlap and last at least a millisecond."""
    blocks: list[str] = []
    for number, sentence in enumerate(board.sentences, 1):
        start = sentence.start_us // 1000
        end = max(start + 1, sentence.end_us // 1000)
        blocks.append(f"{number}\n{_stamp(start)} --> {_stamp(end)}\n{sentence.text}\n")
    return "\n".join(blocks)


def from_srt(text: str) -> tuple[Cue, ...]:
    """Cues of a file that :func:`to_srt` wrote.

    Raises:
        SchemaMismatch: a block that is none of ours.
    """
    out: list[Cue] = []
    for block in filter(None, (b.strip("\n") for b in text.split("\n\n"))):
        lines = block.split("\n")
        match = _CUE.match(lines[1]) if len(lines) == 3 else None
        if match is None:
            raise SchemaMismatch("srt_block", f"no cue in {block[:60]!r}", "read foreign subtitles as a sidecar instead")
        numbers = [int(g) for g in match.groups()]
        out.append(Cue(_from_stamp(numbers[:4]), _from_stamp(numbers[4:]), lines[2]))
    return tuple(out)


def _stamp(ms: int) -> str:
    return f"{ms // 3_600_000:02d}:{ms // 60_000 % 60:02d}:{ms // 1000 % 60:02d},{ms % 1000:03d}"


def _from_stamp(parts: list[int]) -> int:
    return (((parts[0] * 60 + parts[1]) * 60 + parts[2]) * 1000 + parts[3]) * 1000


def to_otio(board: Storyboard) -> str:
    """An OpenTimelineIO timeline: one video track with a clip a shot, a marker a sentence, dissolves and fades as transitions.

    Positions are frames at the film's mean rate, microseconds where its rate varies; the exact microseconds of every shot and sentence
    stand in the metadata under ``workprint``.
    """
    schema = otio.schema
    rate, unit = _rate(board)
    timeline = schema.Timeline(name=board.title)
    timeline.metadata["workprint"] = {
        "schema_version": board.schema_version,
        "project_id": board.project_id,
        "source_sha256": board.media.sha256,
        "language": board.language,
        "unit": unit,
    }
    track = schema.Track(name="shots", kind=schema.TrackKind.Video)
    picture_end = board.shots[-1].shot.end_us if board.shots else 0
    for entry in board.shots:
        shot = entry.shot
        start, end = _position(shot.start_us, shot.start_frame, unit), _position(shot.end_us, shot.end_frame, unit)
        if shot.transition_start_us is not None and shot.transition_end_us is not None and shot.index:
            track.append(_transition(board, shot.index, rate, unit))
        reference = schema.ExternalReference(
            target_url=board.source.uri, available_range=_range(0, _position(picture_end, board.shots[-1].shot.end_frame, unit), rate)
        )
        clip = schema.Clip(name=f"shot {shot.index}", media_reference=reference, source_range=_range(start, end, rate))
        clip.metadata["workprint"] = {
            "index": shot.index,
            "start_us": shot.start_us,
            "end_us": shot.end_us,
            "transition_in": shot.transition_in.value,
            "narration": entry.narration,
            "visual_query": entry.visual_query,
        }
        track.append(clip)
    for sentence in board.sentences:
        start, end = _at(board, sentence.start_us, unit), _at(board, sentence.end_us, unit)
        marker = schema.Marker(name=sentence.text[:80], marked_range=_range(start, max(end, start), rate))
        marker.metadata["workprint"] = {
            "index": sentence.index,
            "start_us": sentence.start_us,
            "end_us": sentence.end_us,
            "text": sentence.text,
            "shots": list(sentence.shots),
        }
        track.markers.append(marker)
    timeline.tracks.append(track)
    return str(timeline.to_json_string(indent=2))


def from_otio(text: str) -> tuple[tuple[Cut, ...], tuple[Cue, ...]]:
    """Shots and sentences of a timeline that :func:`to_otio` wrote.

    Reads the JSON itself: the OpenTimelineIO library ends the process on some malformed files.

    Raises:
        SchemaMismatch: no timeline, or one without our metadata.
    """
    try:
        root = json.loads(text)
        tracks = root["tracks"]["children"]
        clips = [c["metadata"]["workprint"] for t in tracks for c in t["children"] if str(c["OTIO_SCHEMA"]).startswith("Clip.")]
        markers = [m["metadata"]["workprint"] for t in tracks for m in t["markers"]]
        cuts = tuple(Cut(int(c["start_us"]), int(c["end_us"]), Transition(c["transition_in"])) for c in clips)
        cues = tuple(Cue(int(m["start_us"]), int(m["end_us"]), str(m["text"])) for m in markers)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise SchemaMismatch(
            "otio_foreign", f"no timeline of workprint: {error}", "only timelines written by workprint can be read"
        ) from error
    return cuts, cues


def _rate(board: Storyboard) -> tuple[float, str]:
    if board.media.video is not None and board.media.video.is_vfr:
        return float(US), "us"
    return board.frame_rate.num / board.frame_rate.den, "frames"


def _position(us: int, frame: int, unit: str) -> int:
    return frame if unit == "frames" else us


def _at(board: Storyboard, us: int, unit: str) -> int:
    return board.frame_rate.frame_at(us) if unit == "frames" else us


def _range(start: int, end: int, rate: float) -> Any:
    return otio.opentime.TimeRange(otio.opentime.RationalTime(start, rate), otio.opentime.RationalTime(end - start, rate))


def _transition(board: Storyboard, index: int, rate: float, unit: str) -> Any:
    """A transition whose offsets reach as far into both neighbours as the picture is mixed, never further than they are long."""
    shot, before = board.shots[index].shot, board.shots[index - 1].shot
    cut = _position(shot.start_us, shot.start_frame, unit)
    start = _at(board, shot.transition_start_us or shot.start_us, unit)
    end = _at(board, shot.transition_end_us or shot.start_us, unit)
    longest_in = cut - _position(before.start_us, before.start_frame, unit)
    longest_out = _position(shot.end_us, shot.end_frame, unit) - cut
    kind = otio.schema.TransitionTypes.SMPTE_Dissolve if shot.transition_in is Transition.DISSOLVE else otio.schema.TransitionTypes.Custom
    return otio.schema.Transition(
        name=shot.transition_in.value,
        transition_type=kind,
        in_offset=otio.opentime.RationalTime(min(max(0, cut - start), longest_in), rate),
        out_offset=otio.opentime.RationalTime(min(max(0, end - cut), longest_out), rate),
    )


def public_json(board: Storyboard) -> dict[str, Any]:
    """The stable JSON of ``workprint invert --json``. Keys are only ever added; see docs/storyboard.md."""
    return {
        "version": PUBLIC_VERSION,
        "project_id": board.project_id,
        "source": {
            "uri": board.source.uri,
            "sha256": board.media.sha256,
            "licence": board.source.licence,
            "attribution": board.source.attribution,
        },
        "title": board.title,
        "language": board.language,
        "duration_us": board.shots[-1].shot.end_us if board.shots else 0,
        "frame_rate": {"num": board.frame_rate.num, "den": board.frame_rate.den},
        "width": board.media.video.display_width if board.media.video is not None else 0,
        "height": board.media.video.display_height if board.media.video is not None else 0,
        "audio_choice": board.media.audio_choice,
        "script": board.script,
        "shots": [_public_shot(board, k) for k in range(len(board.shots))],
        "sentences": [
            {
                "index": s.index,
                "text": s.text,
                "start_us": s.start_us,
                "end_us": s.end_us,
                "shots": list(s.shots),
                "words": [s.first_word, s.end_word],
                "language": s.language,
                "confidence": s.confidence,
                "flags": list(s.flags),
            }
            for s in board.sentences
        ],
        "words": [
            {
                "text": w.text,
                "start_us": w.start_us,
                "end_us": w.end_us,
                "sentence": w.sentence,
                "shot": w.shot,
                "confidence": w.confidence,
                "timing": w.timing.value,
                "space_after": w.space_after,
            }
            for w in board.words
        ],
        "segments": [{"title": s.title, "sentences": [s.first_sentence, s.end_sentence]} for s in board.segments],
        "admission": board.admission.model_dump(mode="json"),
        "engines": dict(board.engines),
    }


def _public_shot(board: Storyboard, index: int) -> dict[str, Any]:
    entry = board.shots[index]
    shot = entry.shot
    return {
        "index": shot.index,
        "start_us": shot.start_us,
        "end_us": shot.end_us,
        "start_frame": shot.start_frame,
        "end_frame": shot.end_frame,
        "transition_in": shot.transition_in.value,
        "transition_start_us": shot.transition_start_us,
        "transition_end_us": shot.transition_end_us,
        "cut_confidence": shot.cut_confidence,
        "alignment_confidence": shot.alignment_confidence,
        "has_narration": shot.has_narration,
        "narration": entry.narration,
        "words": [shot.first_word, shot.end_word],
        "communicates": entry.communicates,
        "visual_query": entry.visual_query,
        "target_duration_us": entry.target_duration_us,
        "constraints": list(entry.constraints),
        "spotlight": None if entry.spotlight is None else {"kind": entry.spotlight.kind.value, "slots": dict(entry.spotlight.slots)},
        "caption": entry.evidence.caption,
        "text": [b.text for b in entry.evidence.text],
        "burned_captions": list(entry.evidence.burned_captions),
        "key_frames": [{"at_us": k.at_us, "sha256": k.sha256, "width": k.width, "height": k.height} for k in entry.evidence.key_frames],
    }
