"""Words out of text: exact joins in every script."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inversion.transcript import TimedPiece, clean_text, cut_words, words_from_pieces
from schemas.storyboard import WordTiming


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hello there, world.", ["Hello", "there,", "world."]),
        ("版本3.11快。", ["版", "本", "3.11", "快。"]),
        ("“真的吗？”他问。", ["“真", "的", "吗？”", "他", "问。"]),
        ("ラーメンを食べた。", ["ラー", "メ", "ン", "を", "食", "べ", "た。"]),
        ("用Python写", ["用", "Python", "写"]),
        ("see example.com (now)", ["see", "example.com", "(now)"]),
        ("OK。Good", ["OK。", "Good"]),
        ("مرحبا بالعالم!", ["مرحبا", "بالعالم!"]),
        ("", []),
    ],
)
def test_words_are_cut_by_script(text: str, words: list[str]) -> None:
    assert [w for w, _ in cut_words(text)] == words


@given(st.text(max_size=60))
def test_words_join_to_the_clean_text(text: str) -> None:
    assert "".join(w + (" " if space else "") for w, space in cut_words(text)) == clean_text(text)


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("lone \ud800 surrogate", "lone surrogate"),
        ("nul \x00 byte", "nul byte"),
        ("bidi \u202e and zero\u200bwidth", "bidi and zerowidth"),
        ("line\u2028sep\r\n\ttab", "line sep tab"),
        ("e\u0301", "é"),
    ],
)
def test_text_that_cannot_be_stored_or_shown_is_cleaned(raw: str, clean: str) -> None:
    assert clean_text(raw) == clean


def test_pieces_of_a_character_model_become_words_with_shared_time() -> None:
    pieces = [TimedPiece("用Py", 0, 300_000, 0.9), TimedPiece("thon写", 300_000, 800_000, 0.5)]
    words = words_from_pieces(pieces, WordTiming.RECOGNISED)
    assert [(w.text, w.start_us, w.end_us) for w in words] == [("用", 0, 100_000), ("Python", 100_000, 700_000), ("写", 700_000, 800_000)]


def test_a_piece_without_times_leaves_its_word_untimed() -> None:
    words = words_from_pieces([TimedPiece(" cost", 0, 10), TimedPiece(" $43,000.", None, None)], WordTiming.SIDECAR)
    assert [(w.text, w.start_us, w.timing) for w in words] == [("cost", 0, WordTiming.SIDECAR), ("$43,000.", None, WordTiming.INTERPOLATED)]
