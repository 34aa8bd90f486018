"""Sound against picture along a long film: onsets of beeps against onsets of flashes, as they come out of the delivered file.

    python bench/drift.py [--minutes 10] [--rates 30/1,30000/1001,24000/1001] [--keep DIR]

Every shot shows a clip with one white frame and speaks a prepared track with one beep; both are placed so that they meet. Shots have odd
lengths, so that every cut falls between frames and between samples. The film is made by the production tools (`synthesize_narration`,
`search_music`, `compose_timeline`, `render_shots`, `stitch_video`), with music where the packaged library is installed. Then the delivered
file alone is decoded: the first sample of each beep and the first frame of each flash are found and compared. Prints a Markdown table: a
line for each rate, differences in milliseconds against the planned one, the slope along the film, and the drift that the tool itself
reported. Exits with status 1 if a difference reaches one frame.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

from media.audio import read_audio
from media.command import Sandbox
from media.ffmpeg import house_video, run_ffmpeg
from media.frames import stream_frames
from media.probe import probe
from media.sandbox import open_sandbox
from replay.build_engines import build_engines
from replay.config import ReplayConfig
from replay.delivery import verify_delivery
from replay.engines import Engines, Samples
from replay.registry import base_tools
from replay.state import apply, film_change, initial, put_shot
from replay.tool import Product, ToolEnv
from schemas.artifact import ArtifactKind
from schemas.errors import EngineMissing
from schemas.state import AssetChoice, PlannedShot, PoolClip, ProductionState, Segment, ShotRecord, Task
from schemas.time import US, Rate
from storage.artifacts import ArtifactStore

SIZE = (320, 180)
RATE_HZ = 24_000
LEAD_US = 80_000
"""Silence between a cut and its narration (replay.timing.LEAD_US)."""
FLASHES = (15, 18, 21, 24, 33)
"""Frames at which the clips flash; a shot's beep is put where its clip flashes."""
BEEP_HZ, HUM_HZ = 3_000, 150
BEEP_S = 0.12
LOUD = 0.06
"""A beep begins where the second difference of the sound exceeds this: hum and music lie far below it, a beep far above."""
BRIGHT = 200


@dataclass
class Beeper:
    """Prepared tracks: the text says where the beep lies and how long the track is (``beep 520000 of 3377000``, microseconds)."""

    name: str = "beeper"
    version: str = "1"
    languages: tuple[str, ...] = ("en",)

    def voice_for(self, language: str, wanted: str) -> str:
        """There is one."""
        return "beep"

    def speak(self, text: str, language: str, voice: str, speed: float) -> tuple[Samples, int]:
        """A beep over a hum, at 24 kHz."""
        words = text.split()
        at, length = int(words[1]), int(words[3])
        out = (0.2 * np.sin(2 * np.pi * HUM_HZ * np.arange(length * RATE_HZ // US) / RATE_HZ)).astype(np.float32)
        start = at * RATE_HZ // US
        n = round(BEEP_S * RATE_HZ)
        out[start : start + n] += 0.5 * np.cos(2 * np.pi * BEEP_HZ * np.arange(n) / RATE_HZ)
        return out, RATE_HZ


def flashing_clips(rate: Rate, store: ArtifactStore, sandbox: Sandbox) -> dict[int, PoolClip]:
    """A clip of eight seconds for every place of the flash: moving, dark, and white for one frame."""
    out: dict[int, PoolClip] = {}
    for frame in FLASHES:
        with tempfile.TemporaryDirectory() as folder:
            graph = (
                f"testsrc2=s={SIZE[0]}x{SIZE[1]}:r={rate.num}/{rate.den},lutyuv=y='val*0.4',"
                f"drawbox=c=white:t=fill:enable='eq(n,{frame})',format=yuv420p"
            )
            argv = ("-f", "lavfi", "-i", graph, "-frames:v", "240", "-an", *house_video(preset="ultrafast"), "/out/clip.mp4")
            run_ffmpeg(argv, outputs=("clip.mp4",), sandbox=sandbox, workdir=Path(folder))
            ref = store.put_file(Path(folder) / "clip.mp4", ArtifactKind.CLIP, "video/mp4")
        out[frame] = PoolClip(
            clip_id=f"clip_{ref.sha256[:12]}", ref=ref, text=f"flash at {frame}", duration_us=rate.us_at(240), width=SIZE[0],
            height=SIZE[1], rate=rate, licence="CC0-1.0", origin="source",
        )  # fmt: skip
    return out


def planned(minutes: float, rate: Rate, clips: dict[int, PoolClip], engines: Engines) -> tuple[ProductionState, list[int]]:
    """The film after planning and retrieval, and the planned distance of each shot's beep behind its flash, microseconds."""
    rng = Random(11)  # noqa: S311 - seeded lengths, no secret
    texts: list[str] = []
    frames: list[int] = []
    apart: list[int] = []
    total = 0
    while total < minutes * 60 * US:
        frame = rng.choice(FLASHES)
        length = rng.randrange(2_400_000, 6_200_000)
        at = rate.us_at(frame) - LEAD_US
        texts.append(f"beep {at} of {length}")
        frames.append(frame)
        apart.append(at * RATE_HZ // US * US // RATE_HZ + LEAD_US - rate.us_at(frame))
        total += length + LEAD_US + 250_000
    script = " ".join(texts)
    task = Task(
        project_id="prj_drift", title="Beeps", language="en", script=script, aspect_ratio="16:9", width=SIZE[0], height=SIZE[1],
        frame_rate=rate, duration_min_us=1_000_000, duration_max_us=7_200_000_000, pool=tuple(clips.values()),
        music_library=engines.music.name, music_moods=("calm",), voice="beep", tools_digest="0" * 64, licence="CC0-1.0",
    )  # fmt: skip
    changes = [film_change("segments", (Segment(index=0, title="All", script_start=0, script_end=len(script)),))]
    order, at_char = [], 0
    for n, (text, frame) in enumerate(zip(texts, frames, strict=True)):
        clip = clips[frame]
        shot = PlannedShot(
            segment=0, script_start=at_char, script_end=at_char + len(text), text=text, visual_query=clip.text, target_duration_us=1_000_000
        )  # fmt: skip
        chosen = AssetChoice(clip_id=clip.clip_id, ref=clip.ref, query=clip.text, score=1.0, ranked=(clip.clip_id,))
        order.append(f"s{n + 1:03d}")
        changes.append(put_shot(ShotRecord(shot_id=order[-1], planned=shot, asset=chosen)))
        at_char += len(text) + 1
    return apply(initial(task), [*changes, film_change("shot_order", order)]), apart


def produce(state: ProductionState, store: ArtifactStore, sandbox: Sandbox, engines: Engines, config: ReplayConfig) -> ProductionState:
    """Speak, choose music, lay out, render, stitch: the real tools."""
    tools = {t.contract.name: t for t in base_tools()}
    steps = [
        "synthesize_narration",
        *(["search_music"] if engines.music.tracks else []),
        "compose_timeline",
        "render_shots",
        "stitch_video",
    ]
    for name in steps:
        tool = tools[name]
        args = {"shots": "missing"} if any(a.name == "shots" for a in tool.contract.args) else {}
        given = ({"query": "quiet and calm", "moods": ["calm"]},) if name == "search_music" else ()
        with tempfile.TemporaryDirectory() as folder:
            done = tool.execute(state, args, given, ToolEnv(store, sandbox, engines, config, Path(folder)))
        if not isinstance(done, Product):
            raise SystemExit(f"{name} refused: {done.blockers}")
        state = apply(state, done.changes)
    return state


def flashes_us(film: Path, sandbox: Sandbox) -> list[int]:
    """Times of the first bright frame of each flash, on the picture's clock."""
    out: list[int] = []
    was = False
    for frame in stream_frames(film, probe(film, sandbox), sandbox, width=32, height=18, gray=True):
        bright = float(frame.array.mean()) > BRIGHT
        if bright and not was:
            out.append(frame.pts_us)
        was = bright
    return out


def beeps_us(film: Path, sandbox: Sandbox) -> list[int]:
    """Times at which a beep begins, after at least half a second without one."""
    rate = 48_000
    sound: NDArray[np.float32] = read_audio(film, probe(film, sandbox), sandbox, rate=rate)
    loud = np.flatnonzero(np.abs(np.diff(sound, 2)) > LOUD) + 1
    first = loud[np.concatenate([[True], np.diff(loud) > rate // 2])]
    return [int(n) * US // rate for n in first]


def measure(minutes: float, rate: Rate, sandbox: Sandbox, keep: Path | None) -> tuple[str, bool]:
    """One line of the table, and whether every difference is below one frame."""
    config = ReplayConfig.model_validate({"speech": {"engine": "flite"}, "render": {"height": SIZE[1], "preset": "ultrafast"}})
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        root.chmod(0o755)
        store = ArtifactStore(root / "artifacts")
        engines = replace(build_engines(config, sandbox), speech=Beeper())
        state, apart = planned(minutes, rate, flashing_clips(rate, store, sandbox), engines)
        made = produce(state, store, sandbox, engines, config)
        delivery = made.film.delivery
        if delivery is None:
            raise SystemExit("no film")
        folder = keep or root / "film"
        folder.mkdir(parents=True, exist_ok=True)
        film = folder / "video.mp4"
        film.write_bytes(store.read(delivery.video.sha256))
        (folder / "manifest.json").write_bytes(store.read(delivery.manifest.sha256))
        manifest = store.read_json(delivery.manifest.sha256)
        seen, heard = flashes_us(film, sandbox), beeps_us(film, sandbox)
        report = verify_delivery(folder, sandbox)
    if not len(seen) == len(heard) == len(apart):
        raise SystemExit(f"{len(apart)} shots, but {len(seen)} flashes seen and {len(heard)} beeps heard")
    off = np.array([h - s - p for h, s, p in zip(heard, seen, apart, strict=True)]) / 1000
    at = np.array(seen) / 60e6
    slope = float(np.polyfit(at, off, 1)[0])
    minute = [f"{off[int(np.argmin(np.abs(at - m)))]:+.1f}" for m in (0, minutes / 2, minutes)]
    frame_ms = 1000 * rate.den / rate.num
    longer = (manifest["sound"]["duration_us"] - manifest["picture"]["duration_us"]) / 1000
    line = (
        f"| {rate.num}/{rate.den} | {len(apart)} | {manifest['picture']['duration_us'] / 1e6:.2f} | {', '.join(minute)} | "
        f"{off.min():+.1f} to {off.max():+.1f} | {slope:+.3f} | {longer:+.1f} | "
        f"{manifest['sound']['drift_us']} | {'yes' if report.passed else 'no'} | {time.perf_counter() - began:.0f} |"
    )
    return line, bool(np.abs(off).max() < frame_ms) and report.passed


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--rates", default="30/1,30000/1001,24000/1001")
    parser.add_argument("--keep", type=Path, help="folder that receives the last film and its manifest")
    options = parser.parse_args()
    sandbox = open_sandbox()
    try:
        build_engines(ReplayConfig.model_validate({"speech": {"engine": "flite"}}), sandbox)
    except EngineMissing as missing:
        raise SystemExit(str(missing)) from missing
    print(
        "| rate | shots | film, s | beep behind flash at start, middle, end, ms | range, ms | slope, ms a minute | sound longer, ms | "
        "reported drift, us | `verify` passes | took, s |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    )
    good = True
    for text in options.rates.split(","):
        num, _, den = text.partition("/")
        line, fine = measure(options.minutes, Rate(num=int(num), den=int(den or 1)), sandbox, options.keep)
        print(line, flush=True)
        good = good and fine
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
