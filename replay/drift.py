"""How far the sound of a finished film lies from where it was put: correlation of the decoded track with the one that was mixed.

Owns the measurement. A film may have the right length and still be shifted; lengths alone do not show it.
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
    end = min(sound.length, start + WINDOW)
    put = sound.block(start, end).mean(axis=1).astype(np.float64)
    lo = max(0, start - REACH)
    heard = decoded[lo : end + REACH].astype(np.float64)
    if len(put) < 256 or len(heard) < len(put) or float(np.abs(put).max()) < 1e-3:
        return 0 if float(np.abs(put).max(initial=0.0)) < 1e-3 else REACH
    size = 1 << (len(heard) + len(put)).bit_length()
    found = np.fft.irfft(np.fft.rfft(heard, size) * np.conj(np.fft.rfft(put, size)), size)
    lags = found[: len(heard) - len(put) + 1]
    return int(np.argmax(lags)) + lo - start
