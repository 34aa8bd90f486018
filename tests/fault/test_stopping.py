"""Real signals to a whole run: the first ends it in order, the end of the allowed time and the second at once; nothing is done twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jobs.progress import EventReader
from storage.lake import Lake
from tests.fault.light import effects

pytestmark = [pytest.mark.fault, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
COUNT = 12
ENGINES = [
    pytest.param("local", marks=pytest.mark.full),
    pytest.param("ray", marks=pytest.mark.full),
    pytest.param("ray actors", marks=pytest.mark.full),
]


@dataclass
class Ended:
    """How a run ended, and how long after the last signal."""

    status: int
    took_s: float
    said: str
    report: dict[str, Any] | None


def run(root: Path, engine: str, stage_s: float, stop_s: float, *signals: signal.Signals, begun: int = 3) -> Ended:
    """Start a run; when ``begun`` stages have, send the signals, a second apart."""
    command = [sys.executable, "-m", "tests.fault.long_stages", str(root), str(COUNT), engine, str(stage_s), str(stop_s)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # a background shell has it ignored
    ) as process:  # fmt: skip
        end = time.monotonic() + 120
        while len(effects(root)) < begun and process.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        for position, number in enumerate(signals):
            time.sleep(1.0 if position else 0.0)
            if number == signal.SIGINT:
                os.killpg(process.pid, number)  # as a terminal does
            else:
                process.send_signal(number)
        asked = time.monotonic()
        out, err = process.communicate(timeout=90)
        took = time.monotonic() - asked
    time.sleep(0.5)
    assert [p.name for p in Path("/proc").iterdir() if p.name.isdigit() and _session_of(p) == process.pid] == []
    return Ended(process.returncode, took, err, json.loads(out) if out.strip() else None)


def _session_of(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[3])
    except (OSError, IndexError, ValueError):
        return 0


def committed(root: Path) -> set[str]:
    """Stages that are committed, in the words of the list of those that were begun."""
    lake = Lake(root)
    number = {r["project_id"]: r["uri"].partition("?")[0].rpartition("/")[2] for r in lake.scan("sources").to_pylist()}
    return {f"{r['stage']} {number[r['subject']]}" for r in lake.scan("stage_runs").to_pylist() if r["stage"] != "intake"}


@pytest.mark.parametrize(
    ("engine", "number"),
    [
        ("local", signal.SIGINT),
        ("ray actors", signal.SIGTERM),
        pytest.param("ray", signal.SIGTERM, marks=pytest.mark.full),
        pytest.param("local", signal.SIGTERM, marks=pytest.mark.full),
        pytest.param("ray", signal.SIGINT, marks=pytest.mark.full),
    ],
)
def test_the_first_signal_lets_stages_end_and_the_same_command_goes_on(tmp_path: Path, engine: str, number: signal.Signals) -> None:
    root = tmp_path / "lake"
    ended = run(root, engine, 1.0, 30, number)
    assert ended.status == 130, ended
    assert "stopping: no further project is started, those under way have 30 s to end their stage; once more: at once" in ended.said
    assert ended.report is not None
    assert ended.report["stopped"]
    assert ended.report["counts"]["stopped"] >= COUNT - 4
    assert sum(ended.report["counts"].values()) == COUNT
    assert len(effects(root)) <= 5  # no project and no stage was begun after it
    assert committed(root) == set(effects(root))  # and none was broken off
    (kept,) = (root / "runs").glob("run_*/report.json")
    assert json.loads(kept.read_bytes())["stopped"]
    again = run(root, "local", 0.01, 30)
    assert again.status == 0, again
    assert again.report is not None
    assert again.report["counts"] == {"delivered": COUNT}
    assert max(Counter(effects(root)).values()) == 1
    assert Lake(root).fsck().is_sound


@pytest.mark.parametrize("engine", ["local", *ENGINES[1:]])
def test_a_stage_that_takes_longer_than_is_allowed_is_cut_short_and_the_report_written(tmp_path: Path, engine: str) -> None:
    ended = run(tmp_path / "lake", engine, 600, 2, signal.SIGINT, begun=2)
    assert ended.status == 130, ended
    assert ended.report is not None
    assert ended.report["counts"] == {"stopped": COUNT}
    assert 2 <= ended.took_s < 20
    seen = [e["status"] for _, e in EventReader(tmp_path / "lake", ended.report["run_id"]).new() if e["event"] == "finished"]
    assert set(seen) == {"stopped"}
    assert committed(tmp_path / "lake") < set(effects(tmp_path / "lake"))
    assert Lake(tmp_path / "lake").scan("failures").num_rows == 0
    assert Lake(tmp_path / "lake").fsck().is_sound


@pytest.mark.parametrize("engine", ENGINES)
def test_the_second_signal_ends_at_once(tmp_path: Path, engine: str) -> None:
    ended = run(tmp_path / "lake", engine, 600, 600, signal.SIGINT, signal.SIGINT, begun=2)
    assert ended.status == 130, ended
    assert ended.took_s < 20
    assert ended.report is None
    assert "run the same command again to continue" in ended.said
    assert Lake(tmp_path / "lake").fsck().is_sound
