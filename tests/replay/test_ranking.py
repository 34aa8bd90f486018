"""Which clip suits a shot, and why."""

from __future__ import annotations

import numpy as np
import pytest

from replay.embed import HashingEmbedder
from replay.lexical import Bm25, terms
from replay.ranking import Evidence, Ranked, length_fit, rank_clips
from tests.replay.doubles_tools import pool_entry

POOL = [pool_entry("a sailing ship at sea", 4), pool_entry("a porcelain cup of tea", 4), pool_entry("a ship in the harbour", 1)]


def candidates(
    query: str, needed_s: float = 3.0, near: dict[str, int] | None = None, excluded: frozenset[str] = frozenset()
) -> list[Ranked]:
    evidence = Evidence.of(POOL, HashingEmbedder())
    return list(rank_clips(POOL, evidence, query, round(needed_s * 1e6), near=near or {}, excluded=excluded))


def ranked(query: str, needed_s: float = 3.0, near: dict[str, int] | None = None, excluded: frozenset[str] = frozenset()) -> list[str]:
    return [r.clip.text for r in candidates(query, needed_s, near, excluded)]


def test_the_likest_text_wins() -> None:
    assert ranked("cup of tea")[0] == "a porcelain cup of tea"


def test_a_clip_that_lasts_is_preferred_to_one_that_does_not() -> None:
    assert ranked("ship", needed_s=8)[:2] == ["a sailing ship at sea", "a ship in the harbour"]


def test_a_clip_of_the_neighbour_goes_back() -> None:
    assert ranked("a sailing ship at sea", near={POOL[0].clip_id: 1})[0] != "a sailing ship at sea"


def test_excluded_clips_are_gone() -> None:
    assert "a sailing ship at sea" not in ranked("ship", excluded=frozenset({POOL[0].clip_id}))


def test_an_exhausted_pool_gives_nothing() -> None:
    assert ranked("ship", excluded=frozenset(c.clip_id for c in POOL)) == []


def test_length_fit() -> None:
    assert [length_fit(2, 4), length_fit(8, 4), length_fit(1, 0)] == [0.5, 1.0, 1.0]


@pytest.mark.parametrize(
    ("near", "needed_s", "expected"),
    [
        ({}, 3.0, "words harbour ship, meaning 1.00, covers 33%"),
        ({POOL[2].clip_id: 1}, 1.0, "words harbour ship, meaning 1.00, its neighbour has it"),
        ({POOL[2].clip_id: 4}, 1.0, "words harbour ship, meaning 1.00, used 4 shots away"),
    ],
)
def test_a_candidate_says_why(near: dict[str, int], needed_s: float, expected: str) -> None:
    found = next(r for r in candidates("ship, harbour", needed_s, near) if r.clip is POOL[2])
    assert found.why == expected


def test_a_score_is_the_sum_of_its_parts() -> None:
    best = candidates("ship in the harbour")[0]
    assert (best.meaning, best.words, best.seen, best.length) == (1.0, 1.0, None, 0.3333)
    assert best.score == pytest.approx(0.8 + 0.2 / 3, abs=1e-3)


def test_a_query_without_any_shared_word_still_ranks() -> None:
    assert [r.words for r in candidates("xylophone")] == [0.0, 0.0, 0.0]
    assert candidates("xylophone")[0].why.startswith("no shared words")


def test_the_picture_decides_where_texts_are_equal() -> None:
    pool = [pool_entry("a thing", 4), pool_entry("a thing ", 4)]
    looks = np.array([[1.0, 0.0], [0.0, 1.0]], np.float32)
    evidence = Evidence.of(pool, HashingEmbedder(), looks)
    found = rank_clips(pool, evidence, "a thing", 1, near={}, excluded=frozenset(), sight=np.array([0.0, 1.0], np.float32))
    assert [(r.clip is pool[1], r.seen) for r in found] == [(True, 1.0), (False, 0.0)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ships sailing, the ship sailed", ["ship", "sail", "the", "ship", "sail"]),
        ("Cities and bus", ["city", "and", "bus"]),
        ("活字印刷", ["活字", "字印", "印刷"]),
        ("第2台 press机", ["第", "2", "台", "press", "机"]),
        ("Ｐｒｅｓｓ — café", ["press", "café"]),
        ("", []),
    ],
)
def test_terms(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_a_rare_word_tells_more_than_a_common_one() -> None:
    index = Bm25(["the clock on the wall", "the clock in the hall", "the pendulum of the clock"])
    assert index.scores("clock pendulum")[2] > 2 * index.scores("clock pendulum")[0]
    assert index.shared("the clock pendulum", 2) == ("pendulum", "clock", "the")
    assert index.scores("nothing here") == [0.0, 0.0, 0.0]
