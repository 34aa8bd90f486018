"""The window of a run: never more projects in flight than it allows, and what waits costs the driver nothing beyond its source."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]

SCRIPT = textwrap.dedent(
    """
    import json, os, sys, threading, time
    from pathlib import Path

    os.cpu_count = lambda: 8  # Ray would run eight at once
    from jobs.chain import ProjectResult
    from jobs import ray_runner
    from jobs.sources import SourceGroup
    from schemas.media import SourceItem
    from storage.lake import Lake
    from tests.fault.light import config_of

    lake, window, count = Path(sys.argv[1]), int(sys.argv[2]), 400
    marks = lake / "marks"

    def work(group, config, location, run_id):
        number = int(group.key)
        begun = time.monotonic()
        time.sleep(0.3 if number < 16 else 0)
        with marks.open("a") as file:
            file.write(json.dumps([number, begun, time.monotonic()]) + chr(10))
        return ProjectResult(group.key, group.items[0].uri, "delivered")

    def held():
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def watch():
        while not over.wait(0.02):
            if marks.exists() and len(marks.read_text().splitlines()) >= 20:
                seen.append(held())
                return

    class Pools(ray_runner.Pools):  # made when Ray is there and nothing is submitted yet
        def __init__(self, *given):
            super().__init__(*given)
            seen.append(held())

    ray_runner.Pools = Pools
    Lake(lake)
    groups = [SourceGroup(str(n), (SourceItem(uri=f"film {n}", title="x" * 60_000),), Path("/none"), None, 0) for n in range(count)]
    over, seen = threading.Event(), []
    watcher = threading.Thread(target=watch)
    watcher.start()
    results = ray_runner.run_all(groups, config_of(engine="ray", window=window, ray={"cpus_per_project": 1}), lake, "run", work=work)
    over.set()
    watcher.join()
    spans = [json.loads(line)[1:] for line in marks.read_text().splitlines()]
    print(json.dumps({
        "delivered": sum(r.status == "delivered" for r in results),
        "most": max(sum(b <= moment < e for b, e in spans) for moment, _ in spans),
        "grown_mb": round((seen[1] - seen[0]) / 1e6),
    }))
    """
)


@pytest.mark.slow
def test_no_more_projects_are_in_flight_than_the_window_and_those_that_wait_cost_no_memory(tmp_path: Path) -> None:
    """400 sources of 60 kB, 24 MB in all: submitted at once they would be in the driver's memory a second time when the first are done."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "lake"), "3"],
        cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["delivered"], found["most"]) == (400, 3)
    assert found["grown_mb"] < 14
