"""Records for on-policy distillation: whose turn it was, with which chance, from which state, with which tokens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from materialize.distillation import distillation_rows
from materialize.export.api import export
from materialize.export.options import ExportFilters, ExportOptions
from schemas.artifact import ArtifactKind
from schemas.errors import ConfigInvalid, SchemaMismatch
from schemas.example import Split
from schemas.reply import ModelReply, TokenLogprob
from schemas.tables import TABLE
from schemas.trajectory import Provenance, Trajectory
from storage.arrow import finish_rows, table_of

REPLY = ModelReply(
    model="qwen-9b",
    asked_model="qwen",
    sampling={"temperature": 1.0},
    form="json",
    content="{}",
    wall_ms=5,
    completion_token_ids=(7, 8),
    logprobs=(TokenLogprob(token="a", logprob=-0.25), TokenLogprob(token="b", logprob=-1.5)),  # noqa: S106 - words, no secrets
)


def taken_in_turns(run: Any, turns: dict[str, Any]) -> Trajectory:
    """The hand-made run as if a teacher and a student had taken turns in it; the third call carries a reply."""
    reply = run.store.put_json(REPLY, ArtifactKind.OTHER).sha256
    settings = run.store.put_json({"replay": {"policy": {"turns": turns}}}, ArtifactKind.OTHER).sha256
    whole = run.trajectory()
    calls = []
    for call in whole.calls:
        owner = Provenance.TEACHER if call.call_index % 2 else Provenance.STUDENT
        update = {"provenance": owner, "reply": reply if call.call_index == 2 else None}
        calls.append(call.model_copy(update={"output": call.output.model_copy(update=update)}))
    return whole.model_copy(update={"calls": tuple(calls), "policy": "mixed", "config_digest": settings})


@pytest.fixture
def mixed(run: Any) -> Trajectory:
    return taken_in_turns(run, {"beta_start": 0.8, "update": 50, "decay_updates": 100})


def rows_of(run: Any, build: Any, trajectory: Trajectory, split: Split = Split.TRAIN) -> list[dict[str, Any]]:
    return distillation_rows(trajectory, build.storyboard("prj_one"), run.store, split)


def test_every_turn_is_a_record_refused_ones_too(run: Any, build: Any, mixed: Trajectory) -> None:
    rows = rows_of(run, build, mixed)
    assert [r["call_index"] for r in rows] == [c.call_index for c in mixed.calls]
    assert {r["turn_owner"] for r in rows if r["call_index"] % 2} == {"teacher"}
    assert [r["status"] for r in rows].count("refused") == 2


@pytest.mark.parametrize(("update", "beta"), [(0, 0.8), (50, 0.4), (100, 0.0), (500, 0.0)])
def test_beta_is_that_of_eq_6(run: Any, build: Any, update: int, beta: float) -> None:
    trajectory = taken_in_turns(run, {"beta_start": 0.8, "update": update, "decay_updates": 100})
    row = rows_of(run, build, trajectory)[0]
    assert (row["beta"], row["update"]) == (pytest.approx(beta), update)


def test_token_fields_are_there_where_the_endpoint_gave_them(run: Any, build: Any, mixed: Trajectory) -> None:
    rows = {r["call_index"]: r for r in rows_of(run, build, mixed)}
    assert (rows[2]["model"], rows[2]["completion_token_ids"], json.loads(rows[2]["logprobs_json"])) == ("qwen-9b", [7, 8], [-0.25, -1.5])
    assert (rows[2]["prompt_token_ids"], rows[3]["model"], rows[3]["logprobs_json"]) == (None, None, None)


def test_prompts_are_the_bytes_that_were_seen(run: Any, build: Any, mixed: Trajectory) -> None:
    for row in rows_of(run, build, mixed):
        assert f'{{"messages":{row["prompt_json"]},"tools":{row["tools_json"]}}}'.encode() == run.store.read(row["context_sha256"])


def test_a_scripted_run_gives_no_records(run: Any, build: Any) -> None:
    assert rows_of(run, build, run.trajectory()) == []


def test_settings_without_turns_are_an_error(run: Any, build: Any, mixed: Trajectory) -> None:
    bare = run.store.put_json({"replay": {}}, ArtifactKind.OTHER).sha256
    with pytest.raises(SchemaMismatch, match="turns"):
        rows_of(run, build, mixed.model_copy(update={"config_digest": bare}))


def connect(rows: list[dict[str, Any]]) -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    for name, values in (("distillation", rows), ("storyboards", []), ("examples", [])):
        spec = TABLE[name]
        con.register("t_" + name, table_of(spec, finish_rows(spec, values, stage_key="s", run_id="r")))
        con.execute(f"create view {name} as select * from t_{name}")  # noqa: S608 - names of ours
    return con


def test_an_export_is_loaded_by_datasets(run: Any, build: Any, mixed: Trajectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import datasets

    rows = rows_of(run, build, mixed)
    report = export("opd", "trl", connect(rows), tmp_path / "out", ExportOptions())
    assert (report.rows, report.by_kind) == ({"train": 26}, {"student": 13, "teacher": 13})
    loaded = list(datasets.load_dataset(str(tmp_path / "out"), split="train", cache_dir=str(tmp_path / "cache")))
    by_call = {r["call_index"]: r for r in loaded}
    assert by_call[2]["completion_token_ids"] == [7, 8]
    assert by_call[2]["beta"] == pytest.approx(0.4)
    for row in rows:
        assert by_call[row["call_index"]]["prompt"] == json.loads(row["prompt_json"])
        assert (by_call[row["call_index"]]["tools"] or []) == json.loads(row["tools_json"])


def test_filters_and_the_held_out_rule_hold(run: Any, build: Any, mixed: Trajectory, tmp_path: Path) -> None:
    only = ExportOptions(filters=ExportFilters.of(provenance=["student"], roles=["critic"]))
    report = export("opd", "trl", connect(rows_of(run, build, mixed)), tmp_path / "out", only)
    assert set(report.by_role) == {"critic"}
    with pytest.raises(ConfigInvalid, match="nothing_to_export"):
        export("opd", "trl", connect(rows_of(run, build, mixed, Split.HELD_OUT)), tmp_path / "held", ExportOptions())
