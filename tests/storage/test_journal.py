"""The journal: durable before return, a torn tail is cut off, a broken chain is refused."""

from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.errors import LockHeld, SchemaMismatch, StorageFault, StorageFull
from storage import durable
from storage.journal import Journal, read_journal

THREE: list[dict[str, Any]] = [
    {"call": 0, "tool": "segment_article"},
    {"call": 1, "text": "行\u2028\u0000"},
    {"call": 2, "b": 1.5, "a": None},
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "journals" / "trj_1.jsonl"
    with Journal(path) as journal:
        for record in THREE:
            journal.append(record)
    return path


def test_records_come_back_in_order(path: Path) -> None:
    assert read_journal(path) == THREE
    with Journal(path) as journal:
        assert journal.read() == THREE
        assert len(journal) == 3


def test_it_goes_on_where_it_stopped(path: Path) -> None:
    with Journal(path) as journal:
        journal.append({"call": 3})
    assert read_journal(path) == [*THREE, {"call": 3}]


def test_one_record_is_one_line(path: Path) -> None:
    assert path.read_bytes().count(b"\n") == 3


@pytest.mark.parametrize("keep", [1, 40, -1])
def test_a_torn_tail_is_left_out_and_cut_off_on_reopening(path: Path, keep: int) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]) + lines[2][:keep])
    assert read_journal(path) == THREE[:2]
    with Journal(path) as journal:
        journal.append({"call": "again"})
    assert read_journal(path) == [*THREE[:2], {"call": "again"}]


@pytest.mark.parametrize("tail", [b"\0" * 50, b'{"seq":3,"chain":"' + b"\0" * 90 + b"}\n"])
def test_a_tail_of_blocks_that_never_reached_the_disk_is_torn(path: Path, tail: bytes) -> None:
    with path.open("ab") as f:
        f.write(tail)
    with Journal(path) as journal:
        assert journal.read() == THREE
    assert path.read_bytes().count(b"\0") == 0


def edited(path: Path, how: str) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    match how:
        case "changed":
            lines[0] = lines[0].replace(b"segment_article", b"segment_articlE")
        case "last line changed":
            lines[2] = lines[2].replace(b"1.5", b"1.6")
        case "dropped":
            del lines[1]
        case "swapped":
            lines[0], lines[1] = lines[1], lines[0]
        case "doubled":
            lines.insert(1, lines[0])
        case "garbage between":
            lines.insert(1, b"garbage\n")
        case "number as text":
            lines[1] = b"7\n"
    path.write_bytes(b"".join(lines))


@pytest.mark.parametrize("how", ["changed", "last line changed", "dropped", "swapped", "doubled", "garbage between", "number as text"])
def test_a_broken_chain_is_refused_and_the_file_left_alone(path: Path, how: str) -> None:
    edited(path, how)
    before = path.read_bytes()
    with pytest.raises(StorageFault, match="journal_broken"):
        read_journal(path)
    with pytest.raises(StorageFault, match="journal_broken"):
        Journal(path)
    assert path.read_bytes() == before


def test_a_second_writer_is_refused(path: Path) -> None:
    with Journal(path) as journal:
        with pytest.raises(LockHeld):
            Journal(path)
        journal.append({"call": 3})
    Journal(path).close()


def test_a_bad_record_writes_nothing(path: Path) -> None:
    with Journal(path) as journal:
        with pytest.raises(SchemaMismatch):
            journal.append({"text": "\ud800"})
        journal.append({"call": 3})
    assert read_journal(path) == [*THREE, {"call": 3}]


@pytest.mark.parametrize(
    ("operation", "number", "error"), [("write", 28, StorageFull), ("fsync", 28, StorageFull), ("fsync", 5, StorageFault)]
)
def test_no_acknowledgement_after_a_fault(
    path: Path, monkeypatch: pytest.MonkeyPatch, operation: str, number: int, error: type[StorageFault]
) -> None:
    def fail(op: str, at: str) -> None:
        if op == operation:
            raise OSError(number, os.strerror(number))

    journal = Journal(path)
    monkeypatch.setattr(durable, "fault_point", fail)
    with pytest.raises(error):
        journal.append({"call": 3})
    monkeypatch.undo()
    with pytest.raises(StorageFault, match="closed_after_fault"):
        journal.append({"call": 4})
    journal.close()
    with Journal(path) as again:  # the acknowledged prefix, or more
        assert again.read()[:3] == THREE
        assert len(again) <= 4


@pytest.mark.fault
def test_killed_writers_lose_nothing_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    acknowledged = 0
    for round_ in range(15):
        read_end, write_end = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                journal = Journal(path)
                for n in range(10_000):
                    journal.append({"round": round_, "n": n})
                    os.write(write_end, b".")
            finally:
                os._exit(1)
        os.close(write_end)
        wanted = 5 + round_ * 3
        seen = 0
        while seen < wanted:
            seen += len(os.read(read_end, 1))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        while chunk := os.read(read_end, 4096):
            seen += len(chunk)
        os.close(read_end)
        acknowledged += seen
        with Journal(path) as journal:
            records = journal.read()
        ours = [r["n"] for r in records if r["round"] == round_]
        assert ours == list(range(len(ours)))
        assert len(ours) in (seen, seen + 1)
    assert acknowledged > 300


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(records=st.lists(st.dictionaries(st.sampled_from("abc"), JSON, max_size=3), max_size=5), cut=st.integers(0, 400))
def test_property_any_cut_leaves_a_prefix(records: list[dict[str, Any]], cut: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "j.jsonl"
        ends = [0]
        with Journal(path) as journal:
            for record in records:
                journal.append(record)
                ends.append(path.stat().st_size)
        assert read_journal(path) == records
        cut = min(cut, ends[-1])
        os.truncate(path, cut)
        whole = sum(1 for e in ends[1:] if e <= cut)
        with Journal(path) as journal:
            assert journal.read() == records[:whole]
            journal.append({"a": 1})
        assert read_journal(path) == [*records[:whole], {"a": 1}]
