"""The registry of exports, the OpenAI lines, and failures on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from materialize.export import sft
from materialize.export.api import EXPORTERS, Consumer, ExportKind, export, exporter
from schemas.errors import ConfigInvalid, StorageFault, StorageFull
from storage import durable


@pytest.mark.parametrize(
    ("kind", "consumer", "code"),
    [
        ("sft", "word", "export_unknown"),
        ("poem", "trl", "export_unknown"),
        ("pref", "nemo-gym", "export_senseless"),
        ("rl", "llamafactory", "export_senseless"),
        ("kto", "atif", "export_senseless"),
        ("rft", "trl", "export_missing"),
        ("sft", "verl", "export_missing"),
        ("benchmark", "hf", "export_missing"),
    ],
)
def test_a_combination_that_is_not_there_is_refused_with_those_that_are(kind: str, consumer: str, code: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        exporter(kind, consumer)
    assert caught.value.code == code
    assert ("sft --to trl" if code != "export_unknown" else "allowed: ") in caught.value.next_step


def test_every_combination_either_works_or_is_refused_in_words() -> None:
    for kind in ExportKind:
        for consumer in Consumer:
            if (kind, consumer) in EXPORTERS:
                assert callable(exporter(kind.value, consumer.value))
            else:
                with pytest.raises(ConfigInvalid):
                    exporter(kind.value, consumer.value)


def test_openai_lines_hold_arguments_as_text(build: Any, tmp_path: Path) -> None:
    rows = [
        build.row(0, completion=build.call("trim", '{"start": 1.50}')),
        build.row(1, completion={"role": "assistant", "content": "{}"}, role="generator", tools_json="[]"),
    ]
    export("sft", "openai-jsonl", build.table(rows), tmp_path / "out")
    first, second = (orjson.loads(line) for line in (tmp_path / "out" / "train.jsonl").read_bytes().split(b"\n")[:-1])
    assert first["messages"][-1] == {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "trim", "arguments": '{"start": 1.50}'}}],
    }
    assert (first["tools"], first["parallel_tool_calls"]) == (build.tools, False)
    assert second == {
        "messages": [{"role": "system", "content": "Edit."}, {"role": "user", "content": "go"}, {"role": "assistant", "content": "{}"}]
    }
    origins = [orjson.loads(line) for line in (tmp_path / "out" / "train.origins.jsonl").read_bytes().splitlines()]
    assert [(o["example_id"], o["license"]) for o in origins] == [("exa_0000", "CC-BY-4.0"), ("exa_0001", "CC-BY-4.0")]


def test_openai_lines_are_lines_for_every_reader(build: Any, tmp_path: Path) -> None:
    text = "a\u2028b\u2029c\x85d\r\ne\x0bf\x1cg"
    export("sft", "openai-jsonl", build.table([build.row(0, completion={"role": "assistant", "content": text})]), tmp_path / "out")
    lines = (tmp_path / "out" / "train.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == 1
    assert orjson.loads(lines[0])["messages"][-1]["content"] == text


def test_a_full_disk_is_a_storage_error_and_leaves_nothing(build: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(operation: str, path: str) -> None:
        if operation == "fsync":
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(durable, "fault_point", full)
    with pytest.raises(StorageFull):
        export("sft", "trl", build.table([build.row(0, completion=build.call("x", "{}"))]), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_rename_leaves_nothing(build: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(operation: str, path: str) -> None:
        if operation == "rename":
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(durable, "fault_point", broken)
    with pytest.raises(StorageFault):
        export("sft", "trl", build.table([build.row(0, completion=build.call("x", "{}"))]), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_every_file_is_synced_before_the_folder_appears(build: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(durable, "fault_point", lambda operation, path: seen.append(operation))
    report = export("sft", "trl", build.table([build.row(0, completion=build.call("x", "{}"))]), tmp_path / "out")
    assert seen.count("fsync") == len(report.files) + 1
    assert max(i for i, s in enumerate(seen) if s == "fsync") < seen.index("rename")


def test_progress_is_told_shard_by_shard(build: Any, tmp_path: Path) -> None:
    from materialize.export.options import ExportOptions

    notes: list[str] = []
    rows = [build.row(i, completion=build.call("x", f'{{"a":{i}}}')) for i in range(5)]
    export("sft", "trl", build.table(rows), tmp_path / "out", ExportOptions(rows_per_shard=2), notes.append)
    assert notes == [
        "train: shard 1 of 3, 2 of 5 examples",
        "train: shard 2 of 3, 4 of 5 examples",
        "train: shard 3 of 3, 5 of 5 examples",
    ]


def test_a_batch_border_inside_a_shard_loses_nothing(build: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sft, "BATCH", 2)
    rows = [build.row(i, completion=build.call("x", f'{{"a":{i}}}')) for i in range(5)]
    report = export("sft", "openai-jsonl", build.table(rows), tmp_path / "out")
    lines = (tmp_path / "out" / "train.jsonl").read_bytes().splitlines()
    assert [orjson.loads(line)["messages"][-1]["tool_calls"][0]["function"]["arguments"] for line in lines] == [
        f'{{"a":{i}}}' for i in range(5)
    ]
    assert report.rows == {"train": 5}
