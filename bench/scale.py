"""Many light projects through the real scheduler, chain, ledger and committer: ``python -m bench.scale [--projects N]``.

Three loads, each beside what it is compared to:

* ``projects``: light projects (three stages of no work, four commits each) on Ray into an empty lake: projects/s, and the memory of the
  driver and of the largest worker after each tenth, which must not grow with the number done;
* ``tasks``: projects that do nothing at all through the scheduler, beside as many empty Ray tasks: what the scheduler adds to Ray;
* ``known``: a lake whose ledger already knows this many finished projects (written in bulk, without files), run again: the resume scan.

100,000 of each is the target; the defaults take a few minutes on two busy cores.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from jobs.chain import STAGE_VERSIONS, ProjectResult
from jobs.config import WorkprintConfig
from jobs.ray_runner import _session, run_all
from jobs.sources import SourceGroup, source_key
from schemas.canonical import digest_of, sha256_bytes, stage_key
from storage.lake import Lake
from storage.ledger import LAKE_VERSION, STAGE_RUN
from tests.fault.light import STAGES, Note, config_of, light_groups, light_work


def nothing(group: SourceGroup, _config: WorkprintConfig, _lake: Path, _run_id: str) -> ProjectResult:
    """A project without work, ledger or events."""
    return ProjectResult(group.key, group.items[0].uri, "delivered", group.project_id)


def rss_mb(pid: int) -> float:
    """Resident memory of one process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def largest_worker_mb() -> float:
    """Resident memory of the largest Ray worker of this run."""
    parents: dict[int, int] = {}
    workers: list[int] = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit():
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                if (entry / "cmdline").read_bytes().startswith(b"ray::"):
                    workers.append(int(entry.name))
        except OSError:
            continue
    best = 0.0
    for worker in workers:
        at = worker
        while at > 1 and at != os.getpid():
            at = parents.get(at, 0)
        if at == os.getpid():
            try:
                best = max(best, rss_mb(worker))
            except OSError:
                continue
    return best


class Watch(threading.Thread):
    """Memory after each tenth of the projects; each is also printed to stderr when it is reached."""

    def __init__(self, lake: Path, total: int) -> None:
        super().__init__(daemon=True)
        self.rows: list[tuple[int, float, float, float]] = []
        self._effects, self._total, self._began = lake / "runs" / "effects", total, time.monotonic()
        self.over = threading.Event()

    def run(self) -> None:
        done = at = 0
        while not self.over.wait(0.5):
            if not self._effects.exists():
                continue
            with self._effects.open("rb") as file:
                file.seek(at)
                text = file.read()
            at += len(text)
            done += text.count(b"\nmaterialize") + text.startswith(b"materialize")
            if done >= (len(self.rows) + 1) * self._total / 10:
                self.rows.append((done, time.monotonic() - self._began, rss_mb(os.getpid()), largest_worker_mb()))
                print("{} done, {:.0f} s, driver {:.0f} MB, worker {:.0f} MB".format(*self.rows[-1]), file=sys.stderr, flush=True)


def load_projects(folder: Path, count: int, batch: int) -> dict[str, Any]:
    """Light projects into an empty lake, which is looked after meanwhile as in any run."""
    lake = Lake(folder / "lake")
    (lake.root / "runs").mkdir()
    watch = Watch(lake.root, count)
    watch.start()
    began = time.monotonic()
    results = run_all(light_groups(range(count)), _config(batch), lake.root, "run_scale", work=light_work)
    wall = time.monotonic() - began
    watch.over.set()
    watch.join()
    assert {r.status for r in results} == {"delivered"}
    asked = time.monotonic()
    assert Lake(lake.root).query("select count(*), count(distinct subject) from stage_runs").rows == [(4 * count, count)]
    question = time.monotonic() - asked
    return {
        "projects": count,
        "wall_s": round(wall, 1),
        "projects_per_s": round(count / wall, 1),
        "commits_per_s": round(4 * count / wall, 1),
        "memory": [{"done": d, "s": round(t, 1), "driver_mb": round(m), "worker_mb": round(w)} for d, t, m, w in watch.rows],
        "live_files_afterwards": len(lake.files()),
        "a_question_over_all_commits_s": round(question, 2),
        "load": round(os.getloadavg()[0], 1),
    }


def load_tasks(folder: Path, count: int, batch: int) -> dict[str, Any]:
    """Empty projects through the scheduler, and empty tasks through Ray alone, each with its own start of Ray left out."""
    config = _config(batch)
    lake = Lake(folder / "tasks")
    groups = light_groups(range(count))
    once = time.monotonic()
    run_all(groups[:1], config, lake.root, "run_warm", work=nothing)
    start = time.monotonic() - once
    began = time.monotonic()
    run_all(groups, config, lake.root, "run_tasks", work=nothing)
    ours = time.monotonic() - began - start
    with _session(config.run.ray) as ray:
        empty = ray.remote(num_cpus=1)(_empty)
        ray.get(empty.remote(()))
        began = time.monotonic()
        flying = []
        for at in range(0, count, batch):
            if len(flying) == config.run.window:
                ready, flying = ray.wait(flying, num_returns=1)
                ray.get(ready)
            flying.append(empty.remote(groups[at : at + batch]))
        ray.get(flying)
        bare = time.monotonic() - began
    return {"tasks": count, "batch": batch, "ours_ms_each": round(ours / count * 1e3, 2), "ray_ms_each": round(bare / count * 1e3, 2),
            "added_ms_each": round((ours - bare) / count * 1e3, 2)}  # fmt: skip


def _empty(groups: Sequence[SourceGroup]) -> int:
    return len(groups)


def load_known(folder: Path, count: int, batch: int) -> dict[str, Any]:
    """A run over projects that the ledger knows already."""
    lake = Lake(folder / "known")
    (lake.root / "runs").mkdir()
    groups = light_groups(range(count))
    with lake.ledger.writing() as con:
        rows = []
        for group in groups:
            for stage, key in _keys(group):
                rows.append({"run_number": len(rows) + 1, "stage_key": key, "stage": stage, "subject": group.project_id, "scope": group.key,
                             "status": "done", "output_sha256": _output(stage, group), "rows_out": 0, "run_id": "run_bulk"})  # fmt: skip
        con.execute(sa.insert(STAGE_RUN), rows)
        con.execute(sa.insert(LAKE_VERSION), [{"version": len(rows), "kind": "commit", "committed_us": 0}])
    began = time.monotonic()
    results = run_all(groups, _config(batch), lake.root, "run_again", work=light_work)
    wall = time.monotonic() - began
    assert {(r.stages_run, r.stages_skipped) for r in results} == {(0, 3)}, results[0]
    return {"known": count, "stage_keys": len(rows), "wall_s": round(wall, 1), "projects_per_s": round(count / wall, 1)}


def _output(stage: str, group: SourceGroup) -> str | None:
    number = int(group.items[0].uri.rpartition("/")[2])
    return None if stage in ("intake", "materialize") else sha256_bytes(Note(stage=stage, number=number).canonical())


def _keys(group: SourceGroup) -> list[tuple[str, str]]:
    item = group.items[0]
    row = {"source_key": source_key(item, group.sha256), "uri": item.uri, "source_sha256": group.sha256, "size_bytes": group.size_bytes,
           "project_id": group.project_id, "is_duplicate": False}  # fmt: skip
    out = [("intake", stage_key("intake", STAGE_VERSIONS["intake"], digest_of([row]), ()))]
    before = group.sha256 or ""
    for stage in STAGES:
        out.append((stage, stage_key(stage, STAGE_VERSIONS[stage], digest_of({"light": 1}), (before,))))
        before = _output(stage, group) or ""
    return out


def _config(batch: int) -> WorkprintConfig:
    return config_of(engine="ray", window=max(8, 2 * (os.cpu_count() or 1)), ray={"cpus_per_project": 1, "batch": batch})


def main() -> None:
    """Print the figures, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--projects", type=int, default=300)
    parser.add_argument("--tasks", type=int, default=2000)
    parser.add_argument("--known", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=8)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="scale"))
    try:
        for name, load in (("projects", load_projects), ("tasks", load_tasks), ("known", load_known)):
            count = getattr(arguments, name)
            if count:
                print(json.dumps(load(folder, count, arguments.batch), indent=1), flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
