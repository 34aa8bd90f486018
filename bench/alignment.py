"""Time of dealing out the words of an hour to its shots: the exact optimum (inversion.align), beside the greedy nearest-shot assignment.

The film is made by arithmetic: 9,000 words and 700 shots by default, every 15th word ending a sentence. Prints the shortest and the middle
time of several runs, how many words the greedy way puts elsewhere, and what that costs.

    python bench/alignment.py [--words 9000] [--shots 700] [--repeat 9]
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from bisect import bisect_right
from collections.abc import Callable
from itertools import pairwise

from inversion.align import CLAUSE, PLAIN, SENTENCE, assign, misfit_us
from schemas.time import Span

LIMIT_MS = 50.0


def film(words: int, shots: int) -> tuple[list[Span], list[int], list[Span]]:
    """Words, strengths of the gaps, shots."""
    spoken: list[Span] = []
    at = 0
    for k in range(words):
        start = at + (k * 7919) % 150_000
        at = start + 120_000 + (k * 104_729) % 280_000
        spoken.append(Span(start_us=start, end_us=at))
    cuts = [at * k // shots + (k * 15_485_863) % 900_000 for k in range(1, shots)]
    strength = [SENTENCE if k % 15 == 0 else CLAUSE if k % 5 == 0 else PLAIN for k in range(words + 1)]
    return spoken, strength, [Span(start_us=a, end_us=b) for a, b in pairwise([0, *sorted(cuts), at])]


def greedy(words: list[Span], shots: list[Span]) -> list[int]:
    """Shot of each word by its middle alone."""
    starts = [s.start_us for s in shots]
    return [bisect_right(starts, (w.start_us + w.end_us) // 2) - 1 for w in words]


def timed(repeat: int, work: Callable[[], object]) -> list[float]:
    """Milliseconds of each run, sorted."""
    out = []
    for _ in range(repeat):
        begun = time.perf_counter()
        work()
        out.append(1000 * (time.perf_counter() - begun))
    return sorted(out)


def main() -> None:
    """Measure and print; exit status 1 when the shortest run takes longer than 50 ms."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words", type=int, default=9000)
    parser.add_argument("--shots", type=int, default=700)
    parser.add_argument("--repeat", type=int, default=9)
    given = parser.parse_args()
    words, strength, shots = film(given.words, given.shots)
    found = assign(words, strength, shots, 200_000)
    exact = timed(given.repeat, lambda: assign(words, strength, shots, 200_000))
    simple = timed(given.repeat, lambda: greedy(words, shots))
    by_middle = greedy(words, shots)
    elsewhere = sum(found.shot_of(k) != j for k, j in enumerate(by_middle))
    outside = [
        sum(misfit_us(w.start_us, w.end_us, shots[j].start_us, shots[j].end_us) for w, j in zip(words, owners, strict=True))
        for owners in ([found.shot_of(k) or 0 for k in range(len(words))], by_middle)
    ]
    print(f"{len(words)} words, {len(shots)} shots, load {os.getloadavg()[0]:.1f}")
    for name, times, us in (("exact", exact, outside[0]), ("greedy", simple, outside[1])):
        print(f"{name:8}shortest {times[0]:6.1f} ms, middle {statistics.median(times):6.1f} ms, {us / 1e6:.1f} s of words outside")
    print(f"{elsewhere} words lie elsewhere: the exact way lets cuts fall on sentence borders within its tolerance")
    raise SystemExit(0 if exact[0] <= LIMIT_MS else 1)


if __name__ == "__main__":
    main()
