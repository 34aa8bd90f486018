"""Which clip suits a shot: likeness of text, fit of length, no repetition. Pure.

Owns the score. Embedding similarities are only comparable within one query, so they are scaled per query before anything is added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from replay.embed import Vectors
from schemas.state import PoolClip

TEXT, LENGTH = 0.8, 0.2
"""Weights of likeness and of length; they add up to 1."""
USED_NEAR, USED_FAR = 1.0, 0.35
"""Taken off for a clip that a neighbouring shot, or any other shot, already has: beside itself a clip is worse than any other."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """One candidate of a shot: the score it was ranked by (1 at most, below 0 when used elsewhere), and its parts, 0 to 1."""

    clip: PoolClip
    score: float
    likeness: float
    length: float


def length_fit(clip_us: int, needed_us: int) -> float:
    """1 for a clip that lasts as long as needed or longer, else the share it covers."""
    return 1.0 if needed_us <= 0 else min(1.0, clip_us / needed_us)


def rank_clips(
    pool: Sequence[PoolClip], vectors: Vectors, query: Vectors, needed_us: int, *, near: Mapping[str, int], excluded: frozenset[str]
) -> tuple[Ranked, ...]:
    """Candidates of one shot, best first; ties in order of clip id.

    Args:
        vectors: unit vectors of the clips' texts, one row for each clip of the pool.
        query: unit vector of the query.
        needed_us: length of the shot.
        near: for every clip that another shot has, the distance to the nearest such shot in shots.
        excluded: clips that must not be taken.
    """
    free = [i for i, clip in enumerate(pool) if clip.clip_id not in excluded]
    if not free:
        return ()
    likeness = np.round((vectors @ query).astype(np.float64), 5)
    low, high = float(likeness[free].min()), float(likeness[free].max())
    out: list[Ranked] = []
    for i in free:
        clip = pool[i]
        like = (float(likeness[i]) - low) / (high - low) if high - low > 1e-6 else 1.0
        length = length_fit(clip.duration_us, needed_us)
        distance = near.get(clip.clip_id)
        used = 0.0 if distance is None else USED_NEAR if distance <= 1 else USED_FAR
        out.append(Ranked(clip, round(TEXT * like + LENGTH * length - used, 4), round(like, 4), round(length, 4)))
    return tuple(sorted(out, key=lambda r: (-r.score, r.clip.clip_id)))
