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
from schemas.errors import ConfigInvalid, StorageFault
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
        (["--license", "cc by 3.0"], 23),
    ],
)
def test_filters_take_these_many_rows(place: Path, tmp_path: Path, options: list[str], rows: int) -> None:
    done = call(place, tmp_path / "out", "sft", "--to", "hf", *options)
    assert done.exit_code == 0
    assert pq.read_table(tmp_path / "out" / "data").num_rows == rows
    assert f"train        {rows} rows" in done.stdout
    assert f"train: shard 1 of 1, {rows} of {rows} rows" in done.stderr


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
        (["sft", "--to", "trl", "--project", "prj_one", "--project", "prj_tow"], "unknown_project"),
        (["rl", "--to", "trl", "--licence", "MIT"], "nothing_to_export"),
        (["benchmark", "--to", "hf", "--provenance", "scripted"], "benchmark_filter"),
        (["sft", "--to", "trl", "--licence", " "], "export_filter"),
        (["sft", "--to", "hf", "--tokenizer", "qwen3"], "tokenizer_senseless"),
        (["sft", "--to", "trl", "--tokenizer", "llama9"], "unknown_template"),
    ],
)
def test_what_makes_no_sense_is_refused(place: Path, tmp_path: Path, arguments: list[str], code: str) -> None:
    done = call(place, tmp_path / "out", *arguments)
    assert isinstance(done.exception, ConfigInvalid)
    assert done.exception.code == code
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("kind", "lacks", "step"),
    [
        ("rft", "the lake has no outputs of admitted runs", "workprint rft"),
        ("pref", "the lake has no accepted groups and repairs", "workprint groups"),
        ("groups", "the lake has no candidates of groups", "workprint groups"),
        ("opd", "the lake has no turns of a teacher or a student", "replay.policy"),
        ("benchmark", "the lake has no held-out projects with a run", "materialize.held_out_share"),
    ],
)
def test_a_lake_that_lacks_a_kind_is_told_what_makes_it(place: Path, tmp_path: Path, kind: str, lacks: str, step: str) -> None:
    done = call(place, tmp_path / "out", kind, "--to", "hf")
    assert isinstance(done.exception, ConfigInvalid)
    assert lacks in done.exception.message
    assert step in str(done.exception.next_step)


def test_a_link_to_an_empty_folder_is_followed(place: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert call(place, tmp_path / "link", "sft").exit_code == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "manifest.json").is_file()


def test_the_folder_one_is_in_is_not_replaced(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = call(place, Path(), "sft")
    assert isinstance(done.exception, ConfigInvalid)
    assert done.exception.code == "output_is_here"


def test_no_folder_is_made_below_a_file(place: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    done = call(place, tmp_path / "file" / "a" / "b", "sft")
    assert isinstance(done.exception, ConfigInvalid)
    assert done.exception.code == "output_below_file"


def test_other_files_in_the_folder_are_left_alone(place: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    done = call(place, tmp_path / "out", "sft")
    assert isinstance(done.exception, ConfigInvalid)
    assert done.exception.code == "output_exists"
    assert [p.name for p in tmp_path.rglob("*")] == ["out", "notes.txt"]


@pytest.mark.parametrize("option", ["--limit", "--seed", "--rows-per-shard"])
@pytest.mark.parametrize("value", ["99999999999999999999", "1.5", "x"])
def test_numbers_that_a_manifest_cannot_hold_are_refused(place: Path, tmp_path: Path, option: str, value: str) -> None:
    assert call(place, tmp_path / "out", "sft", option, value).exit_code == 2
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("loop", "output_link"),
        ("a" * 251, "output_name"),
        ("a" * 256, "output_name"),
        ("\udcff", "output_name"),
        ("\udcff/below", "output_name"),
        ("lake/out", "output_in_lake"),
    ],
)
def test_places_that_cannot_be_written_are_refused_before_anything_is_made(place: Path, tmp_path: Path, name: str, code: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "lake").symlink_to(place)
    done = call(place, tmp_path / name, "sft")
    assert isinstance(done.exception, ConfigInvalid)
    assert done.exception.code == code
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lake", "loop"]


@pytest.mark.parametrize("name", ["夜空 out", "-lead", "new\nline", "--", "  "])
def test_odd_names_are_names(place: Path, tmp_path: Path, name: str) -> None:
    assert call(place, tmp_path / name, "sft", "--limit", "1").exit_code == 0
    assert (tmp_path / name / "manifest.json").is_file()


def test_a_place_where_nothing_can_be_made_is_told_with_what_to_do(place: Path) -> None:
    done = call(place, Path("/proc/out"), "sft")
    assert isinstance(done.exception, StorageFault)
    assert done.exception.next_step == "name a folder in a place that you may write to"
