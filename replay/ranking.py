"""Which clip suits a shot: likeness in meaning, in words and in the picture, fit of length, no repetition. Pure.

Owns the score and its reasons. Similarities are only comparable within one query, so each is scaled per query before anything is added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from replay.embed import Vectors
from replay.engines import Embedder
from replay.lexical import Bm25
from schemas.state import PoolClip

MEANING, WORDS, LENGTH = 0.5, 0.3, 0.2
"""Weights of likeness in meaning, in words, and of length; they add up to 1. Best of nine on the films of bench/retrieval.py, few as they
are; without words hit@1 falls by 3 to 7 points, with words alone by 3 to 10."""
SEEN = 0.4
"""With an image-text model, the share of the likeness that is the picture's; the texts' parts share the rest."""
USED_NEAR, USED_FAR = 1.0, 0.35
"""Taken off for a clip that a neighbouring shot, or any other shot, already has: beside itself a clip is worse than any other."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """One candidate of a shot: the score it was ranked by (1 at most, below 0 when used elsewhere), and its parts, 0 to 1.

    ``seen`` is None without an image-text model. ``why`` says in words what spoke for and against it.
    """

    clip: PoolClip
    score: float
    meaning: float
    words: float
    seen: float | None
    length: float
    why: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a pool's clips: unit vectors of their texts, their words, and how a query is encoded. ``pictures`` are unit vectors
    of their frames, one row a clip; None without an image-text model."""

    embedder: Embedder
    vectors: Vectors
    words: Bm25
    pictures: Vectors | None = None

    @classmethod
    def of(cls, pool: Sequence[PoolClip], embedder: Embedder, pictures: Vectors | None = None) -> Evidence:
        """Read the texts of a pool."""
        texts = [c.text for c in pool]
        return cls(embedder, embedder.encode(texts, is_query=False), Bm25(texts), pictures)


def length_fit(clip_us: int, needed_us: int) -> float:
    """1 for a clip that lasts as long as needed or longer, else the share it covers."""
    return 1.0 if needed_us <= 0 else min(1.0, clip_us / needed_us)


def rank_clips(
    pool: Sequence[PoolClip],
    evidence: Evidence,
    query: str,
    needed_us: int,
    *,
    near: Mapping[str, int],
    excluded: frozenset[str],
    sight: Vectors | None = None,
) -> tuple[Ranked, ...]:
    """Candidates of one shot, best first; ties in order of clip id.

    Args:
        needed_us: length of the shot.
        near: for every clip that another shot has, the distance to the nearest such shot in shots.
        excluded: clips that must not be taken.
        sight: the query as the image-text model encodes it; None without one.
    """
    free = [i for i, clip in enumerate(pool) if clip.clip_id not in excluded]
    if not free:
        return ()
    meaning = _scaled((evidence.vectors @ evidence.embedder.encode([query], is_query=True)[0]).astype(np.float64), free)
    counted = np.asarray(evidence.words.scores(query))
    best = float(counted[free].max())
    words = counted / best if best > 0 else np.zeros(len(pool))
    seen = None if sight is None or evidence.pictures is None else _scaled((evidence.pictures @ sight).astype(np.float64), free)
    out: list[Ranked] = []
    for i in free:
        clip = pool[i]
        length = length_fit(clip.duration_us, needed_us)
        texts = (MEANING * meaning[i] + WORDS * words[i]) / (MEANING + WORDS)
        like = texts if seen is None else (1 - SEEN) * texts + SEEN * seen[i]
        distance = near.get(clip.clip_id)
        used = 0.0 if distance is None else USED_NEAR if distance <= 1 else USED_FAR
        out.append(
            Ranked(
                clip=clip,
                score=round(float((1 - LENGTH) * like + LENGTH * length - used), 4),
                meaning=round(float(meaning[i]), 4),
                words=round(float(words[i]), 4),
                seen=None if seen is None else round(float(seen[i]), 4),
                length=round(length, 4),
                why=_why(evidence.words.shared(query, i), float(meaning[i]), None if seen is None else float(seen[i]), length, distance),
            )
        )
    return tuple(sorted(out, key=lambda r: (-r.score, r.clip.clip_id)))


def _scaled(likeness: NDArray[np.float64], free: Sequence[int]) -> NDArray[np.float64]:
    """From 0 for the least to 1 for the most alike of the free clips; 1 for all when they are equal."""
    rounded = np.round(likeness, 5)
    low, high = float(rounded[list(free)].min()), float(rounded[list(free)].max())
    return (rounded - low) / (high - low) if high - low > 1e-6 else np.ones(len(rounded))


def _why(shared: Sequence[str], meaning: float, seen: float | None, length: float, distance: int | None) -> str:
    parts = [f"words {' '.join(shared)}" if shared else "no shared words", f"meaning {meaning:.2f}"]
    if seen is not None:
        parts.append(f"picture {seen:.2f}")
    if length < 1:
        parts.append(f"covers {length:.0%}")
    if distance is not None:
        parts.append("its neighbour has it" if distance <= 1 else f"used {distance} shots away")
    return ", ".join(parts)
