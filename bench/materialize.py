"""Trajectories to examples, and restoring recorded states: ``python -m bench.materialize [EXAMPLES] [--lake LAKE]``.

1. ``EXAMPLES`` (135,000 by default) from stored trajectories end to end on 2 processes: read the trajectory and its contexts from the
   store, build the examples, count tokens with the Qwen3 tokenizer, commit the rows to a lake. A few recorded toy runs stand for many
   projects: in every context of every project the words of the film are replaced by words of its own, so that nothing is read, counted or
   stored twice. Making these inputs is not counted.
2. Resets: the time to restore a recorded state with the calls before it and to build the context seen there, over every call of the toy
   runs, or of the trajectories of a lake that was made by ``workprint run``.

Prints one line of JSON for each part. Targets: under 300 s and 2 GB on 2 cores; a reset under 50 ms.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import resource
import statistics
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from materialize.config import MaterializeConfig
from materialize.environment import Bench
from materialize.examples import materialize
from materialize.recorded import LakeRuns
from materialize.tokens import open_counter
from replay.episode import run_episode
from replay.policies.scripted import ScriptedPolicy
from replay.suite import Suite
from schemas.artifact import ArtifactKind
from schemas.canonical import canonical_bytes, sha256_bytes
from schemas.storyboard import Storyboard
from schemas.trajectory import Trajectory
from storage.artifacts import ArtifactStore
from storage.lake import Lake, StageCommit
from storage.snapshots import SnapshotStore
from tests.replay.toy import ToyCritic, storyboard, toy_registry, toy_runtime

BASES = 6
FILM = "This is what the narrator says over shot"
BATCH = 32
"""Projects that one commit holds, as a compacted lake does."""


def record(root: Path) -> list[tuple[Storyboard, Trajectory, ArtifactStore]]:
    """The toy runs that all projects are made from."""
    out = []
    for seed in range(BASES):
        board = storyboard(16 + seed)
        runtime = toy_runtime(root / f"base{seed}", board, errors=2)
        out.append((board, run_episode(runtime, ScriptedPolicy(board, seed, runtime.suite.config, ToyCritic())), runtime.suite.store))
    return out


def vary(lake: Lake, bases: Sequence[tuple[Storyboard, Trajectory, ArtifactStore]], projects: int) -> list[tuple[str, str]]:
    """Store ``projects`` projects; digests of their storyboards and trajectories."""
    draw = random.Random(0)  # noqa: S311 - seeded
    out = []
    for number in range(projects):
        board, run, store = bases[number % len(bases)]
        project = f"prj_{number:024x}"
        said = " ".join("".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(2, 9))) for _ in range(9))
        calls, fresh = [], []
        for call in run.calls:
            data = re.sub(FILM.encode(), said.encode(), store.read(call.context_sha256))
            fresh.append((data, ArtifactKind.CONTEXT, "application/json"))
            calls.append(call.model_copy(update={"context_sha256": sha256_bytes(data)}))
        for call in run.calls:
            fresh.append((store.read(call.snapshot_before.removeprefix("snp_")), ArtifactKind.SNAPSHOT, "application/json"))
        lake.store.put_many(fresh, later=True)
        varied = run.model_copy(update={"project_id": project, "trajectory_id": f"trj_{number:024x}", "calls": tuple(calls)})
        sha = lake.store.put_bytes(varied.canonical(), ArtifactKind.TRAJECTORY, "application/json", later=True).sha256
        there = board.model_copy(update={"project_id": project})
        out.append((lake.store.put_bytes(there.canonical(), ArtifactKind.STORYBOARD, "application/json", later=True).sha256, sha))
    return out


def work(root: Path, pairs: list[tuple[str, str]], part: int) -> tuple[int, int, float]:
    """Examples of some projects, committed: how many, peak memory of this process in bytes, its processor seconds."""
    lake = Lake(root, create=False)
    config = MaterializeConfig()
    counter = open_counter(config)
    made = 0
    for start in range(0, len(pairs), BATCH):
        rows, contexts = [], []
        for board_sha, sha in pairs[start : start + BATCH]:
            board = Storyboard.model_validate_json(lake.store.read(board_sha))
            run = Trajectory.model_validate_json(lake.store.read(sha))
            done = materialize(run, board, lake.store, SnapshotStore(lake.store), config, counter)
            rows += done.rows["examples"]
            contexts += done.artifacts
        name = f"{part}-{start}"
        lake.commit(StageCommit("materialize", f"stg_{name}", name, name, "done", None, {"examples": rows}, tuple(contexts), "run_bench"))
        made += len(rows)
    return made, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, time.process_time()


def examples(wanted: int, root: Path) -> None:
    """Part 1."""
    bases = record(root)
    lake = Lake(root / "lake")
    config = MaterializeConfig(tokenizer="none")
    each = [len(materialize(t, b, s, SnapshotStore(s), config, None).output) for b, t, s in bases]
    projects = max(2, round(wanted / statistics.mean(each)))
    pairs = vary(lake, bases, projects)
    started = time.monotonic()
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        half = (len(pairs) + 1) // 2
        done = list(pool.map(work, [lake.root] * 2, [pairs[:half], pairs[half:]], [0, 1]))
    wall = time.monotonic() - started
    made = sum(n for n, _, _ in done)
    size = sum(f.bytes for f in lake.files(table="examples"))
    print(
        json.dumps(
            {
                "examples": made,
                "projects": projects,
                "wall_s": round(wall, 1),
                "examples_per_s": round(made / wall),
                "processor_s": round(sum(c for _, _, c in done), 1),
                "peak_bytes_both": sum(m for _, m, _ in done),
                "parquet_bytes": size,
            }
        )
    )


def resets(root: Path, lake: Path | None) -> None:
    """Part 2."""
    times: list[tuple[float, float]] = []
    if lake is None:
        for seed in range(BASES):
            board = storyboard(16 + seed)
            runtime = toy_runtime(root / f"reset{seed}", board, errors=2)
            suite = runtime.suite
            run = run_episode(runtime, ScriptedPolicy(board, seed, suite.config, ToyCritic()))

            def make(folder: Path, suite: Suite = suite) -> Suite:
                store = ArtifactStore(suite.store.root)
                return Suite(store, SnapshotStore(store), suite.sandbox, suite.engines, suite.config, folder)

            times += _resets(Bench(suite.store, make, toy_registry(2)), run)
    else:
        runs = LakeRuns.at(lake)
        for (sha,) in runs.lake.query("select trajectory_sha256 from trajectories order by trajectory_id limit 20").rows:
            times += _resets(runs.bench(runs.run(str(sha))), runs.run(str(sha)))
    wall, used = sorted(w for w, _ in times), sorted(p for _, p in times)
    half, most = len(times) // 2, int(len(times) * 0.95)
    share = {"resets": len(times), "p50_ms": wall[half], "p95_ms": wall[most], "max_ms": wall[-1]}
    share |= {"processor_p50_ms": used[half], "processor_p95_ms": used[most]}
    print(json.dumps({n: round(v, 1) for n, v in share.items()}))


def _resets(bench: Bench, run: Trajectory) -> list[tuple[float, float]]:
    """Clock and processor time of every reset, milliseconds."""
    out = []
    with bench.open() as env:
        env.restore(run, 0)
        for call in run.calls:
            started, used = time.perf_counter(), time.process_time()
            canonical_bytes(env.restore(run, call.call_index).visible())
            out.append(((time.perf_counter() - started) * 1000, (time.process_time() - used) * 1000))
    return out


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("examples", nargs="?", type=int, default=135_000)
    parser.add_argument("--lake", type=Path, default=None)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="workprint-bench-") as folder:
        resets(Path(folder), given.lake)
        if given.examples:
            examples(given.examples, Path(folder))
