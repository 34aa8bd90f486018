"""What engines in Ray actors cost and save: the same films run with the engines in every worker and with them in actors.

    python -m bench.actors FOLDER_WITH_FILMS [--window 2]

Settings are those of configs/ci.yaml (Whisper tiny, flite) with one CPU a project. For both ways it prints the wall time of the command and
the largest resident size that each kind of Ray process reached, summed over its processes (pages that they share are counted in each), and
whether both lakes hold equal rows.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import yaml

from jobs.config import load_config
from storage.lake import Lake

ACTORS = {"asr": {"cpus": 0.5, "concurrency": 2}, "ocr": {"cpus": 0.25}, "tts": {"cpus": 0.25}}
TABLES = ("projects", "words", "sentences", "shots", "alignments", "storyboards", "trajectories", "calls", "blockers", "snapshots",
          "verdicts", "repairs", "examples")  # fmt: skip
KINDS = {"_projects": "workers", "_Member": "actors", "_Exchange": "exchange"}


def run(films: Path, lake: Path, config: Path) -> tuple[float, dict[str, tuple[int, int]]]:
    """Wall seconds, and for each kind of process their number and resident MB."""
    began = time.monotonic()
    command = [
        sys.executable,
        "-c",
        "from jobs.cli import main; main()",
        "run",
        str(films),
        "--lake",
        str(lake),
        "--config",
        str(config),
        "-q",
    ]
    peaks: dict[tuple[str, str], int] = defaultdict(int)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            for line in subprocess.run(["ps", "-eo", "pid,rss,args"], capture_output=True, text=True, check=True).stdout.splitlines():
                pid, rss, name = line.split(None, 2)
                for mark, kind in KINDS.items():
                    if name.startswith(f"ray::{mark}"):
                        peaks[kind, pid] = max(peaks[kind, pid], int(rss) // 1024)
            time.sleep(0.5)
    if process.returncode:
        raise SystemExit(f"the run ended with {process.returncode}")
    wall = time.monotonic() - began
    kinds = {kind for kind, _ in peaks}
    return wall, {k: (sum(1 for kind, _ in peaks if kind == k), sum(mb for (kind, _), mb in peaks.items() if kind == k)) for k in kinds}


def rows(lake: Path) -> dict[str, list[tuple[str, str]]]:
    """(stage key, digest) of every row."""
    opened = Lake(lake)
    return {t: sorted((str(r["stage_key"]), str(r["row_digest"])) for r in opened.scan(t, None).to_pylist()) for t in TABLES}


def main() -> None:
    """Run both and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("films", type=Path)
    parser.add_argument("--window", type=int, default=2)
    given = parser.parse_args()
    base = load_config("ci").model_dump(mode="json", exclude={"sources"})
    base["run"]["window"] = given.window
    base["run"]["ray"]["cpus_per_project"] = 1
    found: list[dict[str, list[tuple[str, str]]]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, actors in (("in every worker", {}), ("in actors", ACTORS)):
            base["run"]["ray"]["actors"] = actors
            config = Path(folder) / f"{len(found)}.yaml"
            config.write_text(yaml.safe_dump(base))
            lake = Path(folder) / f"lake{len(found)}"
            wall, peaks = run(given.films, lake, config)
            told = ", ".join(f"{count} {kind} {mb} MB" for kind, (count, mb) in sorted(peaks.items(), reverse=True))
            sys.stdout.write(f"{name}: {wall:.1f} s; {told}; together {sum(mb for _, mb in peaks.values())} MB\n")
            found.append(rows(lake))
    sys.stdout.write(f"rows equal: {found[0] == found[1]} ({sum(len(r) for r in found[0].values())})\n")


if __name__ == "__main__":
    main()
