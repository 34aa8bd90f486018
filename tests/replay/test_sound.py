"""Arithmetic on sound."""

from __future__ import annotations

import numpy as np
import pytest

from replay.sound import Ducking, FilmSound, Voice, amplitude, fade_edges, limit_peaks, pcm16, resample, trim_silence

RATE = 24_000


def tone(hz: float, seconds: float, rate: int = RATE, level: float = 0.5) -> np.ndarray:
    return (level * np.sin(2 * np.pi * hz * np.arange(round(seconds * rate)) / rate)).astype(np.float32)


@pytest.mark.parametrize(
    ("rate_in", "rate_out"), [(24_000, 48_000), (16_000, 48_000), (22_050, 48_000), (48_000, 16_000), (44_100, 48_000)]
)
def test_resampling_keeps_pitch_level_and_length(rate_in: int, rate_out: int) -> None:
    out = resample(tone(440, 1.0, rate_in), rate_in, rate_out)
    want = tone(440, 1.0, rate_out)
    assert len(out) == rate_out
    middle = slice(rate_out // 10, -rate_out // 10)
    assert float(np.abs(out[middle] - want[middle]).max()) < 0.002


def test_downsampling_removes_what_the_lower_rate_cannot_hold() -> None:
    out = resample(tone(11_000, 0.5, 48_000), 48_000, 16_000)
    assert float(np.abs(out[200:-200]).max()) < 0.01


def test_trimming_keeps_the_sound_and_a_little_air() -> None:
    quiet = np.zeros(RATE, np.float32)
    out = trim_silence(np.concatenate([quiet, tone(300, 0.5), quiet]), RATE)
    assert round(len(out) / RATE, 2) == 0.64


def test_trimming_silence_leaves_nothing() -> None:
    assert len(trim_silence(np.zeros(RATE, np.float32), RATE)) == 0


def test_the_limiter_holds_the_ceiling_and_leaves_quiet_parts_alone() -> None:
    loud = tone(200, 0.2, level=0.95)
    quiet = tone(200, 0.5, level=0.2)
    out = limit_peaks(np.concatenate([quiet, loud, quiet]), RATE, 0.7)
    assert float(np.abs(out).max()) <= 0.7
    assert np.array_equal(out[: RATE // 4], quiet[: RATE // 4])


def test_the_limiter_does_not_clip_a_wave_flat() -> None:
    out = limit_peaks(tone(200, 0.5, level=0.95), RATE, 0.7)
    assert float(np.mean(np.abs(out) > 0.6999)) < 0.05


def test_edges_start_and_end_near_zero() -> None:
    out = fade_edges(np.ones(RATE, np.float32), RATE)
    assert float(out[0]) < 0.01
    assert float(out[-1]) < 0.01
    assert float(out[RATE // 2]) == 1.0


def film(voices: tuple[Voice, ...], length: int, music: np.ndarray | None) -> FilmSound:
    return FilmSound(length, 1000, voices, music, Ducking(open=0.5, ducked=0.1, attack=100, release=200), 0, 0, 50)


def test_music_is_low_while_somebody_speaks_and_rises_between() -> None:
    music = np.ones((5000, 2), np.float32)
    out = film((Voice(1000, np.zeros(500, np.float32)), Voice(3000, np.zeros(500, np.float32))), 5000, music).block(0, 5000)
    assert out[[0, 899, 1000, 1499, 1701, 2500, 3200, 4900], 0].tolist() == pytest.approx(
        [0.5, 0.5, 0.1, 0.1, 0.5, 0.5, 0.1, 0.5], abs=0.005
    )


def test_a_voice_stands_in_the_middle_at_its_loudness() -> None:
    out = film((Voice(10, np.full(100, 0.5, np.float32)),), 200, None).block(0, 200)
    assert out[50].tolist() == pytest.approx([0.353553, 0.353553], abs=1e-5)
    assert out[150].tolist() == [0.0, 0.0]


def test_music_stays_low_in_a_short_pause() -> None:
    music = np.ones((5000, 2), np.float32)
    out = film((Voice(1000, np.zeros(500, np.float32)), Voice(1700, np.zeros(500, np.float32))), 5000, music).block(0, 5000)
    assert float(out[1000:2200, 0].max()) == pytest.approx(0.1, abs=1e-6)


def test_blocks_of_any_size_give_the_same_film() -> None:
    rng = np.random.default_rng(3)
    music = rng.uniform(-1, 1, (700, 2)).astype(np.float32)
    sound = film((Voice(300, rng.uniform(-0.2, 0.2, 900).astype(np.float32)),), 4000, music)
    whole = sound.block(0, 4000)
    parts = np.concatenate([sound.block(i, min(4000, i + 333)) for i in range(0, 4000, 333)])
    assert np.array_equal(whole, parts)


def test_a_short_track_is_looped_without_a_gap() -> None:
    music = np.full((700, 2), 0.8, np.float32)
    out = film((), 4000, music).block(0, 4000)
    assert float(out.min()) >= 0.4 * 0.999


def test_the_film_fades_out_to_silence() -> None:
    music = np.ones((5000, 2), np.float32)
    sound = FilmSound(5000, 1000, (), music, Ducking(0.5, 0.1, 10, 10), 100, 1000, 50)
    out = sound.block(0, 5000)
    assert float(out[0, 0]) == pytest.approx(0.005, abs=1e-6)
    assert float(out[4999, 0]) == pytest.approx(0.0005, abs=1e-6)


def test_pcm_is_sixteen_bit_and_clipped() -> None:
    assert np.frombuffer(pcm16(np.array([0.0, 0.5, 1.0, -2.0], np.float32)), "<i2").tolist() == [0, 16384, 32767, -32768]


def test_decibels_become_factors() -> None:
    assert [amplitude(db) for db in (0, -6, -20, 6)] == [1.0, 0.501187, 0.1, 1.995262]
