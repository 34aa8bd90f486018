"""``export sft --to trl`` and ``--to hf``: loaded by datasets, equal to what was recorded, the same bytes every time."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import datasets
import duckdb
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from materialize.export.api import export
from materialize.export.options import ExportFilters, ExportOptions
from materialize.export.tables import TABLES
from materialize.rows import example_rows
from schemas.errors import ConfigInvalid


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    datasets.disable_progress_bars()


def _load(folder: Path, tmp_path: Path, split: str = "train") -> Any:
    return datasets.load_dataset(str(folder), split=split, cache_dir=str(tmp_path / "cache"))


@pytest.fixture
def lake(make_run: Any, build: Any) -> pa.Table:
    """Three projects of one run each; the second is for validation, the third held out."""
    rows = []
    for project, split in (("prj_a", "train"), ("prj_b", "validation"), ("prj_c", "held_out")):
        rows += [row | {"split": split} for row in example_rows(make_run(project, f" of {project}").examples())]
    return build.table(rows)


def test_a_load_gives_prompts_answers_and_tools_as_recorded(lake: pa.Table, tmp_path: Path) -> None:
    export("sft", "trl", lake, tmp_path / "out")
    loaded = _load(tmp_path / "out", tmp_path)
    rows = [r for r in lake.to_pylist() if r["split"] == "train" and r["verified"]]
    rows.sort(key=lambda r: (r["trajectory_id"], r["call_index"]))
    assert len(loaded) == len(rows) == 23
    for got, row in zip(loaded, rows, strict=True):
        want = orjson.loads(row["completion_json"])
        assert got["prompt"] == orjson.loads(row["prompt_json"])
        assert (got["tools"] or []) == orjson.loads(row["tools_json"])
        assert (got["completion"][0]["role"], got["completion"][0]["content"]) == ("assistant", want["content"])
        calls = [
            {**c, "function": {**c["function"], "arguments": orjson.loads(c["function"]["arguments"])}} for c in want.get("tool_calls", [])
        ]
        assert (got["completion"][0]["tool_calls"] or []) == calls


def test_generator_rows_have_no_tools_and_no_calls_at_all(lake: pa.Table, tmp_path: Path) -> None:
    export("sft", "trl", lake, tmp_path / "out", ExportOptions(filters=ExportFilters.of(roles=["generator"])))
    loaded = _load(tmp_path / "out", tmp_path)
    assert {(row["tools"], row["completion"][0]["tool_calls"]) for row in loaded} == {(None, None)}


def test_thinking_is_off_in_every_row(lake: pa.Table, tmp_path: Path) -> None:
    export("sft", "trl", lake, tmp_path / "out")
    assert set(map(str, _load(tmp_path / "out", tmp_path)["chat_template_kwargs"])) == {"{'enable_thinking': False}"}


def test_argument_objects_of_every_shape_survive(shared: Path, build: Any, tmp_path: Path) -> None:
    lines = (shared / "cases" / "tool_calls_mixed_args.jsonl").read_text("utf-8").splitlines()
    functions = [json.loads(line)["messages"][1]["tool_calls"][0]["function"] for line in lines]
    rows = [build.row(i, completion=build.call(f["name"], json.dumps(f["arguments"]))) for i, f in enumerate(functions)]
    export("sft", "trl", build.table(rows), tmp_path / "out")
    got = [r["completion"][0]["tool_calls"][0]["function"] for r in _load(tmp_path / "out", tmp_path)]
    assert got == functions
    assert [list(f["arguments"]) for f in got] == [["query"], ["start", "end"], [], ["start", "end"], ["value"], ["value"], ["t"]]


@pytest.mark.parametrize(
    "arguments",
    [
        '{"x": 23.976023976023978}',
        '{"x": 0.1, "y": 1e16, "z": -0.0}',
        '{"x": 9223372036854775807, "y": -9223372036854775808}',
        '{"x": 18446744073709551615}',
        '{"x": null, "y": [], "z": {}}',
        '{"x": "123", "y": 123, "z": "true"}',
        '{"text": "夜空 \\u2028 \\ud83d\\ude00 \\"quoted\\""}',
        "{}",
    ],
)
def test_numbers_nulls_and_texts_in_arguments_stay_what_they_are(build: Any, tmp_path: Path, arguments: str) -> None:
    other = build.row(1, completion=build.call("other", '{"x": {"deep": 1}, "foreign": true}'))
    export("sft", "trl", build.table([build.row(0, completion=build.call("set", arguments)), other]), tmp_path / "out")
    loaded = _load(tmp_path / "out", tmp_path)
    got = loaded[0]["completion"][0]["tool_calls"][0]["function"]["arguments"]
    assert repr(got) == repr(json.loads(arguments))
    exact = json.loads(loaded[0]["completion_json"])["tool_calls"][0]["function"]["arguments"]
    assert exact == arguments


def test_plain_parquet_readers_see_the_exact_text(build: Any, tmp_path: Path) -> None:
    export("sft", "trl", build.table([build.row(0, completion=build.call("set", '{"x": 1.50}'))]), tmp_path / "out")
    shard = str(tmp_path / "out" / "data" / "train-00000-of-00001.parquet")
    found = duckdb.execute("select completion[1].tool_calls[1]::varchar, license from read_parquet(?)", [shard]).fetchall()
    assert found == [('{"id":"call_1","type":"function","function":{"name":"set","arguments":{"x": 1.50}}}', "CC-BY-4.0")]


def test_the_same_rows_give_the_same_bytes_in_any_input_order(lake: pa.Table, tmp_path: Path) -> None:
    export("sft", "hf", lake, tmp_path / "one")
    export("sft", "hf", lake.take(list(reversed(range(lake.num_rows)))), tmp_path / "two")
    names = sorted(p.relative_to(tmp_path / "one") for p in (tmp_path / "one").rglob("*") if p.is_file())
    assert [str(n) for n in names] == [
        "CHANGELOG.md",
        "LICENSES/CC-BY-3.0.txt",
        "README.md",
        "croissant.json",
        "data/train-00000-of-00001.parquet",
        "data/validation-00000-of-00001.parquet",
        "manifest.json",
        "reports/audit.json",
        "reports/contamination.json",
        "reports/dedup.json",
        "schemas/manifest.schema.json",
        "schemas/row.schema.json",
        "sources.jsonl",
        "splits.json",
        "tools.json",
    ]
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


def test_held_out_projects_are_not_exported_but_stand_in_the_split_map(lake: pa.Table, tmp_path: Path) -> None:
    report = export("sft", "hf", lake, tmp_path / "out")
    assert report.rows == {"train": 23, "validation": 23}
    assert report.not_taken == {"held_out": 24, "not_verified": 2}
    assert orjson.loads((tmp_path / "out" / "splits.json").read_bytes()) == {"prj_a": "train", "prj_b": "validation", "prj_c": "held_out"}
    loaded = _load(tmp_path / "out", tmp_path), _load(tmp_path / "out", tmp_path, "validation")
    assert [set(part["source_project"]) for part in loaded] == [{"prj_a"}, {"prj_b"}]


def test_asking_for_held_out_examples_is_refused(lake: pa.Table, tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="never exported for training"):
        export("sft", "trl", lake, tmp_path / "out", ExportOptions(filters=ExportFilters.of(splits=["held_out"])))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        ({"roles": ["critic"]}, 10),
        ({"kinds": ["segments", "slots"]}, 4),
        ({"splits": ["validation"]}, 23),
        ({"verified_only": False}, 48),
        ({"licences": ["CC-BY-3.0"]}, 46),
        ({"projects": ["prj_a"]}, 23),
        ({"provenance": ["scripted"]}, 46),
    ],
)
def test_filters_take_these_many(lake: pa.Table, tmp_path: Path, filters: dict[str, Any], count: int) -> None:
    report = export("sft", "trl", lake, tmp_path / "out", ExportOptions(filters=ExportFilters.of(**filters)))
    assert sum(report.rows.values()) == count


def test_filters_that_leave_nothing_say_which_rule_took_what(lake: pa.Table, tmp_path: Path) -> None:
    options = ExportOptions(filters=ExportFilters.of(licences=["CC0"]))
    with pytest.raises(
        ConfigInvalid, match=r"none of the 72 examples passed the rules and filters \(filter_licence 46, held_out 24, not_verified 2\)"
    ):
        export("sft", "trl", lake, tmp_path / "out", options)


def test_an_unknown_filter_value_names_the_allowed_ones() -> None:
    with pytest.raises(ConfigInvalid, match="orchestrator, generator, critic"):
        ExportFilters.of(roles=["director"])


def test_a_limit_chooses_by_seed_and_keeps_the_order(lake: pa.Table, tmp_path: Path) -> None:
    def ids(seed: int, limit: int, name: str) -> list[str]:
        export("sft", "trl", lake, tmp_path / name, ExportOptions(limit=limit, seed=seed, filters=ExportFilters.of(splits=["train"])))
        return list(pq.read_table(tmp_path / name / "data", columns=["example_id"])["example_id"].to_pylist())

    everything = ids(0, 1000, "all")
    five = ids(0, 5, "five")
    assert five == ids(0, 5, "again")
    assert five == [e for e in everything if e in five]
    assert set(five) < set(ids(0, 9, "nine"))
    assert five != ids(1, 5, "other")


def test_repeated_example_ids_are_exported_once(lake: pa.Table, tmp_path: Path) -> None:
    other = pa.Table.from_pylist([row | {"trajectory_id": f"{row['trajectory_id']}_1"} for row in lake.to_pylist()], lake.schema)
    report = export("sft", "trl", pa.concat_tables([lake, lake, other]), tmp_path / "out")
    assert report.rows == {"train": 23, "validation": 23}
    assert report.not_taken["repeated"] == 92


def test_what_is_in_training_is_not_in_validation_too(build: Any, tmp_path: Path) -> None:
    same = build.call("x", "{}")
    rows = [
        build.row(0, completion=same, split="validation", project_id="prj_a", context_sha256="1" * 64),
        build.row(1, completion=same, split="validation", project_id="prj_a", context_sha256="2" * 64),
        build.row(2, completion=same, split="train", project_id="prj_b", context_sha256="1" * 64),
    ]
    report = export("sft", "trl", build.table(rows), tmp_path / "out")
    assert (report.rows, report.not_taken) == ({"train": 1, "validation": 1}, {"repeated": 1})
    assert _load(tmp_path / "out", tmp_path, "validation")["example_id"] == ["exa_0001"]


def test_shards_are_named_numbered_and_complete(lake: pa.Table, tmp_path: Path) -> None:
    export("sft", "trl", lake, tmp_path / "out", ExportOptions(rows_per_shard=10, filters=ExportFilters.of(splits=["train"])))
    shards = sorted((tmp_path / "out" / "data").iterdir())
    assert [s.name for s in shards] == [f"train-{i:05d}-of-00003.parquet" for i in range(3)]
    assert [pq.read_metadata(s).num_rows for s in shards] == [10, 10, 3]
    one = export("sft", "trl", lake, tmp_path / "whole", ExportOptions(filters=ExportFilters.of(splits=["train"])))
    assert one.rows == {"train": 23}
    assert pq.read_table(tmp_path / "out" / "data") == pq.read_table(tmp_path / "whole" / "data")


def test_the_manifest_names_every_file_with_its_digest(lake: pa.Table, tmp_path: Path) -> None:
    report = export("sft", "hf", lake, tmp_path / "out")
    manifest = orjson.loads((tmp_path / "out" / "manifest.json").read_bytes())
    assert manifest == report.model_dump(mode="json")
    on_disk = {str(p.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("*") if p.is_file()}
    assert {f["path"] for f in manifest["files"]} | {"manifest.json"} == on_disk
    for file in manifest["files"]:
        data = (tmp_path / "out" / file["path"]).read_bytes()
        assert (file["sha256"], file["size_bytes"]) == (hashlib.sha256(data).hexdigest(), len(data))
    assert {f["path"]: f["rows"] for f in manifest["files"] if f["rows"] is not None} == {
        "data/train-00000-of-00001.parquet": 23,
        "data/validation-00000-of-00001.parquet": 23,
    }


def test_the_card_declares_the_features_that_datasets_sees(lake: pa.Table, tmp_path: Path) -> None:
    export("sft", "trl", lake, tmp_path / "out")
    head = yaml.safe_load((tmp_path / "out" / "README.md").read_text("utf-8").split("---\n")[1])
    assert head["license"] == "cc-by-3.0"
    assert head["configs"] == [
        {
            "config_name": "sft",
            "default": True,
            "data_files": [
                {"split": "train", "path": "data/train-*.parquet"},
                {"split": "validation", "path": "data/validation-*.parquet"},
            ],
        }
    ]


@pytest.mark.parametrize("kind", list(TABLES))
def test_every_table_declares_what_datasets_sees(kind: str) -> None:
    table = TABLES[kind]
    assert datasets.Features.from_arrow_schema(table.schema)._to_yaml_list() == table.features_yaml()
    assert all(table.docs.values())


def test_mixed_licences_are_said_to_be_per_row(build: Any, tmp_path: Path) -> None:
    rows = [build.row(i, completion=build.call("x", "{}"), licence=name) for i, name in enumerate(("cc by 4.0", "unknown"))]
    export("sft", "trl", build.table(rows), tmp_path / "out")
    assert "license: other\nlicense_name: per-row\n" in (tmp_path / "out" / "README.md").read_text("utf-8")
    loaded = _load(tmp_path / "out", tmp_path)
    assert [(r["license"], r["license_given"]) for r in loaded] == [("CC-BY-4.0", "cc by 4.0"), ("NOASSERTION", "unknown")]
    assert sorted(p.name for p in (tmp_path / "out" / "LICENSES").iterdir()) == ["CC-BY-4.0.txt", "NOASSERTION.txt"]
    assert "https://creativecommons.org/licenses/by/4.0/legalcode" in (tmp_path / "out" / "LICENSES" / "CC-BY-4.0.txt").read_text("utf-8")


def test_sources_carry_licence_and_attribution(lake: pa.Table, tmp_path: Path) -> None:
    export("sft", "trl", lake, tmp_path / "out")
    lines = [orjson.loads(line) for line in (tmp_path / "out" / "sources.jsonl").read_bytes().splitlines()]
    assert lines[0] == {
        "source_project": "prj_a",
        "split": "train",
        "license": "CC-BY-3.0",
        "attribution": "Walter Lewin",
        "examples_in_lake": 24,
    }
    assert [line["source_project"] for line in lines] == ["prj_a", "prj_b"]


def test_a_duckdb_connection_serves_as_well_as_a_table(lake: pa.Table, tmp_path: Path) -> None:
    connection = duckdb.connect()
    connection.register("examples", lake)
    one, two = export("sft", "trl", connection, tmp_path / "one"), export("sft", "trl", lake, tmp_path / "two")
    assert one == two


def test_something_at_the_target_is_never_overwritten(lake: pa.Table, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious").write_text("x")
    with pytest.raises(ConfigInvalid, match="output_exists"):
        export("sft", "trl", lake, tmp_path / "out")
    shutil.rmtree(tmp_path / "out")
    (tmp_path / "out").mkdir()
    export("sft", "trl", lake, tmp_path / "out")
    assert (tmp_path / "out" / "manifest.json").is_file()


def test_token_sums_are_reported(build: Any, tmp_path: Path) -> None:
    rows = [build.row(i, completion=build.call("x", f'{{"a":{i}}}')) for i in range(3)]
    report = export("sft", "trl", build.table(rows), tmp_path / "out")
    assert (report.prompt_tokens, report.completion_tokens) == (300, 30)
    rows[1] |= {"prompt_tokens": None}
    assert export("sft", "trl", build.table(rows), tmp_path / "two").prompt_tokens is None


def test_an_empty_lake_is_said_to_be_empty(build: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="the lake has no examples"):
        export("sft", "trl", build.table([]), tmp_path / "out")
