"""Levels and places of the film's sound."""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np
import pytest

from media.measure import AudioMeasure, check_audio
from media.sandbox import open_sandbox
from replay.mix import OPEN_DB, music_levels, sample_at, write_track
from replay.narrate import CEILING_DB
from replay.sound import Ducking, FilmSound, Voice, amplitude
from schemas.time import Rate

RATE = 48_000


def measure(lufs: float | None, peak: float = -1.0) -> AudioMeasure:
    return AudioMeasure(8_000_000, RATE, 2, lufs, peak, 0.0, 0.0, peak)


@pytest.mark.parametrize(
    ("music", "expected"),
    [
        (measure(-16.0, -1.0), (0.1, 0.251189)),  # 20 dB and 12 dB below
        (measure(-30.0, -1.0), (0.316228, 0.398107)),  # -6 and +2 dB; the peak allows -10 and -8 dB
        (measure(None), (0.0, 0.0)),
        (None, (0.0, 0.0)),
    ],
)
def test_music_is_set_by_its_measured_loudness(music: AudioMeasure | None, expected: tuple[float, float]) -> None:
    assert music_levels(-16.0, 20.0, music) == pytest.approx(expected)


def loudness(sound: FilmSound, start_s: float, end_s: float, folder: Path) -> AudioMeasure:
    """Measured on the bytes of the written track."""
    write_track(sound, folder / "all.wav")
    with wave.open(str(folder / "all.wav"), "rb") as whole, wave.open(str(folder / "part.wav"), "wb") as part:
        part.setparams(whole.getparams())
        whole.setpos(round(start_s * RATE))
        part.writeframes(whole.readframes(round((end_s - start_s) * RATE)))
    return check_audio(folder / "part.wav", open_sandbox())


@pytest.mark.parametrize(("level", "below"), [(0.05, 20.0), (0.8, 20.0), (0.3, 14.0)])
def test_music_lies_as_far_below_the_voice_as_is_said(tmp_path: Path, level: float, below: float) -> None:
    """Loudness is measured on the mixed track: while somebody speaks, and where nobody does for a while."""
    rng = np.random.default_rng(4)
    music = (level * rng.uniform(-1, 1, (20 * RATE, 2))).astype(np.float32)
    flat = FilmSound(20 * RATE, RATE, (), music, Ducking(1.0, 1.0, 1, 1), 0, 0, 0)
    ducked, opened = music_levels(-16.0, below, loudness(flat, 0, 20, tmp_path))
    spans = (Voice(2 * RATE, np.zeros(6 * RATE, np.float32)), Voice(14 * RATE, np.zeros(4 * RATE, np.float32)))
    film = FilmSound(20 * RATE, RATE, spans, music, Ducking(opened, ducked, RATE * 35 // 100, RATE * 7 // 10), 0, 0, 0)
    assert loudness(film, 2, 8, tmp_path).loudness_lufs == pytest.approx(-16.0 - below, abs=0.3)
    assert loudness(film, 9, 13, tmp_path).loudness_lufs == pytest.approx(-16.0 - below + OPEN_DB, abs=0.3)


def test_the_loudest_voice_and_the_loudest_music_do_not_clip(tmp_path: Path) -> None:
    """Both at their ceilings, in phase, with a config that asks for far more music than there is room for."""
    wave_ = np.sign(np.sin(2 * np.pi * 200 * np.arange(6 * RATE) / RATE)).astype(np.float32)
    music = np.stack([wave_, wave_], axis=1)
    flat = FilmSound(6 * RATE, RATE, (), music * np.float32(0.5), Ducking(1.0, 1.0, 1, 1), 0, 0, 0)
    ducked, opened = music_levels(-3.0, 0.0, loudness(flat, 0, 6, tmp_path))
    voice = Voice(RATE, wave_[: 4 * RATE] * np.float32(amplitude(CEILING_DB)))
    film = FilmSound(6 * RATE, RATE, (voice,), music * np.float32(0.5), Ducking(opened, ducked, RATE // 3, RATE // 2), 0, 0, 0)
    peak = float(np.abs(film.block(0, 6 * RATE)).max())
    assert 20 * np.log10(peak) <= -1.4


@pytest.mark.parametrize(
    ("frame", "rate", "sample"), [(1, (30, 1), 1600), (18_000, (30, 1), 28_800_000), (1, (30000, 1001), 1602), (0, (24, 1), 0)]
)
def test_frames_have_their_sample(frame: int, rate: tuple[int, int], sample: int) -> None:
    assert sample_at(frame, Rate(num=rate[0], den=rate[1])) == sample
