"""Word shingles of texts in any script, their likeness, and MinHash signatures for finding like texts among many.

Owns the arithmetic only; what counts as too like is decided where it is used. Hashes are of our own choice of seeds and stable for good:
a signature that was stored can be compared with one made later. Texts without blanks between words (Chinese, Japanese, Thai) are cut by
character.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

PERMUTATIONS = 128
BANDS = 64
"""Bands of a signature; with 128 hashes a pair of likeness 0.3 shares a band with a chance of 0.998, one of 0.02 with 0.03."""

Grams = frozenset[int]
Signature = NDArray[np.uint64]

_UNSPACED = r"\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORDS = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")


def words(text: str) -> list[str]:
    """Words as they are compared: compatibility forms unified, case folded, punctuation dropped, one character each in scripts without
    blanks."""
    return _WORDS.findall(unicodedata.normalize("NFKC", text).casefold())


def shingles(text: str, size: int) -> Grams:
    """Hashes of all runs of ``size`` words; of the whole text when it is shorter; nothing for a text without words."""
    found = words(text)
    if not found:
        return frozenset()
    return frozenset(_hash(" ".join(found[i : i + size])) for i in range(max(1, len(found) - size + 1)))


def _hash(gram: str) -> int:
    return int.from_bytes(hashlib.blake2b(gram.encode("utf-8", "replace"), digest_size=8).digest(), "big")


def likeness(a: Grams, b: Grams) -> float:
    """Jaccard likeness, 0 to 1; two texts without words are not alike."""
    return len(a & b) / len(a | b) if a and b else 0.0


def containment(a: Grams, b: Grams) -> float:
    """Share of the smaller one that the other holds too, 0 to 1: finds an excerpt of a longer text."""
    return len(a & b) / min(len(a), len(b)) if a and b else 0.0


_SEEDS = np.random.Generator(np.random.PCG64(20261130)).integers(0, 1 << 64, PERMUTATIONS, dtype=np.uint64)


def signature(grams: Iterable[int]) -> Signature | None:
    """MinHash signature (Broder 1997): the least value of every hash function, each a seeded finalizer of splitmix64; None for nothing."""
    values = np.fromiter(grams, dtype=np.uint64)
    if values.size == 0:
        return None
    z = values[None, :] ^ _SEEDS[:, None]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    least: Signature = (z ^ (z >> np.uint64(31))).min(axis=1)
    return least


def estimated(a: Signature, b: Signature) -> float:
    """Estimate of the likeness of the sets behind two signatures."""
    return float(np.mean(a == b))


def candidates(signatures: Mapping[str, Signature]) -> Iterator[tuple[str, str]]:
    """Pairs of names whose signatures agree in a whole band, each once, the smaller name first; in a fixed order."""
    rows = PERMUTATIONS // BANDS
    seen: set[tuple[str, str]] = set()
    for band in range(BANDS):
        buckets: defaultdict[bytes, list[str]] = defaultdict(list)
        for name in sorted(signatures):
            buckets[signatures[name][band * rows : (band + 1) * rows].tobytes()].append(name)
        for names in buckets.values():
            for i, first in enumerate(names):
                for second in names[i + 1 :]:
                    if (first, second) not in seen:
                        seen.add((first, second))
                        yield first, second
