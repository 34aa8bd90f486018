"""``workprint export`` as a person calls it: filters, progress on standard error, exit statuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from jobs.cli import app
from materialize.config import MaterializeConfig
from materialize.examples import materialize
from materialize.rows import trajectory_rows
from schemas.artifact import ArtifactKind
from schemas.errors import ConfigInvalid
from storage.lake import Lake, StageCommit

CONFIG = MaterializeConfig(tokenizer="none", validation_share=0, held_out_share=0)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with one run of quality 0.75, in which every role speaks."""
    from tests.materialize.conftest import storyboard, whole_run

    root = tmp_path_factory.mktemp("command") / "lake"
    lake = Lake(root)
    run = whole_run(lake.store.root)
    trajectory = run.trajectory()
    sha = lake.store.put_bytes(trajectory.canonical(), ArtifactKind.TRAJECTORY, "application/json").sha256
    rows = trajectory_rows(trajectory, final_state=run.states[1], quality=0.75, trajectory_sha256=sha)
    done = materialize(trajectory, storyboard("prj_one"), lake.store, run.snapshots, CONFIG, None)
    contexts = tuple(sorted({c.context_sha256 for c in trajectory.calls}))
    for stage, table_rows, kept in (("replay", rows, (*contexts, sha)), ("materialize", done.rows, done.artifacts)):
        lake.commit(StageCommit(stage, f"stg_{stage}", "prj_one", "prj_one", "done", None, table_rows, kept, "run_1"))
    return root


def call(place: Path, out: Path, *arguments: str) -> Any:
    return CliRunner().invoke(app, ["export", *arguments, "--lake", str(place), "-o", str(out)])


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ([], 23),
        (["--unverified"], 24),
        (["--role", "critic", "--role", "generator"], 10),
        (["--kind", "segments", "--kind", "slots"], 2),
        (["--quality", "0.75", "--provenance", "scripted", "--licence", "CC-BY-3.0", "--project", "prj_one", "--split", "train"], 23),
        (["--limit", "5", "--seed", "3"], 5),
    ],
)
def test_filters_take_these_many_rows(place: Path, tmp_path: Path, options: list[str], rows: int) -> None:
    done = call(place, tmp_path / "out", "sft", "--to", "hf", *options)
    assert done.exit_code == 0
    assert pq.read_table(tmp_path / "out" / "data").num_rows == rows
    assert f"train        {rows} rows" in done.stdout
    assert f"train: shard 1 of 1, {rows} of {rows} examples" in done.stderr


def test_json_is_the_manifest_and_nothing_else(place: Path, tmp_path: Path) -> None:
    done = call(place, tmp_path / "out", "rl", "--to", "verl", "--json")
    assert json.loads(done.stdout) == json.loads((tmp_path / "out" / "manifest.json").read_bytes())
    assert done.stderr == ""


def test_episodes_are_read_from_the_lakes_artifacts(place: Path, tmp_path: Path) -> None:
    assert call(place, tmp_path / "out", "sft", "--to", "atif").exit_code == 0
    (path,) = (tmp_path / "out" / "trajectories").rglob("*.json")
    assert json.loads(path.read_bytes())["extra"]["quality"] == 0.75


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["groups", "--to", "trl"], "export_senseless"),
        (["sft", "--to", "word"], "export_unknown"),
        (["sft", "--to", "trl", "--kind", "poem"], "export_filter"),
        (["sft", "--to", "trl", "--bad-rows", "maybe"], "bad_rows_rule"),
        (["sft", "--to", "trl", "--quality", "0.76"], "nothing_to_export"),
        (["sft", "--to", "trl", "--split", "held_out"], "held_out"),
    ],
)
def test_what_makes_no_sense_is_refused(place: Path, tmp_path: Path, arguments: list[str], code: str) -> None:
    done = call(place, tmp_path / "out", *arguments)
    assert isinstance(done.exception, ConfigInvalid)
    assert done.exception.code == code
    assert not (tmp_path / "out").exists()
