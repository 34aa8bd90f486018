"""What is kept of every frame of a film after it has left the reel: a few numbers, for motion, key frames and captions.

Owns those numbers (20 bytes a frame) and the choice of frames that stand for a stretch. Must not look at pixels.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inversion.reel import Reel

_STILLS = 4
_STRIP_STEP = 0.5


class Figures:
    """Grows with the film; asked about stretches ``[start, end)`` of frames when the film has been seen."""

    def __init__(self) -> None:
        self._parts: list[NDArray[np.float32]] = []
        self._all: NDArray[np.float32] = np.empty((5, 0), np.float32)

    def add(self, reel: Reel, count: int) -> None:
        """Take the figures of the last ``count`` frames of the reel."""
        rows = (reel.shift, reel.mean, reel.contrast, reel.strip, reel.upper)
        self._parts.append(np.stack([row[-count:] for row in rows]))

    def _rows(self) -> NDArray[np.float32]:
        if self._parts:
            self._all = np.concatenate([self._all, *self._parts], axis=1)
            self._parts.clear()
        return self._all

    def motion(self, start: int, end: int) -> float:
        """Mean absolute luma change between the frames of a stretch, over 255."""
        shift = self._rows()[0, start + 1 : end]
        return round(min(float(shift.mean()) / 255, 1.0), 5) if len(shift) else 0.0

    def stills(self, start: int, end: int, fallback: int) -> list[int]:
        """Frames that would make good key frames, best first; ``fallback`` where the stretch is empty.

        Good is: little motion around it, contrast near the best of the stretch, not close to black or white, rather in the middle.
        """
        if end <= start:
            return [fallback]
        rows = self._rows()[:, start:end]
        shift = rows[0].copy()
        shift[0] = 0.0
        busy = np.maximum(shift, np.append(shift[1:], shift[-1]))
        level = float(np.quantile(rows[2], 0.9)) + 1e-3
        faint = np.clip(1 - rows[2] / level, 0, 1)
        dim = np.clip((24 - rows[1]) / 24, 0, 1) + np.clip((rows[1] - 240) / 15, 0, 1)
        place = np.abs(np.linspace(-1, 1, rows.shape[1])) ** 3 if rows.shape[1] > 1 else np.zeros(1)
        cost = busy / (float(np.median(busy)) + 1.0) + 2.0 * faint + 2.0 * dim * (level > 4) + 0.5 * place
        out: list[int] = []
        apart = max(1, rows.shape[1] // (2 * _STILLS))
        for k in np.argsort(cost, kind="stable"):
            if all(abs(int(k) - o) >= apart for o in out):
                out.append(int(k))
            if len(out) == _STILLS:
                break
        return [start + k for k in out]

    def strip_changes(self, start: int, end: int) -> int:
        """How often the caption strip changed at once while the picture above did not."""
        rows = self._rows()[:, start + 1 : end]
        if rows.shape[1] < 3:
            return 0
        strip, upper = rows[3], rows[4]
        usual = float(np.median(strip))
        jump = (strip > _STRIP_STEP + 4 * usual) & (strip > 4 * upper)
        return int((jump & ~np.append(False, jump[:-1])).sum())
