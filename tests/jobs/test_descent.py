"""What was made from a run ends with it: stages of one project in a real lake, with rows of their own tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jobs.descent import orphans, own_runs
from schemas.canonical import digest_of, stage_key
from schemas.tables import TABLE
from storage.lake import Lake, StageCommit

PROJECT = "prj_1"
_VALUE = {"text": "x", "int": 0, "float": 0.5, "bool": False, "text_list": [], "int_list": []}


def row(table: str, **values: Any) -> dict[str, Any]:
    """A row of a table, with some value in every column."""
    return {c.name: (c.allowed or (_VALUE[c.type],))[0] for c in TABLE[table].columns} | {"project_id": PROJECT} | values


def commit(lake: Lake, stage: str, scope: str, rows: dict[str, list[dict[str, Any]]]) -> None:
    """One live stage of the project."""
    key = stage_key(stage, 1, digest_of([stage, scope]), ())
    lake.commit(StageCommit(stage=stage, stage_key=key, subject=PROJECT, scope=scope, status="done", rows=rows))


def run(name: str) -> dict[str, list[dict[str, Any]]]:
    """Rows of a run."""
    return {"trajectories": [row("trajectories", trajectory_id=name)]}


def taught(student: str, continuation: str, *, written: bool = True) -> dict[str, list[dict[str, Any]]]:
    """Rows of a teacher's continuation; not written where another student's holds it."""
    rows = run(continuation) if written else {}
    return {**rows, "rft": [row("rft", student_trajectory_id=student, trajectory_id=continuation)]}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Two runs of one project, and what was made from each: injected runs, one of them taken up twice, continuations, groups."""
    out = Lake(tmp_path / "lake")
    for seed, base in (("3", "trj_a"), ("4", "trj_b")):
        commit(out, "replay", f"src#{seed}", run(base))
        commit(out, "inject", f"{base}#1", run(f"{base}_faulty"))
        commit(out, "groups", f"grp_{base}", {"groups": [row("groups", group_id=f"grp_{base}", trajectory_id=base)]})
    commit(out, "inject", "trj_b_faulty#2", run("trj_b_twice"))
    commit(out, "rft", "trj_b_twice", taught("trj_b_twice", "trj_shared"))
    commit(out, "rft", "trj_a_faulty", taught("trj_a_faulty", "trj_shared", written=False))
    commit(out, "groups", "grp_f", {"groups": [row("groups", group_id="grp_f", trajectory_id="trj_a_faulty")]})
    commit(out, "outside", "trj_agent", run("trj_agent"))
    return out


def test_nothing_ends_while_its_run_is_there(lake: Lake) -> None:
    assert orphans(lake, PROJECT, ("trj_a", "trj_b")) == []


def test_what_was_made_from_a_run_ends_with_it(lake: Lake) -> None:
    """Also what was made from that; and a continuation whose rows were written with a student that is gone."""
    assert set(orphans(lake, PROJECT, ("trj_a",))) == {
        ("inject", "trj_b#1"),
        ("inject", "trj_b_faulty#2"),
        ("rft", "trj_b_twice"),
        ("rft", "trj_a_faulty"),
        ("groups", "grp_trj_b"),
    }


def test_everything_ends_with_the_project(lake: Lake) -> None:
    live = {(r.stage, r.scope) for r in lake.live(PROJECT) if r.stage != "replay"}
    assert set(orphans(lake, PROJECT, ())) == live


def test_a_project_is_shown_by_runs_of_its_own(lake: Lake) -> None:
    assert {r.scope for r in own_runs(lake, PROJECT)} == {"src#3", "src#4"}


def test_a_lake_of_outside_runs_alone_shows_those(tmp_path: Path) -> None:
    other = Lake(tmp_path / "other")
    commit(other, "outside", "trj_agent", run("trj_agent"))
    assert {r.scope for r in own_runs(other, PROJECT)} == {"trj_agent"}
