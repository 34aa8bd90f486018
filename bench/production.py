"""What each production tool costs: seconds per minute of finished film, with an empty store and again with a full one.

    python bench/production.py [--speech kokoro|flite] [--height 720] [--shots 12] [--keep DIR]

Makes a film of the demo lecture's pictures (or of generated ones where it is not fetched) and a fixed text, calling the tools as the
runtime does. Prints a Markdown table. Nothing is measured but the tools: no policy, no journal.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from media.assets import asset
from media.command import Sandbox
from media.ffmpeg import TO_HOUSE_COLOUR, house_video, run_ffmpeg
from media.sandbox import open_sandbox
from replay.build_engines import build_engines
from replay.config import ReplayConfig
from replay.delivery import verify_delivery
from replay.engines import Engines
from replay.registry import base_tools
from replay.state import apply, film_change, initial, put_shot
from replay.task import canvas
from replay.tool import Product, ToolEnv
from schemas.artifact import ArtifactKind
from schemas.errors import EngineMissing
from schemas.state import PlannedShot, PoolClip, ProductionState, Segment, ShotRecord, SpotlightPlan, Task
from schemas.storyboard import SpotlightKind
from schemas.time import Rate
from storage.artifacts import ArtifactStore

LINES = (
    "A pendulum is a weight on a string, and it has kept time for four hundred years.",
    "The period depends on the length of the string, and not on the weight that hangs from it.",
    "Let us measure ten swings, so that the error of my hand is divided by ten.",
    "The prediction for this string is four and a half seconds for every swing.",
    "Now I change the angle from five degrees to ten, and the time stays the same.",
    "The small difference that remains is smaller than the error of the stop watch.",
    "A heavier ball makes no difference either, although many people expect one.",
    "So I shall be the weight myself, and sit on the ball while it swings.",
    "Nobody believes it until he has seen a professor swing through the lecture hall.",
    "Count with me, because ten swings are easily nine or eleven when you laugh.",
    "Forty five seconds, with a mass that is several times larger than before.",
    "Physics works, and that is why we can trust a clock that hangs on a wall.",
)
SPOTLIGHTS = {
    1: (SpotlightKind.TITLE, "title", {"title": "The pendulum", "subtitle": "Four hundred years of time"}),
    4: (SpotlightKind.NUMBER, "number", {"value": "4.5 s", "label": "for one swing of this string"}),
    9: (SpotlightKind.LOWER_THIRD, "lower_third", {"title": "The lecture hall", "subtitle": "A professor as a weight"}),
}
RATE = Rate(num=30, den=1)


CGROUP = Path("/sys/fs/cgroup/cpuacct/workprint-bench")
"""Counts the processor time of this process and everything it starts, where the machine has cgroups of version 1 and lets us."""


def join_cgroup() -> bool:
    """Whether processor time can be counted."""
    try:
        CGROUP.mkdir(exist_ok=True)
        (CGROUP / "cgroup.procs").write_text(str(os.getpid()))
    except OSError:
        return False
    return True


def cpu_s() -> float:
    """Processor seconds used so far; 0 where they are not counted."""
    with contextlib.suppress(OSError):
        return int((CGROUP / "cpuacct.usage").read_text()) / 1e9
    return 0.0


def cut_pool(count: int, height: int, store: ArtifactStore, sandbox: Sandbox) -> tuple[PoolClip, ...]:
    """Clips of seven seconds."""
    try:
        film: Path | None = asset("demo-video")
    except EngineMissing:
        film = None
    out: list[PoolClip] = []
    for n in range(count):
        with tempfile.TemporaryDirectory() as folder:
            size = f"scale={height * 4 // 3 // 2 * 2}:{height}:flags=bicubic,fps=30,{TO_HOUSE_COLOUR}"
            source = ("-ss", str(3 + n * 9), "-i", "/in/film") if film else ("-f", "lavfi", "-i", f"testsrc2=s=320x240:r=15,hue=h={n * 30}")
            argv = (*source, "-map", "0:v:0", "-vf", size, "-frames:v", "210", "-an", *house_video(18), "/out/clip.mp4")
            run_ffmpeg(argv, inputs={"film": film} if film else {}, outputs=("clip.mp4",), sandbox=sandbox, workdir=Path(folder))
            ref = store.put_file(Path(folder) / "clip.mp4", ArtifactKind.CLIP, "video/mp4")
        out.append(
            PoolClip(
                clip_id=f"clip_{ref.sha256[:12]}",
                ref=ref,
                text=f"lecture, part {n + 1}: {LINES[n % len(LINES)]}",
                duration_us=7_000_000,
                width=height * 4 // 3 // 2 * 2,
                height=height,
                rate=RATE,
                licence="CC-BY-3.0",
                attribution="Walter Lewin, MIT OpenCourseWare",
                origin="source",
            )
        )
    return tuple(out)


def planned(count: int, height: int, pool: tuple[PoolClip, ...], engines: Engines) -> ProductionState:
    """The state after planning."""
    texts = [LINES[n % len(LINES)] for n in range(count)]
    script = " ".join(texts)
    width, tall = canvas("16:9", height)
    task = Task(
        project_id="prj_bench",
        title="Physics works",
        language="en",
        script=script,
        aspect_ratio="16:9",
        width=width,
        height=tall,
        frame_rate=RATE,
        duration_min_us=1_000_000,
        duration_max_us=3_600_000_000,
        pool=pool,
        music_library=engines.music.name,
        music_moods=("calm",),
        voice=engines.speech.voice_for("en", "default"),
        tools_digest="0" * 64,
        licence="CC-BY-3.0",
    )
    changes = [film_change("segments", (Segment(index=0, title="All", script_start=0, script_end=len(script)),))]
    order, at = [], 0
    for n, text in enumerate(texts):
        spot = SPOTLIGHTS.get(n)
        shot = PlannedShot(
            segment=0,
            script_start=at,
            script_end=at + len(text),
            text=text,
            visual_query=text,
            target_duration_us=5_000_000,
            spotlight=None if spot is None else SpotlightPlan(kind=spot[0], brief="a graphic"),
        )
        at += len(text) + 1
        order.append(f"s{n + 1:03d}")
        changes.append(put_shot(ShotRecord(shot_id=order[-1], planned=shot)))
    return apply(initial(task), [*changes, film_change("shot_order", order)])


def contents(state: ProductionState) -> dict[str, tuple[dict[str, Any], ...]]:
    """What a generator would answer."""
    order = state.film.shot_order
    fills = [{"shot_id": order[n], "template": t, "slots": slots} for n, (_, t, slots) in SPOTLIGHTS.items() if n < len(order)]
    return {
        "retrieve_visuals": ({"queries": [{"shot_id": s, "query": state.shots[s].planned.visual_query} for s in order]},),
        "decorate_spotlights": ({"fills": fills},),
        "search_music": ({"query": "quiet and thoughtful", "moods": ["calm"]},),
    }


STEPS = (
    "retrieve_visuals",
    "synthesize_narration",
    "decorate_spotlights",
    "search_music",
    "compose_timeline",
    "render_shots",
    "stitch_video",
)


def produce(
    state: ProductionState, store: ArtifactStore, sandbox: Sandbox, engines: Engines, config: ReplayConfig
) -> tuple[ProductionState, dict[str, tuple[float, float]]]:
    """One film; wall and processor seconds of each tool."""
    tools = {t.contract.name: t for t in base_tools()}
    costs: dict[str, tuple[float, float]] = {}
    for name in STEPS:
        tool = tools[name]
        args = {"shots": "missing"} if any(a.name == "shots" for a in tool.contract.args) else {}
        with tempfile.TemporaryDirectory() as folder:
            env = ToolEnv(store, sandbox, engines, config, Path(folder))
            start, busy = time.perf_counter(), cpu_s()
            done = tool.execute(state, args, contents(state).get(name, ()), env)
            costs[name] = (time.perf_counter() - start, cpu_s() - busy)
        if not isinstance(done, Product):
            raise SystemExit(f"{name} refused: {done.blockers}")
        state = apply(state, done.changes)
    return state, costs


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--speech", choices=("kokoro", "flite"), default="kokoro")
    parser.add_argument("--height", type=int, default=720)
    parser.add_argument("--shots", type=int, default=12)
    parser.add_argument("--keep", type=Path, help="folder that receives the film and its manifest")
    options = parser.parse_args()
    config = ReplayConfig.model_validate({"speech": {"engine": options.speech}, "render": {"height": options.height}})
    sandbox = open_sandbox()
    with tempfile.TemporaryDirectory() as folder:
        store = ArtifactStore(Path(folder) / "artifacts")
        engines = build_engines(config, sandbox)
        state = planned(options.shots, options.height, cut_pool(options.shots, options.height, store, sandbox), engines)
        counted = join_cgroup()
        made, cold = produce(state, store, sandbox, engines, config)
        again, warm = produce(state, store, sandbox, engines, config)
        delivery = made.film.delivery
        if delivery is None or again.film.delivery != delivery:
            raise SystemExit("the second film differs from the first")
        minutes = delivery.duration_us / 60e6
        length = f"{minutes * 60:.1f} s of film"
        machine = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
        print(f"{options.speech}, {options.height}p, {options.shots} shots, {length}, {machine}")
        print("\n| tool | cold, s per output minute | cold, processor s | warm, s |\n| --- | --- | --- | --- |")
        for name in STEPS:
            busy = f"{cold[name][1] / minutes:.1f}" if counted else "-"
            print(f"| `{name}` | {cold[name][0] / minutes:.1f} | {busy} | {warm[name][0] / minutes:.2f} |")
        total = [sum(c[i] for c in cold.values()) / minutes for i in (0, 1)]
        all_warm = sum(w[0] for w in warm.values()) / minutes
        print(f"| all | {total[0]:.1f} | {f'{total[1]:.1f}' if counted else '-'} | {all_warm:.2f} |")
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
            (options.keep / "video.mp4").write_bytes(store.read(delivery.video.sha256))
            (options.keep / "manifest.json").write_bytes(store.read(delivery.manifest.sha256))
            report = verify_delivery(options.keep, sandbox)
            report.print()


if __name__ == "__main__":
    main()
