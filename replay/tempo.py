"""Tempo of a piece of music, from its samples. Pure.

Owns the measure: the autocorrelation of the spectral flux (Ellis, *Beat tracking by dynamic programming*, 2007, section 3.2, with its
preference for tempi near 120).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

RATE = 16_000
"""Samples a second that the measure expects."""
_HOP, _WINDOW = 160, 1024
_SLOWEST, _FASTEST = 50.0, 200.0
_PREFERRED, _WIDTH = 120.0, 1.0
_CLEAR = 0.1
"""Likeness to itself one beat later that a beat must have."""


def beats_a_minute(sound: NDArray[np.float32]) -> int:
    """Tempo of mono sound at :data:`RATE`; 0 for sound without a beat, silent, or shorter than four seconds.

    Half and double tempo cannot always be told apart.
    """
    if len(sound) < 4 * RATE or not np.any(sound):
        return 0
    frames = np.lib.stride_tricks.sliding_window_view(sound, _WINDOW)[::_HOP]
    level = np.abs(np.fft.rfft(frames * np.hanning(_WINDOW).astype(np.float32), axis=1)).astype(np.float64)
    loud = np.log1p(1000 * level / max(float(level.max()), 1e-9))
    return _beats(np.maximum(0.0, np.diff(loud, axis=0)).mean(axis=1))


def _beats(flux: NDArray[np.float64]) -> int:
    per_minute = 60 * RATE / _HOP
    smooth = np.convolve(flux, np.hanning(9) / np.hanning(9).sum(), mode="same")
    centred = smooth - smooth.mean()
    power = float(centred @ centred)
    if power <= 1e-12:
        return 0
    lags = np.arange(int(per_minute / _FASTEST), int(per_minute / _SLOWEST) + 1)
    lags = lags[lags < len(centred) // 2]
    likeness = np.array([float(centred[:-lag] @ centred[lag:]) / power * len(centred) / (len(centred) - lag) for lag in lags])
    weight = np.exp(-0.5 * (np.log2(per_minute / lags / _PREFERRED) / _WIDTH) ** 2)
    best = int(np.argmax(likeness * weight))
    if likeness[best] < _CLEAR:
        return 0
    shift = 0.0
    if 0 < best < len(lags) - 1:
        before, at, after = likeness[best - 1 : best + 2]
        bend = before - 2 * at + after
        shift = 0.5 * (before - after) / bend if abs(bend) > 1e-12 else 0.0
    return math.floor(float(per_minute / (lags[best] + shift)) + 0.5)
