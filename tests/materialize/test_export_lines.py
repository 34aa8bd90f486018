"""Lines for LLaMA-Factory, ms-swift and Axolotl: literal rows, and what their forms cannot say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from materialize.export.api import export
from materialize.export.options import ExportOptions
from schemas.errors import ExportRefused

CONTENT = {"role": "assistant", "content": '{"queries":[]}'}


def lines(folder: Path, name: str = "train.jsonl") -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (folder / name).read_bytes().split(b"\n")[:-1]]


def exported(build: Any, tmp_path: Path, consumer: str) -> tuple[list[dict[str, Any]], Path]:
    rows = [
        build.row(0, completion=build.call("trim", '{"start": 1.50, "zh": "夜"}')),
        build.row(1, completion=CONTENT, role="generator", tools_json="[]"),
    ]
    export("sft", consumer, build.table(rows), tmp_path / "out")
    return lines(tmp_path / "out"), tmp_path / "out"


def test_llamafactory_takes_sharegpt_with_the_call_as_exact_text(build: Any, tmp_path: Path) -> None:
    (call, content), folder = exported(build, tmp_path, "llamafactory")
    assert call["conversations"] == [
        {"from": "human", "value": "go"},
        {"from": "function_call", "value": '{"name": "trim", "arguments": {"start": 1.50, "zh": "夜"}}'},
    ]
    assert call["system"] == "Edit."
    assert orjson.loads(call["tools"]) == [t["function"] for t in build.tools]
    assert content["conversations"][1] == {"from": "gpt", "value": '{"queries":[]}'}
    assert content["tools"] == ""
    assert orjson.loads((folder / "dataset_info.json").read_bytes()) == {
        "workprint": {
            "file_name": "train.jsonl",
            "formatting": "sharegpt",
            "columns": {"messages": "conversations", "system": "system", "tools": "tools"},
        }
    }


def test_swift_takes_the_call_as_a_message_of_its_own(build: Any, tmp_path: Path) -> None:
    (call, content), _ = exported(build, tmp_path, "swift")
    assert call["messages"] == [
        {"role": "system", "content": "Edit."},
        {"role": "user", "content": "go"},
        {"role": "tool_call", "content": '{"name": "trim", "arguments": {"start": 1.50, "zh": "夜"}}', "loss": True},
    ]
    assert orjson.loads(call["tools"]) == build.tools
    assert content["messages"][-1] == {"role": "assistant", "content": '{"queries":[]}', "loss": True}
    assert "tools" not in content


def test_axolotl_takes_arguments_and_tools_as_text(build: Any, tmp_path: Path) -> None:
    (call, content), folder = exported(build, tmp_path, "axolotl")
    assert call["messages"][-1]["tool_calls"][0]["function"] == {"name": "trim", "arguments": '{"start": 1.50, "zh": "夜"}'}
    assert orjson.loads(call["tools"]) == build.tools
    assert (content["messages"][-1], content["tools"]) == (CONTENT, "[]")
    config = yaml.safe_load((folder / "axolotl.yaml").read_text())
    assert config["datasets"][0]["path"] == "train.jsonl"
    assert config["datasets"][0]["roles_to_train"] == ["assistant"]


@pytest.mark.parametrize("consumer", ["llamafactory", "swift"])
def test_text_beside_a_call_is_refused_where_the_form_would_lose_it(build: Any, tmp_path: Path, consumer: str) -> None:
    both = build.call("trim", "{}") | {"content": "I trim."}
    table = build.table([build.row(0, completion=both), build.row(1, completion=CONTENT)])
    with pytest.raises(ExportRefused, match="exa_0000: text_beside_call"):
        export("sft", consumer, table, tmp_path / "out")
    report = export("sft", consumer, table, tmp_path / "out", ExportOptions(bad_rows="leave_out"))
    assert (report.rows, [b.example_id for b in report.left_out]) == ({"train": 1}, ["exa_0000"])


def test_several_shards_are_named_one_by_one(build: Any, tmp_path: Path) -> None:
    table = build.table([build.row(i, completion=CONTENT, user=f"go {i}") for i in range(3)])
    export("sft", "llamafactory", table, tmp_path / "out", ExportOptions(rows_per_shard=2))
    info = orjson.loads((tmp_path / "out" / "dataset_info.json").read_bytes())
    assert {k: v["file_name"] for k, v in info.items()} == {
        "workprint_00000": "train-00000-of-00002.jsonl",
        "workprint_00001": "train-00001-of-00002.jsonl",
    }
