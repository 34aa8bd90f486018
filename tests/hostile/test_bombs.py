"""S4 and S6: damaged and exaggerated files end as a result or a typed error, soon, and in bounded memory."""

from __future__ import annotations

import random
import struct
import time
import zlib
from pathlib import Path

import pytest

from media.command import Sandbox
from media.frames import stream_frames
from media.probe import MediaLimits, probe
from schemas.errors import LimitExceeded, MediaRejected, ToolFailed
from tests.media.clips import FAST, make, picture, tone

pytestmark = pytest.mark.hostile

SOON_S = 20.0
"""Generous: the machine may be shared. What counts is that it ends."""


def _ends(path: Path, sandbox: Sandbox, limits: MediaLimits | None = None) -> str:
    """How probing and decoding a file ends: 'ok' or the code of a typed error."""
    start = time.monotonic()
    try:
        info = probe(path, sandbox, limits)
        if info.video is not None:
            for count, _ in enumerate(stream_frames(path, info, sandbox, width=16, height=16, gray=True)):
                if count > 500:
                    break
    except (MediaRejected, LimitExceeded, ToolFailed) as error:
        outcome = str(error.code)
    else:
        outcome = "ok"
    assert time.monotonic() - start < SOON_S
    return outcome


def _box(kind: bytes, body: bytes) -> bytes:
    return (len(body) + 8).to_bytes(4, "big") + kind + body


@pytest.fixture(scope="module")
def plain(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(sandbox, tmp_path_factory.mktemp("bombs") / "film.mp4", [*picture(0.4), *tone(0.4), *FAST, "-c:a", "aac"])


def test_pixels(sandbox: Sandbox, tmp_path: Path) -> None:
    """A few kilobytes of PNG that unfold to 256 million pixels, as a picture track."""
    rows = zlib.compress(bytes(16_000 // 8 + 1) * 16_000, 9)

    def part(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    png = (
        b"\x89PNG\r\n\x1a\n"
        + part(b"IHDR", struct.pack(">IIBBBBB", 16_000, 16_000, 1, 0, 0, 0, 0))
        + part(b"IDAT", rows)
        + part(b"IEND", b"")
    )
    (tmp_path / "bomb.png").write_bytes(png)
    argv = ["-f", "png_pipe", "-framerate", "1", "-i", "/in/a.png", "-c", "copy"]
    path = make(sandbox, tmp_path / "a.mov", argv, inputs={"a.png": tmp_path / "bomb.png"})
    data = path.read_bytes()
    (tmp_path / "twice.mov").write_bytes(data)
    assert _ends(path, sandbox) in ("limit_pixels", "no_video")


def test_declared_hours(sandbox: Sandbox, tmp_path: Path) -> None:
    argv = [*picture(0.12), "-vf", "setpts=N*36000/TB", "-fps_mode", "passthrough", "-enc_time_base", "1:1000", *FAST]
    assert _ends(make(sandbox, tmp_path / "a.mp4", argv), sandbox) == "limit_duration"


def test_streams_by_the_thousand(tmp_path: Path, sandbox: Sandbox) -> None:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return kind + len(body).to_bytes(4, "little") + body

    one = chunk(
        b"LIST",
        b"strl"
        + chunk(b"strh", b"auds" + bytes(16) + b"\1\0\0\0\1\0\0\0" + bytes(24))
        + chunk(b"strf", b"\1\0\1\0\x40\x1f\0\0\x40\x1f\0\0\1\0\x08\0"),
    )
    many = b"AVI " + chunk(b"LIST", b"hdrl" + chunk(b"avih", bytes(56)) + one * 20_000) + chunk(b"LIST", b"movi")
    (tmp_path / "a.avi").write_bytes(b"RIFF" + len(many).to_bytes(4, "little") + many)
    assert _ends(tmp_path / "a.avi", sandbox) in ("limit_streams", "unreadable")


def test_a_hundred_sound_tracks(sandbox: Sandbox, tmp_path: Path) -> None:
    argv = [*tone(0.1, 8000), *(word for _ in range(100) for word in ("-map", "0")), "-c:a", "pcm_s16le"]
    assert _ends(make(sandbox, tmp_path / "a.mkv", argv), sandbox) == "limit_streams"


def test_a_million_pictures_a_second(sandbox: Sandbox, tmp_path: Path) -> None:
    argv = [*picture(1.0, "32x32"), "-vf", "settb=1/1000000,setpts=N", "-fps_mode", "passthrough", "-enc_time_base", "1:1000000", *FAST]
    assert _ends(make(sandbox, tmp_path / "a.mp4", [*argv, "-video_track_timescale", "1000000"]), sandbox) == "ok"


def test_too_many_packets(sandbox: Sandbox, plain: Path) -> None:
    assert _ends(plain, sandbox, MediaLimits(max_packets=5)) == "limit_duration"


def test_a_clock_without_ticks(sandbox: Sandbox, plain: Path, tmp_path: Path) -> None:
    data = bytearray(plain.read_bytes())
    at = data.index(b"mdhd") + 4 + 12
    data[at : at + 4] = bytes(4)
    (tmp_path / "a.mp4").write_bytes(bytes(data))
    assert _ends(tmp_path / "a.mp4", sandbox) in ("ok", "unreadable", "limit_duration")


@pytest.mark.parametrize("shift", ["-(2147483647)", "2147483647*1000"])
def test_times_far_away(sandbox: Sandbox, tmp_path: Path, shift: str) -> None:
    argv = [*picture(0.4), "-vf", f"setpts=PTS+({shift})", "-fps_mode", "passthrough", *FAST, "-avoid_negative_ts", "disabled"]
    assert _ends(make(sandbox, tmp_path / "a.mkv", argv), sandbox) in ("ok", "unreadable", "limit_duration", "decoder_stream")


def test_boxes_within_boxes(sandbox: Sandbox, tmp_path: Path) -> None:
    inner = b""
    for _ in range(5000):
        inner = _box(b"moov", inner)
    (tmp_path / "a.mp4").write_bytes(_box(b"ftyp", b"isom\0\0\2\0isom") + inner)
    assert _ends(tmp_path / "a.mp4", sandbox) == "unreadable"


def test_boxes_side_by_side(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(_box(b"ftyp", b"isom\0\0\2\0isom") + _box(b"free", b"") * 200_000)
    assert _ends(tmp_path / "a.mp4", sandbox) == "unreadable"


def test_sample_tables_that_promise_billions(sandbox: Sandbox, plain: Path, tmp_path: Path) -> None:
    data = bytearray(plain.read_bytes())
    for kind in (b"stsz", b"stts"):
        at = data.index(kind) + 4 + (8 if kind == b"stsz" else 4)
        data[at : at + 4] = b"\xff\xff\xff\xf0"
    (tmp_path / "a.mp4").write_bytes(bytes(data))
    assert _ends(tmp_path / "a.mp4", sandbox) in ("ok", "unreadable", "limit_duration")


def test_a_title_of_eight_megabytes(sandbox: Sandbox, tmp_path: Path) -> None:
    metadata = b";FFMETADATA1\n[STREAM]\ntitle=" + b"x" * 8_000_000 + b"\n"
    argv = ["-f", "ffmetadata", "-i", "/in/meta", *tone(0.2), "-map", "1", "-map_metadata:s:a:0", "0:s:0", "-c:a", "aac"]
    path = make(sandbox, tmp_path / "a.mkv", [*argv], texts={"meta": metadata})
    info = probe(path, sandbox)
    assert info.audio is not None
    assert len(info.audio.title or "") <= 200


def test_a_little_file_of_long_sound(sandbox: Sandbox, tmp_path: Path) -> None:
    path = make(sandbox, tmp_path / "a.flac", ["-f", "lavfi", "-i", "anullsrc=r=8000:cl=mono:d=1200", "-compression_level", "0"])
    assert path.stat().st_size < 1_000_000
    assert _ends(path, sandbox, MediaLimits(max_duration_us=600_000_000)) == "limit_duration"


SEEDS = {
    "mp4": [*picture(0.4), *tone(0.4), *FAST, "-c:a", "aac"],
    "mkv": [*picture(0.4), *tone(0.4), *FAST, "-c:a", "libopus"],
    "ts": [*picture(0.4), *tone(0.4), *FAST, "-c:a", "aac"],
    "avi": [*picture(0.4), *tone(0.4), "-c:v", "mpeg4", "-c:a", "libmp3lame"],
    "webm": [*picture(0.4), "-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8"],
}


@pytest.mark.parametrize("kind", SEEDS)
@pytest.mark.parametrize("mutation", ["bytes", "cut", "swap", "head"])
def test_damage_ends_in_a_result_or_a_typed_error(sandbox: Sandbox, tmp_path: Path, kind: str, mutation: str) -> None:
    path = make(sandbox, tmp_path / f"a.{kind}", SEEDS[kind])
    data = bytearray(path.read_bytes())
    dice = random.Random(f"{kind} {mutation}")  # noqa: S311
    if mutation == "bytes":
        for _ in range(max(20, len(data) // 100)):
            data[dice.randrange(len(data))] = dice.randrange(256)
    elif mutation == "cut":
        del data[dice.randrange(len(data) // 2, len(data)) :]
    elif mutation == "swap":
        half = len(data) // 2
        data = data[: half // 2] + data[half:] + data[half // 2 : half]
    else:
        for _ in range(30):
            data[dice.randrange(min(2000, len(data)))] ^= 1 << dice.randrange(8)
    path.write_bytes(bytes(data))
    outcome = _ends(path, sandbox)
    assert outcome == "ok" or outcome in _TYPED, outcome


_TYPED = frozenset(
    {"unreadable", "not_media", "no_video", "codec_refused", "limit_duration", "limit_pixels", "limit_streams", "manifest_refused"}
)
