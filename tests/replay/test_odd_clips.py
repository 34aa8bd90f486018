"""Clips as people have them (turned, anamorphic, of uneven rate, odd size, short) from the user's folder to the shot's frames."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from media.frames import stream_frames
from media.probe import probe
from media.sandbox import open_sandbox
from replay.config import RenderConfig, ReplayConfig, RetrievalConfig
from replay.pool import cut_pool
from replay.state import apply, shot_change
from replay.tools import compose_timeline, render_shots
from schemas.state import AssetChoice, PoolClip
from tests.replay.studio import Studio
from tests.replay.test_pool import X264, board, film

W, H, FRAMES = 320, 180, 60
RED, GREEN, BLUE = (255, 0, 0), (0, 160, 0), (0, 0, 255)
TOP_RED = "color=red:s={w}x{half}:r=30:d=1[a];color=blue:s={w}x{half}:r=30:d=1[b];[a][b]vstack"
LEFT_RED = "color=red:s={half}x{h}:r=30:d=1[a];color=blue:s={half}x{h}:r=30:d=1[b];[a][b]hstack"
RED_THEN_BLUE = "color=red:s=320x180:r=30:d=0.5[a];color=blue:s=320x180:r=30:d={d}[b];[a][b]concat=n=2"
EVEN = ("-c:v", "libx264", "-preset", "ultrafast", "-crf", "8")

CLIPS: dict[str, tuple[str, ...]] = {
    "turned.mp4": ("-f", "lavfi", "-i", TOP_RED.format(w=180, half=160) + ",transpose=2", *EVEN, "-pix_fmt", "yuv420p"),
    "upside_down.mp4": ("-f", "lavfi", "-i", TOP_RED.format(w=320, half=90) + ",hflip,vflip", *EVEN, "-pix_fmt", "yuv420p"),
    "anamorphic.mp4": ("-f", "lavfi", "-i", LEFT_RED.format(half=60, h=180) + ",setsar=8/3", *EVEN, "-pix_fmt", "yuv420p"),
    "uneven.mkv": ("-f", "lavfi", "-i", RED_THEN_BLUE.format(d=1) + ",select='not(mod(n,7))+eq(n,15)+eq(n,44)'", "-fps_mode", "vfr", *EVEN,
                   "-pix_fmt", "yuv420p"),
    "odd_size.mkv": ("-f", "lavfi", "-i", "color=red:s=319x179:r=25:d=1", "-c:v", "ffv1", "-pix_fmt", "yuv444p"),
    "ten_bits.mkv": ("-f", "lavfi", "-i", "color=0x00a000:s=320x180:r=24:d=1", *EVEN, "-pix_fmt", "yuv420p10le"),
    "full_range.avi": ("-f", "lavfi", "-i", "color=red:s=320x180:r=50:d=1", "-c:v", "mjpeg", "-q:v", "2", "-pix_fmt", "yuvj420p"),
    "short.mp4": ("-f", "lavfi", "-i", RED_THEN_BLUE.format(d=0.1), *EVEN, "-pix_fmt", "yuv420p"),
    "one_frame.mp4": ("-f", "lavfi", "-i", "color=red:s=320x180:r=30", "-frames:v", "1", *EVEN, "-pix_fmt", "yuv420p"),
    "fast.mp4": ("-f", "lavfi", "-i", "color=red:s=320x180:r=100:d=0.5[a];color=0x00a000:s=320x180:r=100:d=1[b];[a][b]concat=n=2", *EVEN,
                 "-pix_fmt", "yuv420p"),
}  # fmt: skip

TURN = {"turned.mp4": "270", "upside_down.mp4": "180"}
"""Clips that carry a display rotation, counter-clockwise as the muxer takes it."""


@pytest.fixture(scope="module")
def shots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[PoolClip, NDArray[np.uint8]]]:
    """Every clip of the folder, and the frames of a two second shot made of it; shape [60, 180, 320, 3]."""
    root = tmp_path_factory.mktemp("odd")
    studio = Studio(root, open_sandbox())
    folder = root / "clips"
    folder.mkdir()
    for name, argv in CLIPS.items():
        made = studio.ffmpeg(name, *argv, f"/out/{name}")
        if name in TURN:
            turn = ("-i", "/in/flat", "-c", "copy", "-metadata:s:v:0", f"rotate={TURN[name]}", f"/out/{name}")
            made = studio.ffmpeg(name, *turn, inputs={"flat": made})
        made.rename(folder / name)
    config = ReplayConfig(retrieval=RetrievalConfig(extra_folder=str(folder)), render=RenderConfig(height=H, frame_rate=30))
    source = film(studio.sandbox, root, "film.mp4", *X264, "-an", seconds=1)
    notes: list[str] = []
    pool = cut_pool(
        board(studio.sandbox, source, [(0, 25)]), source, sandbox=studio.sandbox, store=studio.store, config=config, note=notes.append
    )
    clips = {c.origin: c for c in pool if c.origin in CLIPS}
    assert list(clips) == sorted(CLIPS), notes
    state = studio.planned([("", c.text, 2000) for c in clips.values()], pool=tuple(clips.values()))
    for sid, clip in zip(state.film.shot_order, clips.values(), strict=True):
        chosen = AssetChoice(clip_id=clip.clip_id, ref=clip.ref, query=clip.text, score=1.0, ranked=(clip.clip_id,))
        state = apply(state, [shot_change(sid, "asset", chosen)])
    state, _ = studio.run(compose_timeline.TOOL, state)
    state, _ = studio.run(render_shots.TOOL, state, {"shots": "all"})
    out = {}
    for sid, (name, clip) in zip(state.film.shot_order, clips.items(), strict=True):
        render = state.shots[sid].render
        assert render is not None
        path = studio.store.path(render.ref.sha256)
        frames = [f.array for f in stream_frames(path, probe(path, studio.sandbox), studio.sandbox, width=W, height=H)]
        out[name] = (clip, np.stack(frames))
    return out


def shows(frame: NDArray[np.uint8], x: int, y: int, colour: tuple[int, int, int], slack: int = 30) -> bool:
    return bool(np.abs(frame[y, x].astype(int) - colour).max() <= slack)


def test_every_shot_has_its_frames_and_none_is_black(shots: dict[str, tuple[PoolClip, NDArray[np.uint8]]]) -> None:
    assert {name: frames.shape for name, (_, frames) in shots.items()} == dict.fromkeys(sorted(CLIPS), (FRAMES, H, W, 3))
    assert {name: bool((frames.max(axis=(1, 2, 3)) < 60).any()) for name, (_, frames) in shots.items()} == dict.fromkeys(
        sorted(CLIPS), False
    )


@pytest.mark.parametrize(
    ("name", "size"),
    [("turned.mp4", (180, 320)), ("anamorphic.mp4", (320, 180)), ("odd_size.mkv", (318, 178)), ("upside_down.mp4", (320, 180))],
)
def test_clips_have_the_size_they_are_shown_at(
    shots: dict[str, tuple[PoolClip, NDArray[np.uint8]]], name: str, size: tuple[int, int]
) -> None:
    clip, _ = shots[name]
    assert (clip.width, clip.height) == size


@pytest.mark.parametrize(
    ("name", "frame", "x", "y", "colour"),
    [
        ("turned.mp4", 10, 160, 20, RED),
        ("turned.mp4", 10, 160, 160, BLUE),
        ("upside_down.mp4", 10, 10, 20, RED),
        ("upside_down.mp4", 10, 310, 160, BLUE),
        ("anamorphic.mp4", 10, 2, 90, RED),
        ("anamorphic.mp4", 10, 150, 90, RED),
        ("anamorphic.mp4", 10, 170, 90, BLUE),
        ("anamorphic.mp4", 10, 317, 90, BLUE),
        ("uneven.mkv", 13, 160, 90, RED),
        ("uneven.mkv", 16, 160, 90, BLUE),
        ("uneven.mkv", 59, 160, 90, BLUE),
        ("odd_size.mkv", 10, 1, 1, RED),
        ("odd_size.mkv", 10, 318, 178, RED),
        ("ten_bits.mkv", 10, 160, 90, GREEN),
        ("full_range.avi", 10, 160, 90, RED),
        ("short.mp4", 14, 160, 90, RED),
        ("short.mp4", 16, 160, 90, BLUE),
        ("short.mp4", 59, 160, 90, BLUE),
        ("one_frame.mp4", 0, 160, 90, RED),
        ("one_frame.mp4", 59, 160, 90, RED),
        ("fast.mp4", 14, 160, 90, RED),
        ("fast.mp4", 16, 160, 90, GREEN),
    ],
)
def test_the_picture_is_upright_in_proportion_in_time_and_held(
    shots: dict[str, tuple[PoolClip, NDArray[np.uint8]]], name: str, frame: int, x: int, y: int, colour: tuple[int, int, int]
) -> None:
    assert shows(shots[name][1][frame], x, y, colour), shots[name][1][frame][y, x]


def test_a_portrait_clip_stands_before_a_darker_backdrop(shots: dict[str, tuple[PoolClip, NDArray[np.uint8]]]) -> None:
    frame = shots["turned.mp4"][1][10]
    assert shows(frame, 160, 90 - 60, RED)
    assert 30 < int(frame[20, 20].max()) < 220
