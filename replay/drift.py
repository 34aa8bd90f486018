"""How far the sound of a finished film lies from where it was put: correlation of the decoded track with the one that was mixed.

Owns the measurement. A film may have the right length and still be shifted; lengths alone do not show it.

The correlation is divided by the energy of what it is compared with: without that, a louder passage nearby wins over the right one (music
that rises after a silent narration). Where several shifts fit equally well, as with a steady tone, the smallest is taken: such sound tells
its place only up to its own period.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from replay.sound import FilmSound
from schemas.time import US

WINDOW = 1 << 15
REACH = 9_600
"""Largest shift that is looked for, samples; a larger one is reported as this."""
PLACES = 8
ALIKE = 0.2
"""Below this correlation (0 to 1) the sound is another one, which counts as the largest shift."""
AS_GOOD = 0.995
"""A shift fits as well as the best one from this share of its correlation on: 5 degrees of phase of a tone."""
AUDIBLE = 1e-3
"""Windows that never reach this amplitude (-60 dBFS) hold nothing to look for."""


def drift_us(decoded: NDArray[np.float32], sound: FilmSound) -> int:
    """Largest absolute shift over windows spread over the film, microseconds; 0 for a film of silence.

    Args:
        decoded: the film's sound as a player hears it, mono, on the picture's clock, at ``sound.rate``.
    """
    worst = 0
    starts = [v.start for v in sound.voices if v.end - v.start > WINDOW // 4] or [0, max(0, sound.length - WINDOW)]
    step = max(1, -(-len(starts) // PLACES))
    for start in [*starts[::step], starts[-1]]:
        shift = _shift_at(decoded, sound, max(0, min(start, sound.length - WINDOW)))
        worst = max(worst, abs(shift))
    return worst * US // sound.rate


def _shift_at(decoded: NDArray[np.float32], sound: FilmSound, start: int) -> int:
    """Shift of one window, samples; positive if it is heard later than it was put."""
    end = min(sound.length, start + WINDOW)
    put = sound.block(start, end).mean(axis=1).astype(np.float64)
    if float(np.abs(put).max(initial=0.0)) < AUDIBLE:
        return 0
    first = max(0, start - REACH)
    heard = decoded[first : end + REACH].astype(np.float64)
    if len(heard) < len(put):
        return REACH
    likeness = _likeness(put, heard)
    best = float(likeness.max())
    if best < ALIKE:
        return REACH
    shifts = np.flatnonzero(likeness >= AS_GOOD * best) + (first - start)
    return int(shifts[np.argmin(np.abs(shifts))])


def _likeness(put: NDArray[np.float64], heard: NDArray[np.float64]) -> NDArray[np.float64]:
    """Normalised correlation (-1 to 1) of ``put`` with every stretch of ``heard`` of its length; 0 where that is silent."""
    size = 1 << (len(heard) + len(put)).bit_length()
    product = np.fft.irfft(np.fft.rfft(heard, size) * np.conj(np.fft.rfft(put, size)), size)[: len(heard) - len(put) + 1]
    sums = np.concatenate([np.zeros(1), np.cumsum(np.square(heard))])
    energy = sums[len(put) :] - sums[: len(heard) - len(put) + 1]
    floor = len(put) * (AUDIBLE / 10) ** 2
    scale = np.sqrt(np.maximum(energy, floor) * float(np.sum(np.square(put))))
    return np.asarray(np.where(energy > floor, product / scale, 0.0))
