"""From sound to a transcript: windows, recognition, forced alignment, guards, one clock.

The order is fixed: find speech; recognise window by window; align English words; throw out what was said in silence; listen again to
speech that was passed over; collapse loops; give every word its place in time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import metadata

import numpy as np
from numpy.typing import NDArray

from inversion import force
from inversion.asr import Recogniser
from inversion.config import InversionConfig
from inversion.guards import (
    HEARD_AGAIN,
    collapse_loops,
    drop_notes,
    drop_silent,
    in_order,
    passed_over,
    speech_covered,
    split_at_silence,
    word_spans,
)
from inversion.hearing import SURE, aligns, hear, placed, spoken_language
from inversion.place import script_times
from inversion.script import Followed, follow_script
from inversion.speech import (
    Sound,
    Window,
    cut_windows,
    loud_frames,
    merge_spans,
    speech_probabilities,
    speech_spans,
    split_long,
    us_at,
)
from inversion.transcript import SpokenSegment, Transcript, is_wide, is_wide_end
from inversion.words import settle, trim_to_sound, trim_to_speech
from schemas.storyboard import WordTiming
from schemas.time import US, Span

Note = Callable[[str], None]

_FINE_US = 100_000
"""Silences this long are seen inside speech: windows are cut at them, word times trimmed to them."""
_KEEP_US = 1_000_000
_PAD_US = 200_000
_SECOND_TRIES = 24
"""Passed-over stretches listened to again, at most; the longest first."""
_SECOND_CONFIDENCE = 0.4


@dataclass(frozen=True, slots=True)
class Speech:
    """Where somebody speaks: ``fine`` with silences from 0.1 s cut out, ``spans`` with those of the configured length."""

    fine: tuple[Span, ...]
    spans: tuple[Span, ...]
    windows: tuple[Window, ...]


def find_speech(audio: Sound, config: InversionConfig, longest_us: int = 28 * US) -> Speech:
    """Speech of a film and the windows to recognise it in, each at most ``longest_us`` long."""
    probabilities = speech_probabilities(audio)
    fine = speech_spans(probabilities, len(audio), threshold=config.asr.vad_threshold, min_silence_us=_FINE_US)
    short = split_long(fine, probabilities, longest_us - 2 * _PAD_US - US // 2)
    windows = cut_windows(short, us_at(len(audio)), longest_us=longest_us, keep_us=_KEEP_US, pad_us=_PAD_US)
    return Speech(fine, merge_spans(fine, config.asr.vad_min_silence_ms * 1000 - 1), windows)


def transcribe(
    audio: Sound,
    recogniser: Recogniser,
    config: InversionConfig,
    *,
    language: str | None = None,
    script: Sequence[SpokenSegment] | None = None,
    note: Note | None = None,
) -> Transcript:
    """All that is said in a film's sound.

    Args:
        audio: 16 kHz mono, sample 0 at the first presented frame.
        recogniser: who listens.
        config: thresholds of the guards.
        language: ISO 639-1 where it is known; else it is detected (up to three windows are asked).
        script: untimed segments of a known script; then the text is the script's and the times are those of what was heard.
        note: told of progress.

    Returns:
        A transcript with every word timed; without segments where nobody speaks.
    """
    tell = note or (lambda _: None)
    duration_us = us_at(len(audio))
    speech = find_speech(audio, config, recogniser.longest_us)
    windows = (Window((Span(start_us=0, end_us=duration_us),)),) if recogniser.takes_whole and speech.windows else speech.windows
    sure: float | None = None
    if language is None and windows:
        language, sure = spoken_language(audio, windows, recogniser)
    segments, language = hear(audio, windows, recogniser, config, language, align=script is None, note=tell)
    loud = loud_frames(audio)
    kept, dropped = drop_silent(_trimmed(segments, speech.fine, loud), speech.fine, config.timing.hallucination_share)
    again = _listen_again(audio, kept, speech, loud, recogniser, config, language or "en")
    if again:
        tell(f"listened again to speech that was passed over: {len(again)} segments found")
    followed: Followed | None = None
    everything = in_order((*kept, *again))
    if script is not None:
        followed = follow_script(script, everything)
        everything = followed.segments
        if aligns(recogniser, config, language):
            everything = script_times(audio, everything, windows)
    found = finish(everything, duration_us, config)
    counts = {"dropped_in_silence": dropped, "heard_again": len(again)}
    if followed is not None:
        counts |= {"script_words_unspoken": followed.unspoken, "words_not_in_script": followed.unscripted}
    return Transcript(
        segments=found,
        language=language or "und",
        language_confidence=sure,
        engines=_engines(recogniser, found, bool(windows)),
        speech=speech.spans,
        speech_covered=speech_covered(found, speech.spans),
        flags=tuple(f"{name}:{count}" for name, count in counts.items() if count),
        script_match=followed.match if followed is not None else None,
    )


def finish(segments: Sequence[SpokenSegment], duration_us: int, config: InversionConfig) -> tuple[SpokenSegment, ...]:
    """The last guards, the same for every back end: order, loops, times for all words, splits at long silences."""
    looped = collapse_loops(_joined([s for s in in_order(segments) if s.words]), config.timing.loop_repeats)
    timed = settle(looped, duration_us, config.timing.max_word_us)
    return split_at_silence(timed, config.timing.split_silence_us)


def _joined(segments: Sequence[SpokenSegment]) -> list[SpokenSegment]:
    """Segments with the space between them: one stands there unless one side belongs to a script without spaces."""
    out: list[SpokenSegment] = []
    for number, segment in enumerate(segments):
        following = segments[number + 1].words[0].text[0] if number + 1 < len(segments) else ""
        last = segment.words[-1]
        space = bool(following) and not is_wide(following) and not is_wide_end(last.text)
        out.append(replace(segment, words=(*segment.words[:-1], replace(last, space_after=space))))
    return out


def _engines(recogniser: Recogniser, segments: Sequence[SpokenSegment], heard: bool) -> dict[str, str]:
    out = {"vad": f"silero v6 (faster-whisper {metadata.version('faster-whisper')})"}
    if heard:
        out["asr"] = recogniser.name
    if any(w.timing is WordTiming.ALIGNED for s in segments for w in s.words) and not recogniser.gives_aligned:
        out["aligner"] = force.name()
    return out


def _trimmed(segments: Sequence[SpokenSegment], fine: Sequence[Span], loud: NDArray[np.bool_]) -> list[SpokenSegment]:
    words = iter(trim_to_sound(trim_to_speech([w for s in segments for w in s.words], fine), loud))
    return [replace(s, words=tuple(next(words) for _ in s.words)) for s in segments]


def _listen_again(
    audio: Sound,
    segments: Sequence[SpokenSegment],
    speech: Speech,
    loud: NDArray[np.bool_],
    recogniser: Recogniser,
    config: InversionConfig,
    language: str,
) -> tuple[SpokenSegment, ...]:
    """Segments found in speech that no word covered."""
    if recogniser.takes_whole:
        return ()
    missed = passed_over(segments, speech.spans, config.timing.uncovered_us)
    missed = tuple(sorted(sorted(missed, key=lambda s: (-s.duration_us, s.start_us))[:_SECOND_TRIES], key=lambda s: s.start_us))
    if not missed:
        return ()
    room = recogniser.longest_us - 2 * _PAD_US
    short = [s if s.duration_us <= room else Span(start_us=s.start_us, end_us=s.start_us + room) for s in missed]
    windows = cut_windows(short, us_at(len(audio)), longest_us=recogniser.longest_us, keep_us=0, pad_us=_PAD_US)
    out: list[SpokenSegment] = []
    taken = word_spans(segments)
    for window in windows:
        sound = window.sound(audio)
        votes = recogniser.detect(sound)
        best = max(votes, key=lambda code: (votes[code], code)) if votes else language
        spoken = best if votes and votes[best] >= SURE else language
        notes = drop_notes(recogniser.recognise(sound, spoken, careful=True).segments)
        heard = placed(audio, notes, window, align=aligns(recogniser, config, spoken))
        for segment in drop_silent(_trimmed(heard, speech.fine, loud), speech.fine, 0.5)[0]:
            own = word_spans((segment,))
            clash = sum(a.overlap_us(b) for a in own for b in taken)
            if (segment.confidence or 0.0) >= _SECOND_CONFIDENCE and clash * 2 <= sum(s.duration_us for s in own):
                out.append(replace(segment, language=spoken if spoken != language else None).flagged(HEARD_AGAIN))
    return tuple(out)
