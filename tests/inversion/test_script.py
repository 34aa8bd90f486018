"""A known script laid onto what was heard."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from inversion.script import follow_script, match_words
from inversion.transcript import SpokenSegment, SpokenWord, words_of
from schemas.storyboard import WordTiming


def heard(text: str, start: int = 0, step: int = 300_000) -> SpokenSegment:
    return SpokenSegment(
        tuple(
            SpokenWord(w.text, start + k * step, start + (k + 1) * step, 0.8, WordTiming.RECOGNISED, w.space_after)
            for k, w in enumerate(words_of(text))
        )
    )


def test_the_text_is_the_scripts_and_the_times_are_those_heard() -> None:
    script = [SpokenSegment(words_of("The Gutenberg, or forty-two line Bible."))]
    found = follow_script(script, [heard("the Guttenberg or 42 line Bible")])
    assert [(w.text, w.start_us) for w in found.segments[0].words] == [
        ("The", 0),
        ("Gutenberg,", 300_000),
        ("or", 600_000),
        ("forty-two", 900_000),
        ("line", 1_200_000),
        ("Bible.", 1_500_000),
    ]
    assert found.match == 4 / 6


def test_script_lines_that_nobody_says_are_left_out() -> None:
    script = [SpokenSegment(words_of(t)) for t in ("Scene one, a dark room at night", "Hello there my friend.")]
    found = follow_script(script, [heard("Hello there my friend")])
    assert [s.text for s in found.segments] == ["Hello there my friend."]
    assert (found.unspoken, found.match) == (7, 4 / 11)


def test_speech_that_is_not_in_the_script_is_kept_and_flagged() -> None:
    script = [SpokenSegment(words_of("Open the file. Now run it."))]
    found = follow_script(script, [heard("Open the file and let us save this first now run it")])
    assert [(s.text, s.flags) for s in found.segments] == [
        ("Open the file.", ()),
        ("and let us save this first", ("not_in_script",)),
        ("Now run it.", ()),
    ]
    assert found.unscripted == 6


def test_another_text_matches_nothing() -> None:
    script = [SpokenSegment(words_of("completely different words here"))]
    assert follow_script(script, [heard("we saw seven ships")]).match == 0.0


def test_long_texts_are_matched_through_their_unique_stretches() -> None:
    left = [f"w{k * 7919 % 5000}" for k in range(5000)]
    right = [w if k % 10 else "noise" for k, w in enumerate(left)]
    pairs = match_words(left, right)
    assert sum(left[i] == right[j] for i, j in pairs) == 4500


@given(st.lists(st.sampled_from("abcd"), max_size=12), st.lists(st.sampled_from("abcd"), max_size=12))
def test_pairs_rise_in_both_texts(left: list[str], right: list[str]) -> None:
    pairs = match_words(left, right)
    assert all(a < c and b < d for (a, b), (c, d) in pairwise(pairs))
