"""What the sandbox and the media door cost: ``python bench/sandbox.py [RUNS]``. Prints one line of JSON, times in milliseconds.

Medians, because the machine may be shared. ``bare`` figures run the same program without any sandbox.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from media.audio import read_audio
from media.bubblewrap import verify_layers
from media.command import MIB, Command, Limits
from media.ffmpeg import run_ffmpeg, tool_path
from media.frames import stream_frames
from media.probe import probe
from media.sandbox import open_sandbox
from schemas.errors import LimitExceeded


def timed(runs: int, do: Callable[[], object]) -> float:
    """Median of ``runs``, milliseconds."""
    spent = []
    for _ in range(runs):
        start = time.perf_counter()
        do()
        spent.append(1000 * (time.perf_counter() - start))
    return round(median(spent), 1)


def ended_after(command: Command, folder: Path) -> tuple[str, float]:
    """Which limit ended a run, and how long it took, seconds."""
    start = time.perf_counter()
    try:
        open_sandbox().run(command, folder)
    except LimitExceeded as error:
        return error.code, round(time.perf_counter() - start, 2)
    raise AssertionError("the limit did not hold")


def main() -> None:
    """Measure and print."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    figures: dict[str, object] = {"load": round(os.getloadavg()[0], 1), "processors": os.cpu_count(), "runs": runs}
    figures["layers_verified_ms"] = timed(1, verify_layers)
    sandbox = open_sandbox()
    ffprobe, ffmpeg = str(tool_path("ffprobe")), str(tool_path("ffmpeg"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        for label, argv in (("true", ("/bin/true",)), ("ffprobe_version", (ffprobe, "-version"))):
            figures[f"{label}_bare_ms"] = timed(runs, lambda argv=argv: subprocess.run(argv, capture_output=True, check=True))
            figures[f"{label}_ms"] = timed(runs, lambda argv=argv: sandbox.run(Command(argv=argv), folder))
        film = folder / "film.mp4"
        argv = ["-f", "lavfi", "-i", "testsrc2=size=1280x720:rate=30:duration=20", "-f", "lavfi", "-i", "sine=duration=20"]
        argv += ["-c:v", "libx264", "-preset", "ultrafast", "-c:a", "aac", "/out/film.mp4"]
        run_ffmpeg(argv, outputs=("film.mp4",), sandbox=sandbox, workdir=folder)
        info = probe(film, sandbox)
        figures["probe_20s_720p_ms"] = timed(max(3, runs // 4), lambda: probe(film, sandbox))
        plain = (ffmpeg, "-nostdin", "-v", "error", "-threads", "2", "-i", str(film), "-an", "-vf", "scale=160:90:flags=area,format=gray")
        figures["decode_20s_720p_bare_ms"] = timed(3, lambda: subprocess.run((*plain, "-f", "null", "-"), check=True))
        figures["decode_20s_720p_ms"] = timed(
            3, lambda: sum(1 for _ in stream_frames(film, info, sandbox, width=160, height=90, gray=True))
        )
        figures["sound_20s_ms"] = timed(3, lambda: len(read_audio(film, info, sandbox)))
        eater = "x=$(head -c 800000000 /dev/zero | tr '\\0' a); sleep 20"
        figures["ended"] = dict(
            [
                ended_after(Command(argv=("sleep", "60"), limits=Limits(wall_s=1.0)), folder),
                ended_after(Command(argv=("/bin/sh", "-c", eater), limits=Limits(wall_s=20, tree_bytes=200 * MIB)), folder),
                ended_after(Command(argv=("yes",), limits=Limits(wall_s=20, stdout_bytes=MIB)), folder),
            ]
        )
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
