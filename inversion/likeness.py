"""How much of one small frame can be explained by another: the measure that shot detection rests on.

A frame is cut into blocks. A block is explained as far as some patch of the other frame, moved by a bounded shift, has the same
pattern; brightness offsets do not count, and one contrast factor for the whole frame may be taken out. What stays unexplained,
as a share of all pattern in both frames, is :meth:`Reel.unlike`: near 0 inside a shot even while the camera moves, 0.5 to 1
across a cut, whatever the contrast of the pictures (dark slides count like bright ones).

Owns arithmetic on frames that are already arrays, shape [n, height, width]. Must not decode, and must not decide what is a cut.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

COLUMNS, ROWS = 8, 6
"""Blocks across and down; width and height of frames are multiples of these."""
REACH_X, REACH_Y = 10 / 64, 5 / 36
"""Largest shift of a block, in shares of width and height."""
NOISE = 2.0
"""Variance (squared luma levels) inside a block that counts as no pattern at all."""
LUMA = np.array([0.299, 0.587, 0.114], np.float32)


@dataclass(frozen=True, slots=True)
class _Patches:
    """One frame, taken apart for matching."""

    blocks: Floats
    """[blocks, pixels], each block's mean removed."""
    block_var: Floats
    block_mean: Floats
    patches: Floats
    """[positions, pixels], every patch of the padded frame, its mean removed."""
    patch_var: Floats


@dataclass(frozen=True, slots=True)
class Unlikeness:
    """What two frames do not share.

    ``share`` is the unexplained share of pattern, 0 to 1; ``pattern`` the mean pattern (standard deviation inside blocks, luma levels);
    ``tone`` the mean absolute change of block brightness, levels; ``tilt`` how far all blocks change brightness the same way, -1 to 1.
    """

    share: float
    pattern: float
    tone: float
    tilt: float


class Matcher:
    """Compares frames of one fixed size.

    Args:
        width, height: frame size in pixels, multiples of 8 and 6.
    """

    def __init__(self, width: int, height: int) -> None:
        if width % COLUMNS or height % ROWS:
            raise ValueError(f"frames of {width}x{height} cannot be cut into {COLUMNS}x{ROWS} blocks")
        self._bw, self._bh = width // COLUMNS, height // ROWS
        self._rx, self._ry = round(width * REACH_X), round(height * REACH_Y)
        self._size = (height, width)
        across = width + 2 * self._rx - self._bw + 1
        window = (2 * self._ry + 1) * (2 * self._rx + 1)
        index = np.empty((ROWS * COLUMNS, window), np.int64)
        for i in range(ROWS):
            for j in range(COLUMNS):
                y = np.arange(2 * self._ry + 1) + i * self._bh
                x = np.arange(2 * self._rx + 1) + j * self._bw
                index[i * COLUMNS + j] = (y[:, None] * across + x[None, :]).ravel()
        self._index = index

    def take(self, luma: Floats) -> _Patches:
        """Prepare one frame, shape [height, width]."""
        height, width = self._size
        pixels = self._bh * self._bw
        blocks = luma.reshape(ROWS, self._bh, COLUMNS, self._bw).transpose(0, 2, 1, 3).reshape(-1, pixels)
        mean = blocks.mean(axis=1)
        blocks = blocks - mean[:, None]
        padded = np.pad(luma, ((self._ry, self._ry), (self._rx, self._rx)), mode="edge")
        patches = np.lib.stride_tricks.sliding_window_view(padded, (self._bh, self._bw)).reshape(-1, pixels)
        patches = patches - patches.mean(axis=1, keepdims=True)
        return _Patches(
            blocks=blocks,
            block_var=np.einsum("ij,ij->i", blocks, blocks) / pixels,
            block_mean=mean,
            patches=patches,
            patch_var=np.einsum("ij,ij->i", patches, patches) / pixels,
        )

    def compare(self, a: _Patches, b: _Patches) -> Unlikeness:
        """What frames ``a`` and ``b`` do not share; symmetric."""
        strength_a, strength_b = _strength(a.block_var), _strength(b.block_var)
        whole = float(strength_a.sum() + strength_b.sum())
        change = b.block_mean - a.block_mean
        tone = float(np.abs(change).mean())
        tilt = float(change.mean() / max(tone, 1e-6))
        pattern = whole / (2 * len(strength_a))
        if whole <= 1e-3:
            return Unlikeness(0.0, pattern, tone, tilt)
        shared_ab, var_a = self._shared(b, a)
        shared_ba, var_b = self._shared(a, b)
        gain = float(np.clip(np.sqrt((b.block_var.sum() + NOISE) / (a.block_var.sum() + NOISE)), 0.25, 4.0))
        shares = []
        for g in (1.0, gain) if tone > 6 or not 0.8 < gain < 1.25 else (1.0,):
            left = np.minimum(_strength((b.block_var[:, None] + g * g * var_a - 2 * g * shared_ab).min(axis=1)), strength_b)
            right = np.minimum(_strength((a.block_var[:, None] + var_b / (g * g) - 2 * shared_ba / g).min(axis=1)), strength_a)
            shares.append(float(left.sum() + right.sum()) / whole)
        return Unlikeness(min(shares), pattern, tone, tilt)

    def _shared(self, of: _Patches, source: _Patches) -> tuple[Floats, Floats]:
        """Covariance of each block of ``of`` with every patch of ``source`` within reach, and those patches' variances."""
        pixels = self._bh * self._bw
        product = of.blocks @ source.patches.T
        return np.take_along_axis(product, self._index, axis=1) / pixels, source.patch_var[self._index]


def _strength(variance: Floats) -> Floats:
    out: Floats = np.sqrt(np.maximum(variance - NOISE, 0.0))
    return out
