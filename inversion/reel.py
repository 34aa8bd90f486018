"""A stretch of a film as small frames, with what is cheap to know of each: the working memory of shot detection.

Owns the per-frame figures and the cache of matched pairs. Frames come in batches and are dropped again from the front, so a film
of any length needs the same memory. Must not decode, and must not decide what is a cut.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from inversion.likeness import COLUMNS, LUMA, ROWS, Floats, Matcher, Patches, Unlikeness, rolled

_CENTRE_Y, _CENTRE_X = (0.15, 0.78), (0.14, 0.86)
"""The part of the frame that is asked whether it is blank: letterbox, pillarbox and captions lie outside."""
_TAKEN = 12
"""Frames kept ready for matching: two megabytes each."""
_TOUCHED = 2.5
"""Mean change of a block that is more than noise, levels."""
_FIGURES = ("step", "shift", "strip", "upper", "mean", "spread", "bright", "contrast", "deviation")


class Reel:
    """Frames ``[first, end)`` of a film; every method counts frames from the film's start.

    The figures are arrays over the frames held, index 0 being frame ``first``; all in luma levels (0 to 255):

    ``coarse``: [n, height / 2, width / 2], luma. ``step``: mean absolute change of all channels from the frame before (0 for the
    film's first). ``shift``: mean absolute change of coarse luma; ``strip`` and ``upper`` the same for the lowest part of the frame, where
    captions stand, and for the rest. ``mean``, ``spread`` (brightest less darkest), ``contrast`` (standard deviation): of the centre.
    ``bright``: the brightest pixel above the captions, the whole width. ``deviation``: standard deviation of the whole frame.

    Args:
        width, height: size of the small frames, pixels; multiples of 16 and 12.
    """

    step: Floats
    shift: Floats
    strip: Floats
    upper: Floats
    mean: Floats
    spread: Floats
    bright: Floats
    contrast: Floats
    deviation: Floats

    def __init__(self, width: int, height: int) -> None:
        self._matcher = Matcher(width, height)
        self._height, self._width = height, width
        self.first = 0
        self._count = 0
        self._frames = np.empty((256, height, width, 3), np.uint8)
        self._coarse = np.empty((256, height // 2, width // 2), np.float32)
        self._figures = np.empty((len(_FIGURES), 256), np.float32)
        self._last: NDArray[np.uint8] | None = None
        self._taken: dict[int, Patches] = {}
        self._pairs: dict[tuple[int, int], Unlikeness] = {}
        self._expose()

    @property
    def end(self) -> int:
        """One past the last frame held."""
        return self.first + self._count

    def add(self, batch: NDArray[np.uint8]) -> None:
        """Append frames, uint8 [k, height, width, 3]."""
        height, width, k = self._height, self._width, len(batch)
        self._make_room(k)
        at = slice(self._count, self._count + k)
        self._frames[at] = batch
        sums = batch.reshape(k, height // 2, 2, width * 3).sum(axis=2, dtype=np.uint16).reshape(k, height // 2, width // 2, 2, 3)
        coarse = (sums[..., 0, :] + sums[..., 1, :]).astype(np.float32) @ (LUMA / 4)
        self._coarse[at] = coarse
        before = batch[:1] if self._last is None else self._last
        earlier = np.concatenate([before, batch[:-1]])
        change = np.maximum(batch, earlier) - np.minimum(batch, earlier)
        tail = coarse[:1] if self._last is None else self._coarse[self._count - 1 : self._count]
        drift = np.abs(coarse - np.concatenate([tail, coarse[:-1]]))
        tall, wide = coarse.shape[1:]
        low = int(tall * _CENTRE_Y[1])
        centre = coarse[:, int(tall * _CENTRE_Y[0]) : low, int(wide * _CENTRE_X[0]) : int(wide * _CENTRE_X[1])].reshape(k, -1)
        upper, strip = drift[:, :low].mean(axis=(1, 2)), drift[:, low:].mean(axis=(1, 2))
        self._figures[:, at] = np.stack(
            [
                change.reshape(k, -1).sum(axis=1, dtype=np.uint32) / np.float32(height * width * 3),
                (upper * low + strip * (tall - low)) / tall,
                strip,
                upper,
                centre.mean(axis=1),
                centre.max(axis=1) - centre.min(axis=1),
                coarse[:, :low].reshape(k, -1).max(axis=1),
                centre.std(axis=1),
                coarse.reshape(k, -1).std(axis=1),
            ]
        )
        self._last = batch[-1:].copy()
        self._count += k
        self._expose()

    def drop_before(self, frame: int) -> None:
        """Forget all frames before ``frame``."""
        cut = min(max(frame - self.first, 0), self._count)
        if not cut:
            return
        left = self._count - cut
        for whole in (self._frames, self._coarse):
            whole[:left] = whole[cut : self._count].copy()
        self._figures[:, :left] = self._figures[:, cut : self._count].copy()
        self.first += cut
        self._count = left
        self._taken = {k: v for k, v in self._taken.items() if k >= self.first}
        self._pairs = {k: v for k, v in self._pairs.items() if min(k) >= self.first}
        self._expose()

    def unlike(self, a: int, b: int) -> Unlikeness:
        """What frames ``a`` and ``b`` do not share (kept for later questions)."""
        key = (a, b)
        if key not in self._pairs:
            self._pairs[key] = self._matcher.compare(self._patches(a), self._patches(b))
        return self._pairs[key]

    def distance(self, a: int, b: int) -> float:
        """Mean absolute difference of two frames at the coarse size, levels: cheap, but blind to motion."""
        return float(np.abs(self.coarse[a - self.first] - self.coarse[b - self.first]).mean())

    def colours(self, start: int, end: int) -> Floats:
        """Frames ``[start, end)`` at the coarse size in colour, [frames, height / 2, width / 2, 3]."""
        part = self._frames[start - self.first : end - self.first].astype(np.float32)
        out: Floats = part.reshape(len(part), self._height // 2, 2, self._width // 2, 2, 3).mean(axis=(2, 4))
        return out

    def rough(self, a: int, b: int) -> float:
        """What :meth:`unlike` would call the unexplained share if nothing could move: never much less than that, and cheap."""
        pair = self.coarse[np.array([a, b]) - self.first]
        tall, wide = pair.shape[1] // ROWS, pair.shape[2] // COLUMNS
        cells = np.concatenate([pair, pair[1:] - pair[:1]]).reshape(3, ROWS, tall, COLUMNS, wide)
        mean = cells.mean(axis=(2, 4))
        variance = np.maximum((cells * cells).mean(axis=(2, 4)) - mean * mean, 0)
        before, after, change = np.sqrt(np.maximum(variance - 1.0, 0))
        return float((np.minimum(change, before) + np.minimum(change, after)).sum() / max(float((before + after).sum()), 1e-3))

    def changed(self, a: int, b: int) -> float:
        """Share of the blocks of the frame in which anything changed at all."""
        return float((self._block_changes(a, b) > _TOUCHED).mean())

    def greatest(self, a: int, b: int) -> float:
        """Mean change of the block that changed most, levels."""
        return float(self._block_changes(a, b).max())

    def _block_changes(self, a: int, b: int) -> NDArray[np.float64]:
        change = np.abs(self.coarse[b - self.first] - self.coarse[a - self.first])
        cells: NDArray[np.float64] = change.reshape(ROWS, change.shape[0] // ROWS, COLUMNS, change.shape[1] // COLUMNS).mean(axis=(1, 3))
        return cells

    def rolled(self, a: int, b: int) -> float:
        """What is left between two frames when one is scrolled; see :func:`inversion.likeness.rolled`."""
        return rolled(self._frames[a - self.first], self._frames[b - self.first])

    def nearest(
        self, low_a: int, end_a: int, low_b: int, end_b: int, allowed: Callable[[int, int], bool] = lambda a, b: True, toll: float = 0.0
    ) -> tuple[int, int]:
        """The pair of frames, one from ``[low_a, end_a)``, one from ``[low_b, end_b)``, that differ least at the coarse size.

        ``toll`` (levels) is added for each frame between the two, to prefer near pairs. Ranges are clipped to what is held; if no
        pair is allowed, the first of each.
        """
        a = np.arange(max(low_a, self.first), min(end_a, self.end))
        b = np.arange(max(low_b, self.first), min(end_b, self.end))
        early, late = self.coarse[a - self.first], self.coarse[b - self.first]
        best, pair = np.inf, (int(a[0]), int(b[0]))
        for i, frame in enumerate(a):
            apart = np.abs(late - early[i]).mean(axis=(1, 2)) + toll * (b - frame)
            for j in np.argsort(apart, kind="stable"):
                if apart[j] >= best:
                    break
                if allowed(int(frame), int(b[j])):
                    best, pair = float(apart[j]), (int(frame), int(b[j]))
                    break
        return pair

    def _patches(self, frame: int) -> Patches:
        if frame not in self._taken:
            if len(self._taken) >= _TAKEN:
                self._taken.pop(next(iter(self._taken)))
            self._taken[frame] = self._matcher.take(self._frames[frame - self.first])
        return self._taken[frame]

    def _make_room(self, count: int) -> None:
        need = self._count + count
        if need <= len(self._frames):
            return
        size = max(need, 2 * len(self._frames))
        for name in ("_frames", "_coarse"):
            old = getattr(self, name)
            grown = np.empty((size, *old.shape[1:]), old.dtype)
            grown[: self._count] = old[: self._count]
            setattr(self, name, grown)
        figures = np.empty((len(_FIGURES), size), np.float32)
        figures[:, : self._count] = self._figures[:, : self._count]
        self._figures = figures

    def _expose(self) -> None:
        self.coarse: Floats = self._coarse[: self._count]
        for name, row in zip(_FIGURES, self._figures, strict=True):
            setattr(self, name, row[: self._count])
