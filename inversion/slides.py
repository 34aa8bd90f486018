"""Wipes and pushes: one picture taking the place of another along a straight edge that crosses the frame at an even pace.

In a wipe both pictures stay where they are; in a push the new one moves in and the old one out. Either way every frame between is two known
pictures on the two sides of one line, which can be checked: the picture before and the picture after are laid together for every place of
the line, and the best place must explain the frame and must move evenly from one side to the other. A camera that pans shows new picture
along an edge too, but what it shows after is not what came in there. Owns that decision on a :class:`inversion.reel.Reel`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from inversion.cuts import Rules, visible
from inversion.gradual import Gradual
from inversion.likeness import Floats
from inversion.reel import Reel
from schemas.storyboard import Transition

_LEAST_FRAMES = 4
_LONGEST = 40.0
"""Twenty-fifths of a second."""
_BUSY = 0.6
"""Mean change from frame to frame that a slide makes at least, levels."""
_LEFT = 0.22
"""What the two pictures leave unexplained of a frame, as a share of their difference, may be this much."""
_UNEVEN = 0.075
"""Mean distance of the line from an even pace, in shares of the way."""


def find_slides(reel: Reel, start: int, end: int, pace: float, walls: list[int], rules: Rules) -> list[Gradual]:
    """Wipes and pushes whose middle lies in ``[start, end)``, told as dissolves: the storyboard has no kind of their own for them.

    Args:
        pace: frames in a twenty-fifth of a second.
        walls: frames that no transition reaches over: hard cuts (first frame of the new shot) and edges of fades.
    """
    out: list[Gradual] = []
    for low, high in _busy(reel, pace):
        if not start <= (low + high) // 2 < end or any(low <= w < high for w in walls):
            continue
        found = _fit(reel, low, high, rules)
        if found is not None and not any(found.start < g.end and g.start < found.end for g in out):
            out.append(found)
    return out


def _busy(reel: Reel, pace: float) -> Iterator[tuple[int, int]]:
    """Stretches of frames ``[low, high)`` that change clearly more than what lies on both sides of them."""
    shift = reel.shift
    for quiet in (2.0, 4.0):
        near = max(4, round(8 * pace))
        k = 1
        while k < len(shift):
            before = shift[max(1, k - near) : k]
            level = max(_BUSY, quiet * float(np.median(before)) if len(before) else _BUSY)
            if shift[k] < level:
                k += 1
                continue
            last = k
            while last < len(shift) and shift[last] >= level:
                last += 1
            if _LEAST_FRAMES <= last - k <= _LONGEST * pace and last < len(shift):
                yield reel.first + k, reel.first + last
            k = last + 1


def _fit(reel: Reel, low: int, high: int, rules: Rules) -> Gradual | None:
    """The slide over frames ``[low, high)``, of which the last shows the new picture alone; None where it is none."""
    stack = reel.coarse[low - 1 - reel.first : high - reel.first]
    if len(stack) < _LEAST_FRAMES + 1:
        return None
    apart = float(np.abs(stack[-1] - stack[0]).mean())
    if apart < 3.0:
        return None
    even = np.arange(len(stack)) / (len(stack) - 1)
    for turned in (stack, stack[:, :, ::-1], stack.transpose(0, 2, 1), stack.transpose(0, 2, 1)[:, :, ::-1]):
        for costs in (_wiped(turned), _pushed(turned)):
            place = costs.argmin(axis=1)
            left = costs[np.arange(len(costs)), place] / apart
            line = place / (costs.shape[1] - 1)
            inner = slice(1, -1)
            if float(left[inner].mean()) > _LEFT or float(np.abs(line - even)[inner].mean()) > _UNEVEN:
                continue
            if bool((np.diff(line) < -0.5 / (costs.shape[1] - 1)).any()):
                continue
            pair = reel.unlike(low - 1, high - 1)
            if pair.share < rules.share or visible(pair) < rules.seen:
                continue
            margin = min(1.0, (_LEFT - float(left[inner].mean())) / _LEFT)
            return Gradual(low, (low + high) // 2, high - 1, Transition.DISSOLVE, margin)
    return None


def _wiped(stack: Floats) -> NDArray[np.float64]:
    """Mean difference, levels, of each frame from the last picture left of a line and the first one right of it; [frames, columns + 1]."""
    count, _, wide = stack.shape
    new = np.abs(stack - stack[-1]).mean(axis=1).astype(np.float64)
    old = np.abs(stack - stack[0]).mean(axis=1).astype(np.float64)
    out = np.zeros((count, wide + 1))
    out[:, 1:] = np.cumsum(new, axis=1)
    out[:, :-1] += np.cumsum(old[:, ::-1], axis=1)[:, ::-1]
    out /= wide
    return out


def _pushed(stack: Floats) -> NDArray[np.float64]:
    """The same where the new picture moves in from the left with the line and the old one moves out before it."""
    count, _, wide = stack.shape
    out = np.zeros((count, wide + 1))
    for p in range(wide + 1):
        moved = np.concatenate([stack[-1][:, wide - p :], stack[0][:, : wide - p]], axis=1)
        out[:, p] = np.abs(stack - moved).mean(axis=(1, 2))
    return out
