"""Levels and places of the film's sound, and the measure of what a shift would do."""

from __future__ import annotations

import numpy as np
import pytest

from media.measure import AudioMeasure
from replay.drift import drift_us
from replay.mix import music_levels, sample_at
from replay.sound import Ducking, FilmSound, Voice
from schemas.time import Rate

RATE = 48_000


def measure(lufs: float | None, peak: float = -1.0) -> AudioMeasure:
    return AudioMeasure(8_000_000, RATE, 2, lufs, peak, 0.0, 0.0)


@pytest.mark.parametrize(
    ("music", "expected"),
    [
        (measure(-16.0, -1.0), (0.1, 0.251189)),  # 20 dB and 12 dB below
        (measure(-30.0, -1.0), (0.398107, 0.398107)),  # -6 and +2 dB; the peak allows -8 dB
        (measure(None), (0.0, 0.0)),
        (None, (0.0, 0.0)),
    ],
)
def test_music_is_set_by_its_measured_loudness(music: AudioMeasure | None, expected: tuple[float, float]) -> None:
    assert music_levels(-16.0, 20.0, music) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("frame", "rate", "sample"), [(1, (30, 1), 1600), (18_000, (30, 1), 28_800_000), (1, (30000, 1001), 1602), (0, (24, 1), 0)]
)
def test_frames_have_their_sample(frame: int, rate: tuple[int, int], sample: int) -> None:
    assert sample_at(frame, Rate(num=rate[0], den=rate[1])) == sample


def film() -> FilmSound:
    rng = np.random.default_rng(5)
    voices = tuple(Voice(start, rng.uniform(-0.5, 0.5, RATE).astype(np.float32)) for start in (RATE, 4 * RATE, 8 * RATE))
    return FilmSound(10 * RATE, RATE, voices, None, Ducking(0.0, 0.0, 10, 10), 0, 0, 0)


def heard(sound: FilmSound) -> np.ndarray:
    return sound.block(0, sound.length).mean(axis=1)


def test_a_film_in_place_has_no_drift() -> None:
    sound = film()
    assert drift_us(heard(sound), sound) == 0


@pytest.mark.parametrize(("samples", "expected"), [(48, 1_000), (1_600, 33_333), (-1_600, 33_333)])
def test_a_shifted_film_is_found_out(samples: int, expected: int) -> None:
    sound = film()
    assert drift_us(np.roll(heard(sound), samples), sound) == expected


def test_a_shift_of_the_last_voice_alone_is_found_out() -> None:
    sound = film()
    track = heard(sound)
    track[7 * RATE :] = np.roll(track[7 * RATE :], 960)
    assert drift_us(track, sound) == 20_000


def test_a_film_that_lost_its_sound_has_the_largest_drift() -> None:
    sound = film()
    assert drift_us(np.zeros(sound.length, np.float32), sound) >= 100_000
