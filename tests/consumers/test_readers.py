"""Readers that are no trainers of their own take the exports: verl's prompts (E), Harbor (J), NeMo Gym, SkyRL,
OpenAI's SDK, and Croissant and the Model Context Protocol (K)."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from materialize.export.api import export
from storage.lake import Lake
from tests.consumers.cases import CASES
from tests.consumers.conftest import python_of, run_script
from tests.materialize.real_lake import make_lake
from tests.materialize.test_export_compared import connect, tables  # noqa: F401 - a fixture
from tests.materialize.test_groups import world  # noqa: F401 - a fixture

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake that real tools made."""
    return make_lake(tmp_path_factory.mktemp("readers")).lake.root


@pytest.fixture(scope="module")
def sets(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for each (kind, consumer) below, of that lake."""
    root = tmp_path_factory.mktemp("read")
    lake = Lake(place, create=False)
    connection = lake.connect()
    for kind, consumer in (("sft", "atif"), ("rl", "nemo-gym"), ("rl", "skyrl"), ("sft", "hf"), ("rl", "verl")):
        export(kind, consumer, connection, root / consumer, store=lake.store)
    connection.close()
    return root


def test_harbor_reads_every_episode(sets: Path) -> None:
    found = run_script("harbor", "read_sets.py", "atif", sets / "atif")
    assert [(r["version"], r["steps"] > 20) for r in found] == [("ATIF-v1.7", True)] * 2


def test_nemo_gym_reads_every_start(sets: Path) -> None:
    found = run_script("nemo-gym", "read_sets.py", "nemo_gym", sets / "nemo-gym")
    assert len(found) > 10
    assert {tuple(r["input"]) for r in found} == {("system", "user")}
    assert {len(r["tools"]) for r in found} == {13}


def test_skyrl_reads_every_start(sets: Path, tokenizers: Path) -> None:
    found = run_script("skyrl", "read_sets.py", "skyrl", sets / "skyrl", tokenizers / "qwen3")
    assert len(found) > 10
    assert {(tuple(r["roles"]), r["env_class"]) for r in found} == {(("system", "user"), "workprint")}


def test_croissant_metadata_is_valid(sets: Path) -> None:
    (found,) = run_script("croissant", "read_sets.py", "croissant", sets / "hf")
    assert found["errors"] == []


def test_verl_reads_every_start(sets: Path, tokenizers: Path) -> None:
    found = run_script("verl", "verl_sets.py", "rl", sets / "verl", tokenizers / "qwen3")
    assert len(found) > 10
    assert {(tuple(r["prompt"]), r["agent"], r["loop"]) for r in found} == {(("system", "user"), "workprint", "workprint")}
    assert {len(r["sha256"]) for r in found} == {64}


def test_openais_types_take_every_supervised_line(exported: Callable[[str], Path]) -> None:
    """Fine-tuning asks for more than the types: an answer at the end, and calls of tools that the line names, with arguments as JSON."""
    found = run_script("openai", "read_sets.py", "openai", exported("openai-jsonl"))
    assert [(r["roles"], r["said"]) for r in found] == [(["system", "user", "assistant"], [1])] * len(CASES)
    answers = [list(case.answer) if case.is_call else case.answer for case in CASES]
    assert [r["calls"][0][0] if r["calls"][0] else r["content"][0] for r in found] == answers
    assert all(name in r["tools"] for r in found for name, _ in r["calls"][0])


def test_openais_types_take_every_pair(tables: dict[str, pa.Table], tmp_path: Path) -> None:  # noqa: F811
    groups: duckdb.DuckDBPyConnection = connect(tables)
    export("pref", "openai-jsonl", groups, tmp_path / "pref")
    found = run_script("openai", "read_sets.py", "openai", tmp_path / "pref")
    assert len(found) > 3
    assert {(tuple(r["roles"]), tuple(r["said"])) for r in found} == {(("system", "user"), (1, 1))}
    assert all(r["calls"][0] != r["calls"][1] or r["content"][0] != r["content"][1] for r in found)


def test_the_official_mcp_client_finishes_a_film(place: Path, tmp_path: Path) -> None:
    """From the state before the last call, with one call that is refused on the way."""
    python_of("mcp")
    ((snapshot,),) = (
        Lake(place, create=False).query("select snapshot_before from calls where tool = 'stitch_video' order by all limit 1").rows
    )
    record = tmp_path / "run.json"
    command = str(Path(sys.executable).with_name("workprint"))
    server = [command, "mcp", "--lake", str(place), "--snapshot", snapshot, "--record", str(record)]
    (tmp_path / "server.json").write_text(json.dumps(server))
    calls: list[tuple[str, Any]] = [("look", {}), ("compose_timeline", {"shots": 5}), ("stitch_video", {})]
    (tmp_path / "calls.json").write_text(json.dumps(calls))
    listed, look, refused, last = run_script("mcp", "read_sets.py", "mcp", tmp_path)
    assert (len(listed["tools"]), listed["tools"][-2:], set(listed["schemas"])) == (15, ["give_content", "look"], {"object"})
    assert look["text"].startswith("# Task")
    assert [r["error"] for r in (look, refused, last)] == [False, True, False]
    assert "unknown_argument" in refused["text"]
    assert last["text"] == "The run is over: delivered."
    assert json.loads(record.read_bytes())["outcome"] == "delivered"


def test_openais_types_refuse_arguments_that_are_no_text(tmp_path: Path) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "cut", "arguments": {}}}
    answer = {"role": "assistant", "content": "", "tool_calls": [call]}
    (tmp_path / "train.jsonl").write_text(json.dumps({"messages": [{"role": "user", "content": "Cut."}, answer]}))
    python_of("openai")
    with pytest.raises(AssertionError, match="string_type"):
        run_script("openai", "read_sets.py", "openai", tmp_path)
