"""Sound on the project's clock."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from media.audio import read_audio, read_wav, write_wav
from media.command import Sandbox
from media.probe import probe
from schemas.errors import MediaRejected, ToolFailed
from tests.media.clips import FAST, make, picture, tone

RATE = 16_000


def _read(path: Path, sandbox: Sandbox, rate: int = RATE) -> NDArray[np.float32]:
    return read_audio(path, probe(path, sandbox), sandbox, rate)


def _loud(sound: NDArray[np.float32], rate: int = RATE) -> list[tuple[float, float]]:
    """Stretches with sound, seconds, to 10 ms."""
    step = rate // 100
    level = [float(np.abs(sound[at : at + step]).max(initial=0)) > 0.02 for at in range(0, len(sound), step)]
    edges = [n for n in range(len(level) + 1) if (n > 0 and level[n - 1]) != (n < len(level) and level[n])]
    return [(edges[n] / 100, edges[n + 1] / 100) for n in range(0, len(edges), 2)]


def test_a_plain_track(film: Path, sandbox: Sandbox) -> None:
    sound = _read(film, sandbox)
    assert sound.dtype == np.float32
    assert len(sound) == pytest.approx(2.0 * RATE, abs=0.03 * RATE)
    spectrum = np.abs(np.fft.rfft(sound[RATE // 2 : RATE // 2 + RATE]))
    assert int(spectrum.argmax()) == 440
    assert np.percentile(np.abs(sound), 95) == pytest.approx(0.125, abs=0.01)


@pytest.mark.parametrize(
    ("name", "codec"), [("a.mkv", "pcm_s16le"), ("a.mkv", "aac"), ("a.mp4", "aac"), ("a.mkv", "libopus"), ("a.ts", "aac")]
)
def test_sound_that_begins_late_begins_late(sandbox: Sandbox, tmp_path: Path, name: str, codec: str) -> None:
    path = make(sandbox, tmp_path / name, [*picture(2.0), "-itsoffset", "0.75", *tone(1.0), *FAST, "-c:a", codec])
    ((start, end),) = _loud(_read(path, sandbox))
    assert (start, end) == (pytest.approx(0.75, abs=0.025), pytest.approx(1.75, abs=0.035))


def test_sound_before_the_first_picture_is_cut(sandbox: Sandbox, tmp_path: Path) -> None:
    beeps = "sine=frequency=440:duration=2,volume='if(between(t,0.2,0.3)+between(t,1,1.2),1,0)':eval=frame"
    argv = ["-f", "lavfi", "-i", beeps, "-itsoffset", "0.48", *picture(1.0), *FAST, "-c:a", "pcm_s16le"]
    sound = _read(make(sandbox, tmp_path / "a.mkv", argv), sandbox)
    ((start, end),) = _loud(sound)
    assert (start, end) == (pytest.approx(0.52, abs=0.03), pytest.approx(0.72, abs=0.03))
    assert len(sound) == pytest.approx(1.52 * RATE, abs=200)


def test_a_gap_stays_a_gap(sandbox: Sandbox, tmp_path: Path) -> None:
    gap = "asetpts='if(gt(T,0.5),PTS+0.4/TB,PTS)'"
    path = make(sandbox, tmp_path / "a.mkv", [*picture(2.0), *tone(1.0), "-af", gap, *FAST, "-c:a", "pcm_s16le"])
    stretches = _loud(_read(path, sandbox))
    assert [round(edge, 1) for pair in stretches for edge in pair] == [0.0, 0.5, 0.9, 1.4]


def test_a_rate_that_changes_midway(sandbox: Sandbox, tmp_path: Path) -> None:
    one = make(sandbox, tmp_path / "1.ts", [*tone(1.0, 44_100, 440), "-c:a", "aac", "-f", "mpegts"]).read_bytes()
    two = make(
        sandbox, tmp_path / "2.ts", [*tone(1.0, 48_000, 880), "-c:a", "aac", "-f", "mpegts", "-output_ts_offset", "1.02"]
    ).read_bytes()
    (tmp_path / "a.ts").write_bytes(one + two)
    sound = _read(tmp_path / "a.ts", sandbox)
    assert len(sound) == pytest.approx(2.05 * RATE, abs=0.06 * RATE)
    for at, hertz in ((0.3, 440), (1.4, 880)):
        piece = sound[int(at * RATE) : int(at * RATE) + RATE // 2]
        assert int(np.abs(np.fft.rfft(piece)).argmax()) * 2 == pytest.approx(hertz, abs=4)


def test_the_reported_change_of_rate(shared: Path, sandbox: Sandbox) -> None:
    stretches = _loud(_read(shared / "cases" / "mixed_sample_rate.ts", sandbox))
    assert stretches[0][0] == pytest.approx(0.1, abs=0.03)
    assert any(2.5 <= start <= 2.75 for start, _ in stretches)


def test_only_the_chosen_track_is_heard(sandbox: Sandbox, tmp_path: Path) -> None:
    maps = ["-map", "0", "-map", "1", "-map", "2", "-disposition:a:0", "comment", "-disposition:a:1", "default"]
    path = make(sandbox, tmp_path / "a.mkv", [*picture(1.0), *tone(1.0, hertz=300), *tone(1.0, hertz=700), *maps, *FAST, "-c:a", "aac"])
    spectrum = np.abs(np.fft.rfft(_read(path, sandbox)[:RATE]))
    assert int(spectrum.argmax()) == 700
    assert spectrum[300] < spectrum[700] / 100


def test_sound_longer_than_the_picture_is_kept(sandbox: Sandbox, tmp_path: Path) -> None:
    path = make(sandbox, tmp_path / "a.mp4", [*picture(0.4), *tone(1.5), *FAST, "-c:a", "aac"])
    assert len(_read(path, sandbox)) == pytest.approx(1.5 * RATE, abs=0.03 * RATE)


def test_five_channels_become_one_without_clipping(sandbox: Sandbox, tmp_path: Path) -> None:
    same = "[0:a]volume=7,pan=5.1|c0=c0|c1=c0|c2=c0|c3=c0|c4=c0|c5=c0[a]"
    path = make(sandbox, tmp_path / "a.mkv", [*tone(0.5), "-filter_complex", same, "-map", "[a]", "-c:a", "flac"])
    assert 0.5 < np.abs(_read(path, sandbox)).max() < 1.0


def test_another_rate(film: Path, sandbox: Sandbox) -> None:
    assert len(_read(film, sandbox, 48_000)) == pytest.approx(96_000, abs=1500)


def test_sound_alone_starts_at_zero(sandbox: Sandbox, tmp_path: Path) -> None:
    path = make(sandbox, tmp_path / "a.mkv", [*tone(0.5), "-c:a", "pcm_s16le", "-output_ts_offset", "5"])
    assert len(_read(path, sandbox)) == pytest.approx(0.5 * RATE, abs=2)


def test_a_film_without_sound(sandbox: Sandbox, tmp_path: Path) -> None:
    path = make(sandbox, tmp_path / "a.mp4", [*picture(0.4), *FAST])
    with pytest.raises(MediaRejected) as caught:
        _read(path, sandbox)
    assert caught.value.code == "no_audio"


def test_wav_files_come_back_as_they_were() -> None:
    sound = np.array([0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 1 / 32768], np.float32)
    data = write_wav(sound, 24_000)
    back, rate = read_wav(data)
    assert rate == 24_000
    assert back.tolist() == [0.0, 0.5, -0.5, 32767 / 32768, -1.0, 32767 / 32768, -1.0, 1 / 32768]
    assert write_wav(back, 24_000) == data


@pytest.mark.parametrize("data", [b"", b"RIFF", b"not a wav file at all, just text"])
def test_other_bytes_are_no_wav(data: bytes) -> None:
    with pytest.raises(ToolFailed):
        read_wav(data)


@pytest.mark.parametrize(
    ("right", "expected"),
    [("-0.125*sin(2*PI*440*t)", 0.125), ("-0.11*sin(2*PI*440*t)", 0.125), ("0.125*sin(2*PI*440*t)", 0.125), ("0", 0.0625)],
    ids=["opposite", "nearly opposite", "equal", "left alone"],
)
def test_channels_that_cancel_each_other_are_not_mixed(sandbox: Sandbox, tmp_path: Path, right: str, expected: float) -> None:
    both = f"aevalsrc='0.125*sin(2*PI*440*t)|{right}':duration=2:sample_rate=48000:channel_layout=stereo"
    path = make(sandbox, tmp_path / "a.mkv", [*picture(2.0), "-f", "lavfi", "-i", both, *FAST, "-c:a", "pcm_s16le"])
    sound = _read(path, sandbox)
    assert float(np.abs(sound).max()) == pytest.approx(expected, abs=0.01)
