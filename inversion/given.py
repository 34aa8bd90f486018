"""Transcripts that come with the source: subtitles with times, checked against the sound and refined by it.

Cues date lines, not words, and are shown a little early or late. Where the language allows it, the words are found in the sound by forced
alignment; else they are laid over the speech inside their cue.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from inversion import force
from inversion.config import InversionConfig
from inversion.guards import drop_notes, drop_silent, in_order, speech_covered
from inversion.language import guess_language
from inversion.listen import find_speech, finish
from inversion.place import aligned, on_film
from inversion.sidecar import Sidecar
from inversion.speech import Sound, Window, cut_windows, merge_spans, touching, us_at
from inversion.transcript import SpokenSegment, SpokenWord, Transcript
from inversion.words import plausible_us
from schemas.storyboard import WordTiming
from schemas.time import US, Span

_LONGEST_US = 28 * US
_PAD_US = 400_000
_LOOSE_US = 1_500_000
"""Subtitles are believed to be at most this far off, in the middle of a window."""


def from_sidecar(sidecar: Sidecar, audio: Sound, config: InversionConfig, language: str | None) -> Transcript:
    """A transcript out of timed subtitles.

    Args:
        sidecar: must have times (``is_timed``).
        audio: 16 kHz mono on the project's clock; may be empty, then times are the file's own.
        config: guards and aligner.
        language: ISO 639-1 where it is known; else the file's own, else guessed from the text.
    """
    duration_us = us_at(len(audio))
    segments = [s for s in in_order(drop_notes(sidecar.segments)) if (s.start_us or 0) < duration_us]
    outside = len(sidecar.segments) - len(segments)
    spoken = language or sidecar.language or guess_language(" ".join(s.text for s in segments))
    speech = find_speech(audio, config)
    silent = drop_silent(segments, speech.fine, config.timing.hallucination_share)[1] if any(_is_dated(s) for s in segments) else 0
    if spoken in force.LANGUAGES and config.timing.aligner == "pocketsphinx":
        segments = _aligned(audio, segments)
    placed = finish([s if _is_dated(s) else lay_over_speech(s, speech.fine) for s in segments], duration_us, config)
    has_aligned = any(w.timing is WordTiming.ALIGNED for s in placed for w in s.words)
    return Transcript(
        segments=placed,
        language=spoken,
        language_confidence=None,
        engines={"asr": f"sidecar {sidecar.kind}"} | ({"aligner": force.name()} if has_aligned else {}),
        speech=speech.spans,
        speech_covered=speech_covered(placed, speech.spans),
        flags=tuple(f"{name}:{count}" for name, count in (("cues_dropped", outside), ("cues_in_silence", silent)) if count),
    )


def _is_dated(segment: SpokenSegment) -> bool:
    return any(w.start_us is not None for w in segment.words)


def _aligned(audio: Sound, segments: Sequence[SpokenSegment]) -> list[SpokenSegment]:
    """English cues without word times, aligned window by window; cues that cannot be aligned stay as they are."""
    spans = merge_spans(
        Span(start_us=s.start_us, end_us=max(s.start_us + 1, s.end_us))
        for s in segments
        if s.start_us is not None and s.end_us is not None and not _is_dated(s)
    )
    short = [s for s in spans if s.duration_us <= _LONGEST_US - 2 * _PAD_US]
    out = list(segments)
    for window in cut_windows(short, us_at(len(audio)), longest_us=_LONGEST_US, keep_us=2 * _PAD_US, pad_us=_PAD_US):
        inside = [
            k
            for k, s in enumerate(out)
            if s.start_us is not None and not _is_dated(s) and _holds(window, s.start_us) and s.end_us is not None
        ]
        sound = window.sound(audio)
        local = [_spread(out[k], window) for k in inside]
        for k, segment in zip(inside, aligned(sound, local, _LOOSE_US), strict=True):
            if all(w.timing is WordTiming.ALIGNED or w.start_us is None for w in segment.words):
                found = on_film(segment, window)
                out[k] = replace(found, start_us=out[k].start_us, end_us=out[k].end_us)
    return out


def _holds(window: Window, us: int) -> bool:
    return any(p.start_us <= us < p.end_us for p in window.parts)


def _spread(segment: SpokenSegment, window: Window) -> SpokenSegment:
    """The cue's words spread evenly over its time, on the window's own clock: a first guess to check the aligner against."""
    offset = 0
    for part in window.parts:
        if part.start_us <= (segment.start_us or 0) < part.end_us:
            offset += (segment.start_us or 0) - part.start_us
            break
        offset += part.duration_us
    length = (segment.end_us or 0) - (segment.start_us or 0)
    return replace(segment, words=_over(segment.words, [Span(start_us=offset, end_us=offset + max(1, length))]))


def lay_over_speech(segment: SpokenSegment, fine: Sequence[Span]) -> SpokenSegment:
    """Words of a dated segment laid over the speech inside it, in proportion to their length; over all of it where there is none."""
    if segment.start_us is None or segment.end_us is None or segment.end_us <= segment.start_us or not segment.words:
        return segment
    own = Span(start_us=segment.start_us, end_us=segment.end_us)
    parts = [Span(start_us=max(s.start_us, own.start_us), end_us=min(s.end_us, own.end_us)) for s in touching(own, fine)]
    return replace(segment, words=_over(segment.words, parts or [own]))


def _over(words: Sequence[SpokenWord], parts: Sequence[Span]) -> tuple[SpokenWord, ...]:
    """Words laid over consecutive spans; one that falls on a gap lies in the span that holds more of it."""
    weights = [plausible_us(w.text) for w in words]
    total, room = sum(weights), sum(p.duration_us for p in parts)
    window = Window(tuple(parts))
    out: list[SpokenWord] = []
    done = 0
    for word, weight in zip(words, weights, strict=True):
        start, end = window.on_film(room * done // total, room * (done + weight) // total)
        out.append(replace(word, start_us=start, end_us=max(end, start + 1), timing=WordTiming.INTERPOLATED))
        done += weight
    return tuple(out)
