"""How well near-duplicate films are told apart: ``python -m bench.kinship FOLDER``.

Takes every film of a folder and makes copies of it in the sandbox: smaller and coarser; cut at the beginning; without colour, brighter,
louder and with another sound codec. Every copy must be found by what it still has in common, and no two different films may be kin.
Narration is left out here: it needs recognition, and copies have it in common anyway. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
import time
from pathlib import Path

import numpy as np

from evaluation.fingerprints import RATE, Print, picture_code, pictures_shared, sound_codes, sound_shared
from materialize.config import MaterializeConfig
from materialize.kinship import find_kin
from media.audio import read_pcm
from media.command import Command, Limits
from media.probe import probe
from media.sandbox import open_sandbox
from schemas.errors import PipelineError

COPIES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "small": ((), ("-vf", "scale=240:-2", "-c:v", "libx264", "-crf", "36", "-c:a", "aac", "-b:a", "48k")),
    "cut": (("-ss", "7.3"), ("-c:v", "libx264", "-crf", "28", "-preset", "ultrafast", "-c:a", "aac", "-b:a", "64k")),
    "other": ((), ("-vf", "hue=s=0,eq=brightness=0.1", "-c:v", "libx264", "-preset", "ultrafast", "-af", "volume=6dB", "-c:a", "libopus")),
}
"""Name of a copy to ffmpeg's options before and after the input."""

STILLS = 24


def of_film(name: str, path: Path, folder: Path) -> Print:
    """Print of a film without narration: 24 stills in place of key frames."""
    sandbox = open_sandbox()
    info = probe(path, sandbox)
    length = (info.video.duration_us if info.video else 1) / 1e6
    argv = ("-i", "/in/film", "-vf", f"fps={STILLS / max(length, 1.0):.6f},scale=160:120", "-frames:v", str(STILLS), "-f", "rawvideo")
    raw = run(folder, f"{name}.rgb", *argv, "-pix_fmt", "rgb24", film=path).read_bytes()
    stills = np.frombuffer(raw, np.uint8).reshape(-1, 120, 160, 3)
    codes = [picture_code(s) for s in stills]
    try:
        sound = sound_codes(read_pcm(path, info, sandbox, RATE))
    except PipelineError:
        sound = np.zeros(0, np.uint32)
    return Print(name, tuple(dict.fromkeys(c for c in codes if c is not None)), sound, None, 0)


def run(folder: Path, name: str, *argv: str, film: Path) -> Path:
    """One sandboxed ffmpeg."""
    command = Command(
        ("ffmpeg", "-nostdin", "-v", "error", *argv, f"/out/{name}"),
        inputs={"film": film},
        outputs=(name,),
        limits=Limits(wall_s=600, cpu_s=900),
    )
    done = open_sandbox().run(command, folder)
    if done.returncode:
        raise SystemExit(done.stderr)
    return folder / name


def main(root: Path, limit: int) -> None:
    """Print one line of JSON."""
    films = sorted(p for p in root.iterdir() if p.suffix in (".mp4", ".webm", ".mkv", ".ogv"))[:limit]
    started = time.monotonic()
    prints: dict[str, Print] = {}
    with tempfile.TemporaryDirectory(prefix="workprint-bench-") as temp:
        folder = Path(temp)
        for number, film in enumerate(films):
            prints[f"f{number}"] = of_film(f"f{number}", film, folder)
            for copy, (before, after) in COPIES.items():
                made = run(folder, f"f{number}{copy}.mkv", *before, "-i", "/in/film", "-t", "120", *after, film=film)
                prints[f"f{number}-{copy}"] = of_film(f"f{number}-{copy}", made, folder)
    copies = {(a, b) for a, b in itertools.combinations(sorted(prints), 2) if a.partition("-")[0] == b.partition("-")[0]}
    found = {(k.first, k.second) for k in find_kin(prints.values(), MaterializeConfig())}
    strangers = [p for p in itertools.combinations(sorted(prints), 2) if p not in copies]
    closest = [(round(pictures_shared(prints[a], prints[b]), 2), round(sound_shared(prints[a], prints[b]), 2), a, b) for a, b in strangers]
    worst = {p: (pictures_shared(prints[p[0]], prints[p[1]]), sound_shared(prints[p[0]], prints[p[1]])) for p in copies}
    print(
        json.dumps(
            {
                "films": [f.name for f in films],
                "pairs_of_copies": len(copies),
                "found": len(copies & found),
                "missed": sorted(copies - found),
                "pairs_of_strangers": len(strangers),
                "taken_for_copies": sorted(found - copies),
                "least_of_copies": {
                    "picture": round(min(p for p, _ in worst.values()), 2),
                    "sound": round(min(s for _, s in worst.values()), 2),
                },
                "most_of_strangers": {
                    "picture": max((c[0] for c in closest), default=0.0),
                    "sound": max((c[1] for c in closest), default=0.0),
                },
                "wall_s": round(time.monotonic() - started, 1),
            }
        )
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--limit", type=int, default=6)
    given = parser.parse_args()
    main(given.folder, given.limit)
