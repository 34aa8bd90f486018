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
UPPER = 4
"""Rows of blocks that lie above captions."""
MIN_ABOVE = 6.0
"""Sum of pattern in those rows of both frames that counts as something, luma levels."""
REACH_X, REACH_Y = 10 / 64, 5 / 36
"""Largest shift of a block, in shares of width and height."""
NOISE = 2.0
"""Variance (squared luma levels) inside a block that counts as no pattern at all."""
STRONG = 24.0
"""Pattern beyond which a block counts no more, luma levels."""
LUMA = np.array([0.299, 0.587, 0.114], np.float32)


@dataclass(frozen=True, slots=True)
class Patches:
    """One frame, taken apart for matching."""

    blocks: Floats
    """[blocks, pixels], each block's mean removed."""
    block_var: Floats
    block_mean: Floats
    colour: Floats
    """[blocks, 3], mean colour."""
    windows: Floats
    """[blocks, shifts, pixels], the patches within reach of each block."""
    window_var: Floats
    """[blocks, shifts], their variances."""


@dataclass(frozen=True, slots=True)
class Unlikeness:
    """What two frames do not share.

    ``share`` is the unexplained share of pattern, 0 to 1; ``gone`` how much of the first frame's pattern is unexplained and ``fresh``
    of the second's, in the units of ``pattern``: the mean pattern of both (standard deviation inside blocks, luma levels, strong pattern
    counting less than its measure). ``tone`` is the mean absolute change of block brightness, levels; ``tilt`` how far all blocks change
    brightness the same way, -1 to 1; ``hue`` the mean absolute change of block colour apart from brightness, levels; ``kin`` the
    correlation of the two layouts of block colours (0 where one of them is plain): near 1 when only the light has changed. ``upper`` is
    ``share`` for the part above the captions alone, 1 where there is nothing.
    """

    share: float
    gone: float
    fresh: float
    pattern: float
    tone: float
    tilt: float
    hue: float
    kin: float
    upper: float


def rolled(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> float:
    """What is left of the difference of two frames [height, width, 3] when one is moved up or down as a whole, by half its height at most.

    Lines of text that move by a fraction of a small frame's row look like other lines; smoothed over five rows they do not. 0 is the
    same page scrolled, 1 and more another picture; pages with other text give 0.4 to 0.8, scrolled ones below 0.2.
    """
    early, late = (_smoothed(frame.astype(np.float32) @ LUMA) for frame in (a, b))
    height, best = len(early), np.inf
    for by in range(-(height // 2), height // 2 + 1):
        x, y = (early[by:], late[: height - by]) if by >= 0 else (early[:by], late[-by:])
        pattern = float(np.abs(x - np.median(x)).mean() + np.abs(y - np.median(y)).mean()) / 2
        best = min(best, float(np.abs(x - y).mean()) / max(pattern, 1e-3))
    return best


def _smoothed(luma: Floats, rows: int = 5) -> Floats:
    padded = np.pad(luma, ((rows // 2, rows // 2), (0, 0)), mode="edge")
    out: Floats = np.lib.stride_tricks.sliding_window_view(padded, rows, axis=0).mean(axis=-1)
    return out


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

    def take(self, frame: NDArray[np.uint8]) -> Patches:
        """Prepare one frame, uint8 [height, width, 3]."""
        bh, bw, rx, ry = self._bh, self._bw, self._rx, self._ry
        pixels = bh * bw
        luma: Floats = frame.astype(np.float32) @ LUMA
        blocks = luma.reshape(ROWS, bh, COLUMNS, bw).transpose(0, 2, 1, 3).reshape(-1, pixels)
        mean = blocks.mean(axis=1)
        blocks = blocks - mean[:, None]
        colour = frame.reshape(ROWS, bh, COLUMNS, bw * 3).sum(axis=1, dtype=np.uint16).reshape(-1, bw, 3).sum(axis=1) / np.float32(pixels)
        padded = np.pad(luma, ((ry, ry), (rx, rx)), mode="edge")
        down, right = padded.strides
        shape = (ROWS, COLUMNS, 2 * ry + 1, 2 * rx + 1, bh, bw)
        strided = np.lib.stride_tricks.as_strided(padded, shape, (bh * down, bw * right, down, right, down, right))
        return Patches(
            blocks=blocks,
            block_var=np.einsum("ij,ij->i", blocks, blocks) / pixels,
            block_mean=mean,
            colour=colour.astype(np.float32),
            windows=np.ascontiguousarray(strided).reshape(ROWS * COLUMNS, -1, pixels),
            window_var=self._variances(padded),
        )

    def _variances(self, padded: Floats) -> Floats:
        """Variance of every patch, in the order of ``Patches.windows``."""
        bh, bw = self._bh, self._bw
        powers = np.stack([padded, padded * padded]).astype(np.float64)
        sums = np.zeros((2, padded.shape[0] + 1, padded.shape[1] + 1))
        np.cumsum(np.cumsum(powers, axis=1), axis=2, out=sums[:, 1:, 1:])
        boxes = (sums[:, bh:, bw:] - sums[:, :-bh, bw:] - sums[:, bh:, :-bw] + sums[:, :-bh, :-bw]) / (bh * bw)
        variance = np.maximum(boxes[1] - boxes[0] ** 2, 0).astype(np.float32)
        down, right = variance.strides
        shape = (ROWS, COLUMNS, 2 * self._ry + 1, 2 * self._rx + 1)
        strided = np.lib.stride_tricks.as_strided(variance, shape, (bh * down, bw * right, down, right))
        return np.ascontiguousarray(strided).reshape(ROWS * COLUMNS, -1)

    def compare(self, a: Patches, b: Patches) -> Unlikeness:
        """What frames ``a`` and ``b`` do not share; symmetric."""
        strength_a, strength_b = _strength(a.block_var), _strength(b.block_var)
        blocks = len(strength_a)
        whole = float(strength_a.sum() + strength_b.sum())
        pattern = whole / (2 * blocks)
        change = b.block_mean - a.block_mean
        tone = float(np.abs(change).mean())
        tilt = float(change.mean() / max(tone, 1e-6))
        hue = float(np.abs(b.colour - b.block_mean[:, None] - a.colour + a.block_mean[:, None]).mean())
        kin = _correlation(a.colour, b.colour)
        if whole <= 1e-3:
            return Unlikeness(0.0, 0.0, 0.0, pattern, tone, tilt, hue, kin, 1.0)
        shared_ab, var_a = self._shared(b, a)
        shared_ba, var_b = self._shared(a, b)
        gain = float(np.clip(np.sqrt((b.block_var.sum() + NOISE) / (a.block_var.sum() + NOISE)), 0.25, 4.0))
        best = (np.inf, 0.0, 0.0, 1.0)
        high = slice(0, UPPER * COLUMNS)
        above = float(strength_a[high].sum() + strength_b[high].sum())
        for g in (1.0, gain) if tone > 6 or not 0.8 < gain < 1.25 else (1.0,):
            left = np.minimum(_strength((b.block_var[:, None] + g * g * var_a - 2 * g * shared_ab).min(axis=1)), strength_b)
            right = np.minimum(_strength((a.block_var[:, None] + var_b / (g * g) - 2 * shared_ba / g).min(axis=1)), strength_a)
            fresh, gone = float(left.sum()), float(right.sum())
            upper = float(left[high].sum() + right[high].sum()) / above if above > MIN_ABOVE else 1.0
            best = min(best, ((fresh + gone) / whole, gone / blocks, fresh / blocks, upper))
        share, gone, fresh, upper = best
        return Unlikeness(share, gone, fresh, pattern, tone, tilt, hue, kin, upper)

    def _shared(self, of: Patches, source: Patches) -> tuple[Floats, Floats]:
        """Covariance of each block of ``of`` with every patch of ``source`` within reach, and those patches' variances."""
        # many small products: a library that shares one large product out to threads would spend more time on that than on the work
        product = np.matmul(source.windows, of.blocks[:, :, None])[:, :, 0]
        return product / (self._bh * self._bw), source.window_var


def _strength(variance: Floats) -> Floats:
    """Pattern of a block: its standard deviation above noise, bent so that no block counts for more than ``STRONG``."""
    out: Floats = STRONG * (1 - np.exp(-np.sqrt(np.maximum(variance - NOISE, 0.0)) / STRONG))
    return out


def _correlation(a: Floats, b: Floats) -> float:
    x, y = (a - a.mean()).ravel(), (b - b.mean()).ravel()
    if min(float(x.std()), float(y.std())) < 1.5:
        return 0.0
    return float((x @ y) / np.sqrt((x @ x) * (y @ y)))
