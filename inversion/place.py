"""Words of a window placed in time: forced alignment of its segments, and the way between its clock and the film's.

Knows nothing of recognisers; a segment comes with whatever times somebody gave it and leaves with better ones, or as it was.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from statistics import median

from inversion import force
from inversion.speech import Samples, Sound, Window
from inversion.transcript import SpokenSegment, SpokenWord
from inversion.words import move_over_pauses
from schemas.storyboard import WordTiming

_FAR_US = 600_000
"""Aligned words that lie further than this (in the middle) from where they were recognised are not believed."""


def aligned(sound: Samples, segments: Sequence[SpokenSegment], far_us: int = _FAR_US) -> tuple[SpokenSegment, ...]:
    """English segments of one window with times from forced alignment: the whole window at once, else segment by segment, else as
    they were. Times whose middle distance from the given ones is over ``far_us`` are not believed."""
    words = [w for s in segments for w in s.words]
    texts = [w.text for w in words]
    found = force.align_words(sound, texts)
    if found is not None and _believable(words, found, far_us):
        heard = [None if w.start_us is None or w.end_us is None else (w.start_us, w.end_us) for w in words]
        return _with_times(segments, move_over_pauses(texts, heard, found))
    if len(segments) == 1:
        return tuple(segments)
    out: list[SpokenSegment] = []
    for segment in segments:
        starts = [w.start_us for w in segment.words if w.start_us is not None]
        ends = [w.end_us for w in segment.words if w.end_us is not None]
        if not starts or not ends:
            out.append(segment)
            continue
        first = max(0, min(starts) - 300_000)
        piece = sound[first * 16 // 1000 : (max(ends) + 300_000) * 16 // 1000]
        part = force.align_words(piece, [w.text for w in segment.words])
        moved = None if part is None else [None if t is None else (t[0] + first, t[1] + first) for t in part]
        out.extend(_with_times((segment,), moved) if moved is not None and _believable(segment.words, moved, far_us) else (segment,))
    return tuple(out)


def _believable(words: Sequence[SpokenWord], found: Sequence[tuple[int, int] | None], far_us: int) -> bool:
    apart = [abs(w.start_us - t[0]) for w, t in zip(words, found, strict=True) if w.start_us is not None and t is not None]
    return not apart or median(apart) <= far_us


def _with_times(segments: Sequence[SpokenSegment], found: Sequence[tuple[int, int] | None]) -> tuple[SpokenSegment, ...]:
    times = iter(found)
    out: list[SpokenSegment] = []
    for segment in segments:
        words: list[SpokenWord] = []
        for word in segment.words:
            span = next(times)
            if span is None:
                words.append(replace(word, start_us=None, end_us=None))
            else:
                words.append(replace(word, start_us=span[0], end_us=span[1], timing=WordTiming.ALIGNED))
        out.append(replace(segment, words=tuple(words)))
    return tuple(out)


def on_film(segment: SpokenSegment, window: Window) -> SpokenSegment:
    """A segment with times of its window, on the film's clock."""
    words: list[SpokenWord] = []
    for word in segment.words:
        if word.start_us is None or word.end_us is None:
            words.append(word)
        else:
            start, end = window.on_film(word.start_us, word.end_us)
            words.append(replace(word, start_us=start, end_us=end))
    timed = [w for w in words if w.start_us is not None and w.end_us is not None]
    if timed:
        return replace(segment, words=tuple(words), start_us=timed[0].start_us, end_us=timed[-1].end_us)
    start, end = window.on_film(segment.start_us or 0, segment.end_us if segment.end_us is not None else window.duration_us)
    return replace(segment, words=tuple(words), start_us=start, end_us=end)


def script_times(audio: Sound, segments: Sequence[SpokenSegment], windows: Sequence[Window]) -> tuple[SpokenSegment, ...]:
    """English script segments on the film's clock aligned anew, each piece of them in the window it was heard in."""
    ends = [w.span.end_us for w in windows]
    pieces: list[tuple[int, SpokenSegment]] = []
    window = 0
    for segment in segments:
        run: list[SpokenWord] = []
        for word in segment.words:
            place = window if word.start_us is None else min(bisect_right(ends, word.start_us), len(windows) - 1)
            if place != window and run:
                pieces.append((window, replace(segment, words=tuple(run))))
                run = []
            window = max(window, place)
            run.append(word)
        pieces.append((window, replace(segment, words=tuple(run))))
    out: list[SpokenSegment] = []
    for number, group in groupby(pieces, key=lambda p: p[0]):
        local = [_off_film(s, windows[number]) for _, s in group]
        out.extend(on_film(s, windows[number]) for s in aligned(windows[number].sound(audio), local))
    return tuple(out)


def _off_film(segment: SpokenSegment, window: Window) -> SpokenSegment:
    """A segment on its window's own clock; words outside the window lose their times."""
    words: list[SpokenWord] = []
    for word in segment.words:
        start = None if word.start_us is None else window.off_film(word.start_us)
        if start is None or word.start_us is None or word.end_us is None:
            words.append(replace(word, start_us=None, end_us=None))
        else:
            words.append(replace(word, start_us=start, end_us=start + word.end_us - word.start_us))
    return replace(segment, words=tuple(words), start_us=None, end_us=None)
