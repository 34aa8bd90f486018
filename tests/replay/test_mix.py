"""Levels and places of the film's sound."""

from __future__ import annotations

import pytest

from media.measure import AudioMeasure
from replay.mix import music_levels, sample_at
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


@pytest.mark.parametrize(
    ("frame", "rate", "sample"), [(1, (30, 1), 1600), (18_000, (30, 1), 28_800_000), (1, (30000, 1001), 1602), (0, (24, 1), 0)]
)
def test_frames_have_their_sample(frame: int, rate: tuple[int, int], sample: int) -> None:
    assert sample_at(frame, Rate(num=rate[0], den=rate[1])) == sample
