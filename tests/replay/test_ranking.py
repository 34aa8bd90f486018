"""Which clip suits a shot."""

from __future__ import annotations

from replay.embed import HashingEmbedder
from replay.ranking import length_fit, rank_clips
from tests.replay.doubles_tools import pool_entry

POOL = [pool_entry("a sailing ship at sea", 4), pool_entry("a porcelain cup of tea", 4), pool_entry("a ship in the harbour", 1)]


def ranked(query: str, needed_s: float = 3.0, near: dict[str, int] | None = None, excluded: frozenset[str] = frozenset()) -> list[str]:
    embedder = HashingEmbedder()
    vectors = embedder.encode([c.text for c in POOL], is_query=False)
    found = rank_clips(POOL, vectors, embedder.encode([query], is_query=True)[0], round(needed_s * 1e6), near=near or {}, excluded=excluded)
    return [r.clip.text for r in found]


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
