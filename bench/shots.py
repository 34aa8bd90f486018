"""Shot detection against known truth and against PySceneDetect, in one run: how right, and how fast.

Films are drawn and encoded on the spot (evaluation.studio, every kind, seeds that no threshold was set on), so the truth is exact. With
``--real FOLDER`` the real films of that folder join them where a CUTS.tsv beside them says what was seen by eye. A hard cut counts when
it is found within one frame, a gradual transition when the found stretch overlaps the true one. PySceneDetect knows no gradual
transitions: a cut of its inside one counts as found, and is no false cut.

Speed: one 1080p film; a bare ffmpeg decode to the same small size, our whole pass in the sandbox, and PySceneDetect's default way.

    python bench/shots.py [--seeds 2] [--real FOLDER] [--minutes 0.5]
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scenedetect import AdaptiveDetector, ContentDetector, detect

from evaluation.studio.edit import Boundary, Cutaway, frames
from evaluation.studio.films import KINDS, make_film
from evaluation.studio.pictures import Picture, landscape, still_life
from evaluation.studio.scenes import Camera, glide
from inversion.config import InversionConfig
from inversion.shots import analysis_size, detect_shots
from media.frames import stream_frames
from media.probe import probe
from media.sandbox import open_sandbox
from schemas.storyboard import Transition

FIRST_SEED = 1000


@dataclass(frozen=True)
class Found:
    """One boundary, in seconds; a cut has equal ends."""

    start: float
    end: float


Detector = Callable[[Path], list[Found]]


def ours(path: Path) -> list[Found]:
    sandbox = open_sandbox()
    track = detect_shots(path, probe(path, sandbox), sandbox, InversionConfig())
    out = []
    for shot in track.shots[1:]:
        if shot.transition_in is Transition.CUT or shot.transition_start_us is None or shot.transition_end_us is None:
            out.append(Found(shot.start_us / 1e6, shot.start_us / 1e6))
        else:
            out.append(Found(shot.transition_start_us / 1e6, shot.transition_end_us / 1e6))
    return out


def content(path: Path) -> list[Found]:
    return [Found(s.seconds, s.seconds) for s, _ in detect(str(path), ContentDetector())[1:]]


def adaptive(path: Path) -> list[Found]:
    return [Found(s.seconds, s.seconds) for s, _ in detect(str(path), AdaptiveDetector())[1:]]


DETECTORS: dict[str, Detector] = {"workprint": ours, "scenedetect content": content, "scenedetect adaptive": adaptive}


def score(truth: list[Boundary], rate: float, found: list[Found]) -> Counter[str]:
    """Hits, misses and false alarms, cuts and gradual transitions apart."""
    count: Counter[str] = Counter()
    left = list(found)
    frame = 1 / rate
    for b in truth:
        if b.kind == "cut":
            hit = min(
                (f for f in left if f.start == f.end and abs(f.start - b.at * frame) < 1.5 * frame), default=None, key=lambda f: f.start
            )
            count["cut hit" if hit else "cut missed"] += 1
        else:
            low, high = (b.start - 1) * frame, (b.end + 1) * frame
            inside = [f for f in left if f.end >= low and f.start <= high]
            hit = inside[0] if inside else None
            count["gradual hit" if hit else "gradual missed"] += 1
            for extra in inside[1:]:
                if extra.start == extra.end:
                    left.remove(extra)
        if hit is not None:
            left.remove(hit)
    count["cut false"] += sum(f.start == f.end for f in left)
    count["gradual false"] += sum(f.start != f.end for f in left)
    return count


def f1(count: Counter[str], what: str) -> float:
    hit = count[f"{what} hit"]
    return 2 * hit / max(1, 2 * hit + count[f"{what} missed"] + count[f"{what} false"])


def encode(path: Path, pictures: Iterable[Picture], size: tuple[int, int], rate: int, crf: int, *options: str) -> None:
    words = ["ffmpeg", "-v", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{size[0]}x{size[1]}", "-r", str(rate), "-i", "-"]
    words += ["-c:v", "libx264", "-preset", "veryfast", "-crf", str(crf), "-pix_fmt", "yuv420p", *options, str(path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        for picture in pictures:
            process.stdin.write(np.ascontiguousarray(picture).tobytes())
        process.stdin.close()
        assert process.wait() == 0


def studio(seeds: int, folder: Path) -> None:
    """Table over all kinds of made films."""
    total: dict[str, Counter[str]] = {name: Counter() for name in DETECTORS}
    print(f"| kind ({seeds} films each) | " + " | ".join(f"{n}: cuts, gradual" for n in DETECTORS) + " |")
    print("| --- |" + " --- |" * len(DETECTORS))
    for kind in KINDS:
        rows: dict[str, Counter[str]] = {name: Counter() for name in DETECTORS}
        for seed in range(FIRST_SEED, FIRST_SEED + seeds):
            film = make_film(kind, seed)
            path = folder / f"{kind}.mp4"
            encode(path, frames(list(film.edit), (320, 180)), (320, 180), film.rate, film.crf)
            for name, find in DETECTORS.items():
                rows[name] += score(list(film.truth), film.rate, find(path))
        cells = []
        for name, row in rows.items():
            total[name] += row
            cells.append(
                f"{row['cut hit']}/{row['cut hit'] + row['cut missed']} +{row['cut false']}, "
                f"{row['gradual hit']}/{row['gradual hit'] + row['gradual missed']} +{row['gradual false']}"
            )
        print(f"| {kind} | " + " | ".join(cells) + " |", flush=True)
    print("| **F1** | " + " | ".join(f"**{f1(t, 'cut'):.3f}, {f1(t, 'gradual'):.3f}**" for t in total.values()) + " |")


def real(folder: Path) -> None:
    """Table over real films whose cuts were seen by eye (to about a fifteenth of a second)."""
    print("\n| real film | cuts | " + " | ".join(DETECTORS) + " |")
    print("| --- | --- |" + " --- |" * len(DETECTORS))
    total: dict[str, Counter[str]] = {name: Counter() for name in DETECTORS}
    with (folder / "CUTS.tsv").open(encoding="utf-8") as table:
        for row in csv.DictReader(table, delimiter="\t"):
            times = [float(t) for t in row["cuts_s_seen_by_eye"].split(",") if t]
            truth = [Boundary(round(t * 1000), round(t * 1000), round(t * 1000), "cut") for t in times]
            cells = []
            for name, find in DETECTORS.items():
                found = [Found(round(f.start * 15) / 15, round(f.start * 15) / 15) for f in find(folder / row["file"])]
                near = [Found(min(times, key=lambda t: abs(t - f.start)), 0) if times else f for f in found]
                snapped = [Found(n.start, n.start) if abs(n.start - f.start) < 0.08 else f for n, f in zip(near, found, strict=True)]
                count = score(truth, 1000, snapped)
                total[name] += count
                cells.append(f"{count['cut hit']} +{count['cut false']}")
            print(f"| {row['file']} | {len(times)} | " + " | ".join(cells) + " |", flush=True)
    print("| **F1** | | " + " | ".join(f"**{f1(t, 'cut'):.3f}**" for t in total.values()) + " |")


def speed(minutes: float, folder: Path) -> None:
    """Wall and processor time on one 1080p film."""
    rng = np.random.default_rng(7)
    stills = [(landscape, still_life)[k % 2](rng, 2400, 1350) for k in range(6)]
    shots = max(4, round(minutes * 60 / 5))
    edit = [Cutaway(Camera(stills[k % 6], glide((0.45, 0.5, 0.9), (0.55, 0.5, 0.75), 150)), 150) for k in range(shots)]
    path = folder / "speed.mp4"
    encode(path, frames(edit, (1920, 1080)), (1920, 1080), 30, 23, "-g", "60")
    width, height = analysis_size(InversionConfig().shots.analysis_width)
    sandbox = open_sandbox()
    info = probe(path, sandbox)

    def bare() -> None:
        scale = f"scale={width}:{height}:flags=area"
        words = ["ffmpeg", "-v", "error", "-threads", "2", "-i", str(path), "-vf", scale, "-pix_fmt", "rgb24", "-f", "rawvideo", "-"]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            while process.stdout.read(1 << 20):
                pass

    def drained() -> None:
        for _ in stream_frames(path, info, sandbox, width=width, height=height):
            pass

    ways: dict[str, Callable[[], object]] = {
        f"ffmpeg decode to {width}x{height}": bare,
        "the same in the sandbox, as arrays": drained,
        "workprint detect_shots": lambda: detect_shots(path, info, sandbox, InversionConfig()),
        "scenedetect default (adaptive)": lambda: adaptive(path),
        "scenedetect content": lambda: content(path),
    }
    best: dict[str, tuple[float, float]] = {}
    for _ in range(5):
        for name, way in ways.items():
            begun, before = time.perf_counter(), os.times()
            way()
            spent = sum(os.times()[:4]) - sum(before[:4])
            wall = time.perf_counter() - begun
            old = best.get(name, (9e9, 9e9))
            best[name] = (min(wall, old[0]), min(spent, old[1]))
    track = detect_shots(path, info, sandbox, InversionConfig())
    base = next(iter(best.values()))
    print(f"\n| 1080p, {track.frames} frames, best of 5, load {os.getloadavg()[0]:.0f} | wall s | x decode | processor s | x decode |")
    print("| --- | --- | --- | --- | --- |")
    for name, (wall, spent) in best.items():
        print(f"| {name} | {wall:.2f} | {wall / base[0]:.2f} | {spent:.2f} | {spent / base[1]:.2f} |")
    print(f"| deciding alone, within detect_shots | {track.judging_us / 1e6:.2f} | {track.judging_us / 1e6 / base[0]:.2f} | | |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1, help="films of each kind; 0: speed alone")
    parser.add_argument("--real", type=Path, help="folder of real films with a CUTS.tsv")
    parser.add_argument("--minutes", type=float, default=0.5, help="length of the 1080p film")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        speed(options.minutes, Path(folder))
        if options.seeds:
            print()
            studio(options.seeds, Path(folder))
    if options.real is not None:
        real(options.real)


if __name__ == "__main__":
    main()
