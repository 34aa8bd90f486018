"""Guards on what a recogniser or a subtitle file says: invented text in silence, loops, speech that was passed over.

Pure functions on segments and spans. Must not listen, and must not drop anything without leaving a flag or a count.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from inversion.speech import covered_us, merge_spans, without
from inversion.transcript import SOUND_NOTE, SpokenSegment, SpokenWord, is_spoken
from schemas.time import Span

REPEATED = "repeated"
"""Flag of a segment that stands for a loop of equal ones."""
HEARD_AGAIN = "heard_again"
"""Flag of a segment found when passed-over speech was listened to a second time."""

_HUM = re.compile(r"[^\W\d]{0,2}([^\W\d])\1{3,}[^\W\d]{0,2}|h?m{2,}|")
_STOP = re.compile(r"[.!?。！？…][\"'”’」』)\]）】]*$")
_LONGEST_PHRASE = 12
_SLACK_US = 150_000
_JOIN_US = 400_000


def drop_notes(segments: Sequence[SpokenSegment]) -> tuple[SpokenSegment, ...]:
    """Without segments that hold nothing spoken: punctuation only, a description of sound, or nothing but humming."""
    return tuple(
        s for s in segments if s.words and not SOUND_NOTE.match(s.text) and any(is_spoken(w.text) for w in s.words) and not _hums(s)
    )


def _hums(segment: SpokenSegment) -> bool:
    """Whether every word is one sound drawn out (Hmmmmm, Aaaaah): what Whisper makes of music."""
    return all(_HUM.fullmatch("".join(c for c in w.text.casefold() if c.isalnum())) for w in segment.words)


def drop_silent(segments: Sequence[SpokenSegment], speech: Sequence[Span], share: float) -> tuple[tuple[SpokenSegment, ...], int]:
    """Without segments that lie in silence: (kept, number dropped).

    A segment is dropped when it has times and less than ``share`` of them lies in speech (0.15 s of slack on both sides of each span).
    """
    heard = merge_spans(Span(start_us=max(0, s.start_us - _SLACK_US), end_us=s.end_us + _SLACK_US) for s in speech)
    kept: list[SpokenSegment] = []
    for segment in segments:
        spans = word_spans((segment,))
        total = sum(s.duration_us for s in spans)
        if total == 0 or covered_us(spans, heard) >= share * total:
            kept.append(segment)
    return tuple(kept), len(segments) - len(kept)


def collapse_loops(segments: Sequence[SpokenSegment], repeats: int) -> tuple[SpokenSegment, ...]:
    """Runs of ``repeats`` or more equal segments kept once, and phrases looping inside a segment kept once; both flagged.

    A phrase of up to 12 words counts as looping when it comes at least ``2 * repeats`` times in a row.
    """
    out: list[SpokenSegment] = []
    k = 0
    while k < len(segments):
        end = k + 1
        key = _key(segments[k])
        while end < len(segments) and key and _key(segments[end]) == key:
            end += 1
        if end - k >= repeats:
            out.append(segments[k].flagged(REPEATED))
        else:
            out.extend(segments[k:end])
        k = end
    return tuple(_collapse_phrases(s, 2 * repeats) for s in out)


def _key(segment: SpokenSegment) -> str:
    return "".join(c for c in segment.text.casefold() if c.isalnum())


def _collapse_phrases(segment: SpokenSegment, repeats: int) -> SpokenSegment:
    words = list(segment.words)
    keys = ["".join(c for c in w.text.casefold() if c.isalnum()) for w in words]
    k = 0
    found = False
    while k < len(words):
        for size in range(1, _LONGEST_PHRASE + 1):
            times = 1
            while keys[k + times * size : k + (times + 1) * size] == keys[k : k + size] and k + (times + 1) * size <= len(words):
                times += 1
            if times >= repeats and any(keys[k : k + size]):
                del words[k + size : k + times * size], keys[k + size : k + times * size]
                found = True
                break
        k += 1
    return replace(segment, words=tuple(words)).flagged(REPEATED) if found else segment


def in_order(segments: Sequence[SpokenSegment]) -> tuple[SpokenSegment, ...]:
    """Segments by start. One without a start stays behind the one it followed."""
    keys: list[int] = []
    last = 0
    for segment in segments:
        start = segment.start_us
        if start is None:
            start = next((w.start_us for w in segment.words if w.start_us is not None), None)
        last = last if start is None else start
        keys.append(last)
    order = sorted(range(len(segments)), key=lambda i: (keys[i], i))
    return tuple(segments[i] for i in order)


def split_at_silence(segments: Sequence[SpokenSegment], silence_us: int) -> tuple[SpokenSegment, ...]:
    """Segments cut wherever two of their words lie ``silence_us`` or more apart."""
    out: list[SpokenSegment] = []
    for segment in segments:
        run: list[SpokenWord] = []
        for word in segment.words:
            last = run[-1] if run else None
            if last is not None and last.end_us is not None and word.start_us is not None and word.start_us - last.end_us >= silence_us:
                out.append(_part(segment, run))
                run = []
            run.append(word)
        out.append(_part(segment, run) if len(run) < len(segment.words) else segment)
    return tuple(out)


def split_at_stops(segment: SpokenSegment) -> tuple[SpokenSegment, ...]:
    """A segment cut behind full stops, so that guards judge sentence by sentence (abbreviations may be cut too: nothing is lost)."""
    out: list[SpokenSegment] = []
    run: list[SpokenWord] = []
    for word in segment.words:
        run.append(word)
        if _STOP.search(word.text):
            out.append(_part(segment, run))
            run = []
    if run:
        out.append(_part(segment, run))
    return tuple(out)


def _part(segment: SpokenSegment, words: Sequence[SpokenWord]) -> SpokenSegment:
    return replace(segment, words=tuple(words), start_us=words[0].start_us, end_us=words[-1].end_us)


def word_spans(segments: Sequence[SpokenSegment], join_us: int = 0) -> tuple[Span, ...]:
    """Spans that timed words cover, gaps of up to ``join_us`` closed."""
    return merge_spans(
        (
            Span(start_us=w.start_us, end_us=w.end_us)
            for s in segments
            for w in s.words
            if w.start_us is not None and w.end_us is not None and w.end_us > w.start_us
        ),
        join_us,
    )


def passed_over(segments: Sequence[SpokenSegment], speech: Sequence[Span], at_least_us: int) -> tuple[Span, ...]:
    """Stretches of speech of ``at_least_us`` or more that no word covers."""
    covered = word_spans(segments, _JOIN_US)
    wide = merge_spans(Span(start_us=max(0, s.start_us - _SLACK_US), end_us=s.end_us + _SLACK_US) for s in covered)
    return tuple(s for s in without(speech, wide) if s.duration_us >= at_least_us)


def speech_covered(segments: Sequence[SpokenSegment], speech: Sequence[Span]) -> float:
    """Share of speech that words cover, pauses of up to 0.4 s between words included; 1.0 when nothing was spoken."""
    total = sum(s.duration_us for s in speech)
    if total == 0:
        return 1.0
    wide = merge_spans(Span(start_us=max(0, s.start_us - _SLACK_US), end_us=s.end_us + _SLACK_US) for s in word_spans(segments, _JOIN_US))
    return covered_us(speech, wide) / total
