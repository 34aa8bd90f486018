"""What graphics cost: all cards of a call in one browser, beside the HyperFrames CLI drawing the same cards one by one, in the same run.

    python -m bench.templates [--cards title,number,lower_third] [--seconds 2]

Prints a Markdown table: wall and processor seconds of both, the pictures drawn, and how far the two clips lie apart. Processor time needs
cgroups of version 1; without them it is 0.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from bench.production import cpu_s, join_cgroup
from media.command import Sandbox
from media.frames import grab_frames
from media.probe import probe
from media.sandbox import open_sandbox
from replay.graphics.conformance import reference_clip
from replay.graphics.pack import load_pack
from replay.graphics.project import build_project
from replay.graphics.render import draw_clips, draw_stills, font_folders, renderer_version
from schemas.time import Rate

TEXTS = {
    "title": {"title": "The pendulum", "subtitle": "Four hundred years of time"},
    "number": {"value": "4.5 s", "label": "for one swing of this string"},
    "lower_third": {"title": "The lecture hall", "subtitle": "A professor as a weight"},
    "quote": {"quote": "Physics works, and I am still alive.", "author": "Walter Lewin"},
    "dial": {"value": "73%", "label": "of all swings were counted by the audience"},
}


def clocked() -> tuple[float, float]:
    """Wall and processor seconds so far."""
    return time.monotonic(), cpu_s()


def apart(one: Path, two: Path, sandbox: Sandbox) -> float:
    """Mean difference of pixels at four times, of 255."""
    times = [100_000, 500_000, 900_000, 1_900_000]
    frames = [grab_frames(path, probe(path, sandbox), sandbox, times, 1280) for path in (one, two)]
    return max(float(np.abs(a.astype(np.int16) - b.astype(np.int16)).mean()) for a, b in zip(*frames, strict=True))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cards", default="title,number,lower_third")
    parser.add_argument("--seconds", type=int, default=2)
    options = parser.parse_args()
    join_cgroup()
    sandbox, rate = open_sandbox(), Rate(num=30, den=1)
    names = options.cards.split(",")
    projects = [build_project(load_pack()[n], TEXTS[n], width=1280, height=720, language="en", font_folders=font_folders()) for n in names]
    renderer_version(sandbox)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in ("ours", "stills", *names):
            (root / name).mkdir()
        start = clocked()
        ours = draw_clips([(p, options.seconds * 1_000_000) for p in projects], rate, sandbox, root / "ours")
        middle = clocked()
        theirs = [reference_clip(p, sandbox, root / n) for p, n in zip(projects, names, strict=True)]
        end = clocked()
        draw_stills(projects * 8, sandbox, root / "stills")
        after = clocked()
        pairs = zip(ours, theirs, strict=True)
        off = max(apart(drawing.clip or Path(), other, sandbox) for drawing, other in pairs)
    wall, cpu = (round(b - a, 1) for a, b in zip(start, middle, strict=True))
    cli_wall, cli_cpu = (round(b - a, 1) for a, b in zip(middle, end, strict=True))
    still_wall, still_cpu = (round((b - a) / (8 * len(names)), 2) for a, b in zip(end, after, strict=True))
    frames = options.seconds * 30 * len(names)
    print(f"| {len(names)} cards of {options.seconds} s at 720p | wall s | processor s | pictures drawn |\n| --- | --- | --- | --- |")
    print(f"| one browser, moving pictures only | {wall} | {cpu} | {sum(d.drawn for d in ours)} of {frames} |")
    print(f"| HyperFrames CLI, card by card | {cli_wall} | {cli_cpu} | {frames} of {frames} |")
    print(f"| a still of a card | {still_wall} | {still_cpu} | 1 |")
    print(f"\nThe two clips of a card differ by at most {off:.2f} of 255 in the mean of any compared picture.")


if __name__ == "__main__":
    main()
