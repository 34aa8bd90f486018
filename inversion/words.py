"""Word times: trimming to speech, putting in order, filling gaps.

After :func:`settle` every word has ``0 <= start < end <= duration``, starts go up, and no word ends after the next one starts.
Must not listen to sound itself.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from inversion.transcript import SpokenSegment, SpokenWord, is_wide
from schemas.storyboard import WordTiming
from schemas.time import Span

MIN_WORD_US = 20_000
"""A word is at least this long where there is room for it."""
_EDGE_US = 30_000
"""The detector of speech is late at soft starts by about one of its steps (32 ms)."""
_PAUSE_US = 150_000
"""A shorter silence inside a word may be the closure of a consonant."""
_SOUND_US = 10_000
_TAIL_US = 500_000
_PER_CHAR_US = 80_000
_PER_WIDE_US = 250_000
_BASE_US = 200_000


Times = tuple[int, int] | None
"""Start and end of a word, microseconds; None where nothing is known."""


def plausible_us(text: str) -> int:
    """How long a word may well last when nothing is known of it: 0.2 s and 80 ms a letter, 0.25 s a character of a wide script."""
    wide = sum(is_wide(c) for c in text)
    return (0 if wide else _BASE_US) + _PER_CHAR_US * (len(text) - wide) + _PER_WIDE_US * wide


def trim_to_speech(words: Sequence[SpokenWord], speech: Sequence[Span]) -> tuple[SpokenWord, ...]:
    """Take silence out of words that Whisper's attention dated.

    Whisper lets a word begin where the last one ended, pause included. Where a word holds a silence of at least 0.15 s, it is
    taken to begin after it, and the word before it to last until the silence begins.

    Args:
        words: in order; words without times stay as they are.
        speech: fine spans of speech (silences of 0.1 s and more cut out), in order.
    """
    starts = [s.start_us for s in speech]
    ends = [s.end_us for s in speech]
    times = [_given(w) for w in words]
    for k, given in enumerate(times):
        if given is None or words[k].timing is not WordTiming.RECOGNISED:
            continue
        start, end = given
        first, last = bisect_right(ends, start), bisect_left(starts, end) - 1
        if first > last:
            continue
        own = last if last == first or end - starts[last] >= 2 * _EDGE_US else last - 1
        silence = starts[own] - (ends[own - 1] if own else 0)
        onset = starts[own] - _EDGE_US
        if onset > start and silence >= _PAUSE_US:
            before = times[k - 1] if k else None
            if own and before is not None and starts[own - 1] < before[1] < ends[own - 1] <= before[1] + _TAIL_US:
                times[k - 1] = (before[0], ends[own - 1])
            start = onset
        times[k] = (start, max(start + MIN_WORD_US, min(end, ends[own] + _EDGE_US)))
    return tuple(w if t is None else replace(w, start_us=t[0], end_us=t[1]) for w, t in zip(words, times, strict=True))


def trim_to_sound(words: Sequence[SpokenWord], loud: NDArray[np.bool_]) -> tuple[SpokenWord, ...]:
    """Take digital silence off both ends of words: nobody speaks before a sound track starts or in its gaps.

    Args:
        loud: for each 10 ms whether anything sounds (inversion.speech.loud_frames).
    """
    out: list[SpokenWord] = []
    for word in words:
        span = _given(word)
        if span is None:
            out.append(word)
            continue
        first, last = span[0] // _SOUND_US, -(-span[1] // _SOUND_US)
        inside = np.flatnonzero(loud[first:last])
        if len(inside):
            start = max(span[0], (first + int(inside[0])) * _SOUND_US)
            end = min(span[1], (first + int(inside[-1]) + 1) * _SOUND_US)
            word = replace(word, start_us=start, end_us=max(end, start + 1))
        out.append(word)
    return tuple(out)


def move_over_pauses(texts: Sequence[str], heard: Sequence[Times], found: Sequence[Times]) -> list[Times]:
    """Mend the commonest fault of forced alignment: the first word of a sentence laid onto the end of the word before the pause, or the
    last word of one onto the beginning behind it.

    A word that stands alone on the wrong side of a pause of 0.3 s, with punctuation on its other side, is moved over when the recogniser
    heard it there; it shares the time of the word it joins.

    Args:
        texts: the words as written.
        heard: times from the recogniser, None where it gave none.
        found: times from the aligner, in order.
    """
    out = list(found)
    for k in range(len(out) - 1):
        here, after, own = out[k], out[k + 1], heard[k]
        if here is None or after is None or after[0] - here[1] < 2 * _PAUSE_US:
            continue
        if own is not None and own[1] >= after[0] and k and ends_clause(texts[k - 1]) and not ends_clause(texts[k]):
            middle = _divide(after, texts[k], texts[k + 1])
            out[k], out[k + 1] = (after[0], middle), (middle, after[1])
            continue
        other = heard[k + 1]
        if other is not None and other[0] <= here[1] and ends_clause(texts[k + 1]) and not ends_clause(texts[k]):
            middle = _divide(here, texts[k], texts[k + 1])
            out[k], out[k + 1] = (here[0], middle), (middle, here[1])
    return out


def ends_clause(text: str) -> bool:
    """Whether a word ends in punctuation that a speaker pauses at."""
    return text.rstrip("\"'”’」』)]）】").endswith((".", ",", ";", ":", "?", "!", "…", "—", "。", "，", "；", "：", "？", "！", "、"))


def _divide(span: tuple[int, int], first: str, second: str) -> int:
    weight = plausible_us(first)
    return span[0] + max(1, (span[1] - span[0]) * weight // (weight + plausible_us(second)))


def _given(word: SpokenWord) -> tuple[int, int] | None:
    return None if word.start_us is None or word.end_us is None else (word.start_us, word.end_us)


def settle(segments: Sequence[SpokenSegment], duration_us: int, max_word_us: int) -> tuple[SpokenSegment, ...]:
    """Give every word a place in time.

    Words whose start goes back, or lies outside the film, lose their times (as few as possible); words without times are laid into
    the gap between their neighbours, within their segment, in proportion to their length, and marked interpolated.

    Raises:
        ValueError: there are more words than microseconds.
    """
    flat = [w for s in segments for w in s.words]
    times = _ordered(flat, duration_us, max_word_us)
    lower, upper = _bounds(segments, duration_us)
    placed = iter(_fill(flat, times, lower, upper, duration_us))
    out: list[SpokenSegment] = []
    for segment in segments:
        words: list[SpokenWord] = []
        for word in segment.words:
            start, end, is_given = next(placed)
            timing = word.timing if is_given else WordTiming.INTERPOLATED
            words.append(replace(word, start_us=start, end_us=end, timing=timing))
        out.append(replace(segment, words=tuple(words)))
    return tuple(out)


_Time = tuple[int, int, bool]
"""start, end, whether the back end gave it."""


def _ordered(words: Sequence[SpokenWord], duration_us: int, max_word_us: int) -> list[_Time | None]:
    given: list[tuple[int, int] | None] = []
    for word in words:
        if word.start_us is None or word.start_us >= duration_us:
            given.append(None)
            continue
        start = max(0, word.start_us)
        end = word.end_us if word.end_us is not None else start + plausible_us(word.text)
        given.append((start, min(max(end, start + 1), start + max_word_us, duration_us)))
    times: list[_Time | None] = [None] * len(words)
    limit = duration_us
    for k in reversed(longest_rise([g[0] if g is not None else None for g in given])):
        start, end = given[k] or (0, 0)
        times[k] = (start, min(end, limit), True)
        limit = start
    return times


def longest_rise(starts: Sequence[int | None]) -> list[int]:
    """Indices of the longest strictly rising run of starts (patience sorting, O(n log n)); ties keep the later, shorter-reaching one."""
    tails: list[int] = []
    tail_index: list[int] = []
    parent: list[int] = [-1] * len(starts)
    for k, value in enumerate(starts):
        if value is None:
            continue
        place = bisect_left(tails, value)
        parent[k] = tail_index[place - 1] if place else -1
        if place == len(tails):
            tails.append(value)
            tail_index.append(k)
        else:
            tails[place], tail_index[place] = value, k
    out: list[int] = []
    k = tail_index[-1] if tail_index else -1
    while k >= 0:
        out.append(k)
        k = parent[k]
    return out[::-1]


def _bounds(segments: Sequence[SpokenSegment], duration_us: int) -> tuple[list[int], list[int]]:
    """Where the words of each segment may lie, by what the back end says of the segment."""
    lower: list[int] = []
    upper: list[int] = []
    for segment in segments:
        low = 0 if segment.start_us is None else min(max(0, segment.start_us), duration_us)
        high = duration_us if segment.end_us is None else min(max(low, segment.end_us), duration_us)
        lower += [low] * len(segment.words)
        upper += [high] * len(segment.words)
    return lower, upper


def _fill(
    words: Sequence[SpokenWord], times: list[_Time | None], lower: Sequence[int], upper: Sequence[int], duration_us: int
) -> list[_Time]:
    """Lay every run of untimed words into its gap, taking room from the neighbours where there is none."""
    k = 0
    while k < len(words):
        if times[k] is not None:
            k += 1
            continue
        first = end = k
        while end < len(words) and times[end] is None:
            end += 1
        first, end, low, high = _make_room(times, first, end, duration_us)
        need = (end - first) * MIN_WORD_US
        low = max(low, min(lower[first], high - need))
        high = min(high, max(upper[end - 1], low + need))
        if high - low < end - first:
            raise ValueError(f"{end - first} words do not fit into {high - low} microseconds")
        for j, (start, stop) in enumerate(_shares([w.text for w in words[first:end]], low, high), first):
            times[j] = (start, stop, False)
        k = end
    return [t for t in times if t is not None]


def _make_room(times: list[_Time | None], first: int, end: int, duration_us: int) -> tuple[int, int, int, int]:
    """Widen the run [first, end) and shorten its neighbours until it has :data:`MIN_WORD_US` a word; returns run and room."""
    while True:
        need = (end - first) * MIN_WORD_US
        before = times[first - 1] if first > 0 else None
        after = times[end] if end < len(times) else None
        low = before[1] if before is not None else 0
        high = after[0] if after is not None else duration_us
        if before is not None and high - low < need:
            low = max(before[0] + min(MIN_WORD_US, before[1] - before[0]), min(low, high - need))
        if after is not None and high - low < need:
            high = min(after[1] - min(MIN_WORD_US, after[1] - after[0]), max(high, low + need))
        if high - low >= need or (before is None and after is None):
            break
        if before is not None:
            first -= 1
            times[first] = None
        if after is not None:
            times[end] = None
            end += 1
    if before is not None:
        times[first - 1] = (before[0], min(before[1], low), before[2])
    if after is not None:
        times[end] = (max(after[0], high), after[1], after[2])
    return first, end, low, high


def _shares(texts: Sequence[str], low: int, high: int) -> list[tuple[int, int]]:
    """Consecutive ranges from ``low`` on, each at least an equal share of the least room, the rest in proportion to length."""
    weights = [plausible_us(t) for t in texts]
    count, total = len(texts), sum(weights)
    length = min(high - low, max(count * MIN_WORD_US, total))
    least = min(MIN_WORD_US, length // count)
    spare = length - least * count
    edges = [low]
    done = 0
    for number, weight in enumerate(weights, 1):
        done += weight
        edges.append(low + least * number + spare * done // total)
    return list(pairwise(edges))
