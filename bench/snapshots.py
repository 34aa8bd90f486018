"""Snapshots against copies: time and stored bytes of saving and restoring a production state.

    python -m bench.snapshots [--shots 16 120 300] [--runs N]

Plays scripted runs on the toy production of the tests and saves every state. Beside it, in the same run: the whole state as one durable
JSON file, and a copy of a working folder with files of ordinary sizes (a clip, a voice and a render for every shot). ``restore known`` is a
store object that saved the states of the run, as a runtime, a group or an environment has; ``restore new`` one that has seen nothing: every
record is read from disk and verified. Prints a Markdown table; asserts nothing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from replay.config import ReplayConfig
from replay.policies.scripted import ScriptedPolicy
from replay.runtime import Runtime
from schemas.canonical import canonical_bytes
from schemas.state import ProductionState
from storage.artifacts import ArtifactStore
from storage.snapshots import SnapshotStore
from tests.replay.doubles import pool_clip, suite
from tests.replay.toy import ToyCritic, storyboard, toy_registry, toy_task

SIZES = {"clip.mp4": 900_000, "voice.wav": 240_000, "render.mp4": 400_000}
"""Bytes of what a shot of five seconds at 720p has."""


def states(folder: Path, shots: int, seed: int) -> list[ProductionState]:
    """Every state of one run."""
    board = storyboard(shots, sentences_per_segment=8)
    task = toy_task(board).model_copy(update={"pool": tuple(pool_clip(n) for n in range(shots))})
    policy = ScriptedPolicy(board, seed, ReplayConfig(), ToyCritic())
    run = Runtime(task, toy_registry(seed % 3), suite(folder))
    out = [run.state]
    while not run.finished:
        run.step(policy.act(run.context()))
        if run.state is not out[-1]:
            out.append(run.state)
    return out


def milliseconds(work: Callable[[], object]) -> float:
    """Wall time of one piece of work."""
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


def stored(root: Path) -> int:
    """Bytes of all files under a folder."""
    return sum(path.stat().st_size for path in root.rglob("*") if path.is_file())


def copied_state(state: ProductionState, path: Path) -> None:
    """The whole state as one durable file."""
    with path.open("wb") as file:
        file.write(canonical_bytes(state.model_dump(mode="json")))
        file.flush()
        os.fsync(file.fileno())


def measure(shots: int, seed: int, root: Path) -> dict[str, list[float]]:
    """Figures of one run, by name."""
    figures: dict[str, list[float]] = {}
    (root / "run").mkdir()
    seen = states(root / "run", shots, seed)
    store = ArtifactStore(root / "snapshots")
    known = SnapshotStore(store)
    names: list[str] = []
    for state in seen:
        before = stored(store.root)
        figures.setdefault("save", []).append(milliseconds(lambda s=state: names.append(known.save(s, later=True))))
        figures.setdefault("snapshot bytes", []).append(stored(store.root) - before)
        path = root / "state.json"
        figures.setdefault("copy state", []).append(milliseconds(lambda s=state, p=path: copied_state(s, p)))
        figures.setdefault("state bytes", []).append(path.stat().st_size)
    store.sync()
    for name in names:
        figures.setdefault("restore known", []).append(milliseconds(lambda n=name: known.load(n)))
    for name in names[:: max(1, len(names) // 5)]:
        figures.setdefault("restore new", []).append(milliseconds(lambda n=name: SnapshotStore(ArtifactStore(store.root)).load(n)))
    folder = root / "folder"
    for shot in range(shots):
        (folder / f"s{shot:03d}").mkdir(parents=True)
        for name, size in SIZES.items():
            (folder / f"s{shot:03d}" / name).write_bytes(os.urandom(size))
    figures["copy folder"] = [milliseconds(lambda: shutil.copytree(folder, root / "copy"))]
    figures["folder bytes"] = [float(stored(folder))]
    return figures


COLUMNS = (
    ("save, ms", "save"),
    ("restore known, ms", "restore known"),
    ("restore new, ms", "restore new"),
    ("bytes a snapshot", "snapshot bytes"),
    ("copy of the state, ms", "copy state"),
    ("its bytes", "state bytes"),
    ("copy of the folder, ms", "copy folder"),
    ("its bytes", "folder bytes"),
)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shots", type=int, nargs="*", default=[16, 120, 300])
    parser.add_argument("--runs", type=int, default=2)
    options = parser.parse_args()
    print("Medians of all states of the runs.\n\n| shots | states | " + " | ".join(title for title, _ in COLUMNS) + " |")
    print("| --- | --- |" + " --- |" * len(COLUMNS))
    for shots in options.shots:
        figures: dict[str, list[float]] = {}
        for seed in range(options.runs):
            with tempfile.TemporaryDirectory() as folder:
                for name, values in measure(shots, seed, Path(folder)).items():
                    figures.setdefault(name, []).extend(values)
        cells = []
        for title, name in COLUMNS:
            value = statistics.median(figures[name])
            cells.append(f"{value:,.0f}" if "bytes" in title else f"{value:.1f}")
        print(f"| {shots} | {len(figures['save'])} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
