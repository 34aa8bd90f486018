"""Word times: order, gaps, trimming."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inversion.sidecar import parse_sidecar
from inversion.transcript import SpokenSegment, SpokenWord
from inversion.words import move_over_pauses, settle, trim_to_speech
from schemas.storyboard import WordTiming
from schemas.time import Span

R = WordTiming.RECOGNISED


def word(text: str, start: int | None = None, end: int | None = None) -> SpokenWord:
    return SpokenWord(text, start, end, None, R if start is not None else WordTiming.INTERPOLATED)


def placed(words: list[SpokenWord], duration: int = 10_000_000) -> list[tuple[str, int | None, int | None]]:
    return [(w.text, w.start_us, w.end_us) for s in settle([SpokenSegment(tuple(words))], duration, 3_000_000) for w in s.words]


@pytest.mark.shared
def test_words_without_times_are_laid_between_their_neighbours(shared: Path) -> None:
    case = shared / "cases" / "words_without_times.json"
    found = settle(parse_sidecar(case.read_bytes()).segments, 9_000_000, 3_000_000)
    words = {w.text: w for s in found for w in s.words}
    assert len(words) == len(json.loads(case.read_text())["words"])
    assert (words["$43,000."].start_us, words["$43,000."].end_us) == (7_500_000, 8_100_000)
    assert (words["2014."].start_us, words["2014."].end_us) == (8_400_000, 9_000_000)
    assert words["2014."].timing is WordTiming.INTERPOLATED


def test_a_start_that_goes_back_is_replaced() -> None:
    words = [word("one", 100_000, 200_000), word("two", 300_000, 400_000), word("six", 50_000, 60_000), word("ten", 900_000, 950_000)]
    assert placed(words)[2:] == [("six", 400_000, 840_000), ("ten", 900_000, 950_000)]


def test_one_late_outlier_does_not_push_the_words_behind_it() -> None:
    found = placed([word("a", 0, 90_000), word("b", 9_000_000, 9_100_000), word("c", 200_000, 290_000), word("d", 300_000, 390_000)])
    assert [f[1] for f in found] == [0, 90_000, 200_000, 300_000]


def test_overlapping_words_are_cut_at_the_next_start() -> None:
    assert placed([word("a", 0, 500_000), word("b", 300_000, 800_000)]) == [("a", 0, 300_000), ("b", 300_000, 800_000)]


def test_words_without_room_take_it_from_their_neighbours() -> None:
    found = placed([word("a", 0, 100_000), word("b"), word("c"), word("d", 100_000, 200_000)])
    assert found == [("a", 0, 60_000), ("b", 60_000, 80_000), ("c", 80_000, 100_000), ("d", 100_000, 200_000)]


def test_a_word_beyond_the_end_is_brought_inside() -> None:
    assert placed([word("a", 0, 100_000), word("b", 12_000_000, 13_000_000)], 1_000_000) == [("a", 0, 100_000), ("b", 100_000, 380_000)]


def test_more_words_than_microseconds_are_refused() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        placed([word("a"), word("b"), word("c")], 2)


@given(
    st.lists(
        st.tuples(
            st.text("ab", min_size=1, max_size=6), st.none() | st.tuples(st.integers(-1_000_000, 3_000_000), st.integers(-10, 900_000))
        ),
        min_size=1,
        max_size=14,
    ),
    st.integers(200, 2_000_000),
)
def test_every_word_gets_a_place_in_order(items: list[tuple[str, tuple[int, int] | None]], duration: int) -> None:
    words = [word(text) if span is None else word(text, span[0], span[0] + span[1]) for text, span in items]
    found = placed(words, duration)
    assert [f[0] for f in found] == [t for t, _ in items]
    at = 0
    for _, start, end in found:
        assert start is not None
        assert end is not None
        assert at <= start < end <= duration
        at = end


def test_a_pause_in_front_of_a_word_is_cut_off_and_the_word_before_reaches_it() -> None:
    speech = [Span(start_us=0, end_us=1_000_000), Span(start_us=2_000_000, end_us=3_000_000)]
    found = trim_to_speech([word("return", 500_000, 900_000), word("now", 900_000, 2_300_000)], speech)
    assert [(w.start_us, w.end_us) for w in found] == [(500_000, 1_000_000), (1_970_000, 2_300_000)]


def test_a_word_in_unbroken_speech_stays_as_it_is() -> None:
    speech = [Span(start_us=0, end_us=1_000_000)]
    assert trim_to_speech([word("a", 100_000, 400_000)], speech) == (word("a", 100_000, 400_000),)


def test_a_sentences_first_word_is_moved_over_the_pause_where_it_was_heard() -> None:
    texts = ["higher.", "There", "is", "a"]
    heard = [(0, 300_000), (300_000, 1_450_000), (1_450_000, 1_500_000), (1_500_000, 1_600_000)]
    found = [(0, 300_000), (300_000, 480_000), (1_300_000, 1_460_000), (1_460_000, 1_600_000)]
    moved = move_over_pauses(texts, heard, found)
    assert moved == [(0, 300_000), (1_300_000, 1_400_000), (1_400_000, 1_460_000), (1_460_000, 1_600_000)]


def test_a_sentences_last_word_is_moved_back_over_the_pause() -> None:
    heard = [(0, 300_000), (300_000, 500_000), (1_400_000, 1_600_000)]
    found = [(0, 400_000), (1_300_000, 1_400_000), (1_400_000, 1_600_000)]
    assert move_over_pauses(["got", "it.", "There"], heard, found)[1][1] == 400_000  # type: ignore[index]


def test_a_word_before_a_pause_that_was_heard_there_stays() -> None:
    found = [(0, 300_000), (300_000, 480_000), (1_300_000, 1_460_000)]
    assert move_over_pauses(["Well,", "now", "then"], found, found) == found
