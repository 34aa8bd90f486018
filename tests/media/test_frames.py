"""Pictures and their times."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from media.command import Sandbox
from media.frames import Frame, fitted, grab_frames, stream_frames
from media.probe import probe
from schemas.errors import MediaRejected
from schemas.media import MediaInfo
from tests.media.clips import FAST, make, picture, tone


def _all(path: Path, sandbox: Sandbox, **more: object) -> list[Frame]:
    return list(stream_frames(path, probe(path, sandbox), sandbox, width=32, height=18, gray=True, **more))  # type: ignore[arg-type]


def test_every_picture_once_with_its_time(film: Path, film_info: MediaInfo, sandbox: Sandbox) -> None:
    frames = list(stream_frames(film, film_info, sandbox, width=32, height=18))
    assert [f.index for f in frames] == list(range(50))
    assert [f.pts_us for f in frames] == [n * 40_000 for n in range(50)]
    assert {(f.array.shape, f.array.dtype.name) for f in frames} == {((18, 32, 3), "uint8")}


def test_a_part_of_a_film(film: Path, film_info: MediaInfo, sandbox: Sandbox) -> None:
    whole = {f.pts_us: f.array for f in stream_frames(film, film_info, sandbox, width=32, height=18)}
    part = list(stream_frames(film, film_info, sandbox, width=32, height=18, start_us=1_000_000, end_us=1_200_000))
    assert [f.pts_us for f in part] == [1_000_000, 1_040_000, 1_080_000, 1_120_000, 1_160_000]
    assert all(np.array_equal(f.array, whole[f.pts_us]) for f in part)


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv", "a.ts", "a.avi", "a.mpg", "a.flv"])
def test_the_first_picture_is_at_zero_in_every_container(sandbox: Sandbox, tmp_path: Path, name: str) -> None:
    codec = {"a.avi": ["-c:v", "mjpeg", "-pix_fmt", "yuvj420p"], "a.mpg": ["-c:v", "mpeg2video"], "a.flv": ["-c:v", "flv"]}.get(name, FAST)
    sound = [] if name == "a.avi" else tone(1.0)  # beside MP3 ffmpeg's AVI writer leaves out a picture's place
    argv = [*picture(1.0), *sound, *codec, "-c:a", "mp2" if name == "a.mpg" else "libmp3lame", "-ar", "44100"]
    if name in ("a.mkv", "a.ts"):
        argv += ["-output_ts_offset", "3"]
    frames = _all(make(sandbox, tmp_path / name, argv), sandbox)
    assert len(frames) == 25
    assert all(abs(f.pts_us - n * 40_000) <= 1_000 for n, f in enumerate(frames))


def test_unequal_distances(sandbox: Sandbox, tmp_path: Path) -> None:
    argv = [
        *picture(1.0, rate="30"),
        "-vf",
        "select='not(between(n,6,14))'",
        "-fps_mode",
        "passthrough",
        "-enc_time_base",
        "1:15360",
        *FAST,
    ]
    times = [f.pts_us for f in _all(make(sandbox, tmp_path / "a.mp4", argv), sandbox)]
    expected = [round(n * 1_000_000 / 30) for n in range(30) if not 6 <= n <= 14]
    assert len(times) == len(expected)
    assert max(abs(a - b) for a, b in zip(times, expected, strict=True)) <= 1


def test_equal_times(shared: Path, sandbox: Sandbox) -> None:
    times = [f.pts_us for f in _all(shared / "cases" / "duplicate_pts.mkv", sandbox)]
    assert times == [n // 2 * 80_000 for n in range(100)]


def test_a_clock_that_jumps_goes_on(sandbox: Sandbox, tmp_path: Path) -> None:
    argv = [*picture(1.0), *tone(1.0), *FAST, "-c:a", "aac", "-f", "mpegts"]
    first = make(sandbox, tmp_path / "first.ts", argv).read_bytes()
    second = make(sandbox, tmp_path / "second.ts", [*argv, "-output_ts_offset", "5000"]).read_bytes()
    (tmp_path / "joined.ts").write_bytes(first + second)
    info = probe(tmp_path / "joined.ts", sandbox)
    assert info.video is not None
    assert info.video.frames == 50
    assert info.video.duration_us == pytest.approx(2_000_000, abs=120_000)
    times = [f.pts_us for f in stream_frames(tmp_path / "joined.ts", info, sandbox, width=32, height=18)]
    assert len(times) == 50
    assert times == sorted(times)
    assert times[-1] == pytest.approx(1_960_000, abs=120_000)


def test_a_turned_film_stands_upright(sandbox: Sandbox, tmp_path: Path) -> None:
    """White left, black right; turned clockwise by what the probe says, white is on top or at the bottom."""
    halves = "color=white:size=160x90:duration=0.2,drawbox=x=80:w=80:h=90:color=black:t=fill"
    flat = make(sandbox, tmp_path / "flat.mp4", ["-f", "lavfi", "-i", halves, *FAST])
    seen: dict[int, tuple[bool, bool]] = {}
    for tag in ("90", "270"):
        argv = ["-i", "/in/flat", "-c", "copy", "-metadata:s:v:0", f"rotate={tag}"]
        path = make(sandbox, tmp_path / f"{tag}.mp4", argv, inputs={"flat": flat})
        info = probe(path, sandbox)
        assert info.video is not None
        image = grab_frames(path, info, sandbox, [0], 160)[0]
        assert image.shape == (160, 90, 3)
        seen[info.video.rotation] = (bool(image[:70].mean() > 200), bool(image[90:].mean() > 200))
    assert seen == {90: (True, False), 270: (False, True)}


def test_colours_are_right(sandbox: Sandbox, tmp_path: Path) -> None:
    argv = [
        "-f",
        "lavfi",
        "-i",
        "color=0xe02020:size=64x64:duration=0.2",
        "-vf",
        "scale=out_color_matrix=bt709:out_range=tv,format=yuv420p",
    ]
    tags = ["-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709"]
    path = make(sandbox, tmp_path / "a.mp4", [*argv, *FAST, *tags])
    image = grab_frames(path, probe(path, sandbox), sandbox, [0], 64)[0]
    assert np.abs(image.reshape(-1, 3).mean(axis=0) - (0xE0, 0x20, 0x20)).max() <= 3


def test_high_dynamic_range_comes_out_as_ordinary_pictures(sandbox: Sandbox, tmp_path: Path) -> None:
    argv = [*picture(0.2), "-c:v", "libx265", "-preset", "ultrafast", "-pix_fmt", "yuv420p10le", "-x265-params", "log-level=none:pools=1"]
    colour = ["-color_primaries", "bt2020", "-color_trc", "smpte2084", "-colorspace", "bt2020nc"]
    path = make(sandbox, tmp_path / "a.mp4", [*argv, *colour])
    image = grab_frames(path, probe(path, sandbox), sandbox, [0], 160)[0]
    assert image.shape == (90, 160, 3)
    assert 20 < image.mean() < 235


def test_grabbing_is_what_is_on_screen(film: Path, film_info: MediaInfo, sandbox: Sandbox) -> None:
    whole = {f.pts_us: f.array for f in stream_frames(film, film_info, sandbox, width=80, height=45)}
    times = [1_960_000, 0, 39_999, 40_000, 1_000_001, 9_000_000, -5, 0]
    on_screen = [1_960_000, 0, 0, 40_000, 1_000_000, 1_960_000, 0, 0]
    images = grab_frames(film, film_info, sandbox, times, 80)
    assert [next(at for at, a in whole.items() if np.array_equal(a, image)) for image in images] == on_screen


def test_grabbing_in_a_long_still_stretch(sandbox: Sandbox, tmp_path: Path) -> None:
    argv = [*picture(1.0, rate="25"), "-vf", "setpts='if(lt(N,20),N,N+400)/25/TB'", "-fps_mode", "passthrough", *FAST]
    path = make(sandbox, tmp_path / "a.mkv", argv)
    info = probe(path, sandbox)
    whole = [(f.pts_us, f.array) for f in stream_frames(path, info, sandbox, width=80, height=45)]
    image = grab_frames(path, info, sandbox, [9_000_000], 80)[0]
    assert [at for at, a in whole if np.array_equal(a, image)] == [760_000]


def test_grabbing_far_apart(sandbox: Sandbox, tmp_path: Path) -> None:
    path = make(sandbox, tmp_path / "a.mp4", [*picture(30.0, "64x36", "5"), *FAST, "-g", "25"])
    info = probe(path, sandbox)
    times = [29_000_000, 500_000, 14_200_000]
    whole = {f.pts_us: f.array for f in stream_frames(path, info, sandbox, width=64, height=36)}
    for at, image in zip((29_000_000, 400_000, 14_200_000), grab_frames(path, info, sandbox, times, 64), strict=True):
        assert np.array_equal(image, whole[at])


def test_small_pictures_of_bidirectional_ones_are_those_of_the_whole_film(sandbox: Sandbox, tmp_path: Path) -> None:
    path = make(sandbox, tmp_path / "a.mp4", [*picture(2.0, "640x360"), "-c:v", "libx264", "-crf", "40", "-bf", "3", "-g", "250"])
    info = probe(path, sandbox)
    small = [f.array.astype(float) for f in stream_frames(path, info, sandbox, width=64, height=36)]
    large = [f.array.astype(float) for f in stream_frames(path, info, sandbox, width=320, height=180)]
    away = [np.abs(a - b.reshape(36, 5, 64, 5, 3).mean(axis=(1, 3))).mean() for a, b in zip(small, large, strict=True)]
    assert max(away) < 1.0


def test_stopping_early_leaves_nothing_running(film: Path, film_info: MediaInfo, sandbox: Sandbox) -> None:
    frames = stream_frames(film, film_info, sandbox, width=32, height=18)
    next(frames)
    frames.close()  # type: ignore[attr-defined]
    assert not [t for t in threading.enumerate() if t.name.startswith("workprint-")]


def test_a_file_without_picture(sandbox: Sandbox, tmp_path: Path) -> None:
    path = make(sandbox, tmp_path / "a.m4a", [*tone(0.2), "-c:a", "aac"])
    with pytest.raises(MediaRejected) as caught:
        next(iter(stream_frames(path, probe(path, sandbox), sandbox, width=32, height=18)))
    assert caught.value.code == "no_video"


def test_a_film_cut_off_in_the_middle_gives_what_it_has(sandbox: Sandbox, tmp_path: Path) -> None:
    path = make(sandbox, tmp_path / "a.mkv", [*picture(2.0), *FAST, "-g", "10"])
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    info = probe(path, sandbox)
    frames = list(stream_frames(path, info, sandbox, width=32, height=18))
    assert info.video is not None
    assert 10 < len(frames) <= info.video.frames < 50


@pytest.mark.parametrize(
    ("size", "side", "fits"),
    [((160, 90), 80, (80, 45)), ((90, 160), 80, (45, 80)), ((160, 90), 320, (160, 90)), ((4000, 3), 100, (100, 1))],
)
def test_fitting(size: tuple[int, int], side: int, fits: tuple[int, int]) -> None:
    assert fitted(*size, side) == fits
