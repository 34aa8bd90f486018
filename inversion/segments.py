"""Segments: runs of whole sentences that keep to one subject.

Lexical cohesion of the sentences on both sides of every border (as in TextTiling), pauses, and a wish for segments of about a minute,
solved exactly by dynamic programming. Deterministic.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from inversion.sentences import SentenceDraft
from inversion.terms import key_phrases, rarity, terms

_BLOCK = 3
"""Sentences compared on either side of a border."""
_TARGET_US = 45_000_000
_SHORTEST_US = 8_000_000
_LONGEST_US = 150_000_000
_PAUSE_US = 2_000_000
_PRICE = 0.55
_TITLE = 80


@dataclass(frozen=True, slots=True)
class SegmentDraft:
    """sentences[first:end] with a title of key phrases."""

    first: int
    end: int
    title: str


def cut_segments(sentences: Sequence[SentenceDraft], times: Sequence[tuple[int, int]], language: str) -> tuple[SegmentDraft, ...]:
    """Segments covering all sentences in order.

    Args:
        sentences: of the film, in order.
        times: (start, end) of each sentence, microseconds.
        language: of the film.
    """
    count = len(sentences)
    if not count:
        return ()
    vectors = [terms(s.text, s.language) for s in sentences]
    gain = [0.0, *(_gain(vectors, times, k) for k in range(1, count))]
    best = [0.0] + [-math.inf] * count
    came = [0] * (count + 1)
    for end in range(1, count + 1):
        for first in range(end - 1, -1, -1):
            length = times[end - 1][1] - times[first][0]
            if length > _LONGEST_US and first < end - 1:
                break
            value = best[first] + (gain[first] - _PRICE if first else 0.0) - _length_price(length, end - first, first == 0 and end == count)
            if value > best[end] + 1e-12:
                best[end], came[end] = value, first
    edges = [count]
    while edges[-1] > 0:
        edges.append(came[edges[-1]])
    edges.reverse()
    weights = rarity((s.text for s in sentences), language)
    return tuple(SegmentDraft(first, end, title_of(sentences[first:end], language, weights)) for first, end in pairwise(edges))


def _gain(vectors: Sequence[Counter[str]], times: Sequence[tuple[int, int]], k: int) -> float:
    """How much speaks for a border before sentence k: lost cohesion, 0 to 1, and up to 0.5 for a pause."""
    left: Counter[str] = sum(vectors[max(0, k - _BLOCK) : k], Counter())
    right: Counter[str] = sum(vectors[k : k + _BLOCK], Counter())
    pause = max(0, times[k][0] - times[k - 1][1])
    return 1.0 - _cosine(left, right) + 0.5 * min(1.0, pause / _PAUSE_US)


def _cosine(a: Counter[str], b: Counter[str]) -> float:
    if not a or not b:
        return 0.0
    dot = sum(n * b[t] for t, n in a.items())
    return dot / math.sqrt(sum(n * n for n in a.values()) * sum(n * n for n in b.values()))


def _length_price(length_us: int, sentences: int, is_whole: bool) -> float:
    """Price of a segment's length: squared log distance from the wished one; short ones cost extra."""
    if is_whole and length_us <= _TARGET_US:
        return 0.0
    away = math.log(max(length_us, 1_000_000) / _TARGET_US)
    return 0.5 * away * away + (0.75 if length_us < _SHORTEST_US else 0.0) + (0.25 if sentences == 1 else 0.0)


def title_of(sentences: Sequence[SentenceDraft], language: str, weights: dict[str, float]) -> str:
    """A title of up to three key phrases, at most 60 characters; the first sentence's beginning where there are none."""
    found: list[str] = []
    for phrase in key_phrases(" \n".join(s.text for s in sentences), language, weights, 3):
        if len(", ".join([*found, phrase])) <= 60:
            found.append(phrase)
    title = ", ".join(found) or sentences[0].text
    title = title[:_TITLE].strip()
    return title[:1].upper() + title[1:]
