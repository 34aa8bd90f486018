"""A stretch of a film as small frames, with what is cheap to know of each: the working memory of shot detection.

Owns the per-frame figures and the cache of matched pairs. Frames come in batches and are dropped again from the front, so a film
of any length needs the same memory. Must not decode, and must not decide what is a cut.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inversion.likeness import LUMA, Floats, Matcher, Unlikeness

_CENTRE_Y, _CENTRE_X = (0.15, 0.78), (0.14, 0.86)
"""The part of the frame that is asked whether it is blank: letterbox, pillarbox and captions lie outside."""


class Reel:
    """Frames ``[first, end)`` of a film; every method counts frames from the film's start.

    Args:
        width, height: size of the small frames, pixels (multiples of 16 and 12).
    """

    def __init__(self, width: int, height: int) -> None:
        self._matcher = Matcher(width, height)
        self._shape = (height, width)
        self.first = 0
        self.luma: Floats = np.empty((0, height, width), np.float32)
        """[n, height, width], luma 0..255."""
        self.coarse: Floats = np.empty((0, height // 2, width // 2), np.float32)
        """Half size again."""
        self.step: Floats = np.empty(0, np.float32)
        """[n], mean absolute change of all channels from the frame before, levels; 0 for the film's first frame."""
        self.mean: Floats = np.empty(0, np.float32)
        """[n], mean luma of the centre."""
        self.spread: Floats = np.empty(0, np.float32)
        """[n], brightest minus darkest pixel of the centre: near 0 on a blank frame."""
        self.contrast: Floats = np.empty(0, np.float32)
        """[n], standard deviation of the centre."""
        self._last: NDArray[np.uint8] | None = None
        self._taken: dict[int, object] = {}
        self._pairs: dict[tuple[int, int], Unlikeness] = {}

    @property
    def end(self) -> int:
        """One past the last frame held."""
        return self.first + len(self.step)

    def add(self, batch: NDArray[np.uint8]) -> None:
        """Append frames, shape [k, height, width, 3]."""
        height, width = self._shape
        before = self._last if self._last is not None else batch[0]
        earlier = np.concatenate([before[None], batch[:-1]])
        change = np.maximum(batch, earlier) - np.minimum(batch, earlier)
        luma = batch.astype(np.float32) @ LUMA
        centre = luma[:, int(height * _CENTRE_Y[0]) : int(height * _CENTRE_Y[1]), int(width * _CENTRE_X[0]) : int(width * _CENTRE_X[1])]
        flat = centre.reshape(len(batch), -1)
        self.luma = np.concatenate([self.luma, luma])
        self.coarse = np.concatenate([self.coarse, luma.reshape(-1, height // 2, 2, width // 2, 2).mean(axis=(2, 4))])
        self.step = np.concatenate([self.step, change.reshape(len(batch), -1).mean(axis=1, dtype=np.float32)])
        self.mean = np.concatenate([self.mean, flat.mean(axis=1)])
        self.spread = np.concatenate([self.spread, flat.max(axis=1) - flat.min(axis=1)])
        self.contrast = np.concatenate([self.contrast, flat.std(axis=1)])
        self._last = batch[-1].copy()

    def drop_before(self, frame: int) -> None:
        """Forget all frames before ``frame``."""
        cut = min(max(frame - self.first, 0), len(self.step))
        if not cut:
            return
        self.first += cut
        for name in ("luma", "coarse", "step", "mean", "spread", "contrast"):
            setattr(self, name, getattr(self, name)[cut:].copy())
        self._taken = {k: v for k, v in self._taken.items() if k >= self.first}
        self._pairs = {k: v for k, v in self._pairs.items() if min(k) >= self.first}

    def unlike(self, a: int, b: int) -> Unlikeness:
        """What frames ``a`` and ``b`` do not share (kept for later questions)."""
        key = (a, b)
        if key not in self._pairs:
            self._pairs[key] = self._matcher.compare(self._patches(a), self._patches(b))
        return self._pairs[key]

    def _patches(self, frame: int):  # type: ignore[no-untyped-def]
        if frame not in self._taken:
            if len(self._taken) > 64:
                self._taken.pop(next(iter(self._taken)))
            self._taken[frame] = self._matcher.take(self.luma[frame - self.first])
        return self._taken[frame]
