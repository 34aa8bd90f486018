"""What is told of a run from another shell: projects, actors, and how it ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from jobs.batch import BatchReport, run_groups
from jobs.chain import ProjectResult
from jobs.progress import EventLog, last_actors, tail
from jobs.status import read_status
from storage.lake import Lake
from tests.fault.light import config_of, light_groups, light_work

ACTORS: dict[str, dict[str, Any]] = {
    "ocr": {"actors": 2, "slots": 4, "busy": 3, "waiting": 7, "calls": 50, "deaths": 1, "timeouts": 0, "failed": 0, "gone": 1,
            "busy_s": 12.5, "waited_s": 3.0}
}  # fmt: skip
TOLD = "ocr: 3 of 4 places busy, 7 waiting, 50 calls, 1 deaths, 1 gone"


@pytest.fixture
def going(tmp_path: Path) -> Path:
    """A lake with a run that goes on: two projects, one of them being replayed, and actors."""
    lake = Lake(tmp_path / "lake")
    folder = lake.root / "runs" / "run_1"
    folder.mkdir(parents=True)
    (folder / "run.json").write_bytes(orjson.dumps({"keys": {"a": ["a.mp4"], "b": ["b.mp4"]}}))
    log = EventLog.open(lake.root, "run_1", "a")
    log.write("stage_started", stage="replay")
    EventLog.open(lake.root, "run_1", "").write("actors", actors=ACTORS)
    log.write("finished", status="stopped")
    log.write("stage_started", stage="replay")
    return lake.root


def test_projects_and_actors_of_a_run_that_goes_on_are_told(going: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = read_status(going)
    run = found.as_json()["run"]
    assert (run["run_id"], run["actors"], run["ended"]) == ("run_1", ACTORS, None)
    assert [(p["uri"], p["stage"]) for p in run["projects"]] == [("a.mp4", "replay"), ("b.mp4", None)]
    found.print()
    shown = capsys.readouterr().out
    assert TOLD in shown
    assert "1 waiting" in shown


def test_a_run_that_has_ended_is_told_with_its_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = run_groups(light_groups(range(3), {1: "nothing"}), tmp_path / "lake", config_of(attempts=1), quiet=True, work=light_work)
    found = read_status(tmp_path / "lake")
    ended = found.as_json()["run"]["ended"]
    assert ended["counts"] == {"delivered": 2, "failed": 1}
    assert (ended["stopped"], ended["run_id"]) == (False, report.run_id)
    assert "sources" not in ended
    found.print()
    shown = capsys.readouterr().out
    assert "ago, finished" in shown
    assert "2 delivered, 1 failed, 0 being worked on, 0 waiting" in shown
    assert "replay: no_output: light/1?nothing" in shown


def test_the_report_of_a_run_shows_its_actors_and_what_was_stopped(going: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = [ProjectResult("a", "a.mp4", "delivered"), ProjectResult("b", "b.mp4", "stopped")]
    report = BatchReport("run_1", going, results, 4.0, actors=last_actors(going, "run_1"))
    assert (report.as_json()["actors"], report.as_json()["stopped"]) == (ACTORS, True)
    report.print()
    shown = capsys.readouterr().out
    assert f"actor {TOLD}, 12 s of work, 3 s in the queue" in shown
    assert "stopped after 4 s; the same command goes on" in shown


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("talk.mp4", "talk.mp4"),
        ("a/talk.mp4", "a/talk.mp4"),
        ("ab/talk.mp4", "…/talk.mp4"),
        ("a\nb.mp4", "a\\nb.mp4"),
        ("", ""),
    ],
)
def test_a_long_name_keeps_its_end(name: str, shown: str) -> None:
    assert tail(name, 10) == shown
