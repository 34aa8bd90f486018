"""The canonical folder of every kind: loaded by name, described as it is, every row as its schema says, every number counted again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from jsonschema import Draft202012Validator

from materialize.export.api import export
from materialize.export.options import ExportOptions
from materialize.export.tables import TABLES
from materialize.leakage import GRAM
from tests.materialize.test_export_kinds import admitted, connect, tables, turns  # noqa: F401 - a fixture
from tests.materialize.test_groups import World, world  # noqa: F401 - a fixture

KINDS = sorted(TABLES)
WORDS = " ".join(f"word{i}" for i in range(GRAM + 3))
"""Narration that a training project shares with a held-out one."""
SPLIT = "regexp_extract(filename, 'data/([a-z_]+)-', 1)"
"""The split of a row, by the name of its file."""


@pytest.fixture(scope="module")
def lake(tables: dict[str, list[dict[str, Any]]]) -> duckdb.DuckDBPyConnection:  # noqa: F811
    """The run thrice: to train on (and again under other names, which is repetition), held out, and once with the held-out one's words."""
    run, project = tables["trajectories"][0]["trajectory_id"], tables["projects"][0]["project_id"]

    def copied(name: str, tag: str, **more: Any) -> list[dict[str, Any]]:
        own = {"trajectory_id": f"{run}{tag}", "project_id": f"{project}{tag}", "example_id": None} | more
        return [
            row | {k: v for k, v in own.items() if k in row and v is not None}
            | ({"example_id": row["example_id"] + tag} if "example_id" in row else {})
            for row in tables[name]
        ]  # fmt: skip

    rows = dict(tables)
    rows["examples"] = [
        *tables["examples"],
        *copied("examples", "_again", project_id=project),
        *copied("examples", "_held", split="held_out", context_sha256="9" * 64),
        *copied("examples", "_alike", context_sha256="8" * 64),
    ]
    rows["trajectories"] = [*tables["trajectories"], *(r for t in ("_again", "_held", "_alike") for r in copied("trajectories", t))]
    rows["calls"] = [
        *tables["calls"],
        *copied("calls", "_held"),
        *(r | {"trajectory_id": f"{run}_held2"} for r in copied("calls", "_held")),
    ]
    rows["trajectories"] += [r | {"trajectory_id": f"{run}_held2"} for r in copied("trajectories", "_held")]
    rows["projects"] = [*tables["projects"], *copied("projects", "_held", split="held_out"), *copied("projects", "_alike")]
    rows["storyboards"] = [
        *tables["storyboards"],
        *copied("storyboards", "_held", script=WORDS),
        *copied("storyboards", "_alike", script=WORDS),
    ]
    rows["rft"] = admitted(tables, run)
    rows["distillation"] = turns(tables)
    con = connect(rows)
    con.execute(
        "create table audits as select * from (values ('trajectory', true, 4, 7), ('trajectory', false, 4, 7), ('example', true, 30, 7))"
        " t(kind, equal, stored, seed)"
    )
    con.execute("create table splits as select unnest([$1 || '_alike', $1]) project_id, $1 group_id", [project])
    return con


@pytest.fixture(scope="module")
def folders(lake: duckdb.DuckDBPyConnection, world: World, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:  # noqa: F811
    """A folder of each kind, in shards of seven rows."""
    root = tmp_path_factory.mktemp("canonical")
    options = ExportOptions(rows_per_shard=7, bad_rows="leave_out")
    for kind in KINDS:
        export(kind, "hf", lake, root / kind, options, store=world.bench.store)
    return {kind: root / kind for kind in KINDS}


@pytest.fixture
def datasets(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import datasets

    return datasets


def read(folder: Path, name: str) -> Any:
    return orjson.loads((folder / name).read_bytes())


def shards(folder: Path) -> list[Path]:
    return sorted((folder / "data").glob("*.parquet"))


def counted(folder: Path, column: str) -> dict[str, int]:
    """Rows by the value of a column, counted by DuckDB in the files."""
    sql = f"select {column}, count(*) from read_parquet('{folder}/data/*.parquet', filename=true) group by 1 order by 1"  # noqa: S608
    return dict(duckdb.sql(sql).fetchall())


@pytest.mark.parametrize("kind", KINDS)
def test_a_configuration_is_loaded_by_its_name(folders: dict[str, Path], kind: str, datasets: Any, tmp_path: Path) -> None:
    folder = folders[kind]
    assert datasets.get_dataset_config_names(str(folder)) == [kind]
    loaded = datasets.load_dataset(str(folder), kind, cache_dir=str(tmp_path))
    assert {split: len(rows) for split, rows in loaded.items()} == read(folder, "manifest.json")["rows"]
    assert {split: rows.column_names for split, rows in loaded.items()} == {s: [c.name for c in TABLES[kind].columns] for s in loaded}


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_is_as_its_schema_says(folders: dict[str, Path], kind: str, datasets: Any, tmp_path: Path) -> None:
    schema = read(folders[kind], "schemas/row.schema.json")
    Draft202012Validator.check_schema(schema)
    check = Draft202012Validator(schema)
    loaded = datasets.load_dataset(str(folders[kind]), kind, cache_dir=str(tmp_path))
    bad = [f"{error.json_path}: {error.message[:200]}" for rows in loaded.values() for row in rows for error in check.iter_errors(row)]
    assert bad == []
    assert sum(map(len, loaded.values())) > 0
    broken = next(iter(loaded.values()))[0] | {"source_project": 3, "else": 1}
    assert len(list(check.iter_errors(broken))) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_the_manifest_is_as_its_schema_says(folders: dict[str, Path], kind: str) -> None:
    check = Draft202012Validator(read(folders[kind], "schemas/manifest.schema.json"))
    assert [e.message for e in check.iter_errors(read(folders[kind], "manifest.json"))] == []


@pytest.mark.parametrize("kind", KINDS)
def test_croissant_names_the_files_and_columns_as_they_are(folders: dict[str, Path], kind: str) -> None:
    folder = folders[kind]
    told = read(folder, "croissant.json")
    files = {f["@id"]: f for f in told["distribution"]}
    assert sorted(files) == [str(p.relative_to(folder)) for p in shards(folder)]
    for path in shards(folder):
        file = files[str(path.relative_to(folder))]
        assert file["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert file["contentSize"] == f"{path.stat().st_size} B"
    kinds = {"sc:Text": pa.string(), "sc:Integer": pa.int64(), "sc:Float": pa.float64(), "sc:Boolean": pa.bool_()}
    for record in told["recordSet"]:
        (name,) = {field["source"]["fileObject"]["@id"] for field in record["field"]}
        schema = pq.read_schema(folder / name)
        assert record["description"] == f"{pq.read_metadata(folder / name).num_rows} rows."
        plain = [f.name for f in schema if f.type in kinds.values()]
        assert [f["source"]["extract"]["column"] for f in record["field"]] == plain
        assert [kinds[f["dataType"]] for f in record["field"]] == [schema.field(n).type for n in plain]
    assert len(told["recordSet"]) == len(files)


@pytest.mark.parametrize("kind", KINDS)
def test_the_manifests_numbers_are_those_of_the_files(folders: dict[str, Path], kind: str) -> None:
    folder = folders[kind]
    told = read(folder, "manifest.json")
    assert told["rows"] == counted(folder, SPLIT)
    assert told["by_role"] == counted(folder, "'orchestrator'" if kind == "benchmark" else "role")
    if kind != "groups":  # whose rows tell the tool instead
        assert told["by_kind"] == counted(folder, {"opd": "turn_owner", "benchmark": "'start'"}.get(kind, "kind"))
    assert sum(told["by_licence"].values()) == sum(told["by_kind"].values()) == sum(told["rows"].values())
    assert told["projects"] == dict(name.split() for name in counted(folder, f"source_project || ' ' || {SPLIT}"))
    on_disk = {str(p.relative_to(folder)): p for p in folder.rglob("*") if p.is_file() and p.name != "manifest.json"}
    assert sorted(f["path"] for f in told["files"]) == sorted(on_disk)
    for file in told["files"]:
        path = on_disk[file["path"]]
        assert (file["sha256"], file["size_bytes"]) == (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_size)
        assert file["rows"] == (pq.read_metadata(path).num_rows if path.suffix == ".parquet" else None)
    licences = counted(folder, "license")
    assert {p.stem for p in (folder / "LICENSES").iterdir()} == set(licences)


@pytest.mark.parametrize("kind", KINDS)
def test_every_tool_schema_of_a_row_stands_in_the_registry(folders: dict[str, Path], kind: str) -> None:
    folder = folders[kind]
    listed = [entry["sha256"] for entry in read(folder, "tools.json")]
    assert listed == read(folder, "manifest.json")["tool_registries"]
    names = pq.read_schema(shards(folder)[0]).names
    if "tools_sha256" in names:
        assert {sha for sha in counted(folder, "tools_sha256") if sha} - {hashlib.sha256(b"[]").hexdigest()} <= set(listed)
    else:
        assert bool(listed) == (True in counted(folder, "tools is not null"))


def test_what_repetition_took_is_counted_in_the_lake(folders: dict[str, Path], lake: duckdb.DuckDBPyConnection) -> None:
    told = read(folders["sft"], "reports/dedup.json")
    twice = "split <> 'held_out' and trajectory_id like '%_again'"
    again = lake.execute(f"select example_id from examples where {twice} order by 1").fetchall()  # noqa: S608
    assert told["rows_left_out"] == len(again) == read(folders["sft"], "manifest.json")["not_taken"]["repeated"]
    assert told["left_out_for"] == {name: name.removesuffix("_again") for (name,) in again}
    assert (told["rule"], len(told["near_duplicate_projects"])) == ("equal context and completion", 1)


def test_a_beginning_that_two_runs_share_is_told_as_repetition(folders: dict[str, Path]) -> None:
    told = read(folders["benchmark"], "reports/dedup.json")
    assert (told["rows_left_out"], told["left_out_for"]) == (1, {})
    assert told["rule"].startswith("equal context")
    assert read(folders["benchmark"], "manifest.json")["not_taken"] == {"repeated": 1}


def test_what_contamination_took_is_counted_in_the_lake(folders: dict[str, Path], lake: duckdb.DuckDBPyConnection) -> None:
    told = read(folders["sft"], "reports/contamination.json")
    grams = len(WORDS.split()) - GRAM + 1
    (overlap,) = told["left_out"]
    assert (overlap["grams"], overlap["held_out"].removesuffix("_held"), told["checked"]) == (
        grams,
        overlap["project_id"].removesuffix("_alike"),
        True,
    )
    ((lost,),) = lake.execute("select count(*) from examples where project_id like '%_alike' and verified").fetchall()
    assert read(folders["sft"], "manifest.json")["not_taken"]["contaminated"] == lost > 0
    assert not any("_alike" in project for project in counted(folders["sft"], "source_project"))


def test_the_audits_numbers_are_those_of_the_table(folders: dict[str, Path]) -> None:
    assert read(folders["sft"], "reports/audit.json") == {
        "run": True,
        "kinds": {"trajectory": {"audited": 2, "equal": 1, "stored": 4}, "example": {"audited": 1, "equal": 1, "stored": 30}},
    }


def _head(folder: Path) -> Any:
    return yaml.safe_load((folder / "README.md").read_text("utf-8").split("---\n")[1])


@pytest.mark.parametrize("kind", KINDS)
def test_the_cards_numbers_are_those_of_the_files(folders: dict[str, Path], kind: str) -> None:
    text = (folders[kind] / "README.md").read_text("utf-8")
    for column in (SPLIT, SPLIT if kind == "benchmark" else "role"):
        for value, rows in counted(folders[kind], column).items():
            assert f"| {value} | {rows} |" in text
    repeated = read(folders[kind], "manifest.json")["not_taken"].get("repeated", 0)
    assert f"- Repetition: {repeated} rows were left out" in text
    assert _head(folders[kind])["configs"][0]["config_name"] == kind


def _texts(value: Any) -> Iterator[str]:
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(part)
    if isinstance(value, str):
        yield value


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_of_a_description_is_empty(folders: dict[str, Path], kind: str) -> None:
    described = [json.loads((folders[kind] / name).read_text("utf-8")) for name in ("croissant.json", "schemas/row.schema.json")]
    assert all(text.strip() for one in described for text in _texts(one))
