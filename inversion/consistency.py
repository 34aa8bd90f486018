"""Whether a storyboard that comes from outside (a file of the user's, another program's) hangs together.

The schema holds types; this holds what inversion guarantees beside them: order, ranges, references, sizes. Pure: reads no bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from schemas.canonical import derive_id
from schemas.errors import ConfigInvalid
from schemas.storyboard import Storyboard

LONGEST_US = 48 * 3_600_000_000
LONGEST_TEXT = 20_000
"""Characters of one title, query, slot, caption or statement. Narration and script are bounded by :data:`LONGEST_SCRIPT`."""
LONGEST_SCRIPT = 4_000_000
MOST_SHOTS = 100_000
_SHOWN = 3


def check_storyboard(board: Storyboard) -> None:
    """Refuse a storyboard whose parts contradict each other.

    Raises:
        ConfigInvalid: names the first contradictions.
    """
    found: list[str] = []
    for problem in _problems(board):
        found.append(problem)
        if len(found) > _SHOWN:
            break
    if found:
        shown = "; ".join(found[:_SHOWN]) + ("; and more" if len(found) > _SHOWN else "")
        raise ConfigInvalid("storyboard_inconsistent", shown, "write it anew with 'workprint invert', or mend these fields")


def _problems(board: Storyboard) -> Iterator[str]:
    if board.project_id != derive_id("project", {"source_sha256": board.media.sha256}):
        yield f"project_id {board.project_id[:40]!r} is not that of media.sha256"
    if re.fullmatch(r"[a-z]{2,3}(-[A-Za-z0-9]{1,8})*", board.language) is None:
        yield f"language {board.language[:40]!r} is no language code"
    if not 0 < board.frame_rate.num <= 1000 * board.frame_rate.den:
        yield f"frame_rate {board.frame_rate.num}/{board.frame_rate.den} is above 1000"
    if not 0 <= board.duration_min_us <= board.duration_max_us <= LONGEST_US:
        yield f"duration_min_us {board.duration_min_us} and duration_max_us {board.duration_max_us} are no range"
    yield from _picture(board)
    yield from _texts(board)
    yield from _shots(board)
    yield from _words(board)


def _picture(board: Storyboard) -> Iterator[str]:
    video, audio = board.media.video, board.media.audio
    if video is not None:
        if video.rotation not in (0, 90, 180, 270):
            yield f"media.video.rotation {video.rotation} is none of 0, 90, 180, 270"
        for name in ("coded_width", "coded_height", "display_width", "display_height"):
            if getattr(video, name) > 32_768:
                yield f"media.video.{name} {getattr(video, name)} is above 32768"
    for k, shot in enumerate(board.shots):
        if any(re.fullmatch(r"[0-9a-f]{64}", f.sha256) is None for f in shot.evidence.key_frames):
            yield f"shots.{k}.evidence.key_frames are not all named by their sha256"
    for kind, stream in (("video", video), ("audio", audio)):
        if stream is not None and stream.index < 0:
            yield f"media.{kind}.index is {stream.index}"


def _texts(board: Storyboard) -> Iterator[str]:
    if len(board.script) > LONGEST_SCRIPT:
        yield f"script has {len(board.script)} characters, {LONGEST_SCRIPT} at most"
    named = [("title", board.title), *((f"segments.{k}.title", s.title) for k, s in enumerate(board.segments))]
    for k, s in enumerate(board.shots):
        named += [(f"shots.{k}.communicates", s.communicates), (f"shots.{k}.visual_query", s.visual_query)]
        named += [(f"shots.{k}.evidence.caption", s.evidence.caption)]
        named += [(f"shots.{k}.spotlight.slots.{n[:20]}", t) for n, t in (s.spotlight.slots.items() if s.spotlight else ())]
    for name, text in named:
        if len(text) > LONGEST_TEXT:
            yield f"{name} has {len(text)} characters, {LONGEST_TEXT} at most"


def _dense(name: str, indices: Sequence[int]) -> Iterator[str]:
    for k, index in enumerate(indices):
        if index != k:
            yield f"{name}.{k} has index {index}"
            return


def _in_order(name: str, ranges: Sequence[tuple[int, int]], end: int, *, close: bool = False) -> Iterator[str]:
    """Half-open ranges that follow each other inside ``[0, end]``; ``close``: without gaps, from 0 to the end."""
    at = 0
    for k, (low, high) in enumerate(ranges):
        if not at <= low <= high <= end or (close and low != at):
            yield f"{name}.{k} is {low} to {high}, behind {at} and within {end}"
            return
        at = high
    if close and at != end:
        yield f"{name} end at {at} of {end}"


def _words(board: Storyboard) -> Iterator[str]:
    words, sentences, shots = board.words, board.sentences, len(board.shots)
    yield from _dense("words", [w.index for w in words])
    yield from _dense("sentences", [s.index for s in sentences])
    yield from _dense("segments", [s.index for s in board.segments])
    for k, w in enumerate(words):
        if not 0 <= w.start_us <= w.end_us <= LONGEST_US:
            yield f"words.{k} is {w.start_us} to {w.end_us} us"
        if not 0 <= w.sentence < len(sentences) or (w.shot is not None and not 0 <= w.shot < shots):
            yield f"words.{k} is of sentence {w.sentence} and shot {w.shot}, which are not there"
    for k, s in enumerate(sentences):
        if not 0 <= s.start_us <= s.end_us <= LONGEST_US:
            yield f"sentences.{k} is {s.start_us} to {s.end_us} us"
        if any(not 0 <= shot < shots for shot in s.shots):
            yield f"sentences.{k} lies over shots {list(s.shots)[:5]}, which are not all there"
    yield from _in_order("sentences.words", [(s.first_word, s.end_word) for s in sentences], len(words), close=True)
    yield from _in_order("sentences.script", [(s.script_start, s.script_end) for s in sentences], len(board.script))
    yield from _in_order("segments.sentences", [(s.first_sentence, s.end_sentence) for s in board.segments], len(sentences))
    yield from _in_order("segments.script", [(s.script_start, s.script_end) for s in board.segments], len(board.script))


def _shots(board: Storyboard) -> Iterator[str]:
    shots = board.shots
    if not 0 < len(shots) <= MOST_SHOTS:
        yield f"there are {len(shots)} shots, 1 to {MOST_SHOTS} are possible"
        return
    yield from _dense("shots", [s.shot.index for s in shots])
    yield from _in_order("shots.us", [(s.shot.start_us, s.shot.end_us) for s in shots], min(LONGEST_US, shots[-1].shot.end_us), close=True)
    yield from _in_order("shots.frames", [(s.shot.start_frame, s.shot.end_frame) for s in shots], 1 << 40)
    yield from _in_order("shots.words", [(s.shot.first_word, s.shot.end_word) for s in shots], len(board.words))
    yield from _in_order("shots.script", [(s.script_start, s.script_end) for s in shots], len(board.script))
    for k, s in enumerate(shots):
        if s.shot.start_us == s.shot.end_us:
            yield f"shots.{k} lasts no time"
        if not 0 < s.target_duration_us <= LONGEST_US:
            yield f"shots.{k}.target_duration_us is {s.target_duration_us}"
        if s.narration != board.script[s.script_start : s.script_end].strip():
            yield f"shots.{k}.narration is not script[{s.script_start}:{s.script_end}]"
