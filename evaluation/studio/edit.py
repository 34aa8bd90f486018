"""The edit list: scenes one after another, joined by cuts, dissolves and fades, and the exact truth of it.

Owns where shots start and what joins them. Must not encode or write files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from evaluation.studio.pictures import Picture
from evaluation.studio.scenes import Scene, Size

Join = Literal["cut", "dissolve", "fade_black", "fade_white", "wipe", "push"]


@dataclass(frozen=True)
class Cutaway:
    """One shot of the edit: a scene shown for ``frames``, joined to the shot before.

    A gradual join of ``length`` frames lies half before and half after the start of the shot; a fade spends ``hold`` frames of it
    on plain black or white.
    """

    scene: Scene
    frames: int
    join: Join = "cut"
    length: int = 0
    hold: int = 1


@dataclass(frozen=True)
class Boundary:
    """Truth of one join: frames ``[start, end)`` are mixed (empty for a cut); ``at`` is the first frame of the new shot."""

    at: int
    start: int
    end: int
    kind: Join


def boundaries(edit: list[Cutaway]) -> tuple[Boundary, ...]:
    """The truth of an edit list."""
    out: list[Boundary] = []
    at = 0
    for index, shot in enumerate(edit):
        if index:
            start, end = _extent(shot, at)
            out.append(Boundary(at=at, start=start, end=end, kind=shot.join))
        at += shot.frames
    return tuple(out)


def _extent(shot: Cutaway, at: int) -> tuple[int, int]:
    if shot.join == "cut":
        return at, at
    start = at - shot.length // 2
    return start, start + shot.length


def frames(edit: list[Cutaway], size: Size) -> Iterator[Picture]:
    """Every frame of the film in order."""
    starts: list[int] = []
    at = 0
    for shot in edit:
        starts.append(at)
        at += shot.frames
    for number in range(at):
        yield _frame(edit, starts, number, size)


def _frame(edit: list[Cutaway], starts: list[int], number: int, size: Size) -> Picture:
    index = max(k for k, s in enumerate(starts) if s <= number)
    for k in (index, index + 1):
        if 0 < k < len(edit) and edit[k].join != "cut":
            start, end = _extent(edit[k], starts[k])
            if start <= number < end:
                before = edit[k - 1].scene.frame(number - starts[k - 1], size)
                after = edit[k].scene.frame(number - starts[k], size)
                return _mixed(edit[k], before, after, number - start, end - start)
    return edit[index].scene.frame(number - starts[index], size)


def _mixed(shot: Cutaway, before: Picture, after: Picture, step: int, length: int) -> Picture:
    a, b = before.astype(np.float32), after.astype(np.float32)
    share = (step + 1) / (length + 1)
    if shot.join in ("wipe", "push"):
        edge = round(share * before.shape[1])
        moved = before[:, edge:] if shot.join == "wipe" else before[:, : before.shape[1] - edge]
        parts = (after[:, :edge], moved) if shot.join == "wipe" else (after[:, before.shape[1] - edge :], moved)
        return np.concatenate(parts, axis=1)
    if shot.join == "dissolve":
        return np.clip(a * (1 - share) + b * share + 0.5, 0, 255).astype(np.uint8)
    plain = np.full_like(a, 0.0 if shot.join == "fade_black" else 255.0)
    out = (length - shot.hold) // 2
    back = length - shot.hold - out
    if step < out:
        share = (step + 1) / (out + 1)
        mixed = a * (1 - share) + plain * share
    elif step < out + shot.hold:
        mixed = plain
    else:
        share = (step - out - shot.hold + 1) / (back + 1)
        mixed = plain * (1 - share) + b * share
    return np.clip(mixed + 0.5, 0, 255).astype(np.uint8)
