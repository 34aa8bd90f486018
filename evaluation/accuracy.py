"""How right a recovered storyboard is, against the exact truth of a made film.

Owns the measures and what counts as a hit; pure functions. Must not invert, and must not make films. What is compared with another method
goes through the same function for both.
"""

from __future__ import annotations

import difflib
import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from evaluation.studio.truth import FilmTruth, TrueJoin, TrueShot
from media.ocr import reading_order
from schemas.storyboard import BoardShot, Storyboard, TextBox, Transition

NONE = "none"


@dataclass(frozen=True, slots=True)
class Boundary:
    """A found boundary: mixed frames ``[start, end)`` of the film; equal for a cut. ``kind`` is empty where a method tells none."""

    start: int
    end: int
    kind: str = ""


class Timed(Protocol):
    """A recovered word or sentence (structural)."""

    @property
    def start_us(self) -> int: ...
    @property
    def end_us(self) -> int: ...


@dataclass
class Score:
    """Counts over any number of films; add scores with ``+=``.

    ``counts``: hits, misses and false alarms by name (see the functions below). ``borders_us``: absolute errors of word starts and ends.
    ``kinds``: (true kind, found kind) of every shot.
    """

    counts: Counter[str] = field(default_factory=Counter)
    borders_us: list[int] = field(default_factory=list)
    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __iadd__(self, other: Score) -> Score:
        self.counts += other.counts
        self.borders_us += other.borders_us
        self.kinds += other.kinds
        return self

    def f1(self, what: str) -> float:
        """Of ``what`` hit, missed and false; 1.0 where there was nothing to find and nothing was found."""
        hit = self.counts[f"{what} hit"]
        wrong = self.counts[f"{what} missed"] + self.counts[f"{what} false"]
        return 1.0 if hit + wrong == 0 else 2 * hit / (2 * hit + wrong)

    def share(self, what: str, of: str) -> float:
        """One count over another; 1.0 where the other is nothing."""
        return self.counts[what] / self.counts[of] if self.counts[of] else 1.0

    def quantile_us(self, share: float) -> int:
        """Of the word border errors, microseconds; 0 without any."""
        errors = sorted(self.borders_us)
        return errors[min(len(errors) - 1, int(share * len(errors)))] if errors else 0


def found_boundaries(board: Storyboard, frame_us: Sequence[int]) -> list[Boundary]:
    """The boundaries of a storyboard in frame numbers."""
    out: list[Boundary] = []
    for one in board.shots[1:]:
        shot = one.shot
        if shot.transition_in is Transition.CUT or shot.transition_start_us is None or shot.transition_end_us is None:
            out.append(Boundary(shot.start_frame, shot.start_frame, "cut"))
        else:
            start, end = (bisect_left(frame_us, t) for t in (shot.transition_start_us, shot.transition_end_us))
            out.append(Boundary(start, max(end, start + 1), shot.transition_in.value))
    return out


def score_boundaries(joins: Sequence[TrueJoin], found: Sequence[Boundary]) -> Score:
    """Cuts within one frame; gradual transitions, wipes and pushes by overlap.

    A boundary of any sort inside a gradual one counts as finding it, once; a gradual one that is found twice has one false cut. ``gradual
    named`` counts those whose kind is right as well.
    """
    score = Score()
    left = list(found)
    for join in sorted(joins, key=lambda j: j.kind != "cut"):
        what = "cut" if join.kind == "cut" else "slide" if join.kind in ("wipe", "push") else "gradual"
        if what == "cut":
            near = [f for f in left if f.start == f.end and abs(f.start - join.at_frame) <= 1]
            hit = min(near, key=lambda f: abs(f.start - join.at_frame), default=None)
        else:
            near = [f for f in left if f.end >= join.start_frame - 1 and f.start <= join.end_frame + 1]
            hit = max(near, key=lambda f: f.end - f.start, default=None)
        score.counts[f"{what} {'hit' if hit else 'missed'}"] += 1
        if hit is not None:
            left.remove(hit)
            score.counts[f"{what} named"] += hit.kind == join.kind
    for f in left:
        score.counts[f"{'cut' if f.start == f.end else 'gradual'} false"] += 1
    return score


def plain(text: str) -> str:
    """Letters and digits only, without case and width: what must agree for two texts to be the same."""
    return "".join(c for c in unicodedata.normalize("NFKC", text).casefold() if c.isalnum())


def distance(a: Sequence[Hashable], b: Sequence[Hashable]) -> int:
    """Edit distance: insertions, deletions and substitutions."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, start=1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


@dataclass(frozen=True, slots=True)
class Match:
    """True words and the recovered words that are the same, by position in each; in Mandarin (first, last) characters of a true word."""

    true: int
    first: int
    last: int


def match_words(truth: FilmTruth, board: Storyboard) -> tuple[list[Match], int, int]:
    """Matched words, edit distance, length of the truth; words in English, characters in Mandarin."""
    wide = truth.language == "zh"
    mine = [(c, k) for k, w in enumerate(truth.words) for c in (plain(w.text) if wide else (plain(w.text),))]
    theirs = [(c, k) for k, w in enumerate(board.words) if (p := plain(w.text)) for c in (p if wide else (p,))]
    a, b = [c for c, _ in mine], [c for c, _ in theirs]
    pair: dict[int, int] = {}
    for block in difflib.SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks():
        pair |= {block.a + k: block.b + k for k in range(block.size)}
    matches: list[Match] = []
    for word in range(len(truth.words)):
        own = [k for k in range(len(mine)) if mine[k][1] == word] if wide else []
        units = own or [bisect_left([k for _, k in mine], word)]
        if all(u in pair for u in units):
            matches.append(Match(word, theirs[pair[units[0]]][1], theirs[pair[units[-1]]][1]))
    return matches, distance(a, b), len(a)


def score_words(truth: FilmTruth, board: Storyboard, matches: Sequence[Match]) -> Score:
    """Errors of the starts and ends of matched words, where word truth exists."""
    score = Score()
    if truth.word_times == "exact":
        for m in matches:
            word = truth.words[m.true]
            score.borders_us.append(abs(board.words[m.first].start_us - word.start_us))
            score.borders_us.append(abs(board.words[m.last].end_us - word.end_us))
    return score


def true_shot_at(truth: FilmTruth, shot: Timed) -> int:
    """The true shot that a found one overlaps most."""
    return max(range(len(truth.shots)), key=lambda k: _overlap(truth.shots[k], shot))


def _overlap(a: Timed | TrueShot, b: Timed | TrueShot) -> int:
    return min(a.end_us, b.end_us) - max(a.start_us, b.start_us)


def score_alignment(truth: FilmTruth, board: Storyboard, shot_of: Sequence[int | None], matches: Sequence[Match]) -> Score:
    """Sentences that lie over exactly the shots the editor meant, and words in the right shot.

    Args:
        shot_of: for each recovered word the found shot it was dealt to.
        matches: only these words are asked about; a sentence none of whose words were heard right is left out.
    """
    score = Score()
    home = [true_shot_at(truth, s.shot) for s in board.shots]
    told: dict[int, set[int]] = {}
    meant: dict[int, set[int]] = {}
    for m in matches:
        word = truth.words[m.true]
        found = shot_of[m.first]
        place = -1 if found is None else home[found]
        told.setdefault(word.sentence, set()).add(place)
        meant.setdefault(word.sentence, set()).add(word.shot)
        score.counts["word"] += 1
        score.counts["word in its shot"] += place == word.shot
    for sentence, shots in meant.items():
        score.counts["sentence"] += 1
        score.counts["sentence over its shots"] += told[sentence] == shots
    return score


def greedy_shots(board: Storyboard) -> list[int | None]:
    """The plain way to align: every cut goes to the nearest border of a sentence."""
    borders = [0, *(s.end_word for s in board.sentences)]
    at = [board.words[b].start_us if b < len(board.words) else board.words[-1].end_us for b in borders] if board.words else [0]
    edges = [0]
    for one in board.shots[1:]:
        nearest = min(range(len(borders)), key=lambda k: abs(at[k] - one.shot.start_us))
        edges.append(max(edges[-1], borders[nearest]))
    return [bisect_right(edges, w) - 1 for w in range(len(board.words))]


def score_screen(truth: FilmTruth, board: Storyboard) -> Score:
    """Text on cards and lower thirds, its boxes, captions told apart, spotlight kinds and slots, and whether key frames are clear.

    Every true shot is compared with the found shot that overlaps it most; shots of under a quarter of a second are left out.
    """
    score = Score()
    for shot in truth.shots:
        if shot.end_us - shot.start_us < 250_000:
            continue
        best = max(board.shots, key=lambda s: _overlap(shot, s.shot))
        _score_shot(score, truth, shot, best)
    for one in board.shots:
        for frame in one.evidence.key_frames:
            score.counts["key frame"] += 1
            unclear = any(j.start_us < frame.at_us < j.end_us for j in truth.joins)
            unclear |= any(f.start_us <= frame.at_us < f.end_us for f in truth.flashes)
            score.counts["key frame clear"] += not unclear
    return score


def _score_shot(score: Score, truth: FilmTruth, shot: TrueShot, best: BoardShot) -> None:
    counts, seen = score.counts, best.evidence
    lines = [n for n in shot.lines if n.role != "caption"]
    at = seen.key_frames[0].at_us if seen.key_frames else shot.start_us
    captions = [n for n in shot.lines if n.role == "caption" and n.since_us <= at < n.until_us]
    if lines:
        as_read = reading_order([TextBox(text=n.text, x=n.x, y=n.y, width=n.width, height=n.height, confidence=1) for n in lines])
        wanted, got = plain("".join(b.text for b in as_read)), plain("".join(b.text for b in seen.text))
        counts["letters"] += len(wanted)
        counts["letters wrong"] += min(len(wanted), distance(wanted, got))
        scale = truth.width / seen.key_frames[0].width if seen.key_frames else 1.0
        counts["line"] += len(lines)
        counts["line in its box"] += sum(any(_holds(_scaled(b, scale), (n.x, n.y, n.width, n.height)) for b in seen.text) for n in lines)
    if captions:
        counts["caption shot"] += 1
        text = plain("".join(n.text for n in captions))
        told = plain("".join(seen.burned_captions))
        counts["caption told apart"] += distance(text, told) <= 0.2 * len(text)
    elif shot.lines and not any(n.role == "caption" for n in shot.lines):
        counts["card shot"] += 1
        counts["card taken for caption"] += bool(seen.burned_captions)
    kind = shot.spotlight.kind.value if shot.spotlight else NONE
    shown = best.spotlight if best.spotlight is not None and best.spotlight.origin == "screen" else None
    found = shown.kind.value if shown else NONE
    score.kinds[kind, found] += 1
    counts["kind"] += 1
    counts["kind right"] += kind == found
    if shot.spotlight is not None and shown is not None and kind == found:
        counts["slot"] += len(shot.spotlight.slots)
        counts["slot right"] += sum(plain(v) == plain(shown.slots.get(k, "")) for k, v in shot.spotlight.slots.items())


def _scaled(box: TextBox, scale: float) -> tuple[float, float, float, float]:
    return box.x * scale, box.y * scale, box.width * scale, box.height * scale


def _holds(found: tuple[float, float, float, float], ink: tuple[float, float, float, float]) -> bool:
    """A found box covers four fifths of the ink and is not more than two and a half times as large: readers leave a margin."""
    wide = min(found[0] + found[2], ink[0] + ink[2]) - max(found[0], ink[0])
    tall = min(found[1] + found[3], ink[1] + ink[3]) - max(found[1], ink[1])
    area = ink[2] * ink[3]
    return wide > 0 and tall > 0 and wide * tall >= 0.8 * area and found[2] * found[3] <= 2.5 * area


def score_film(truth: FilmTruth, board: Storyboard) -> Score:
    """Everything of one film."""
    score = score_boundaries(truth.joins, found_boundaries(board, truth.frame_us))
    matches, wrong, length = match_words(truth, board)
    unit = "character" if truth.language == "zh" else "spoken word"
    score.counts[unit] += length
    score.counts[f"{unit} wrong"] += wrong
    score += score_words(truth, board, matches)
    score += score_alignment(truth, board, [w.shot for w in board.words], matches)
    score += score_screen(truth, board)
    return score


def confusion(kinds: Counter[tuple[str, str]]) -> list[tuple[str, dict[str, int]]]:
    """Rows of a table: true kind and how often each kind was found for it."""
    names: Iterable[str] = sorted({n for pair in kinds for n in pair}, key=lambda n: (n == NONE, n))
    return [(true, {found: kinds[true, found] for found in names if kinds[true, found]}) for true in names]
