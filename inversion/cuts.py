"""Hard cuts: where one frame cannot be explained by the one before, suddenly and for good.

A cut needs four things at once: a jump in the picture against the frames around it, pattern that no bounded motion explains, a
difference that lasts (flashes and strobes come back to the picture they left), and enough of it to be seen. Owns that decision
on a :class:`inversion.reel.Reel`; knows nothing of gradual transitions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inversion.likeness import Unlikeness
from inversion.reel import Reel

FLASH_US = 450_000
"""A disturbance that is over within this time and leaves the old picture is no cut."""
_LEAST_STEP = 0.8
_LEAST_JUMP = 1.25
_SUDDEN = 8.0
"""After a jump this large the whole picture need not be another one: the camera may have been moved or brought closer."""
_REFRESHED = 8.5
"""Less change than this in every block of a picture that stays the same, in levels, is an encoder starting afresh: a key frame in grain
changes its worst block by up to 6.5, the faintest cut of the films tested by 11."""
_CAPTIONS_ONLY = 0.12
"""Less change than this above the caption strip, in shares of the pattern there, is a change of captions."""
_DENSE_STEP = 25.0
"""Steps this large are looked at even among others like them, levels."""


_ROLLED = 0.27
"""Less than this unexplained by scrolling is the same page: scrolled text gives up to 0.18, other text on a page alike 0.37 and more."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A hard cut before ``frame``; ``margin`` says by how much it passed (0 just so, 1 beyond doubt)."""

    frame: int
    margin: float


@dataclass(frozen=True, slots=True)
class Rules:
    """What counts, derived from the sensitivity setting (0.5 is the middle)."""

    share: float
    seen: float
    plain: float

    @classmethod
    def of(cls, sensitivity: float) -> Rules:
        """Thresholds move by about a third to either side."""
        lean = 0.5 - sensitivity
        return cls(share=0.36 + 0.2 * lean, seen=1.2 * (1 + 0.8 * lean), plain=4.0 * (1 + 0.8 * lean))


def find_cuts(reel: Reel, start: int, end: int, times: NDArray[np.int64], pace: float, rules: Rules) -> list[Cut]:
    """Cuts before frames ``[start, end)``.

    Args:
        times: presentation times of the film so far, microseconds, indexed by frame.
        pace: frames in a twenty-fifth of a second.
    """
    marks = [c for c in (_judge(reel, t, pace, rules) for t in _candidates(reel, start, end, pace)) if c is not None]
    return _without_flashes(reel, [m for m in marks if not _is_scrolling(reel, m.frame, pace)], times)


def _candidates(reel: Reel, start: int, end: int, pace: float) -> list[int]:
    step = reel.step
    out = []
    for frame in range(max(start, reel.first + 1, 1), min(end, reel.end)):
        k = frame - reel.first
        here = float(step[k])
        if here < _LEAST_STEP:
            continue
        around = max(float(step[k - 1]), float(step[k + 1]) if k + 1 < len(step) else 0.0)
        dense = here > _DENSE_STEP and here > 0.7 * around and reel.rough(frame - 1, frame) > 0.8
        if dense or (here >= 0.4 * around and _jump(reel, frame, pace) >= _LEAST_JUMP):
            out.append(frame)
    return out


def _jump(reel: Reel, frame: int, pace: float, reach: int = 6) -> float:
    """How much larger the step at ``frame`` is than the third largest step on its busier side, within ``reach`` twenty-fifths of a second.

    The third largest, because frames may come doubled or threefold (a film brought to a higher rate): then most steps are nothing.
    """
    k, near = frame - reel.first, max(4, round(reach * pace))
    usual = 0.0
    for side in (reel.step[max(0, k - near) : k], reel.step[k + 1 : k + 1 + near]):
        if len(side) >= 3:
            usual = max(usual, float(np.partition(side, -3)[-3]))
        elif len(side):
            usual = max(usual, float(side.min()))
    return float(reel.step[k]) / (usual + 0.2)


def _judge(reel: Reel, frame: int, pace: float, rules: Rules) -> Cut | None:
    jump = _jump(reel, frame, pace, reach=9)
    lively = _between((4.0 - jump) / 2.7)
    need = rules.share + 0.29 * lively
    if reel.rough(frame - 1, frame) < 0.9 * need and (jump < 4.0 or reel.distance(frame - 1, frame) < 0.6 * rules.plain):
        return None
    here = reel.unlike(frame - 1, frame)
    if here.kin > 0.98 and reel.greatest(frame - 1, frame) < _REFRESHED:
        return None
    if here.pattern < 4.0 and here.kin < 0.95 and (plain := _plain_change(here)) > rules.plain and jump >= 4.0:
        return Cut(frame, min(1.0, plain / (4 * rules.plain)))
    if here.upper < _CAPTIONS_ONLY:
        return None
    if _still(reel, frame, pace):
        if here.share > rules.share - 0.1 and visible(here) + 0.27 * here.fresh > 0.7 * rules.seen:
            return Cut(frame, min(1.0, visible(here) / (2 * rules.seen)))
    if jump > _SUDDEN and here.share > rules.share - 0.12 and here.kin < 0.985 and reel.changed(frame - 1, frame) > 0.6:
        return Cut(frame, min(1.0, (here.share - rules.share + 0.12) / 0.4))
    if here.share < rules.share or visible(here) < rules.seen:
        return None
    if _stark(reel, frame, here):
        return Cut(frame, 1.0)
    need += 0.3 * lively * _between(1.5 - (here.tone + here.hue) / (0.3 * here.pattern))
    if here.share < need:
        return None
    if here.share - _bustle(reel, frame, pace) < 0.25 + 0.2 * _between((2.5 - jump) / 1.25):
        return None
    least = min(here.share, reel.unlike(*reel.nearest(frame - 3, frame, frame, frame + 3)).share)
    if least < need:
        return None
    return Cut(frame, min(1.0, (least - need) / 0.3))


def _stark(reel: Reel, frame: int, here: Unlikeness) -> bool:
    """Nothing in common, while one of the neighbouring pairs has much in common: a cut however many others are near."""
    if here.share < 0.78 or here.tone + here.hue < 25 or min(here.fresh, here.gone) < 2.5:
        return False
    return min(_share(reel, frame - 2, frame - 1), _share(reel, frame, frame + 1)) < here.share - 0.4


def _is_scrolling(reel: Reel, frame: int, pace: float) -> bool:
    """Whether a page of text moved up or down: as much light and the same colours as before, every line somewhere else."""
    here = reel.unlike(frame - 1, frame)
    if here.kin < 0.5 or here.tone > here.pattern or here.hue > 0.3 * here.pattern or _still(reel, frame, pace):
        return False
    return reel.rolled(frame - 1, frame) < _ROLLED


def _between(value: float) -> float:
    return min(max(value, 0.0), 1.0)


def visible(here: Unlikeness) -> float:
    """How much of a change there is to see, in levels of pattern; 1.2 is a line of text.

    What only comes (a line printed by a program) counts less than what goes: the slide before is gone after a cut.
    """
    return 0.33 * here.fresh + 0.75 * here.gone + (_plain_change(here) * 0.3 if here.kin < 0.95 else 0.0)


def _plain_change(here: Unlikeness) -> float:
    """Change of surfaces that have no pattern, levels: other colours, another distribution of light, and some of plain brightness."""
    return here.hue + here.tone * (1 - abs(here.tilt)) + 0.3 * max(here.tone - 3.0, 0.0)


def _bustle(reel: Reel, frame: int, pace: float) -> float:
    """Unexplained share that is usual here: motion too fast to follow goes on for some frames, a cut does not.

    Only frames with a step comparable to the one at ``frame`` are asked, two on each side; doubled frames lie between them.
    """
    k, reach = frame - reel.first, max(4, round(9 * pace))
    floor = 0.2 * float(reel.step[k])
    total = 0.0
    for side in (range(k - 1, max(0, k - reach), -1), range(k + 1, min(len(reel.step), k + reach))):
        near = [i for i in side if reel.step[i] > floor][:2]
        if len(near) == 2:
            total += min(_share(reel, reel.first + i - 1, reel.first + i) for i in near)
    return total / 2


def _still(reel: Reel, frame: int, pace: float) -> bool:
    """Whether nothing at all moves for half a second before and after, as between slides."""
    k, reach = frame - reel.first, max(5, round(13 * pace))
    sides = (reel.step[max(0, k - reach) : k], reel.step[k + 1 : k + 1 + reach])
    return all(len(side) >= reach // 2 and float(side.max()) < 0.035 for side in sides)


def _share(reel: Reel, a: int, b: int) -> float:
    if a < reel.first or b >= reel.end:
        return 0.0
    return reel.unlike(a, b).share


def _without_flashes(reel: Reel, marks: list[Cut], times: NDArray[np.int64]) -> list[Cut]:
    return [m for m in marks if not _in_flash(reel, m.frame, times)]


def _in_flash(reel: Reel, frame: int, times: NDArray[np.int64]) -> bool:
    """Whether the picture from shortly before ``frame`` is back shortly after it, with nothing but light in between."""
    low, high = frame - 1, frame + 1
    while low > reel.first and times[frame] - times[low - 1] <= FLASH_US:
        low -= 1
    while high < reel.end and times[high] - times[frame - 1] <= FLASH_US:
        high += 1
    jump = max(reel.distance(frame - 1, frame), 1e-3)
    before, after = reel.nearest(low, frame, frame, high, lambda a, b: b - a > 1 and times[b] - times[a] <= FLASH_US, toll=0.01 * jump)
    left = reel.distance(before, after) / jump
    if after - before < 2 or left > 0.4:
        return False
    again = reel.unlike(before, after)
    alike = 0.6 if left < 0.15 or again.kin > 0.97 else 0.42 if left < 0.25 else 0.35
    return again.share < alike and _like_light(reel, before, after)


def _like_light(reel: Reel, before: int, after: int) -> bool:
    """Whether the frames between look like light (or its loss) rather than like another shot."""
    length = after - before - 1
    if length <= 2:
        return True
    lit = 0
    for k in range(before + 1, after):
        seen = reel.unlike(before, k)
        dimmer, stronger = sorted((float(reel.contrast[k - reel.first]), float(reel.contrast[before - reel.first])))
        faint = dimmer < 0.45 * stronger
        same = seen.share < 0.42 and seen.tone < 12
        lit += same or (seen.tone > 12 and abs(seen.tilt) > 0.7 and (faint or seen.share < 0.6))
    return lit >= 0.6 * length
