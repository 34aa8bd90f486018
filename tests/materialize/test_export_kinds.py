"""Kinds beside SFT for every consumer: literal rows, states that can be restored, episodes, and rows that other rules admitted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from jobs.atif import read_calls
from materialize.config import MaterializeConfig
from materialize.examples import materialize
from materialize.export.api import export
from materialize.export.options import ExportFilters, ExportOptions
from materialize.export.tables import TABLES
from materialize.rows import trajectory_rows
from schemas.artifact import ArtifactKind
from schemas.contract import Role, shown_schema
from schemas.errors import ConfigInvalid
from schemas.example import Split
from schemas.tables import TABLE
from storage.arrow import finish_rows, table_of
from storage.snapshots import SnapshotStore
from tests.materialize.test_groups import World, make_group, world  # noqa: F401 - the fixture

CONFIG = MaterializeConfig(tokenizer="none")
ANSWERS = {"completion", "completion_json", "chosen", "rejected", "output_json", "arguments_json", "content_json"}


def table(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    return table_of(TABLE[name], finish_rows(TABLE[name], rows, stage_key="s", run_id="r"))


@pytest.fixture(scope="module")
def tables(world: World) -> dict[str, list[dict[str, Any]]]:  # noqa: F811
    """Rows of a lake with one run, its examples and two groups."""
    store = world.bench.store
    snapshots = SnapshotStore(store)
    run = world.trajectory
    sha = store.put_bytes(run.canonical(), ArtifactKind.TRAJECTORY, "application/json").sha256
    rows = trajectory_rows(run, final_state=snapshots.load(run.last_snapshot), quality=0.8, trajectory_sha256=sha)
    rows["examples"] = materialize(run, world.board, store, snapshots, CONFIG, None, split=Split.TRAIN).rows["examples"]
    rows["groups"], rows["candidates"] = [], []
    for tool, role in (("compose_timeline", Role.ORCHESTRATOR), ("retrieve_visuals", Role.GENERATOR)):
        made = make_group(world, world.index(tool, role)).rows()
        rows["groups"] += made["groups"]
        rows["candidates"] += made["candidates"]
    board = {"project_id": world.board.project_id, "storyboard_sha256": "1" * 64, "schema_version": "storyboard.1", "aspect_ratio": "16:9"}
    rows["storyboards"] = [board | {"segments": 1, "spotlights": 0, "script": world.board.script}]
    project = dict.fromkeys(("width", "height", "shots", "sentences", "words", "duration_us"), 1)
    rows["projects"] = [
        {"project_id": world.board.project_id, "uri": "a.mp4", "title": "t", "language": "en", "licence": "CC-BY-4.0", "attribution": None}
        | {"source_sha256": "2" * 64, **project, "narration_share": 1.0, "split": "train", "engines_json": "{}"}
    ]
    rows["rft"], rows["distillation"] = [], []
    return rows


def connect(rows: dict[str, list[dict[str, Any]]], **other: list[dict[str, Any]]) -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    for name, values in {**rows, **other}.items():
        con.register("t_" + name, table(name, values))
        con.execute(f"create view {name} as select * from t_{name}")  # noqa: S608 - names of ours
    return con


@pytest.fixture
def con(tables: dict[str, list[dict[str, Any]]]) -> duckdb.DuckDBPyConnection:
    return connect(tables)


def rows_in(folder: Path, split: str = "train") -> list[dict[str, Any]]:
    return [row for path in sorted((folder / "data").glob(f"{split}-*.parquet")) for row in pq.read_table(path).to_pylist()]


def lines_in(folder: Path, name: str = "train.jsonl") -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (folder / name).read_bytes().split(b"\n")[:-1]]


def test_rl_rows_are_decisions_that_the_environment_restores(world: World, con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:  # noqa: F811
    report = export("rl", "trl", con, tmp_path / "out")
    rows = rows_in(tmp_path / "out")
    assert report.by_role == {"orchestrator": len(rows)}
    assert len(rows) > 10
    with world.bench.open() as env:
        for row in rows[::5]:
            context = env.restore(world.bench.trajectory(row["trajectory_sha256"]), row["call_index"])
            assert [m.model_dump() for m in context.messages] == row["prompt"]
            assert [json.loads(t) for t in row["tools"]] == [shown_schema(t) for t in context.tools]
            assert (row["environment"], row["reward_spec"]) == ("orchestrator", '{"kind":"executed"}')


@pytest.mark.parametrize("kind", ["rl", "benchmark"])
def test_rows_to_start_from_hold_no_answer(kind: str) -> None:
    assert not ANSWERS & set(TABLES[kind].docs)


def test_a_state_is_exported_once_and_names_its_recorded_group(
    con: duckdb.DuckDBPyConnection, tables: dict[str, list[dict[str, Any]]], tmp_path: Path
) -> None:
    export("rl", "trl", con, tmp_path / "out")
    rows = rows_in(tmp_path / "out")
    assert len({r["context_sha256"] for r in rows}) == len(rows)
    group = next(g for g in tables["groups"] if g["role"] == "orchestrator")
    assert [r["call_index"] for r in rows if r["group_id"] == group["group_id"]] == [group["call_index"]]
    assert {r["group_id"] for r in rows} == {"", group["group_id"]}


def test_rl_rows_of_other_roles_are_there_when_asked_for(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    options = ExportOptions(filters=ExportFilters.of(roles=["generator"]))
    report = export("rl", "trl", con, tmp_path / "out", options)
    assert set(report.by_role) == {"generator"}
    assert {r["tools"] is None for r in rows_in(tmp_path / "out")} == {True}


def test_verl_gets_prompts_with_what_is_restored_in_one_shape(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    export("rl", "verl", con, tmp_path / "out")
    rows = rows_in(tmp_path / "out")
    row = rows[3]
    assert list(row) == ["data_source", "agent_name", "ability", "prompt", "reward_model", "extra_info"]
    assert (row["data_source"], row["agent_name"], row["ability"]) == ("workprint/orchestrator", "workprint", "tool_use")
    assert [m["role"] for m in row["prompt"]] == ["system", "user"]
    snapshot = row["extra_info"]["snapshot_id"]
    assert row["reward_model"] == {"style": "rule", "ground_truth": f'{{"snapshot_id":"{snapshot}"}}'}
    assert {k for r in rows for k, v in r["extra_info"].items() if v is None} == set()
    assert len({r["extra_info"]["index"] for r in rows}) == len(rows)
    assert yaml.safe_load((tmp_path / "out" / "agent.yaml").read_text()) == [
        {"name": "workprint", "_target_": "materialize.adapters.verl.agent_loop", "lake": "path/to/lake"}
    ]


def test_nemo_gym_gets_requests_with_flat_tools(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    export("rl", "nemo-gym", con, tmp_path / "out")
    export("rl", "trl", con, tmp_path / "trl")
    for line, row in zip(lines_in(tmp_path / "out"), rows_in(tmp_path / "trl"), strict=True):
        params = line["responses_create_params"]
        assert [(m["role"], m["content"]) for m in params["input"]] == [(m["role"], m["content"]) for m in row["prompt"]]
        functions = [json.loads(t)["function"] for t in row["tools"]]
        assert params["tools"] == [{"type": "function", **f, "strict": False} for f in functions]
        assert params["parallel_tool_calls"] is False
        assert (line["trajectory_sha256"], line["call_index"]) == (row["trajectory_sha256"], row["call_index"])


def test_skyrl_gets_prompts_for_its_environment(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    export("rl", "skyrl", con, tmp_path / "out")
    row = rows_in(tmp_path / "out")[0]
    assert row["env_class"] == "workprint"
    assert row["reward_spec"] == {"method": "executed", "ground_truth": row["snapshot_id"]}
    assert [t["type"] for t in json.loads(row["tools_json"])][:1] == ["function"]


def test_skyrl_sft_rows_are_loaded_without_their_origins(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import datasets

    report = export("sft", "skyrl", con, tmp_path / "out")
    loaded = datasets.load_dataset(str(tmp_path / "out"), split="train", cache_dir=str(tmp_path / "cache"))
    assert len(loaded) == report.rows["train"]
    assert set(loaded.column_names) == {"messages", "tools"}
    called = [json.loads(r["messages"][-1]["tool_calls"]) for r in loaded if r["messages"][-1]["tool_calls"]]
    assert called
    assert {c["type"] for calls in called for c in calls} == {"function"}


def test_groups_are_told_candidate_by_candidate(
    con: duckdb.DuckDBPyConnection, tables: dict[str, list[dict[str, Any]]], tmp_path: Path
) -> None:
    report = export("groups", "hf", con, tmp_path / "out")
    rows = {r["candidate_id"]: r for r in rows_in(tmp_path / "out")}
    assert len(rows) == sum(report.rows.values()) == len(tables["candidates"])
    for candidate in tables["candidates"]:
        row = rows[f"{candidate['group_id']}.{candidate['candidate_index']}"]
        assert (row["reward"], row["advantage"], row["output_json"]) == (
            candidate["reward"],
            candidate["advantage"],
            candidate["output_json"],
        )
        assert json.loads(row["completion_json"])["content"] == json.loads(candidate["output_json"])["text"]
        assert row["state_digest"]
        assert (row["observation_json"], row["state_after"]) == (candidate["observation_json"], candidate["state_after"])
        assert (row["model"], row["completion_token_ids"]) == (None, None)  # nobody asked a model


def test_the_filter_on_authors_looks_at_the_candidates_own(
    con: duckdb.DuckDBPyConnection, tables: dict[str, list[dict[str, Any]]], tmp_path: Path
) -> None:
    authors = [json.loads(c["output_json"])["provenance"] for c in tables["candidates"]]
    report = export("groups", "hf", con, tmp_path / "out", ExportOptions(filters=ExportFilters.of(provenance=["scripted_mistake"])))
    assert report.rows == {"train": authors.count("scripted_mistake")}
    assert report.not_taken == {"filter_provenance": len(authors) - authors.count("scripted_mistake")}


def held_out(tables: dict[str, list[dict[str, Any]]]) -> duckdb.DuckDBPyConnection:
    return connect(tables, examples=[r | {"split": "held_out"} for r in tables["examples"]])


def test_the_benchmark_holds_beginnings_of_held_out_projects(
    world: World,  # noqa: F811
    tables: dict[str, list[dict[str, Any]]],
    tmp_path: Path,
) -> None:
    report = export("benchmark", "hf", held_out(tables), tmp_path / "out", store=world.bench.store)
    (row,) = rows_in(tmp_path / "out", "held_out")
    assert report.rows == {"held_out": 1}
    assert row["snapshot_id"] == world.trajectory.first_snapshot
    with world.bench.open() as env:
        context = env.restore(world.trajectory, 0)
        assert [m.model_dump() for m in context.messages] == row["prompt"]
    assert "Do not train on these rows" in (tmp_path / "out" / "README.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("filters", "code"),
    [({"splits": ["train"]}, "benchmark_filter"), ({"roles": ["critic"]}, "benchmark_filter"), ({"projects": ["x"]}, "unknown_project")],
)
def test_filters_that_no_benchmark_can_have_are_refused(
    world: World,  # noqa: F811
    tables: dict[str, list[dict[str, Any]]],
    tmp_path: Path,
    filters: dict[str, Any],
    code: str,
) -> None:
    options = ExportOptions(filters=ExportFilters.of(**filters))
    with pytest.raises(ConfigInvalid) as caught:
        export("benchmark", "hf", held_out(tables), tmp_path / "out", options, store=world.bench.store)
    assert caught.value.code == code


def test_a_lake_without_held_out_projects_has_no_benchmark(con: duckdb.DuckDBPyConnection, world: World, tmp_path: Path) -> None:  # noqa: F811
    with pytest.raises(ConfigInvalid, match="no held-out project"):
        export("benchmark", "hf", con, tmp_path / "out", store=world.bench.store)


@pytest.mark.parametrize(
    ("kind", "consumer"), [("sft", "trl"), ("pref", "trl"), ("kto", "swift"), ("groups", "hf"), ("rl", "verl"), ("sft", "atif")]
)
def test_held_out_projects_leave_in_no_training_export(
    world: World,  # noqa: F811
    tables: dict[str, list[dict[str, Any]]],
    tmp_path: Path,
    kind: str,
    consumer: str,
) -> None:
    with pytest.raises(ConfigInvalid, match="held_out"):
        export(kind, consumer, held_out(tables), tmp_path / "out", store=world.bench.store)


@pytest.fixture
def episode(world: World, con: duckdb.DuckDBPyConnection, tmp_path: Path) -> dict[str, Any]:  # noqa: F811
    export("sft", "atif", con, tmp_path / "out", store=world.bench.store)
    (line,) = lines_in(tmp_path / "out", "index.jsonl")
    found: dict[str, Any] = orjson.loads((tmp_path / "out" / line["path"]).read_bytes())
    return found | {"_path": tmp_path / "out" / line["path"]}


def test_an_episode_gives_the_recorded_calls_back(world: World, episode: dict[str, Any]) -> None:  # noqa: F811
    name, calls = read_calls(episode["_path"])
    recorded = [c.output for c in world.trajectory.calls if c.role is Role.ORCHESTRATOR and c.output.tool]
    assert name == "workprint-orchestrator"
    assert [(c.name, c.arguments) for c in calls] == [(o.tool, json.loads(o.arguments_json or "")) for o in recorded]


def test_an_episode_shows_what_each_role_saw_and_said(world: World, episode: dict[str, Any]) -> None:  # noqa: F811
    inner = {t["trajectory_id"]: t for t in episode["subagent_trajectories"]}
    contents = [c for c in world.trajectory.calls if c.role is not Role.ORCHESTRATOR]
    assert len(inner) == len(contents)
    for call in contents:
        own = inner[f"{world.trajectory.trajectory_id}.{call.call_index}"]
        context = world.bench.store.read_json(call.context_sha256)
        assert [s["message"] for s in own["steps"]] == [*(m["content"] for m in context["messages"]), call.output.text]
    named = [
        ref["trajectory_id"]
        for step in episode["steps"]
        for result in step.get("observation", {"results": []})["results"]
        for ref in result.get("subagent_trajectory_ref", ())
    ]
    assert sorted(named) == sorted(inner)


def test_steps_of_an_episode_are_numbered_and_tell_what_is_to_be_learned(world: World, episode: dict[str, Any]) -> None:  # noqa: F811
    assert [s["step_id"] for s in episode["steps"]] == list(range(1, len(episode["steps"]) + 1))
    agents = {s["extra"]["call_index"]: s for s in episode["steps"] if s["source"] == "agent"}
    for call in (c for c in world.trajectory.calls if c.role is Role.ORCHESTRATOR):
        step = agents[call.call_index]
        assert step["llm_call_count"] == 0
        assert step["extra"]["arguments_json"] == call.output.arguments_json
        assert step["extra"]["learn"] == (call.output.provenance.value == "scripted" and not call.observation.blockers)


def test_filters_of_single_outputs_are_refused_for_episodes(world: World, con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:  # noqa: F811
    options = ExportOptions(filters=ExportFilters.of(roles=["critic"]))
    with pytest.raises(ConfigInvalid, match="episode_filter"):
        export("sft", "atif", con, tmp_path / "out", options, store=world.bench.store)


def admitted(tables: dict[str, list[dict[str, Any]]], trajectory: str, *, yes: bool = True) -> list[dict[str, Any]]:
    row: dict[str, Any] = dict.fromkeys(c.name for c in TABLE["rft"].columns)
    return [
        row
        | {"student_trajectory_id": "trj_student", "project_id": tables["examples"][0]["project_id"], "trajectory_id": trajectory}
        | {"provenance": "student", "replayed": True, "failed_checks": [], "quality": 0.9, "admitted": yes, "reason": "x"}
        | {"hard_case": False, "mixing": 0.1}
    ]


def test_rft_takes_what_admitted_runs_said_whichever_run_holds_the_example(tables: dict[str, list[dict[str, Any]]], tmp_path: Path) -> None:
    """The admitted run shares its first six calls with the run that holds the examples, and nothing after that."""
    run = tables["trajectories"][0]["trajectory_id"]
    shared = [c | {"trajectory_id": "trj_admitted"} for c in tables["calls"] if c["call_index"] < 6]
    other = [c | {"trajectory_id": "trj_admitted", "content_json": "{}", "arguments_json": "{}"} for c in tables["calls"][6:]]
    unverified = [e | {"verified": False} for e in tables["examples"]]
    con = connect(tables, calls=[*tables["calls"], *shared, *other], examples=unverified, rft=admitted(tables, "trj_admitted"))
    report = export("rft", "trl", con, tmp_path / "out")
    rows = rows_in(tmp_path / "out")
    assert [r["call_index"] for r in rows] == [e["call_index"] for e in tables["examples"] if e["call_index"] < 6]
    assert {(r["trajectory_id"], r["verified"]) for r in rows} == {(run, True)}
    assert report.kind == "rft"


def test_what_was_not_admitted_is_not_in_rft(tables: dict[str, list[dict[str, Any]]], tmp_path: Path) -> None:
    run = tables["trajectories"][0]["trajectory_id"]
    with pytest.raises(ConfigInvalid, match="nothing_to_export"):
        export("rft", "trl", connect(tables, rft=admitted(tables, run, yes=False)), tmp_path / "out")


def test_rft_episodes_are_the_admitted_runs(world: World, tables: dict[str, list[dict[str, Any]]], tmp_path: Path) -> None:  # noqa: F811
    run = tables["trajectories"][0]["trajectory_id"]
    report = export("rft", "atif", connect(tables, rft=admitted(tables, run)), tmp_path / "out", store=world.bench.store)
    assert report.rows == {"train": 1}


def turns(tables: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    made = []
    for e in tables["examples"]:
        row = {c.name: e.get(c.name) for c in TABLE["distillation"].columns}
        made.append(row | {"turn_owner": "student", "status": "committed", "completion_token_ids": [7, 8]})
    return made


def test_swift_gets_distillation_prompts_with_tools_and_the_teachers_tag(tables: dict[str, list[dict[str, Any]]], tmp_path: Path) -> None:
    export("opd", "swift", connect(tables, distillation=turns(tables)), tmp_path / "out")
    line = lines_in(tmp_path / "out")[0]
    example = tables["examples"][0]
    assert line["messages"] == json.loads(example["prompt_json"])
    assert json.loads(line["tools"]) == [shown_schema(t) for t in json.loads(example["tools_json"])]
    assert line["dataset"] == "student"


def test_verl_distils_contents_in_one_turn_and_calls_in_the_environment(tables: dict[str, list[dict[str, Any]]], tmp_path: Path) -> None:
    export("opd", "verl", connect(tables, distillation=turns(tables)), tmp_path / "out")
    rows = rows_in(tmp_path / "out")
    assert {(r["data_source"], r["agent_name"]) for r in rows} == {
        ("workprint/orchestrator", "workprint"),
        ("workprint/generator", "single_turn_agent"),
        ("workprint/critic", "single_turn_agent"),
    }
    assert {r["extra_info"]["trajectory_sha256"] for r in rows} == {tables["trajectories"][0]["trajectory_sha256"]}


def test_pairs_for_llamafactory_and_swift_and_openai_say_the_same(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    for consumer in ("trl", "llamafactory", "swift", "openai-jsonl"):
        export("pref", consumer, con, tmp_path / consumer, ExportOptions(filters=ExportFilters.of(roles=["generator"])))
    truth = [(r["prompt"][-1]["content"], r["chosen"][0]["content"], r["rejected"][0]["content"]) for r in rows_in(tmp_path / "trl")]
    assert truth
    factory = lines_in(tmp_path / "llamafactory")
    assert [(x["conversations"][0]["value"], x["chosen"]["value"], x["rejected"]["value"]) for x in factory] == truth
    assert {(x["chosen"]["from"], len(x["conversations"])) for x in factory} == {("gpt", 1)}
    entry = orjson.loads((tmp_path / "llamafactory" / "dataset_info.json").read_bytes())["workprint"]
    assert (entry["ranking"], entry["columns"]["chosen"], entry["columns"]["rejected"]) == (True, "chosen", "rejected")
    swift = lines_in(tmp_path / "swift")
    assert [(x["messages"][-2]["content"], x["messages"][-1]["content"], x["rejected_messages"][-1]["content"]) for x in swift] == truth
    openai = lines_in(tmp_path / "openai-jsonl")
    assert [
        (x["input"]["messages"][-1]["content"], x["preferred_output"][0]["content"], x["non_preferred_output"][0]["content"])
        for x in openai
    ] == truth


def test_labels_for_llamafactory_and_swift_are_those_of_trl(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    for consumer in ("trl", "llamafactory", "swift"):
        export("kto", consumer, con, tmp_path / consumer)
    truth = [r["label"] for r in rows_in(tmp_path / "trl")]
    assert set(truth) == {True, False}
    assert [x["label"] for x in lines_in(tmp_path / "llamafactory")] == truth
    assert [x["label"] for x in lines_in(tmp_path / "swift")] == truth
    entry = orjson.loads((tmp_path / "llamafactory" / "dataset_info.json").read_bytes())["workprint"]
    assert entry["columns"]["kto_tag"] == "label"


def test_outputs_that_no_trainer_can_be_told_are_listed_and_not_compared(tables: dict[str, list[dict[str, Any]]], tmp_path: Path) -> None:
    first = tables["candidates"][0]
    spoiled = json.dumps(json.loads(first["output_json"]) | {"arguments_json": "{no json", "tool": "render_shots"})
    others = [c if c is not first else c | {"output_json": spoiled} for c in tables["candidates"]]
    report = export("kto", "trl", connect(tables, candidates=others), tmp_path / "out")
    name = f"{first['group_id']}.{first['candidate_index']}"
    assert [bad.example_id for bad in report.left_out] == [name]
    assert "not_json" in report.left_out[0].reason


def test_a_verified_repair_prefers_what_mended_the_run_to_what_was_refused(tables: dict[str, list[dict[str, Any]]], tmp_path: Path) -> None:
    example = next(e for e in tables["examples"] if e["role"] == "orchestrator" and e["call_index"] > 3)
    call = next(c for c in tables["calls"] if c["call_index"] == example["call_index"])
    failed = call | {"trajectory_id": "trj_student", "arguments_json": '{"wrong": 1}', "status": "refused"}
    (admission,) = admitted(tables, example["trajectory_id"])
    failure = {"failure_kind": "blocker", "failure_call": call["call_index"]}
    con = connect(tables, calls=[*tables["calls"], failed], rft=[admission | failure], groups=[], candidates=[])
    report = export("pref", "trl", con, tmp_path / "out")
    (row,) = rows_in(tmp_path / "out")
    assert json.loads(row["chosen"][0]["tool_calls"][0]) == _called(example["completion_json"])
    assert json.loads(row["rejected"][0]["tool_calls"][0])["function"] == {"name": call["tool"], "arguments": {"wrong": 1}}
    assert (row["reward"], row["rejected_reward"], row["example_id"]) == (None, None, example["example_id"])
    assert report.rows == {"train": 1}


def _called(completion_json: str) -> dict[str, Any]:
    """The only call of a completion, with its arguments as an object."""
    (call,) = json.loads(completion_json)["tool_calls"]
    return {**call, "function": {**call["function"], "arguments": json.loads(call["function"]["arguments"])}}


def test_repair_requests_are_labelled_by_whether_they_held(tables: dict[str, list[dict[str, Any]]], tmp_path: Path) -> None:
    requests = [e["example_id"] for e in tables["examples"] if e["kind"] == "repair_request"]
    assert requests
    spoiled = [e | {"verified": e["example_id"] != requests[0]} for e in tables["examples"]]
    export("kto", "trl", connect(tables, examples=spoiled, groups=[], candidates=[]), tmp_path / "out")
    assert {r["example_id"]: (r["label"], r["reward"]) for r in rows_in(tmp_path / "out")} == {
        e: (e != requests[0], None) for e in requests
    }


@pytest.mark.parametrize(("quality", "count"), [(0.8, 1), (0.81, 0)])
def test_the_quality_of_a_run_is_a_filter(con: duckdb.DuckDBPyConnection, tmp_path: Path, quality: float, count: int) -> None:
    options = ExportOptions(filters=ExportFilters.of(quality=quality))
    if count:
        export("sft", "trl", con, tmp_path / "out", options)
        assert {r["quality"] for r in rows_in(tmp_path / "out")} == {0.8}
    else:
        with pytest.raises(ConfigInvalid, match="filter_quality"):
            export("sft", "trl", con, tmp_path / "out", options)


def test_a_bare_table_cannot_be_filtered_by_quality(build: Any, tmp_path: Path) -> None:
    options = ExportOptions(filters=ExportFilters.of(quality=0.5))
    with pytest.raises(ConfigInvalid, match="no_lake"):
        export("sft", "trl", build.table([build.row(0, completion=build.call("x", "{}"))]), tmp_path / "out", options)


def test_turns_have_no_kind_to_filter_by(tables: dict[str, list[dict[str, Any]]], tmp_path: Path) -> None:
    options = ExportOptions(filters=ExportFilters.of(kinds=["tool_call"]))
    with pytest.raises(ConfigInvalid) as caught:
        export("opd", "trl", connect(tables, distillation=turns(tables)), tmp_path / "out", options)
    assert caught.value.code == "opd_filter"
