"""A killed export goes on behind its finished shards, ends with the same bytes, and disturbs nobody."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from materialize.export import parquet_folder, sft
from materialize.export.api import export
from materialize.export.options import ExportOptions
from schemas.errors import LockHeld, StorageFull

OPTIONS = ExportOptions(rows_per_shard=2)

KILLED = """
import os, sys
from pathlib import Path
import pyarrow.parquet as pq
from materialize.export.api import export
from materialize.export.options import ExportOptions

def note(text):
    if "shard 2 of" in text:
        os.kill(os.getpid(), 9)

export("sft", sys.argv[3], pq.read_table(sys.argv[1]), Path(sys.argv[2]), ExportOptions(rows_per_shard=2), note)
"""


@pytest.fixture
def rows(build: Any) -> pa.Table:
    return build.table([build.row(i, completion=build.call("x", f'{{"a": {i}}}')) for i in range(7)])


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Examples that were read and checked."""
    seen: list[str] = []
    whole = sft.conversation

    def counted(row: dict[str, Any]) -> Any:
        seen.append(row["example_id"])
        return whole(row)

    monkeypatch.setattr(sft, "conversation", counted)
    return seen


def content(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def killed(rows: pa.Table, tmp_path: Path, consumer: str = "hf") -> Path:
    """An export that is killed after its second shard of four."""
    pq.write_table(rows, tmp_path / "rows.parquet")
    out = tmp_path / "out"
    root = Path(sft.__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "rows.parquet"), str(out), consumer],
        env={**os.environ, "PYTHONPATH": str(root)},
        cwd=root,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert not out.exists()
    return out


@pytest.mark.parametrize("consumer", ["hf", "swift"])
def test_a_killed_export_goes_on_behind_its_finished_shards(rows: pa.Table, tmp_path: Path, reads: list[str], consumer: str) -> None:
    out = killed(rows, tmp_path, consumer)
    notes: list[str] = []
    report = export("sft", consumer, rows, out, OPTIONS, notes.append)
    assert [n.endswith("(was there)") for n in notes] == [True, True, False, False]
    assert reads == ["exa_0004", "exa_0005", "exa_0006"]
    assert report == export("sft", consumer, rows, tmp_path / "whole", OPTIONS)
    assert content(out) == content(tmp_path / "whole")
    assert not (tmp_path / ".tmp-out").exists()


def test_a_damaged_shard_is_written_again(rows: pa.Table, tmp_path: Path, reads: list[str]) -> None:
    out = killed(rows, tmp_path)
    shard = tmp_path / ".tmp-out" / "export" / "data" / "train-00000-of-00004.parquet"
    shard.write_bytes(shard.read_bytes()[:-1] + b"x")
    export("sft", "hf", rows, out, OPTIONS)
    assert reads[:2] == ["exa_0000", "exa_0001"]
    assert "exa_0002" not in reads
    export("sft", "hf", rows, tmp_path / "whole", OPTIONS)
    assert content(out) == content(tmp_path / "whole")


@pytest.mark.parametrize("changed", ["options", "rows", "consumer"])
def test_another_export_into_the_same_place_begins_anew(rows: pa.Table, build: Any, tmp_path: Path, reads: list[str], changed: str) -> None:
    out = killed(rows, tmp_path)
    more = build.table([build.row(i, completion=build.call("x", f'{{"a": {i}}}'), licence="MIT") for i in range(7)])
    options = ExportOptions(rows_per_shard=2, seed=1) if changed == "options" else OPTIONS
    consumer, table = ("trl" if changed == "consumer" else "hf"), (more if changed == "rows" else rows)
    export("sft", consumer, table, out, options)
    assert len(reads) == 7
    export("sft", consumer, table, tmp_path / "whole", options)
    assert content(out) == content(tmp_path / "whole")


def test_ctrl_c_keeps_the_finished_shards(rows: pa.Table, tmp_path: Path, reads: list[str]) -> None:
    def stop(text: str) -> None:
        if "shard 3 of" in text:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export("sft", "trl", rows, tmp_path / "out", OPTIONS, stop)
    assert not (tmp_path / "out").exists()
    reads.clear()
    export("sft", "trl", rows, tmp_path / "out", OPTIONS)
    assert reads == ["exa_0006"]


def test_a_full_device_keeps_the_finished_shards(rows: pa.Table, tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    whole, shards = parquet_folder.ParquetShard.write, []

    def full(self: Any, items: Any) -> None:
        shards.append(len(items))
        if len(shards) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        whole(self, items)

    monkeypatch.setattr(parquet_folder.ParquetShard, "write", full)
    with pytest.raises(StorageFull, match="free space"):
        export("sft", "trl", rows, tmp_path / "out", OPTIONS)
    assert not (tmp_path / "out").exists()
    reads.clear()
    export("sft", "trl", rows, tmp_path / "out", OPTIONS)
    assert reads == ["exa_0004", "exa_0005", "exa_0006"]


def test_a_device_that_was_full_from_the_first_leaves_nothing(rows: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Any, items: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(parquet_folder.ParquetShard, "write", full)
    with pytest.raises(StorageFull):
        export("sft", "trl", rows, tmp_path / "out", OPTIONS)
    assert list(tmp_path.iterdir()) == []


def test_two_exports_into_one_place_do_not_mix(rows: pa.Table, tmp_path: Path) -> None:
    def second(text: str) -> None:
        with pytest.raises(LockHeld, match="another process is using the export out"):
            export("sft", "trl", rows, tmp_path / "out", OPTIONS)

    report = export("sft", "trl", rows, tmp_path / "out", OPTIONS, second)
    assert report.rows == {"train": 7}
