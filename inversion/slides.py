"""Wipes and pushes: one picture taking the place of another, place by place.

In a straight wipe both pictures stay where they are; in a push the new one moves in and the old one out. Either way every frame between is
two known pictures on the two sides of one line, which can be checked: the picture before and the picture after are laid together for every
place of the line, and the best place must explain the frame and must move evenly from one side to the other. A camera that pans shows new
picture along an edge too, but what it shows after is not what came in there.

Wipes of any other shape (diagonal, iris, clock, blinds, soft edges) are told by what each place of the frame does: it goes from its old
colour to its new one, on the straight line between the two, and never back, while other places are still old or already new. In a dissolve
all places go together; under a moving camera they pass through other colours. Owns these decisions on a :class:`inversion.reel.Reel`.
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
_TOLD_APART = 12.0
"""Places whose two colours lie further apart than this say how far they are, levels a channel."""
_MOST = 0.55
"""Least share of such places: a man who turns before a dark ground has a quarter."""
_ASIDE = 0.15
"""Mean distance of colours from the straight line between old and new, in shares of its length: wipes between stills give up to 0.02,
squeezed pictures 0.1, pushes and pans 0.3 and more."""
_BACK = 0.08
"""Mean of all steps back towards the old colour, in shares of the way: wipes give up to 0.01, pushes and pans 0.5 and more."""
_ABREAST = 0.2
"""Least spread of how far the places are, in the middle of a wipe: soft ones give 0.27 and more, dissolves 0.08 at most."""
_STEEPEST = 0.45
"""Largest share of the frame that turns from one frame to the next; more is a cut."""
_REPLACED = 0.25
"""Least share of the old picture's pattern that must be gone: a drawing that grows on a page takes nothing away."""
_HELD = 50.0
"""Longest dark stretch between an iris that closes and one that opens, twenty-fifths of a second."""
_REST = 0.2
"""Share of a picture's light that is left over of it while an iris is all but closed."""
_EMPTY = 4.0
"""Standard deviation of a frame that shows nothing, levels."""


def find_slides(reel: Reel, start: int, end: int, pace: float, walls: list[int], rules: Rules) -> list[Gradual]:
    """Wipes and pushes whose middle lies in ``[start, end)``, told as dissolves: the storyboard has no kind of their own for them. An iris
    that closes to black (or white) and opens again is one fade.

    Args:
        pace: frames in a twenty-fifth of a second.
        walls: frames that no transition reaches over: hard cuts (first frame of the new shot) and edges of fades.
    """
    out: list[Gradual] = []
    for low, high in _busy(reel, pace):
        if any(low <= w < high for w in walls):
            continue
        closed = next((k for k, g in enumerate(out) if g.end <= low and _blank_between(reel, g, low, pace)), None)
        one = _fit(reel, low, high, rules) or _fit_any_shape(reel, low, high, rules, opens=closed is not None)
        if one is None or any(one.start < g.end and g.start < one.end for g in out):
            continue
        if closed is None:
            out.append(one)
        else:
            first, light = out[closed], bool(reel.mean[out[closed].end - reel.first] > 128)
            kind = Transition.FADE_WHITE if light else Transition.FADE_BLACK
            out[closed] = Gradual(first.start, (first.start + one.end) // 2, one.end, kind, min(first.margin, one.margin))
    return [g for g in out if start <= (g.start + g.end) // 2 < end]


def _blank_between(reel: Reel, closing: Gradual, opens: int, pace: float) -> bool:
    """Whether one of the frames between shows nothing; of a longer stretch, whether none shows more than what is left of an iris."""
    between = slice(closing.end - reel.first, opens + 1 - reel.first)
    if not bool((reel.deviation[between] < _EMPTY).any()):
        return False
    before = float(reel.mean[closing.start - 1 - reel.first])
    return opens <= closing.end + 12 * pace or (opens <= closing.end + _HELD * pace and float(reel.mean[between].max()) < _REST * before)


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


def _fit_any_shape(reel: Reel, low: int, high: int, rules: Rules, *, opens: bool) -> Gradual | None:
    """A wipe of whatever shape over frames ``[low, high)``; None where it is none.

    Args:
        opens: another one has just closed over the old picture.
    """
    frames = reel.colours(low - 1, high)
    line = frames[-1] - frames[0]
    power = (line * line).sum(axis=-1)
    telling = power > 3 * _TOLD_APART**2
    if float(telling.mean()) < _MOST:
        return None
    way, power = line[telling], power[telling]
    gone_by = frames[:, telling] - frames[0][telling]
    turned = np.clip((gone_by * way).sum(axis=-1) / power, 0, 1)
    aside = np.sqrt(((gone_by - turned[..., None] * way) ** 2).sum(axis=-1) / power)[1:-1].mean()
    back = np.clip(-np.diff(turned, axis=0), 0, None).sum(axis=0).mean()
    whole = turned.mean(axis=1)
    if aside > _ASIDE or back > _BACK or turned[1:-1].std(axis=1).max() < _ABREAST or np.diff(whole).max() > _STEEPEST:
        return None
    pair = reel.unlike(low - 1, high - 1)
    if pair.share < rules.share + 0.1 or visible(pair) < rules.seen or (not opens and pair.gone < _REPLACED * pair.pattern):
        return None
    return Gradual(low, (low + high) // 2, high - 1, Transition.DISSOLVE, min(1.0, (_ASIDE - float(aside)) / _ASIDE))


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
