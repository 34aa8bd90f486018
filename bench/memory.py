"""Memory of one inversion over its whole run, for a long film: the resident memory of the process and all its children, sampled.

The film is the demo lecture joined to itself by stream copy until it is as long as asked for, and kept in the asset folder. Memory is the
proportional set size (``smaps_rollup``): pages that several processes share are counted once. Prints the curve by tenths of the run, the
peak, and how much the second half of the run added to the first; ``--out`` writes ``memory.csv`` and ``memory.png``.

    python bench/memory.py [--hours 2] [--no-asr] [--out FOLDER]

``--no-asr`` leaves recognition out (made-up subtitles stand in for it); everything else, sound included, runs as always.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageDraw

from media.assets import asset, cache_folder

STEP_S = 1.0
LIMIT_MIB = 1536


@dataclass(frozen=True, slots=True)
class Sample:
    """One look: seconds since the start, MiB of the inverting process alone and with its children."""

    at_s: float
    own_mib: float
    tree_mib: float


def long_film(hours: float) -> Path:
    """The lecture as often as needed, by stream copy; made once."""
    lecture = asset("demo-video")
    goal = cache_folder() / "bench" / f"lecture-{hours:g}h.mkv"
    if not goal.is_file():
        goal.parent.mkdir(parents=True, exist_ok=True)
        part = goal.with_suffix(".part.mkv")
        argv = ["ffmpeg", "-nostdin", "-v", "error", "-y", "-stream_loop", "-1", "-i", str(lecture), "-map", "0", "-c", "copy"]
        subprocess.run([*argv, "-t", str(hours * 3600), str(part)], check=True)
        part.rename(goal)
    return goal


def tree_of(pid: int) -> list[int]:
    """A process and its descendants."""
    out = [pid]
    for one in out:
        try:
            tasks = os.listdir(f"/proc/{one}/task")
        except OSError:
            continue
        for task in tasks:
            try:
                out += [int(child) for child in Path(f"/proc/{one}/task/{task}/children").read_text().split()]
            except OSError:
                continue
    return out


def proportional_mib(pid: int) -> float:
    """Proportional set size; 0 for a process that has gone."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0


def watch(argv: list[str]) -> tuple[list[Sample], int]:
    """Run a command and look at its memory every second; the samples and its exit status."""
    begun = time.monotonic()
    child = subprocess.Popen(argv)
    samples: list[Sample] = []
    while child.poll() is None:
        own, *others = (proportional_mib(pid) for pid in tree_of(child.pid))
        samples.append(Sample(time.monotonic() - begun, own, own + sum(others)))
        time.sleep(STEP_S)
    return samples, child.returncode


def work(film: Path, subtitles: Path | None) -> None:
    """What is watched: one inversion, as the batch runs it."""
    from inversion.config import InversionConfig
    from inversion.invert import invert
    from media.ocr import RapidReader
    from media.sandbox import open_sandbox
    from schemas.media import SourceItem
    from storage.artifacts import ArtifactStore

    config = InversionConfig()
    reader = RapidReader(threads=config.evidence.ocr_threads)
    item = SourceItem(uri=film.name, subtitles=None if subtitles is None else str(subtitles))
    with tempfile.TemporaryDirectory() as folder:
        done = invert(item, film, config, sandbox=open_sandbox(), store=ArtifactStore(Path(folder)), reader=reader)
        board = getattr(done, "output", None)
        print("rejected" if board is None else f"{len(board.shots)} shots, {len(board.words)} words", done if board is None else "")


def spoken(hours: float) -> str:
    """Subtitles for the whole film, one line every ten seconds."""
    lines = [f"{k + 1}\n{_clock(10 * k + 1)} --> {_clock(10 * k + 9)}\nline number {k + 1} of many.\n" for k in range(round(hours * 360))]
    return "\n".join(lines)


def _clock(second: int) -> str:
    return f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02},000"


def tenths(samples: list[Sample]) -> list[float]:
    """Highest memory of the tree within each tenth of the run."""
    size = max(1, -(-len(samples) // 10))
    return [max(s.tree_mib for s in samples[k : k + size]) for k in range(0, len(samples), size)]


def draw(samples: list[Sample], goal: Path, title: str) -> None:
    """The curve as a picture: tree and process alone over time, the limit as a line."""
    width, height, left, low = 960, 420, 70, 50
    image = Image.new("RGB", (width, height), "white")
    pen = ImageDraw.Draw(image)
    last, top = samples[-1].at_s, 1.1 * max(LIMIT_MIB, *(s.tree_mib for s in samples))

    def at(seconds: float, mib: float) -> tuple[float, float]:
        return left + seconds / last * (width - left - 20), height - low - mib / top * (height - low - 30)

    for mark in range(0, int(top), 256):
        pen.line([at(0, mark), at(last, mark)], fill=(228, 228, 228))
        pen.text((8, at(0, mark)[1] - 6), f"{mark} MiB", fill="black")
    pen.line([at(0, LIMIT_MIB), at(last, LIMIT_MIB)], fill=(200, 0, 0))
    for name, colour in (("own_mib", (150, 170, 210)), ("tree_mib", (20, 60, 160))):
        pen.line([at(s.at_s, getattr(s, name)) for s in samples], fill=colour, width=2)
    pen.text((left, 8), f"{title}; dark: with children, light: the process alone, red: the limit", fill="black")
    pen.text((left, height - 30), f"0 to {last:.0f} s of the run", fill="black")
    image.save(goal)


def main() -> None:
    """Measure and print; exit status 1 when the limit was passed or the inversion failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--no-asr", action="store_true")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--subtitles", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work is not None:
        work(given.work, given.subtitles)
        return
    film = long_film(given.hours)
    with tempfile.TemporaryDirectory() as folder:
        argv = [sys.executable, str(Path(__file__).resolve()), "--work", str(film)]
        if given.no_asr:
            side = Path(folder) / "lines.srt"
            side.write_text(spoken(given.hours))
            argv += ["--subtitles", str(side)]
        samples, status = watch(argv)
    if not samples or status:
        raise SystemExit(f"the inversion ended with status {status}")
    peak = max(s.tree_mib for s in samples)
    by_tenths = tenths(samples)
    print(f"{film.name}{' without recognition' if given.no_asr else ''}: {samples[-1].at_s:.0f} s, load {os.getloadavg()[0]:.1f}")
    print("highest MiB in each tenth of the run:", " ".join(f"{m:.0f}" for m in by_tenths))
    half = len(by_tenths) // 2
    print(f"peak {peak:.0f} MiB of {LIMIT_MIB}; second half {max(by_tenths[half:]) - max(by_tenths[:half]):+.0f} MiB against the first")
    if given.out is not None:
        given.out.mkdir(parents=True, exist_ok=True)
        with (given.out / "memory.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["at_s", "own_mib", "tree_mib"])
            rows.writerows([f"{s.at_s:.1f}", f"{s.own_mib:.1f}", f"{s.tree_mib:.1f}"] for s in samples)
        draw(samples, given.out / "memory.png", film.name)
    raise SystemExit(0 if peak <= LIMIT_MIB else 1)


if __name__ == "__main__":
    main()
