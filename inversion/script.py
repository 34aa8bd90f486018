"""A known script laid onto what was heard: the text is the script's, the times are the recogniser's.

Exact alignment of two word sequences (edit distance with cheaper pairs for similar words), split at stretches that both hold exactly once.
What the script has and nobody says is left out, what is said and not in the script is kept; both are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from inversion.transcript import SpokenSegment, SpokenWord
from inversion.words import longest_rise

NOT_IN_SCRIPT = "not_in_script"
"""Flag of a segment that was heard and is not in the script."""

_ANCHOR = 3
_MOST_CELLS = 30_000_000
_EQUAL, _SIMILAR, _GAP, _DIFFERENT = 0, 1, 2, 3
_FASTEST_US = 50_000
"""Nobody speaks words faster than this: a run of script words with less room was not spoken."""
_OWN_RUN = 3
_OWN_US = 800_000


@dataclass(frozen=True, slots=True)
class Followed:
    """The script as spoken. ``match`` is the share of its words that were heard; ``unspoken`` and ``unscripted`` count words."""

    segments: tuple[SpokenSegment, ...]
    match: float
    unspoken: int
    unscripted: int


def follow_script(script: Sequence[SpokenSegment], heard: Sequence[SpokenSegment]) -> Followed:
    """Give the script's words the times of the words heard.

    Args:
        script: segments (paragraphs or lines) of untimed words.
        heard: timed segments of a recogniser, in order.
    """
    words = [w for segment in script for w in segment.words]
    spoken = [w for segment in heard for w in segment.words]
    partner: list[int | None] = [None] * len(words)
    equal = 0
    for left, right in match_words([w.text for w in words], [w.text for w in spoken]):
        partner[left] = right
        equal += _key(words[left].text) == _key(spoken[right].text)
    kept = _spoken_part(partner, spoken)
    todo = _unscripted(partner, spoken)
    out: list[SpokenSegment] = []
    added = 0
    i = 0
    for segment in script:
        current: list[SpokenWord] = []
        for word in segment.words:
            j, is_kept = partner[i], kept[i]
            i += 1
            while j is not None and todo and todo[0][0] < j:
                first, end = todo.pop(0)
                if current:
                    out.append(SpokenSegment(tuple(current)))
                    current = []
                out.append(SpokenSegment(tuple(spoken[first:end])).flagged(NOT_IN_SCRIPT))
                added += end - first
            if not is_kept:
                continue
            if j is not None:
                w = spoken[j]
                word = replace(word, start_us=w.start_us, end_us=w.end_us, confidence=w.confidence, timing=w.timing)
            current.append(word)
        if current:
            out.append(replace(segment, words=tuple(current)))
    for first, end in todo:
        out.append(SpokenSegment(tuple(spoken[first:end])).flagged(NOT_IN_SCRIPT))
        added += end - first
    share = equal / len(words) if words else 0.0
    return Followed(tuple(out), share, len(words) - sum(kept), added)


def _spoken_part(partner: Sequence[int | None], spoken: Sequence[SpokenWord]) -> list[bool]:
    """Which script words are kept: all but runs without partner for which there is no time."""
    kept = [True] * len(partner)
    k = 0
    while k < len(partner):
        if partner[k] is not None:
            k += 1
            continue
        end = k
        while end < len(partner) and partner[end] is None:
            end += 1
        before = partner[k - 1] if k else None
        after = partner[end] if end < len(partner) else None
        low = spoken[before].end_us if before is not None else (spoken[0].start_us if spoken else None)
        high = spoken[after].start_us if after is not None else (spoken[-1].end_us if spoken else None)
        room = (high or 0) - (low or 0)
        if room < (end - k) * _FASTEST_US and end - k >= 2:
            kept[k:end] = [False] * (end - k)
        k = end
    return kept


def _unscripted(partner: Sequence[int | None], spoken: Sequence[SpokenWord]) -> list[tuple[int, int]]:
    """Runs of at least three heard words, 0.8 s long or more, without a partner in the script."""
    taken = {j for j in partner if j is not None}
    out: list[tuple[int, int]] = []
    k = 0
    while k < len(spoken):
        if k in taken:
            k += 1
            continue
        end = k
        while end < len(spoken) and end not in taken:
            end += 1
        first, last = spoken[k].start_us, spoken[end - 1].end_us
        if end - k >= _OWN_RUN and first is not None and last is not None and last - first >= _OWN_US:
            out.append((k, end))
        k = end
    return out


def match_words(left: Sequence[str], right: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs (i, j), rising in both, of words that stand for each other in the cheapest alignment.

    Prices: equal 0, similar (same first or last three letters) 1, left out 2, different 3.
    """
    a, b = [_key(t) for t in left], [_key(t) for t in right]
    out: list[tuple[int, int]] = []
    at_a = at_b = 0
    for i, j in [*_anchors(a, b), (len(a), len(b))]:
        out += [(at_a + x, at_b + y) for x, y in _align(a[at_a:i], b[at_b:j])]
        if i < len(a):
            out.append((i, j))
        at_a, at_b = i + 1, j + 1
    return out


def _key(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum())


def _anchors(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    """First words of stretches of three that stand exactly once in both sequences, those in common order only."""

    def once(keys: Sequence[str]) -> dict[tuple[str, ...], int]:
        seen: dict[tuple[str, ...], int] = {}
        for k in range(len(keys) - _ANCHOR + 1):
            gram = tuple(keys[k : k + _ANCHOR])
            seen[gram] = -1 if gram in seen else k
        return {g: k for g, k in seen.items() if k >= 0}

    there = once(b)
    common = sorted((i, there[g]) for g, i in once(a).items() if g in there)
    return [common[k] for k in longest_rise([j for _, j in common])]


def _align(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    if not a or not b or len(a) * len(b) > _MOST_CELLS:
        return []
    cost = _pair_costs(a, b)
    steps = np.arange(len(b) + 1, dtype=np.int32) * _GAP
    table = np.zeros((len(a) + 1, len(b) + 1), dtype=np.int32)
    table[0] = steps
    for i in range(1, len(a) + 1):
        row = table[i - 1] + _GAP
        row[1:] = np.minimum(row[1:], table[i - 1, :-1] + cost(i - 1))
        table[i] = np.minimum.accumulate(row - steps) + steps
    out: list[tuple[int, int]] = []
    i, j = len(a), len(b)
    while i and j:
        price = int(cost(i - 1)[j - 1])
        if table[i, j] == table[i - 1, j - 1] + price:
            out.append((i - 1, j - 1))
            i, j = i - 1, j - 1
        elif table[i, j] == table[i - 1, j] + _GAP:
            i -= 1
        else:
            j -= 1
    return out[::-1]


class _Costs:
    """Price of pairing word i of one sequence with each word of the other."""

    def __init__(self, a: Sequence[str], b: Sequence[str]) -> None:
        names: dict[str, int] = {}
        self._codes = [self._coded(words, names) for words in (a, b)]

    @staticmethod
    def _coded(words: Sequence[str], names: dict[str, int]) -> tuple[NDArray[np.int32], ...]:
        def column(keys: list[str]) -> NDArray[np.int32]:
            return np.array([names.setdefault(k, len(names)) for k in keys], dtype=np.int32)

        return column(list(words)), column([f"<{w[:3]}" for w in words]), column([f"{w[-3:]}>" for w in words])

    def __call__(self, i: int) -> NDArray[np.int32]:
        (whole, head, tail), (wholes, heads, tails) = self._codes
        similar = (heads == head[i]) | (tails == tail[i])
        out: NDArray[np.int32] = np.where(wholes == whole[i], _EQUAL, np.where(similar, _SIMILAR, _DIFFERENT)).astype(np.int32)
        return out


def _pair_costs(a: Sequence[str], b: Sequence[str]) -> _Costs:
    return _Costs(a, b)
