"""Words dealt out to shots: the exact optimum over word gaps and cuts, by dynamic programming.

A cut falls into a gap between two words. The price of an assignment is, summed over words, the time a word lies outside its shot (its
length less the overlap, plus the distance where there is none), less a bonus for every cut that comes to lie on a sentence border no more
than the tolerance away (half of it for a clause border). Because words do not overlap each other, only gaps within reach of a cut can
take part: the gap around it, both sides of a word it falls into, and sentence or clause borders inside the tolerance. Cost is the number
of words plus cuts times gaps in reach. Must not look at pictures or sound.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from schemas.time import Span

SENTENCE, CLAUSE, PLAIN = 2, 1, 0
"""Strength of the gap before a word."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """Result of :func:`assign`.

    ``edges[j]`` is the first word of shot j; ``edges[-1]`` the number of words that have a shot at all (words that start after the last
    frame have none). ``confidence[j]`` is the probability that the words next to both borders of shot j are on the right side.
    """

    edges: tuple[int, ...]
    confidence: tuple[float, ...]
    cost_us: int

    def shot_of(self, word: int) -> int | None:
        """Shot of a word, None after the last frame."""
        return None if word >= self.edges[-1] else bisect_right(self.edges, word, 0, len(self.edges) - 1) - 1


def misfit_us(start: int, end: int, low: int, high: int) -> int:
    """How badly a word [start, end) lies in a shot [low, high): its time outside, and the distance where it does not touch the shot."""
    if low <= start and end <= high:
        return 0
    first = start if start > low else low
    last = end if end < high else high
    if last > first:
        return end - start - (last - first)
    return end - start + (low - end if low > end else start - high if start > high else 0)


def border_bonus_us(starts: Sequence[int], ends: Sequence[int], gap: int, strength: int, cut_us: int, snap_us: int) -> int:
    """Bonus of letting a cut fall into the gap before word ``gap``: ``snap_us`` at a sentence border, half at a clause border, none where a
    word would then lie more than ``snap_us`` beyond the cut."""
    if strength == PLAIN:
        return 0
    if (gap > 0 and ends[gap - 1] - cut_us > snap_us) or (gap < len(starts) and cut_us - starts[gap] > snap_us):
        return 0
    return snap_us if strength == SENTENCE else snap_us // 2


def assign(
    words: Sequence[Span], strength: Sequence[int], shots: Sequence[Span], snap_us: int, scatter_us: Sequence[int] | None = None
) -> Assignment:
    """Deal words out to shots.

    Args:
        words: in order, without overlap.
        strength: of the gap before each word and after the last one: SENTENCE, CLAUSE or PLAIN; length ``len(words) + 1``.
        shots: in order, each beginning where the last one ends.
        snap_us: tolerance within which a cut counts as lying on a sentence border.
        scatter_us: standard deviation of each word's times, for the confidence; 70 ms where not given.

    Returns:
        For every shot the words ``edges[j]:edges[j + 1]``. Among equal optima each cut takes the earliest gap.
    """
    film_end = shots[-1].end_us
    starts = [w.start_us for w in words]
    count = bisect_left(starts, film_end)
    starts, ends = starts[:count], [w.end_us for w in words[:count]]
    cuts = [s.start_us for s in shots] + [film_end]
    table = _Table(starts, ends, strength, cuts, snap_us)
    best: dict[int, int] = {0: 0}
    trail: list[dict[int, int]] = []
    for number in range(1, len(shots)):
        best, came = table.step(best, table.gaps(number), number)
        trail.append(came)
    final, came = table.step(best, (count,), len(shots))
    edges = [count, came[count]]
    for came in reversed(trail):
        edges.append(came[edges[-1]])
    edges.reverse()
    return Assignment(tuple(edges), table.confidence(edges, scatter_us), final[count])


def border_confidences(
    words: Sequence[Span],
    strength: Sequence[int],
    shots: Sequence[Span],
    edges: Sequence[int],
    snap_us: int,
    scatter_us: Sequence[int] | None = None,
) -> tuple[float, ...]:
    """For each inner border of shots (``len(shots) - 1`` of them) the probability that the words next to it are on the right side.

    Args:
        edges: of an :class:`Assignment`; the other arguments as in :func:`assign`.
    """
    count = edges[-1]
    cuts = [s.start_us for s in shots] + [shots[-1].end_us]
    table = _Table([w.start_us for w in words[:count]], [w.end_us for w in words[:count]], strength, cuts, snap_us)
    return table.borders(edges, scatter_us)


@dataclass(frozen=True, slots=True)
class _Table:
    starts: list[int]
    ends: list[int]
    strength: Sequence[int]
    cuts: list[int]
    """Start of each shot, and the end of the film."""
    snap_us: int

    def gaps(self, number: int) -> list[int]:
        """Gaps that cut ``number`` (the start of that shot) may fall into, rising."""
        cut, snap, starts, ends = self.cuts[number], self.snap_us, self.starts, self.ends
        low = high = bisect_left(starts, cut)
        if low > 0 and ends[low - 1] > cut:
            low -= 1
        before: list[int] = []
        k = low - 1
        while k >= 0 and cut - starts[k] <= snap:
            if self.strength[k] != PLAIN:
                before.append(k)
            k -= 1
        after: list[int] = []
        k = high + 1
        while k <= len(starts) and ends[k - 1] - cut <= snap:
            if self.strength[k] != PLAIN:
                after.append(k)
            k += 1
        return [*reversed(before), *range(low, high + 1), *after]

    def bonus(self, gap: int, number: int) -> int:
        """Bonus of cut ``number`` in a gap; the film's end has none."""
        if number == len(self.cuts) - 1:
            return 0
        return border_bonus_us(self.starts, self.ends, gap, self.strength[gap], self.cuts[number], self.snap_us)

    def step(self, best: dict[int, int], gaps: Sequence[int], number: int) -> tuple[dict[int, int], dict[int, int]]:
        """One cut further: the cheapest cost with cut ``number`` in each of its gaps, and the gap of the cut before that leads there."""
        low, high = self.cuts[number - 1], self.cuts[number]
        before = sorted(best)
        first = before[0]
        total = [0]
        running = 0
        for k in range(first, gaps[-1]):
            running += misfit_us(self.starts[k], self.ends[k], low, high)
            total.append(running)
        out: dict[int, int] = {}
        came: dict[int, int] = {}
        cheapest, source, at = 0, -1, 0
        for gap in gaps:
            while at < len(before) and before[at] <= gap:
                price = best[before[at]] - total[before[at] - first]
                if source < 0 or price < cheapest:
                    cheapest, source = price, before[at]
                at += 1
            if source >= 0:
                out[gap] = cheapest + total[gap - first] - self.bonus(gap, number)
                came[gap] = source
        return out, came

    def confidence(self, edges: Sequence[int], scatter_us: Sequence[int] | None) -> tuple[float, ...]:
        """For each shot the product over both of its borders."""
        border = [1.0, *self.borders(edges, scatter_us), 1.0]
        return tuple(round(border[j] * border[j + 1], 4) for j in range(len(self.cuts) - 1))

    def borders(self, edges: Sequence[int], scatter_us: Sequence[int] | None) -> tuple[float, ...]:
        """Of each inner border."""
        return tuple(self._border(j, edges[j], scatter_us) for j in range(1, len(self.cuts) - 1))

    def _border(self, j: int, gap: int, scatter_us: Sequence[int] | None) -> float:
        """Probability that moving the nearest word over the cut before shot j would be wrong, with normal errors of word times."""
        here = self.bonus(gap, j)
        low, cut, high = self.cuts[j - 1 : j + 2]
        out = 1.0
        for other, word in ((gap - 1, gap - 1), (gap + 1, gap)):
            if not 0 <= word < len(self.starts):
                continue
            left = misfit_us(self.starts[word], self.ends[word], low, cut)
            right = misfit_us(self.starts[word], self.ends[word], cut, high)
            margin = (left - right if word >= gap else right - left) + here - self.bonus(other, j)
            scatter = scatter_us[word] if scatter_us is not None else 70_000
            out *= 0.5 * math.erfc(-margin / (2 * max(1, scatter)) / math.sqrt(2.0))
        return out
