"""Figures of products."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from media.audio import write_wav
from media.command import Sandbox
from media.measure import check_audio, check_video
from schemas.canonical import canonical_bytes
from schemas.errors import MediaRejected
from schemas.time import Rate
from tests.media.clips import FAST, make, picture, tone


def test_a_moving_picture(film: Path, sandbox: Sandbox) -> None:
    m = check_video(film, sandbox)
    assert (m.frames, m.width, m.height, m.rate, m.duration_us) == (50, 160, 90, "25/1", 2_000_000)
    assert m.frame_rate == Rate(num=25, den=1)
    assert (m.black_share, m.frozen_share) == (0.0, 0.0)
    assert 0.3 < m.mean_luma < 0.7
    assert canonical_bytes(asdict(m))


def test_black_and_still(sandbox: Sandbox, tmp_path: Path) -> None:
    graph = "testsrc2=size=160x90:rate=25:duration=1[a];color=black:size=160x90:rate=25:duration=3[b];[a][b]concat"
    m = check_video(make(sandbox, tmp_path / "a.mp4", ["-f", "lavfi", "-i", graph, *FAST]), sandbox)
    assert m.frames == 100
    assert m.black_share == pytest.approx(0.75, abs=0.01)
    assert m.frozen_share == pytest.approx(0.75, abs=0.02)


def test_repeated_pictures_of_a_slow_source_are_not_stillness(sandbox: Sandbox, tmp_path: Path) -> None:
    m = check_video(make(sandbox, tmp_path / "a.mp4", [*picture(1.0, rate="5"), "-r", "30", *FAST]), sandbox)
    assert m.frozen_share == 0.0


def test_dark_is_not_black(sandbox: Sandbox, tmp_path: Path) -> None:
    m = check_video(make(sandbox, tmp_path / "a.mp4", ["-f", "lavfi", "-i", "color=0x303030:size=64x64:duration=0.4", *FAST]), sandbox)
    assert m.black_share == 0.0
    assert m.mean_luma == pytest.approx(0x30 / 255, abs=0.02)


def test_a_film_without_picture(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(write_wav(np.zeros(100, np.float32), 16_000))
    with pytest.raises(MediaRejected) as caught:
        check_video(tmp_path / "a.wav", sandbox)
    assert caught.value.code == "no_video"


def _wav(folder: Path, sound: np.ndarray, rate: int = 48_000) -> Path:
    path = folder / "a.wav"
    path.write_bytes(write_wav(sound.astype(np.float32), rate))
    return path


def _sine(seconds: float, level: float, rate: int = 48_000) -> np.ndarray:
    return level * np.sin(2 * np.pi * 1000 * np.arange(int(seconds * rate)) / rate)


def test_loudness_of_the_reference_tone(sandbox: Sandbox, tmp_path: Path) -> None:
    """EBU Tech 3341: a 1 kHz sine at -23 dBFS in both channels reads -23 LUFS; in one channel 3 LU less."""
    m = check_audio(_wav(tmp_path, _sine(5.0, 10 ** (-23 / 20))), sandbox)
    assert m.loudness_lufs == pytest.approx(-26.0, abs=0.15)
    assert m.peak_dbfs == pytest.approx(-23.0, abs=0.01)
    assert (m.duration_us, m.sample_rate, m.channels) == (5_000_000, 48_000, 1)
    assert (m.silent_share, m.clipped_share) == (0.0, 0.0)


def test_silence(sandbox: Sandbox, tmp_path: Path) -> None:
    m = check_audio(_wav(tmp_path, np.zeros(48_000)), sandbox)
    assert (m.loudness_lufs, m.peak_dbfs, m.true_peak_dbtp, m.silent_share) == (None, -120.0, -120.0, 1.0)


def test_half_silent(sandbox: Sandbox, tmp_path: Path) -> None:
    m = check_audio(_wav(tmp_path, np.concatenate([_sine(1.0, 0.3), np.zeros(48_000)])), sandbox)
    assert m.silent_share == pytest.approx(0.5, abs=0.03)


def test_clipping(sandbox: Sandbox, tmp_path: Path) -> None:
    m = check_audio(_wav(tmp_path, np.clip(_sine(1.0, 2.0), -1, 1)), sandbox)
    assert m.clipped_share == pytest.approx(34 / 48, abs=0.001)  # of 48 samples a period, 34 lie above half the height
    assert m.peak_dbfs == pytest.approx(0.0, abs=0.001)


def test_the_peak_between_the_samples(sandbox: Sandbox, tmp_path: Path) -> None:
    """A sine of a quarter of the rate, sampled 45 degrees beside its crests: every sample is 3 dB below the true peak of -6 dB."""
    wave = 0.501187 * np.sin(np.pi / 2 * np.arange(96_000) + np.pi / 4)
    wave[:480] *= np.linspace(0, 1, 480)
    m = check_audio(_wav(tmp_path, wave), sandbox)
    assert m.peak_dbfs == pytest.approx(-9.0, abs=0.1)
    assert m.true_peak_dbtp == pytest.approx(-6.0, abs=0.3)


def test_another_rate_and_two_channels(sandbox: Sandbox, tmp_path: Path) -> None:
    m = check_audio(make(sandbox, tmp_path / "a.flac", [*tone(1.0, 44_100), "-ac", "2"]), sandbox)
    assert (m.sample_rate, m.channels, m.duration_us) == (44_100, 2, 1_000_000)


def test_sound_of_a_film(film: Path, sandbox: Sandbox) -> None:
    m = check_audio(film, sandbox)
    assert m.duration_us == pytest.approx(2_000_000, abs=30_000)
    assert m.loudness_lufs == pytest.approx(-22.0, abs=2.0)


def test_a_file_without_sound(sandbox: Sandbox, tmp_path: Path) -> None:
    with pytest.raises(MediaRejected) as caught:
        check_audio(make(sandbox, tmp_path / "a.mp4", [*picture(0.2), *FAST]), sandbox)
    assert caught.value.code == "no_audio"
