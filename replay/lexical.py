"""Likeness of texts by the words they share: BM25 over the clips of one pool (Robertson and Zaragoza, 2009, equation 3.14).

Owns how a text becomes terms. Knows no language: words lose a plural or verb ending, runs of Han characters become pairs. A rare word
that the query and one clip share says more than a general likeness of meaning, which is what an embedding gives. Pure.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

K1, B = 1.2, 0.6
"""Saturation of a repeated term and weight of a text's length; clips' texts differ little in length."""
_ENDINGS = ("ings", "ing", "edly", "ed", "ies", "es", "s", "ly")
_WORD = re.compile(r"[^\W_]+")


def terms(text: str) -> list[str]:
    """Terms of a text, in order, repeated as they occur."""
    out: list[str] = []
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        for run in re.findall(r"[\u2e80-\u9fff\uac00-\ud7af]+|[^\u2e80-\u9fff\uac00-\ud7af]+", word):
            if "\u2e80" <= run[0] <= "\ud7af":
                out += [run[i : i + 2] for i in range(len(run) - 1)] or [run]
            else:
                out.append(_stem(run))
    return out


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not (ending == "s" and word.endswith("ss")):
            return word[: -len(ending)] + ("y" if ending == "ies" else "")
    return word


class Bm25:
    """The terms of a pool's texts."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._counts = [Counter(terms(t)) for t in texts]
        self._lengths = [sum(c.values()) for c in self._counts]
        self._mean = max(1.0, sum(self._lengths) / max(1, len(texts)))
        self._having = Counter(term for counts in self._counts for term in counts)

    def rarity(self, term: str) -> float:
        """How much a term tells, 0 and up."""
        n, having = len(self._counts), self._having[term]
        return math.log(1 + (n - having + 0.5) / (having + 0.5))

    def scores(self, query: str) -> list[float]:
        """One score for each text, 0 and up."""
        wanted = Counter(terms(query))
        out: list[float] = []
        for counts, length in zip(self._counts, self._lengths, strict=True):
            norm = K1 * (1 - B + B * length / self._mean)
            found = sum(self.rarity(t) * counts[t] * (K1 + 1) / (counts[t] + norm) for t in wanted if t in counts)
            out.append(round(found, 5))
        return out

    def shared(self, query: str, index: int, most: int = 3) -> tuple[str, ...]:
        """The rarest terms that the query and one text share, rarest first."""
        both = set(terms(query)) & set(self._counts[index])
        return tuple(sorted(both, key=lambda t: (-self.rarity(t), t))[:most])
