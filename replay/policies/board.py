"""The recovered storyboard as a script sees it: which shot lies over which characters, and what it was meant to show.

The only place of replay that reads a storyboard after the task was built. Its answers are the recovered editor's decisions: labels.
"""

from __future__ import annotations

from dataclasses import dataclass

from schemas.storyboard import BoardShot, Storyboard


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of script over one recovered shot, inside one segment. Silent shots have an empty stretch."""

    shot: BoardShot
    start: int
    end: int
    share: float
    """Part of the shot that this piece is, 0 to 1."""


class Board:
    """Look-ups over a storyboard."""

    def __init__(self, storyboard: Storyboard) -> None:
        self.storyboard = storyboard
        self.script = storyboard.script
        shots = storyboard.shots
        self._borders: list[tuple[int, int]] = []
        for i, shot in enumerate(shots):
            start = 0 if i == 0 else self._borders[-1][1]
            end = len(self.script) if i == len(shots) - 1 else max(start, shots[i + 1].script_start)
            self._borders.append((start, end) if shot.script_end > shot.script_start or end > start else (start, start))

    def pieces(self, start: int, end: int) -> list[Piece]:
        """Recovered shots over the half-open range of script characters, in order, cut at its borders.

        Silent shots belong to the range their place begins in; at the very end of the script they belong to the last range.
        """
        out: list[Piece] = []
        for shot, (a, b) in zip(self.storyboard.shots, self._borders, strict=True):
            if a == b:
                inside = start <= a < end or (a == end == len(self.script))
                if inside:
                    out.append(Piece(shot, a, a, 1.0))
                continue
            lo, hi = max(a, start), min(b, end)
            if lo < hi and self.script[lo:hi].strip():
                out.append(Piece(shot, lo, hi, (hi - lo) / (b - a)))
        return out

    def shot_over(self, start: int, end: int, position: int) -> BoardShot | None:
        """The recovered shot that has most in common with a range; by position when the range is empty; None without shots."""
        shots = self.storyboard.shots
        if not shots:
            return None
        best = max(range(len(shots)), key=lambda i: min(self._borders[i][1], end) - max(self._borders[i][0], start))
        shared = min(self._borders[best][1], end) - max(self._borders[best][0], start)
        if end > start and shared > 0:
            return shots[best]
        silent = [i for i, (a, b) in enumerate(self._borders) if a == b == start]
        if silent:
            return shots[min(silent, key=lambda i: abs(i - position))]
        return shots[min(max(position, 0), len(shots) - 1)]

    def segment_of(self, at: int) -> int:
        """Index of the recovered segment that holds a script character; the last one beyond the end."""
        for segment in self.storyboard.segments:
            if at < segment.script_end:
                return segment.index
        return self.storyboard.segments[-1].index if self.storyboard.segments else 0

    def segment_title(self, index: int) -> str:
        """Title of a recovered segment."""
        titles = {s.index: s.title for s in self.storyboard.segments}
        return titles.get(index, "") or self.storyboard.title or "Part"
