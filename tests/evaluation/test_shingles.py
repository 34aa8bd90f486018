"""Shingles in scripts with and without blanks, likeness, and how often MinHash finds what is alike."""

from __future__ import annotations

from random import Random

import pytest

from evaluation.shingles import candidates, containment, estimated, likeness, shingles, signature, words


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The Pendulum, let go!", ["the", "pendulum", "let", "go"]),
        ("能量守恒 works", ["能", "量", "守", "恒", "works"]),
        ("ＡＢＣ １２", ["abc", "12"]),
        ("don't", ["don", "t"]),
        ("", []),
        ("...", []),
    ],
)
def test_words_as_they_are_compared(text: str, found: list[str]) -> None:
    assert words(text) == found


def test_a_text_shorter_than_a_shingle_is_one() -> None:
    assert len(shingles("one two", 5)) == 1
    assert shingles("", 5) == frozenset()


def test_likeness_and_containment_by_hand() -> None:
    whole, part = shingles("a b c d e f", 2), shingles("b c d", 2)
    assert (likeness(whole, part), containment(whole, part)) == (2 / 5, 1.0)
    assert likeness(frozenset(), frozenset()) == 0.0


def test_signatures_are_stable_for_good() -> None:
    found = signature(shingles("the pendulum is let go and comes back", 3))
    assert found is not None
    assert [int(v) for v in found[:3]] == [5951762436923801286, 1691818566306849087, 4851072069145210444]


def test_estimate_is_near_the_likeness() -> None:
    seed = 7
    print("seed", seed)
    rng = Random(seed)  # noqa: S311
    base = [f"w{rng.randrange(5000)}" for _ in range(600)]
    other = base[:300] + [f"v{rng.randrange(5000)}" for _ in range(300)]
    a, b = shingles(" ".join(base), 3), shingles(" ".join(other), 3)
    one, two = signature(a), signature(b)
    assert one is not None
    assert two is not None
    assert estimated(one, two) == pytest.approx(likeness(a, b), abs=0.12)


def test_like_texts_meet_and_unlike_ones_do_not() -> None:
    rng = Random(3)  # noqa: S311
    texts = {f"t{i}": " ".join(f"w{rng.randrange(900)}" for _ in range(200)) for i in range(40)}
    texts["copy"] = texts["t5"] + " and a word more"
    signatures = {name: s for name, text in texts.items() if (s := signature(shingles(text, 3))) is not None}
    assert list(candidates(signatures)) == [("copy", "t5")]


def test_nothing_has_no_signature() -> None:
    assert signature(frozenset()) is None
