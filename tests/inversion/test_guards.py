"""Guards on recognised and given text."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import pytest

from inversion.config import InversionConfig
from inversion.guards import (
    collapse_loops,
    drop_notes,
    drop_silent,
    in_order,
    passed_over,
    speech_covered,
    split_at_silence,
    split_at_stops,
)
from inversion.listen import finish
from inversion.sidecar import parse_sidecar
from inversion.transcript import SpokenSegment, SpokenWord, words_of
from schemas.storyboard import WordTiming
from schemas.time import Span


def said(text: str, start: int, end: int) -> SpokenSegment:
    """A segment with its words spread evenly."""
    words = words_of(text)
    step = (end - start) // len(words)
    timed = tuple(
        SpokenWord(w.text, start + k * step, start + (k + 1) * step, None, WordTiming.RECOGNISED, w.space_after)
        for k, w in enumerate(words)
    )
    return SpokenSegment(timed, start, end)


@pytest.mark.shared
def test_a_loop_of_twelve_is_kept_once_and_flagged(shared: Path) -> None:
    sidecar = parse_sidecar((shared / "cases" / "repeated_segments.json").read_bytes())
    found = finish(sidecar.segments, 60_000_000, InversionConfig())
    assert [(s.text, s.flags) for s in found] == [
        ("Welcome to the course.", ()),
        ("Thank you for watching.", ("repeated",)),
        ("Now the second part.", ()),
    ]


def test_two_equal_segments_are_no_loop() -> None:
    both = [said("Again.", 0, 500_000), said("Again.", 500_000, 900_000)]
    assert [s.flags for s in collapse_loops(both, 3)] == [(), ()]


def test_a_phrase_looping_inside_a_segment_is_kept_once() -> None:
    (found,) = collapse_loops([said("and so " + "I think that " * 8 + "it works", 0, 9_000_000)], 3)
    assert (found.text, found.flags) == ("and so I think that it works", ("repeated",))


def test_a_word_said_three_times_stays() -> None:
    (found,) = collapse_loops([said("no no no stop", 0, 900_000)], 3)
    assert found.text == "no no no stop"


def test_text_invented_in_silence_is_dropped() -> None:
    speech = [Span(start_us=0, end_us=2_000_000)]
    kept, dropped = drop_silent([said("Hello there.", 100_000, 1_800_000), said("Thanks for watching!", 5_000_000, 7_000_000)], speech, 0.1)
    assert ([s.text for s in kept], dropped) == (["Hello there."], 1)


@pytest.mark.parametrize("text", ["[Music]", "(applause)", "♪ la la ♪", "【音乐】", "...", "—"])
def test_descriptions_of_sound_are_not_narration(text: str) -> None:
    assert drop_notes([SpokenSegment(words_of(text), 0, 10)]) == ()


def test_a_long_silence_inside_a_segment_splits_it() -> None:
    one = said("in being modern", 0, 900_000)
    joined = SpokenSegment(one.words + said("has never been surpassed", 28_000_000, 29_000_000).words, 0, 29_000_000)
    assert [(s.text, s.start_us) for s in split_at_silence([joined], 2_000_000)] == [
        ("in being modern", 0),
        ("has never been surpassed", 28_000_000),
    ]


def test_overlapping_segments_are_put_in_order_of_their_starts() -> None:
    found = finish([said("second one here", 800_000, 1_800_000), said("first one here", 0, 1_000_000)], 5_000_000, InversionConfig())
    times = [(w.start_us, w.end_us) for s in found for w in s.words]
    assert [s.text for s in found] == ["first one here", "second one here"]
    assert all(a[1] <= b[0] for a, b in pairwise(times) if a[1] is not None and b[0] is not None)


def test_a_segment_without_a_start_stays_behind_the_one_it_followed() -> None:
    loose = SpokenSegment(words_of("loose"))
    assert [s.text for s in in_order([said("b", 500, 900), loose, said("a", 0, 400)])] == ["a", "b", "loose"]


def test_speech_without_words_is_found() -> None:
    speech = [Span(start_us=0, end_us=4_000_000), Span(start_us=6_000_000, end_us=12_000_000)]
    heard = [said("one two three four", 0, 4_000_000), said("five six", 6_000_000, 8_000_000)]
    assert passed_over(heard, speech, 1_000_000) == (Span(start_us=8_150_000, end_us=12_000_000),)
    assert speech_covered(heard, speech) == pytest.approx(6_150_000 / 10_000_000)


@pytest.mark.parametrize("text", ["Hmmmmmmmm", "Aaaaaah, ooooooh", "mm mm"])
def test_humming_is_no_narration(text: str) -> None:
    assert drop_notes([SpokenSegment(words_of(text), 0, 10)]) == ()


def test_a_window_is_judged_sentence_by_sentence() -> None:
    found = split_at_stops(said("It falls. It swings, and then it stops.", 0, 800))
    assert [s.text for s in found] == ["It falls.", "It swings, and then it stops."]
    assert (found[1].start_us, found[1].end_us) == (200, 800)


def test_guards_on_two_hours_of_speech_take_no_time() -> None:
    heard = [said("one two three four", k * 1_000_000, k * 1_000_000 + 900_000) for k in range(7_200)]
    speech = [Span(start_us=k * 1_000_000, end_us=k * 1_000_000 + 950_000) for k in range(7_200)]
    started = time.perf_counter()
    assert drop_silent(heard, speech, 0.1)[1] == 0
    assert passed_over(heard[::2], speech, 500_000) != ()
    assert time.perf_counter() - started < 5
