"""Several Ray nodes on one machine: projects spread over them, and a node that dies takes nothing with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from storage.lake import Lake
from tests.conftest import Tally
from tests.fault.light import effects, rows_of

pytestmark = [pytest.mark.slow, pytest.mark.full, pytest.mark.fault]

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import json, os, sys, threading, time
from pathlib import Path
os.environ.update(RAY_AUTH_MODE="disabled", RAY_USAGE_STATS_ENABLED="0", RAY_ENABLE_UV_RUN_RUNTIME_ENV="0",
                  RAY_raylet_start_wait_time_s="180")
from ray.cluster_utils import Cluster
from tests.fault.light import config_of, effects, light_groups, run_light
lake, count = Path(sys.argv[1]), int(sys.argv[2])
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 80_000_000, "include_dashboard": False})
extra = [cluster.add_node(num_cpus=1, object_store_memory=80_000_000) for _ in range(2)]

def kill_one():
    while len(effects(lake)) < count:
        time.sleep(0.05)
    cluster.remove_node(extra[0], allow_graceful=False)

killer = threading.Thread(target=kill_one, daemon=True)
killer.start()
ray = {"address": cluster.address, "cpus_per_project": 1, "batch": 2}
results = run_light(lake, light_groups(range(count)), config_of(engine="ray", ray=ray, window=6))
killer.join(20)
print(json.dumps({"statuses": sorted({r.status for r in results}), "killed": not killer.is_alive()}))
cluster.shutdown()
"""


def test_a_run_over_three_nodes_survives_the_death_of_one(tmp_path: Path, tally: Tally) -> None:
    root, count = tmp_path / "lake", 40
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(root), str(count)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout.strip().splitlines()[-1])
    assert report == {"statuses": ["delivered"], "killed": True}
    assert {t: len(r) for t, r in rows_of(Lake(root)).items()} == {
        "sources": count, "projects": count, "words": 3 * count, "sentences": count, "stage_runs": 4 * count, "rejections": 0
    }  # fmt: skip
    assert Lake(root).fsck().is_sound
    tally("nodes", nodes=3, killed=1, items=count, rows_lost=0, rows_doubled=0, effects=len(effects(root)), effects_needed=3 * count)
