"""The measure of what a shift of the film's sound would do."""

from __future__ import annotations

import numpy as np
import pytest

from media.sandbox import open_sandbox
from replay.drift import drift_us
from replay.sound import Ducking, FilmSound, Voice
from schemas.time import Rate

RATE = 48_000
DUCKING = Ducking(open=0.25, ducked=0.1, attack=RATE * 35 // 100, release=RATE * 7 // 10)


def noise(seconds: float, seed: int = 5) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).uniform(-0.5, 0.5, round(seconds * RATE)), np.float32)


def tone(hz: float, seconds: float) -> np.ndarray:
    wave = 0.5 * np.sin(2 * np.pi * hz * np.arange(round(seconds * RATE)) / RATE)
    return np.stack([wave, wave], axis=1).astype(np.float32)


def film(voices: dict[float, np.ndarray], seconds: float, music: np.ndarray | None = None) -> FilmSound:
    placed = tuple(Voice(round(at * RATE), samples) for at, samples in voices.items())
    return FilmSound(round(seconds * RATE), RATE, placed, music, DUCKING, RATE * 6 // 10, RATE * 18 // 10, 2 * RATE)


def spoken() -> FilmSound:
    return film({1.0: noise(1), 4.0: noise(1, 6), 8.0: noise(1, 7)}, 10)


def heard(sound: FilmSound) -> np.ndarray:
    return np.asarray(sound.block(0, sound.length).mean(axis=1))


def test_a_film_in_place_has_no_drift() -> None:
    sound = spoken()
    assert drift_us(heard(sound), sound) == 0


@pytest.mark.parametrize(("samples", "expected"), [(48, 1_000), (1_600, 33_333), (-1_600, 33_333), (9_000, 187_500)])
def test_a_shifted_film_is_found_out(samples: int, expected: int) -> None:
    sound = spoken()
    assert drift_us(np.roll(heard(sound), samples), sound) == expected


def test_a_shift_of_the_last_voice_alone_is_found_out() -> None:
    sound = spoken()
    track = heard(sound)
    track[7 * RATE :] = np.roll(track[7 * RATE :], 960)
    assert drift_us(track, sound) == 20_000


def test_a_film_that_lost_its_sound_has_the_largest_drift() -> None:
    sound = spoken()
    assert drift_us(np.zeros(sound.length, np.float32), sound) == 200_000


def test_a_film_with_the_sound_of_another_has_the_largest_drift() -> None:
    sound = spoken()
    assert drift_us(noise(10, 99), sound) == 200_000


@pytest.mark.parametrize("hz", [55.0, 110.0, 440.0, 3_000.0])
def test_a_steady_tone_that_rises_after_a_silent_narration_has_no_drift(hz: float) -> None:
    silent = {3.0: np.zeros(RATE, np.float32), 9.0: np.zeros(2 * RATE, np.float32)}
    sound = film(silent, 20, tone(hz, 20))
    assert drift_us(heard(sound), sound) == 0


def test_noise_of_the_encoder_over_a_tone_makes_no_drift() -> None:
    sound = film({3.0: np.zeros(RATE, np.float32)}, 20, tone(110, 20))
    assert drift_us(heard(sound) + noise(20) * np.float32(0.002), sound) == 0


def test_a_shift_is_found_under_louder_music() -> None:
    sound = film({3.0: noise(1) * np.float32(0.3), 9.0: noise(1, 6) * np.float32(0.3)}, 20, tone(110, 20) * np.float32(1.5))
    assert drift_us(np.roll(heard(sound), 1_600), sound) == 33_333


@pytest.mark.parametrize("seconds", [0.05, 0.5])
def test_a_film_shorter_than_a_window_is_measured_whole(seconds: float) -> None:
    sound = film({0.0: noise(seconds)}, seconds)
    assert drift_us(heard(sound), sound) == 0


def test_a_film_of_silence_has_no_drift() -> None:
    sound = film({1.0: np.zeros(RATE, np.float32)}, 4)
    assert drift_us(heard(sound), sound) == 0


@pytest.mark.slow
def test_beeps_and_flashes_of_a_delivered_film_meet_at_a_broadcast_rate() -> None:
    """The bench on a short film: every tool at 30000/1001, looked at from outside."""
    from bench.drift import measure

    line, good = measure(0.25, Rate(num=30000, den=1001), open_sandbox(), None)
    assert good, line
