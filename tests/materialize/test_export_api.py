"""The registry of exports, the OpenAI lines, and failures on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from materialize.export import writing
from materialize.export.api import REFUSED, WRITES, Consumer, ExportKind, checked, export, writes
from materialize.export.reference import PAGE, page
from schemas.errors import ConfigInvalid, StorageFault, StorageFull
from storage import durable


@pytest.mark.parametrize(
    ("kind", "consumer", "code", "said"),
    [
        ("sft", "word", "export_unknown", "allowed: hf, trl"),
        ("poem", "trl", "export_unknown", "allowed: sft, rft"),
        ("pref", "nemo-gym", "export_senseless", "nemo-gym is written rl; pref is written for hf, trl, llamafactory, swift, openai-jsonl"),
        ("rl", "llamafactory", "export_senseless", "rl is written for hf, trl, verl, nemo-gym, skyrl"),
        ("benchmark", "trl", "export_senseless", "benchmark is written for hf"),
    ],
)
def test_a_combination_that_is_not_written_is_refused_with_those_that_are(kind: str, consumer: str, code: str, said: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        checked(kind, consumer)
    assert caught.value.code == code
    assert said in caught.value.next_step


@pytest.mark.parametrize("kind", list(ExportKind))
@pytest.mark.parametrize("consumer", list(Consumer))
def test_every_combination_is_either_written_or_refused_with_a_reason_of_its_own(kind: ExportKind, consumer: Consumer) -> None:
    if writes(kind, consumer):
        assert (kind, consumer) not in REFUSED
        assert WRITES[consumer][0](kind.value).name == consumer.value
    else:
        reason = REFUSED[kind, consumer]
        assert len(reason) > 40
        assert not any(word in reason for word in ("not yet", "this release", "TODO", "missing"))


def test_the_page_of_exports_is_that_of_the_registry() -> None:
    text = PAGE.read_text("utf-8")
    assert page(text) == text, "run: python -m materialize.export.reference"


def test_the_help_of_the_command_names_every_kind_and_consumer() -> None:
    from typer.testing import CliRunner

    from jobs.cli import app

    shown = " ".join(CliRunner().invoke(app, ["export", "--help"], env={"COLUMNS": "200"}).output.split())
    assert [k.value for k in ExportKind if k.value not in shown] == []
    assert [c.value for c in Consumer if c.value not in shown] == []


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
    seen: list[tuple[str, str]] = []
    monkeypatch.setattr(durable, "fault_point", lambda operation, path: seen.append((operation, path)))
    report = export("sft", "trl", build.table([build.row(0, completion=build.call("x", "{}"))]), tmp_path / "out")
    published = next(i for i, (operation, path) in enumerate(seen) if operation == "rename" and path.endswith(str(tmp_path / "out")))
    synced = [path for operation, path in seen[:published] if operation == "fsync"]
    for name in [*(f.path for f in report.files), "manifest.json"]:
        assert str(tmp_path / ".tmp-out" / "export" / name) in synced


def test_progress_is_told_shard_by_shard(build: Any, tmp_path: Path) -> None:
    from materialize.export.options import ExportOptions

    notes: list[str] = []
    rows = [build.row(i, completion=build.call("x", f'{{"a":{i}}}')) for i in range(5)]
    export("sft", "trl", build.table(rows), tmp_path / "out", ExportOptions(rows_per_shard=2), notes.append)
    assert notes == [
        "train: shard 1 of 3, 2 of 5 rows",
        "train: shard 2 of 3, 4 of 5 rows",
        "train: shard 3 of 3, 5 of 5 rows",
    ]


def test_a_batch_border_inside_a_shard_loses_nothing(build: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "BATCH", 2)
    rows = [build.row(i, completion=build.call("x", f'{{"a":{i}}}')) for i in range(5)]
    report = export("sft", "openai-jsonl", build.table(rows), tmp_path / "out")
    lines = (tmp_path / "out" / "train.jsonl").read_bytes().splitlines()
    assert [orjson.loads(line)["messages"][-1]["tool_calls"][0]["function"]["arguments"] for line in lines] == [
        f'{{"a":{i}}}' for i in range(5)
    ]
    assert report.rows == {"train": 5}
