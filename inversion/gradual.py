"""Gradual transitions: dissolves, and fades through black or white.

A dissolve is found by what it is: for a while each frame is a mixture of a picture before and a picture after, in shares that go
steadily from one to the other, and the two pictures cannot be explained by each other. A camera that moves gives frames that are
no such mixture. A fade is a stretch of blank frames with ramps of contrast beside it. Owns those decisions on a
:class:`inversion.reel.Reel`; hard cuts are told to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inversion.cuts import Rules, visible
from inversion.likeness import Unlikeness
from inversion.reel import Reel
from schemas.storyboard import Transition

_BLANK_SPREAD = 18.0
_BLACK, _WHITE = 40.0, 222.0
_CLOSES = 16.0
"""Longest way of an iris from the whole picture to black that is told here, twenty-fifths of a second; longer ones are slides."""
_HOLE, _UNMOVED = 24.0, 16.0
"""Luma of a place that an iris has closed, at most; change of one that it has not, at most."""
HOLD_US = 1_000_000
"""A blank stretch with hard edges that is longer than this is a shot of its own."""
SAME_US = 700_000
"""A dip to black or white and back to the same picture within this time is light, no transition."""


@dataclass(frozen=True, slots=True)
class Gradual:
    """A gradual transition over frames ``[start, end)``; the new shot counts from frame ``at``."""

    start: int
    at: int
    end: int
    kind: Transition
    margin: float


@dataclass(frozen=True, slots=True)
class _Blank:
    start: int
    end: int
    kind: Transition


@dataclass(frozen=True, slots=True)
class Fades:
    """What blank stretches make of a film.

    ``fades``: transitions. ``spent``: hard cuts that are an edge of a fade, of a flash, or of blank frames at the ends of the film.
    ``taken``: stretches of frames ``[start, end)`` in which no dissolve is looked for.
    """

    fades: tuple[Gradual, ...]
    spent: frozenset[int]
    taken: tuple[tuple[int, int], ...]


def find_fades(reel: Reel, times: NDArray[np.int64], pace: float, cuts: list[int], film_end: int | None, rules: Rules) -> Fades:
    """Fades through black and white.

    Args:
        times: presentation times, microseconds, indexed by frame.
        pace: frames in a twenty-fifth of a second.
        cuts: hard cuts found so far.
        film_end: number of frames of the film where its end is in the reel, else None.
    """
    fades: list[Gradual] = []
    spent: set[int] = set()
    taken: list[tuple[int, int]] = []

    def moment(frame: int) -> int:
        return int(times[min(frame, len(times) - 1)])

    for blank in _blanks(reel):
        if (blank.start <= reel.first and reel.first > 0) or (blank.end >= reel.end and film_end is None):
            continue
        left = _ramp(reel, blank.start, -1, pace, cuts)
        right = _ramp(reel, blank.end - 1, +1, pace, cuts)
        if blank.kind is Transition.FADE_BLACK:
            left = min(left, _closing(reel, blank.start, -1, pace))
            right = max(right, _closing(reel, blank.end - 1, +1, pace))
        lasts = moment(blank.end) - moment(blank.start)
        soft = blank.start - left > 2 or right - blank.end > 1
        edges = {c for c in cuts if left < c <= right or (blank.start - left > 2 and c == left)}  # no shot is one frame and then fades
        if blank.start == 0 or blank.end == film_end:
            if soft or lasts < HOLD_US // 2:
                spent |= edges
                taken.append((left, right + 1))
            continue
        middle = (blank.start + blank.end) // 2
        seen = min(visible(u) + 0.1 * u.tone for u in (reel.unlike(left, middle), reel.unlike(middle, right)))
        if seen < 1.3 * rules.seen or (not soft and lasts > HOLD_US):
            continue
        spent |= edges
        taken.append((left, right + 1))
        if _same_picture(reel, left, right) and moment(right) - moment(left) <= SAME_US:
            continue
        fades.append(Gradual(left + 1, middle, right, blank.kind, 1.0))
    return Fades(tuple(fades), frozenset(spent), tuple(taken))


def _blanks(reel: Reel) -> list[_Blank]:
    """Runs of frames without content that are nearly black or nearly white, and single frames where a ramp turns back."""
    dark, light = reel.mean < _BLACK, reel.mean > _WHITE
    empty = (reel.spread < _BLANK_SPREAD) & (light | (dark & (reel.bright < reel.mean + _BLANK_SPREAD)))
    out: list[_Blank] = []
    k, count = 0, len(empty)
    while k < count:
        if not empty[k]:
            k += 1
            continue
        end = k
        while end < count and empty[end] and dark[end] == dark[k]:
            end += 1
        out.append(_Blank(reel.first + k, reel.first + end, Transition.FADE_BLACK if dark[k] else Transition.FADE_WHITE))
        k = end
    return out


def _ramp(reel: Reel, edge: int, way: int, pace: float, cuts: list[int]) -> int:
    """Last frame of the undimmed picture beside a blank stretch, walking from ``edge`` outwards (-1 back, +1 forward).

    The contrast is taken to rise in a straight line from the blank and then to stay; where it bends is fitted by least squares. Where
    it does not rise like that, or shows another picture while it does, the edge is hard, and the frame beside it is the answer.
    """
    path, settled = [edge], max(4, round(6 * pace))
    while len(path) <= max(12, 75 * pace):
        frame = path[-1] + way
        later = path[-1] if way < 0 else frame
        if not reel.first <= frame < reel.end:
            break
        if later in cuts and len(path) > 1 and not _lit(reel, later):
            break
        path.append(frame)
    rise = reel.contrast[np.array(path) - reel.first].astype(np.float64)
    best, bend = np.inf, 1
    for k in range(1, len(rise)):
        length = min(len(rise), k + settled)
        level = float(np.median(rise[k:length]))
        if level < 0.5 * float(rise[:length].max()):
            continue
        model = np.concatenate([level * np.arange(k) / k, np.full(length - k, level)])
        error = float(np.abs(model - rise[:length]).mean()) / max(level, 3.0)
        if error < best - 2e-3:
            best, bend = error, k
    bend = min(bend, len(path) - 1)
    if best > 0.15 or (bend > 2 and reel.unlike(path[(2 * bend + 2) // 3], path[bend]).share > 0.5):
        return path[min(1, len(path) - 1)]
    return path[bend]


def _closing(reel: Reel, edge: int, way: int, pace: float) -> int:
    """Last frame of the whole picture beside a black stretch over which it closes (an iris, a frame that shrinks), walking outwards.

    On the way each place is black already or still as it was, and frames grow lighter outwards; where they do not, ``edge`` is the answer.
    """
    path = [k for j in range(round(_CLOSES * pace) + 1) if 0 <= (k := edge - reel.first + way * j) < len(reel.mean)]
    light = reel.mean[path]
    grown = np.maximum.accumulate(light)
    falls = np.flatnonzero(light < 0.97 * grown)
    top = float(grown[falls[0] - 1] if len(falls) else grown[-1])
    last = int(np.argmax(light >= 0.97 * top))
    whole = reel.coarse[path[last]]
    places = whole > 2 * _HOLE
    if last < 2 or float(places.mean()) < 0.3:
        return edge
    stack = reel.coarse[path[1:last]][:, places]
    still = np.abs(stack - whole[places]) < _UNMOVED
    shown = still.mean(axis=1)
    if float((still | (stack < _HOLE)).mean()) < 0.85 or not ((shown > 0.05) & (shown < 0.95)).any():
        return edge
    return reel.first + path[last]


def _lit(reel: Reel, frame: int) -> bool:
    """Whether a step looks like light going up or down."""
    step = reel.unlike(frame - 1, frame)
    return step.kin > 0.9 or (step.kin > 0.7 and abs(step.tilt) > 0.9)


def _same_picture(reel: Reel, before: int, after: int) -> bool:
    if before < reel.first or after >= reel.end:
        return False
    again = reel.unlike(before, after)
    return again.tone < 20 and (again.share < 0.42 or (again.share < 0.6 and again.kin > 0.97))


def find_dissolves(reel: Reel, start: int, end: int, pace: float, walls: list[int], rules: Rules) -> list[Gradual]:
    """Dissolves whose middle lies in ``[start, end)``.

    Args:
        walls: frames that no dissolve reaches over: hard cuts (first frame of the new shot) and edges of fades.
    """
    out: list[Gradual] = []
    for low, high in [*_mixtures(reel, pace, 3.0), *_mixtures(reel, pace, 0.8)]:
        if not start <= (low + high) // 2 < end or any(low <= g.end and g.start <= high for g in out):
            continue
        floor = max([reel.first, *(w for w in walls if w <= low)])
        ceiling = min([reel.end - 1, *(w - 1 for w in walls if w > high)])
        if any(low < w <= high for w in walls):
            continue
        fit = _fit(reel, low, high, floor, ceiling, pace, rules)
        if fit is not None and not any(fit.start < g.end and g.start < fit.end for g in out):
            out.append(fit)
    return sorted(out, key=lambda g: g.start)


def _mixtures(reel: Reel, pace: float, least: float) -> list[tuple[int, int]]:
    """Stretches where frames are the mean of those some frames before and after them, while the picture changes by ``least`` levels.

    A moving camera can come near such a mean too, but it keeps the contrast; mixing two pictures takes some away.
    """
    flags = np.zeros(len(reel.step), bool)
    deviation = reel.deviation
    for k in sorted({max(1, round(n * pace)) for n in (2, 4, 8)}):
        if len(flags) <= 2 * k:
            continue
        before, here, after = reel.coarse[: -2 * k], reel.coarse[k:-k], reel.coarse[2 * k :]
        middle = (after + before) * 0.5
        change = np.abs(after - before).mean(axis=(1, 2))
        off = np.abs(here - middle).mean(axis=(1, 2))
        kept = (deviation[: -2 * k] + deviation[2 * k :]) * 0.5
        lost = middle.std(axis=(1, 2))
        room = kept - lost
        mixed = deviation[k:-k] - lost < 0.65 * room
        plain = np.minimum(deviation[: -2 * k], deviation[2 * k :]) < 5.0
        flags[k:-k] |= (change > least) & (off < 0.3 * change) & (((room > 0.004 * kept) & mixed) | plain)
    return _runs(flags, reel.first, max(2, round(3 * pace)))


def _runs(flags: NDArray[np.bool_], first: int, gap: int) -> list[tuple[int, int]]:
    """First and last frame of each run of true flags; runs at most ``gap`` apart are one."""
    out: list[tuple[int, int]] = []
    for k in np.flatnonzero(flags):
        frame = first + int(k)
        if out and frame - out[-1][1] <= gap:
            out[-1] = (out[-1][0], frame)
        else:
            out.append((frame, frame))
    return out


def _fit(reel: Reel, low: int, high: int, floor: int, ceiling: int, pace: float, rules: Rules) -> Gradual | None:
    """Fit a linear mixture to the stretch around ``[low, high]``; None where it is none."""
    reach = max(6, round(10 * pace))
    begin, finish = max(floor, low - reach), min(ceiling, high + reach)
    if finish - begin < 4:
        return None
    first, last = begin, finish
    best: tuple[float, int, int, _Mixing] | None = None
    for _ in range(3):
        share = _shares(reel, begin, finish, first, last)
        start, end, error = best_ramp(share)
        ends = max(begin, begin + start - 1), min(finish, begin + end)
        if ends == (first, last) or ends[1] - ends[0] < 3:
            break
        first, last = ends
        mix = _mixing(reel, first, last)
        score = mix.off + 0.25 * max(mix.gap, 0.0)
        if error <= 0.12 and mix.steepest <= 0.55 and mix.gap <= 0.6 and (best is None or score < best[0]):
            best = (score, first, last, mix)
    if best is None:
        return None
    _, first, last, mix = best
    pair = reel.unlike(first, last)
    if pair.share < rules.share + 0.08 or visible(pair) < 1.2 * rules.seen or not _convincing(mix, pair):
        return None
    return Gradual(first + 1, (first + 1 + last) // 2, last, Transition.DISSOLVE, min(1.0, (0.46 - mix.off) / 0.25))


def _convincing(mix: _Mixing, pair: Unlikeness) -> bool:
    """Mixing leaves two traces: frames on the line between the ends, and a loss of contrast.

    The more the ends have in common, in pattern or in layout, the clearer the traces have to be.
    """
    most = 0.16 + 0.46 * (pair.share - 0.42)
    if mix.off > most or mix.off + 0.25 * max(mix.gap, 0.0) > most + 0.12:
        return False
    if pair.tone + pair.hue < 0.3 * pair.pattern:
        return mix.off < 0.1 and mix.gap < 0.35
    if mix.room < 0.015:
        return mix.off < 0.15 and pair.kin < 0.5
    if pair.kin > 0.93:
        return mix.off < 0.1 and mix.gap < 0.35
    return pair.kin < 0.85 or mix.gap < 0.35 or (pair.share > 0.65 and mix.off < 0.25)


def _shares(reel: Reel, begin: int, finish: int, first: int, last: int) -> NDArray[np.float64]:
    """Share of frame ``last`` in each frame of ``[begin, finish]``, by projection on the line from ``first`` to ``last``."""
    base = reel.coarse[first - reel.first].astype(np.float64)
    line = reel.coarse[last - reel.first].astype(np.float64) - base
    frames = reel.coarse[begin - reel.first : finish + 1 - reel.first].astype(np.float64) - base
    share: NDArray[np.float64] = (frames * line).sum(axis=(1, 2)) / max(float((line * line).sum()), 1e-6)
    return share


def best_ramp(share: NDArray[np.float64]) -> tuple[int, int, float]:
    """The clamped straight ramp nearest to ``share``: mixed positions ``[start, end)`` and the mean absolute error."""
    count = len(share)
    position = np.arange(count)
    stride = max(1, count // 24)
    low, high = np.arange(-1, count - 1, stride), np.arange(1, count + 1, stride)
    while True:
        starts, ends = np.meshgrid(low, high, indexing="ij")
        wide = ends - starts >= 2
        s, e = starts[wide], ends[wide]
        model = np.clip((position[None, :] - s[:, None]) / (e - s)[:, None], 0, 1)
        error = np.abs(model - share[None, :]).mean(axis=1)
        best = int(error.argmin())
        if stride == 1:
            return int(s[best]) + 1, int(e[best]), float(error[best])
        reach, stride = stride, max(1, stride // 4)
        low = np.arange(max(-1, s[best] - reach), min(count - 2, s[best] + reach) + 1, stride)
        high = np.arange(max(1, e[best] - reach), min(count, e[best] + reach) + 1, stride)


@dataclass(frozen=True, slots=True)
class _Mixing:
    """How well the frames between two are mixtures of them.

    ``off``: median distance from the line between the two, in shares of its length. ``gap``: contrast kept beyond what mixing leaves,
    in shares of what mixing takes (0 for a mixture, 1 for a moving camera). ``room``: what mixing takes, in shares of the
    contrast. ``steepest``: the largest step from frame to frame.
    """

    off: float
    gap: float
    room: float
    steepest: float


def _mixing(reel: Reel, first: int, last: int) -> _Mixing:
    frames = reel.coarse[first - reel.first : last + 1 - reel.first].astype(np.float64)
    a, b = frames[0], frames[-1]
    line = b - a
    power = max(float((line * line).sum()), 1e-6)
    share = ((frames - a) * line).sum(axis=(1, 2)) / power
    rest = frames - a - share[:, None, None] * line
    off = np.sqrt((rest * rest).sum(axis=(1, 2)) / power)[1:-1]
    inner = np.clip(share[1:-1], 0, 1)[:, None, None]
    left = ((1 - inner) * a + inner * b).std(axis=(1, 2))
    kept = (1 - inner[:, 0, 0]) * a.std() + inner[:, 0, 0] * b.std()
    took = kept - left
    whole = max(float(took.sum()), 1e-3)
    return _Mixing(
        off=float(np.median(off)),
        gap=float((frames[1:-1].std(axis=(1, 2)) - left).sum()) / whole,
        room=float(took.mean()) / (0.5 * float(a.std() + b.std()) + 0.5),
        steepest=float(np.diff(share).max()),
    )
