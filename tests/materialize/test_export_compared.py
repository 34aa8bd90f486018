"""Preference and KTO sets of executed groups: pairs inside groups only, loaded by datasets with exact arguments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from materialize.config import MaterializeConfig
from materialize.examples import materialize
from materialize.export.api import export
from materialize.export.compared import MARGIN
from materialize.export.options import ExportFilters, ExportOptions
from schemas.contract import Role
from schemas.errors import ConfigInvalid
from schemas.example import Split
from schemas.tables import TABLE
from storage.arrow import finish_rows, table_of
from storage.snapshots import SnapshotStore
from tests.materialize.test_groups import World, make_group, world  # noqa: F401 - the fixture

CONFIG = MaterializeConfig(tokenizer="none")


def table(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    return table_of(TABLE[name], finish_rows(TABLE[name], rows, stage_key="s", run_id="r"))


@pytest.fixture(scope="module")
def tables(world: World) -> dict[str, pa.Table]:  # noqa: F811
    """Rows of one group of each role, with the examples of the run."""
    groups: list[dict[str, Any]] = []
    candidates: list[dict[str, Any]] = []
    for tool, role in (("compose_timeline", Role.ORCHESTRATOR), ("retrieve_visuals", Role.GENERATOR), ("repair_shots", Role.CRITIC)):
        rows = make_group(world, world.index(tool, role)).rows()
        groups += rows["groups"]
        candidates += rows["candidates"]
    store = world.bench.store
    done = materialize(world.trajectory, world.board, store, SnapshotStore(store), CONFIG, None, split=Split.TRAIN)
    board = {"project_id": world.board.project_id, "storyboard_sha256": "1" * 64, "schema_version": "storyboard.1", "aspect_ratio": "16:9"}
    board |= {"segments": 1, "spotlights": 0, "script": world.board.script}
    return {
        "groups": table("groups", groups),
        "candidates": table("candidates", candidates),
        "examples": table("examples", done.rows["examples"]),
        "storyboards": table("storyboards", [board]),
    }


def connect(tables: dict[str, pa.Table]) -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    for name, rows in tables.items():
        con.register("t_" + name, rows)
        con.execute(f"create view {name} as select * from t_{name}")  # noqa: S608 - names of ours
    return con


@pytest.fixture
def con(tables: dict[str, pa.Table]) -> duckdb.DuckDBPyConnection:
    return connect(tables)


def load(folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import datasets

    return list(datasets.load_dataset(str(folder), split="train", cache_dir=str(cache)))


def test_a_pair_answers_one_prompt_and_the_chosen_output_is_worth_more(
    con: duckdb.DuckDBPyConnection, tables: dict[str, pa.Table], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = export("pref", "trl", con, tmp_path / "out", ExportOptions())
    rows = load(tmp_path / "out", tmp_path / "cache", monkeypatch)
    assert len(rows) == report.rows["train"] > 3
    assert {r["role"] for r in rows} == {"orchestrator", "generator", "critic"}
    prompts = {e["trajectory_id"] + str(e["call_index"]): json.loads(e["prompt_json"]) for e in tables["examples"].to_pylist()}
    for row in rows:
        assert row["reward"] - row["rejected_reward"] >= MARGIN
        assert row["prompt"] == prompts[row["trajectory_id"] + str(row["call_index"])]
        assert row["chosen"] != row["rejected"]
        assert (row["tools"] is None) == (row["role"] != "orchestrator")
    called = [r["chosen"][0]["tool_calls"][0]["function"] for r in rows if r["role"] == "orchestrator"]
    assert all(isinstance(c["arguments"], dict) for c in called)


def test_every_pair_stays_inside_its_group(con: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export("pref", "trl", con, tmp_path / "out", ExportOptions())
    outputs = {
        g: {t for (t,) in con.execute("select output_json from candidates where group_id = $1", [g]).fetchall()}
        for (g,) in con.execute("select group_id from groups").fetchall()
    }
    for row in load(tmp_path / "out", tmp_path / "cache", monkeypatch):
        texts = {json.loads(o)["text"] for o in outputs[row["group_id"]]}
        assert {row["chosen"][0]["content"], row["rejected"][0]["content"]} <= texts


def test_kto_labels_follow_the_advantage(con: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export("kto", "trl", con, tmp_path / "out", ExportOptions())
    rows = load(tmp_path / "out", tmp_path / "cache", monkeypatch)
    means = dict(con.execute("select group_id, avg(reward) from candidates group by 1").fetchall())
    assert {r["label"] for r in rows} == {True, False}
    assert all(r["label"] == (r["reward"] > means[r["group_id"]]) for r in rows)


def test_queued_groups_give_no_pairs(tables: dict[str, pa.Table], tmp_path: Path) -> None:
    queued = [{**r, "status": "queued"} for r in tables["groups"].to_pylist()]
    plain = [{k: v for k, v in r.items() if k not in ("stage_key", "run_id", "row_digest")} for r in queued]
    with pytest.raises(ConfigInvalid, match="nothing_to_export"):
        export("pref", "trl", connect(tables | {"groups": table("groups", plain)}), tmp_path / "out", ExportOptions())
    assert not (tmp_path / "out").exists()


def test_filters_and_the_held_out_rule_hold(tables: dict[str, pa.Table], tmp_path: Path) -> None:
    report = export("pref", "trl", connect(tables), tmp_path / "out", ExportOptions(filters=ExportFilters.of(roles=["critic"])))
    assert set(report.by_role) == {"critic"}
    assert report.not_taken == {"filter_role": 2}
    held = [
        {k: v for k, v in r.items() if k not in ("stage_key", "run_id", "row_digest")} | {"split": "held_out"}
        for r in tables["examples"].to_pylist()
    ]
    with pytest.raises(ConfigInvalid, match="nothing_to_export"):
        export("kto", "trl", connect(tables | {"examples": table("examples", held)}), tmp_path / "held", ExportOptions())


def test_a_bare_table_of_examples_has_no_groups(tables: dict[str, pa.Table], tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="no_lake"):
        export("pref", "trl", tables["examples"], tmp_path / "out", ExportOptions())


def test_the_filter_on_authors_looks_at_what_is_trained(tables: dict[str, pa.Table], tmp_path: Path) -> None:
    options = ExportOptions(filters=ExportFilters.of(provenance=["scripted_mistake"]))
    report = export("kto", "trl", connect(tables), tmp_path / "kto", options)
    assert report.rows["train"] > 0
    assert report.not_taken["filter_provenance"] > 0
    with pytest.raises(ConfigInvalid, match="filter_provenance"):
        export("pref", "trl", connect(tables), tmp_path / "pref", options)  # a mistake is never preferred
