"""One clock for picture and sound: a clapperboard through containers, codecs and every way of beginning a file.

The film is black and silent; at 1.0 s it turns white and beeps. Wherever it has been, white and beep must be read at the same moment of the
project's clock, and that moment is known.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from media.audio import read_pcm
from media.command import Sandbox
from media.frames import stream_frames
from media.probe import probe
from schemas.media import MediaInfo
from schemas.time import Rate
from tests.media.clips import FAST, make

RATE = 16_000
FRAME_US = 40_000

H264 = ["-c:v", "libx264", "-preset", "ultrafast", "-bf", "2", "-g", "25", "-threads", "1", "-pix_fmt", "yuv420p"]
AAC = ["-c:a", "aac"]


@pytest.fixture(scope="session")
def clap(sandbox: Sandbox, reel: Path) -> Path:
    """Two seconds, 176x144, 25 pictures a second, lossless; white and loud in [1.0 s, 1.2 s)."""
    picture = "nullsrc=size=176x144:rate=25:duration=2,geq=lum='if(gte(T,0.99)*lt(T,1.19),200,16)+8*mod(N,4)':cb=128:cr=128"
    sound = "aevalsrc='0.5*sin(2*PI*1000*t)*gte(t,1)*lt(t,1.2)':sample_rate=48000:duration=2"
    argv = ["-f", "lavfi", "-i", picture, "-f", "lavfi", "-i", sound, "-c:v", "ffv1", "-pix_fmt", "yuv420p", "-c:a", "pcm_s16le"]
    return make(sandbox, reel / "clap.mkv", argv)


def recoded(sandbox: Sandbox, clap: Path, goal: Path, *options: str) -> Path:
    return make(sandbox, goal, ["-i", "/in/clap", *options], inputs={"clap": clap})


def white_us(path: Path, info: MediaInfo, sandbox: Sandbox) -> int:
    """Time of the first white picture."""
    frames = stream_frames(path, info, sandbox, width=16, height=16, gray=True)
    return next(f.pts_us for f in frames if f.array.mean() > 128)


def beep_us(path: Path, info: MediaInfo, sandbox: Sandbox) -> int:
    """Time of the first loud sample."""
    sound = np.abs(read_pcm(path, info, sandbox, RATE).astype(np.int32))
    return int(np.argmax(sound > 0.15 * 32768)) * 1_000_000 // RATE


def read(path: Path, sandbox: Sandbox) -> tuple[MediaInfo, int, int]:
    info = probe(path, sandbox)
    return info, white_us(path, info, sandbox), beep_us(path, info, sandbox)


KINDS: dict[str, tuple[str, list[str]]] = {
    "b-frames with an edit list": ("a.mp4", [*H264, "-bf", "3", *AAC]),
    "fragmented": ("a.mp4", [*H264, *AAC, "-movflags", "frag_keyframe+empty_moov+default_base_moof"]),
    "fragmented, index late": ("a.mp4", [*H264, *AAC, "-movflags", "frag_keyframe+delay_moov"]),
    "index in front": ("a.mp4", [*H264, *AAC, "-movflags", "+faststart"]),
    "without edit lists": ("a.mp4", [*H264, *AAC, "-use_editlist", "0"]),
    "mp3 in mp4": ("a.mp4", [*H264, "-c:a", "libmp3lame"]),
    "hevc and ac3": ("a.mp4", ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none:pools=1", "-c:a", "ac3"]),
    "av1 and opus": ("a.mp4", ["-c:v", "libaom-av1", "-cpu-used", "8", "-usage", "realtime", "-b:v", "100k", "-c:a", "libopus"]),
    "pcm in mov": ("a.mov", ["-c:v", "mjpeg", "-pix_fmt", "yuvj420p", "-c:a", "pcm_s16be"]),
    "24-bit pcm and prores": ("a.mov", ["-c:v", "prores", "-c:a", "pcm_s24le"]),
    "alac at 44.1 kHz": ("a.mov", [*H264, "-c:a", "alac", "-ar", "44100"]),
    "vp8 and vorbis": ("a.webm", ["-c:v", "libvpx", "-deadline", "realtime", "-b:v", "200k", "-c:a", "libvorbis"]),
    "vp9 and opus": ("a.webm", ["-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-c:a", "libopus"]),
    "flac in matroska": ("a.mkv", [*H264, "-c:a", "flac"]),
    "mp3 in avi": ("a.avi", ["-c:v", "mpeg4", "-bf", "2", "-c:a", "libmp3lame"]),
    "pcm in avi": ("a.avi", ["-c:v", "mjpeg", "-pix_fmt", "yuvj420p", "-c:a", "pcm_s16le"]),
    "program stream": ("a.mpg", ["-c:v", "mpeg2video", "-bf", "2", "-c:a", "mp2"]),
    "transport stream": ("a.ts", [*H264, *AAC]),
    "interlaced": ("a.ts", ["-c:v", "mpeg2video", "-flags", "+ildct+ilme", "-top", "1", "-c:a", "mp2"]),
    "flash": ("a.flv", [*H264, *AAC]),
    "windows media": ("a.wmv", ["-c:v", "wmv2", "-c:a", "wmav2"]),
    "theora and vorbis": ("a.ogv", ["-c:v", "libtheora", "-c:a", "libvorbis"]),
    "8 kHz": ("a.mkv", [*H264, "-c:a", "pcm_s16le", "-ar", "8000"]),
    "96 kHz, six channels": ("a.mkv", [*H264, "-c:a", "flac", "-ar", "96000", "-af", "pan=5.1|c0=c0|c1=c0|c2=c0|c3=c0|c4=c0|c5=c0"]),
    "mu-law": ("a.mov", [*H264, "-c:a", "pcm_mulaw", "-ar", "8000"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_white_and_beep_coincide(sandbox: Sandbox, clap: Path, tmp_path: Path, kind: str) -> None:
    name, options = KINDS[kind]
    info, white, beep = read(recoded(sandbox, clap, tmp_path / name, *options), sandbox)
    assert info.video is not None
    assert (info.video.frames, info.video.rate, info.video.is_vfr) == (50, Rate(num=25, den=1), False)
    assert info.video.duration_us == pytest.approx(2_000_000, abs=1_100)
    assert white == pytest.approx(1_000_000, abs=1_100)  # milliseconds are all that some containers have
    late = 25_000 if kind == "mp3 in avi" else 12_000  # codecs ring a little ahead; AVI cannot tell an encoder's delay
    assert beep == pytest.approx(1_000_000, abs=late)


STARTS: dict[str, tuple[str, list[str]]] = {
    "five seconds late": ("a.mkv", [*H264, *AAC, "-output_ts_offset", "5"]),
    "an hour late": ("a.ts", [*H264, *AAC, "-output_ts_offset", "3600"]),
    "the clock wraps around": ("a.ts", [*H264, *AAC, "-output_ts_offset", "95442.9"]),  # 2**33 ticks of 90 kHz are 95443.7 s
    "the clock wraps before the clap, mpeg2": ("a.ts", ["-c:v", "mpeg2video", "-c:a", "mp2", "-output_ts_offset", "95442.5"]),
}


@pytest.mark.parametrize("kind", STARTS)
def test_a_start_that_is_not_zero_moves_nothing(sandbox: Sandbox, clap: Path, tmp_path: Path, kind: str) -> None:
    name, options = STARTS[kind]
    info, white, beep = read(recoded(sandbox, clap, tmp_path / name, *options), sandbox)
    assert info.video is not None
    assert info.video.frames == 50
    assert info.video.duration_us == pytest.approx(2_000_000, abs=1_100)
    assert white == pytest.approx(1_000_000, abs=1_100)
    assert beep == pytest.approx(1_000_000, abs=12_000)


@pytest.mark.parametrize(("name", "sound"), [("a.mp4", "aac"), ("a.mkv", "pcm_s16le"), ("a.mov", "pcm_s16le")])
def test_a_beginning_that_was_cut_off(sandbox: Sandbox, clap: Path, tmp_path: Path, name: str, sound: str) -> None:
    """By stream copy from the middle of a group of pictures: an edit list in MP4; the pictures from the key frame on elsewhere."""
    whole = recoded(sandbox, clap, tmp_path / f"whole-{name}", *H264, "-c:a", sound)
    cut = make(sandbox, tmp_path / name, ["-ss", "0.52", "-i", "/in/whole", "-c", "copy"], inputs={"whole": whole})
    _, white, beep = read(cut, sandbox)
    assert abs(white - beep) <= 30_000
    if name.endswith(("mp4", "mov")):
        assert white == pytest.approx(480_000, abs=FRAME_US)


@pytest.mark.parametrize("late", ["picture", "sound"])
@pytest.mark.parametrize("name", ["a.mp4", "a.mkv", "a.ts"])
def test_one_of_the_two_begins_later(sandbox: Sandbox, clap: Path, tmp_path: Path, name: str, late: str) -> None:
    """The clap is moved 0.48 s in one of them, and must be read so."""
    delayed, plain = ("0:v", "1:a") if late == "picture" else ("0:a", "1:v")
    argv = [
        "-itsoffset",
        "0.48",
        "-i",
        "/in/clap",
        "-i",
        "/in/clap",
        "-map",
        delayed,
        "-map",
        plain,
        "-fps_mode",
        "passthrough",
        *H264,
        *AAC,
    ]
    _, white, beep = read(make(sandbox, tmp_path / name, [*argv, *H264, *AAC], inputs={"clap": clap}), sandbox)
    assert white == pytest.approx(1_000_000, abs=1_100)  # clock 0 is the first picture, wherever it lies
    assert beep - white == pytest.approx(-480_000 if late == "picture" else 480_000, abs=25_000)


def test_joined_broadcasts(sandbox: Sandbox, clap: Path, tmp_path: Path) -> None:
    """Two recordings in one transport stream, the clock jumping back between them: both claps, both together."""
    parts = [recoded(sandbox, clap, tmp_path / f"{k}.ts", *H264, *AAC, "-output_ts_offset", str(at)) for k, at in enumerate((700, 20))]
    path = tmp_path / "a.ts"
    path.write_bytes(b"".join(part.read_bytes() for part in parts))
    info = probe(path, sandbox)
    assert info.video is not None
    frames = list(stream_frames(path, info, sandbox, width=16, height=16, gray=True))
    bright = [f.array.mean() > 128 for f in frames]
    whites = [f.pts_us for f, now, before in zip(frames, bright, [False, *bright], strict=False) if now and not before]
    sound = np.abs(read_pcm(path, info, sandbox, RATE).astype(np.int32)) > 0.15 * 32768
    loud = np.flatnonzero(sound)
    beeps = [int(loud[0]) * 1_000_000 // RATE, *(int(b) * 1_000_000 // RATE for a, b in pairwise(loud) if b - a > RATE)]
    assert len(whites) == len(beeps) == 2
    assert [w / 1e6 for w in whites] == pytest.approx([1.0, 3.0], abs=0.1)
    assert [b - w for w, b in zip(whites, beeps, strict=True)] == pytest.approx([0, 0], abs=45_000)


@pytest.mark.parametrize(
    ("rate", "num", "den", "white"),
    [
        ("30000/1001", 30_000, 1001, 1_001_000),
        ("24000/1001", 24_000, 1001, 1_001_000),
        ("60000/1001", 60_000, 1001, 1_001_000),
        ("25/2", 25, 2, 1_040_000),
        ("1", 1, 1, 1_000_000),
        ("1/2", 1, 2, 2_000_000),
        ("120", 120, 1, 1_000_000),
    ],
)
@pytest.mark.parametrize("name", ["a.mp4", "a.mkv"])
def test_exact_fractions(sandbox: Sandbox, tmp_path: Path, rate: str, num: int, den: int, white: int, name: str) -> None:
    """The first white picture is the first at or behind 1.0 s."""
    source = f"color=black:size=64x64:rate={rate}:duration=6,drawbox=color=white:t=fill:enable='gte(t,0.9999)'"
    path = make(sandbox, tmp_path / name, ["-f", "lavfi", "-i", source, *FAST, "-g", "5"])
    info = probe(path, sandbox)
    assert info.video is not None
    assert (info.video.rate, info.video.is_vfr) == (Rate(num=num, den=den), False)
    assert info.video.frames == -(-6 * num // den) or info.video.frames == round(6 * num / den)
    assert white_us(path, info, sandbox) == pytest.approx(white, abs=1 if name == "a.mp4" else 500)


@pytest.mark.parametrize(("first", "second"), [("mono", "stereo"), ("stereo", "mono"), ("mono", "5.1")])
def test_channels_that_change_midway(sandbox: Sandbox, clap: Path, tmp_path: Path, first: str, second: str) -> None:
    parts = []
    for number, layout in enumerate((first, second)):
        options = [*H264, *AAC, "-af", f"aformat=channel_layouts={layout}", "-output_ts_offset", str(10 + 2 * number)]
        parts.append(recoded(sandbox, clap, tmp_path / f"{number}.ts", *options).read_bytes())
    path = tmp_path / "a.ts"
    path.write_bytes(b"".join(parts))
    info = probe(path, sandbox)
    sound = np.abs(read_pcm(path, info, sandbox, RATE).astype(np.int32)) > 0.1 * 32768
    loud = np.flatnonzero(sound) / RATE
    assert loud[0] == pytest.approx(1.0, abs=0.03)
    assert loud[loud > 2.0][0] == pytest.approx(3.0, abs=0.06)


# -- turned and mirrored pictures --------------------------------------------------------------------------------------------

UNIT = 1 << 16


def _with_matrix(path: Path, goal: Path, a: int, b: int, c: int, d: int) -> Path:
    """The picture track's display matrix written over, in both ``tkhd`` boxes' place of the first track."""
    data = bytearray(path.read_bytes())
    at = data.index(b"tkhd") + 4 + 4 + 20 + 8 + 8  # version and flags, times and ids, reserved, layer to volume
    for k, value in enumerate((a, b, 0, c, d, 0)):
        data[at + 4 * k : at + 4 * k + 4] = (value & 0xFFFFFFFF).to_bytes(4, "big")
    goal.write_bytes(data)
    return goal


@pytest.mark.parametrize(
    ("matrix", "size", "corner"),
    [
        ((UNIT, 0, 0, UNIT), (160, 90), "top left"),
        ((0, UNIT, -UNIT, 0), (90, 160), "top right"),
        ((-UNIT, 0, 0, -UNIT), (160, 90), "bottom right"),
        ((0, -UNIT, UNIT, 0), (90, 160), "bottom left"),
        ((-UNIT, 0, 0, UNIT), (160, 90), "top right"),
        ((UNIT, 0, 0, -UNIT), (160, 90), "bottom left"),
        ((0, UNIT, UNIT, 0), (90, 160), "top left"),
        ((0, -UNIT, -UNIT, 0), (90, 160), "bottom right"),
    ],
)
def test_all_eight_ways_of_holding_a_camera(
    sandbox: Sandbox, tmp_path: Path, matrix: tuple[int, int, int, int], size: tuple[int, int], corner: str
) -> None:
    """A white patch in the stored picture's top left corner; where it is seen."""
    source = "color=black:size=160x90:rate=25:duration=0.2,drawbox=x=0:y=0:w=40:h=30:color=white:t=fill"
    plain = make(sandbox, tmp_path / "plain.mp4", ["-f", "lavfi", "-i", source, *FAST])
    path = _with_matrix(plain, tmp_path / "a.mp4", *matrix)
    info = probe(path, sandbox)
    assert info.video is not None
    assert (info.video.display_width, info.video.display_height) == size
    picture = next(stream_frames(path, info, sandbox, width=size[0], height=size[1], gray=True)).array
    patches = {
        "top left": picture[:20, :20],
        "top right": picture[:20, -20:],
        "bottom left": picture[-20:, :20],
        "bottom right": picture[-20:, -20:],
    }
    assert [name for name, patch in patches.items() if patch.mean() > 128] == [corner]


def test_pixel_shape_and_rotation_together(sandbox: Sandbox, tmp_path: Path) -> None:
    """Pixels are widened first, then the picture is turned."""
    plain = make(sandbox, tmp_path / "plain.mp4", ["-f", "lavfi", "-i", "testsrc2=size=144x96:duration=0.2", "-vf", "setsar=16/11", *FAST])
    path = _with_matrix(plain, tmp_path / "a.mp4", 0, UNIT, -UNIT, 0)
    video = probe(path, sandbox).video
    assert video is not None
    assert (video.coded_width, video.coded_height, video.rotation) == (144, 96, 90)
    assert (video.display_width, video.display_height) == (96, 209)


# -- more than eight bits ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transfer", ["smpte2084", "arib-std-b67"])
@pytest.mark.parametrize("tags", ["whole", "transfer only"])
def test_high_dynamic_range_becomes_ordinary_neutral_pictures(sandbox: Sandbox, tmp_path: Path, transfer: str, tags: str) -> None:
    """Three grey fields, dark to bright: three 8-bit greys, dark to bright, none of them crushed or tinted."""
    fields = "nullsrc=size=96x32:rate=25:duration=0.2,format=yuv420p10le,geq=lum='if(lt(X,32),300,if(lt(X,64),480,600))':cb=512:cr=512"
    coder = ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none:pools=1"]
    colour = (
        ["-color_trc", transfer]
        if tags == "transfer only"
        else ["-color_primaries", "bt2020", "-color_trc", transfer, "-colorspace", "bt2020nc"]
    )
    path = make(sandbox, tmp_path / "a.mp4", ["-f", "lavfi", "-i", fields, *coder, *colour])
    info = probe(path, sandbox)
    assert info.video is not None
    assert info.video.is_hdr
    picture = next(stream_frames(path, info, sandbox, width=96, height=32)).array.astype(int)
    greys = [picture[8:24, x : x + 16].reshape(-1, 3).mean(axis=0) for x in (8, 40, 72)]
    assert all(np.ptp(grey) <= 4 for grey in greys)
    levels = [float(grey.mean()) for grey in greys]
    assert 5 < levels[0] < levels[1] - 20 < levels[2] - 40 < 215


@pytest.mark.parametrize("form", ["yuv420p10le", "yuv422p10le", "yuv444p12le", "gray10le", "gbrp"])
def test_deep_and_unusual_pixels(sandbox: Sandbox, tmp_path: Path, form: str) -> None:
    path = make(
        sandbox, tmp_path / "a.mkv", ["-f", "lavfi", "-i", "color=0x808080:size=33x17:duration=0.2", "-pix_fmt", form, "-c:v", "ffv1"]
    )
    info = probe(path, sandbox)
    picture = next(stream_frames(path, info, sandbox, width=33, height=17)).array
    assert np.abs(picture.astype(int) - 128).max() <= 2
