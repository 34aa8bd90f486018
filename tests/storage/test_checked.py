"""The memory of data files that were read in full: what it may spare, and what it must never hide."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from schemas.errors import DigestMismatch
from storage import durable
from storage.checked import CheckedFiles, stamp_of
from storage.lake import Lake
from tests.storage.lakes import commit_of
from tests.storage.test_lake import flip

SHA = "0" * 64


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WORKPRINT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def digested(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files that are read in full from now on."""
    read: list[str] = []
    real = durable.digest_file

    def counted(path: Path) -> tuple[str, int]:
        read.append(path.name)
        return real(path)

    monkeypatch.setattr(durable, "digest_file", counted)
    return read


@pytest.fixture
def lake(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A lake whose every file counts as large, and as old enough."""
    monkeypatch.setattr("storage.checked.SMALLEST_BYTES", 1)
    monkeypatch.setattr("storage.lake.SMALLEST_BYTES", 1)
    monkeypatch.setattr("storage.checked.SETTLED_S", 0)
    lake = Lake(tmp_path / "lake")
    lake.commit(commit_of(1))
    time.sleep(0.05)
    return lake


def words(lake: Lake) -> Path:
    return lake.root / lake.files(table="words")[0].path


def test_another_process_does_not_read_a_file_again(lake: Lake, digested: list[str]) -> None:
    for _ in range(2):
        assert Lake(lake.root).query("select count(*) from words").rows == [(3,)]
    assert digested == [words(lake).name]


def test_a_changed_file_is_read_again_even_with_its_old_times(lake: Lake) -> None:
    path = words(lake)
    Lake(lake.root).query("from words")
    s = path.stat()
    flip(path, 60)
    os.utime(path, ns=(s.st_atime_ns, s.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (s.st_size, s.st_mtime_ns)
    with pytest.raises(DigestMismatch, match="data_file_damaged"):
        Lake(lake.root).query("from words")


def test_a_damaged_file_is_never_remembered(lake: Lake) -> None:
    flip(words(lake), 60)
    time.sleep(0.05)
    for _ in range(2):
        with pytest.raises(DigestMismatch):
            Lake(lake.root).query("from words")


def test_fsck_reads_what_is_remembered(lake: Lake, digested: list[str]) -> None:
    Lake(lake.root).query("from words")
    Lake(lake.root).fsck()
    assert digested.count(words(lake).name) == 2


@pytest.mark.parametrize("damage", [b"", b"no database", b"SQLite format 3\0" + b"\xff" * 200], ids=["empty", "text", "torn"])
def test_a_damaged_memory_only_costs_reading(lake: Lake, cache: Path, digested: list[str], damage: bytes) -> None:
    Lake(lake.root).query("from words")
    (cache / "checked.sqlite").write_bytes(damage)
    assert Lake(lake.root).query("select count(*) from words").rows == [(3,)]
    assert digested == [words(lake).name] * 2
    Lake(lake.root).query("from words")
    Lake(lake.root).query("from words")
    assert len(digested) <= 3, "it begins anew"


def test_a_cache_that_cannot_be_made_only_costs_reading(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WORKPRINT_CACHE", str(tmp_path / "file" / "cache"))
    assert Lake(lake.root).query("select count(*) from words").rows == [(3,)]


MEMORY = [
    pytest.param(2 * 2**20, 10, 0, True, id="large and settled"),
    pytest.param(2**20 - 1, 10, 0, False, id="small"),
    pytest.param(2 * 2**20, 1, 0, False, id="changed a moment before it was read"),
    pytest.param(2 * 2**20, 10, 6 * 86400, True, id="read six days ago"),
    pytest.param(2 * 2**20, 10, 8 * 86400, False, id="read eight days ago"),
]


@pytest.mark.parametrize(("size", "changed_before_s", "later_s", "known"), MEMORY)
def test_what_is_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, changed_before_s: int, later_s: int, known: bool
) -> None:
    checked, path, now = CheckedFiles(tmp_path), tmp_path / "data", 1_800_000_000
    stamp = (1, 2, size, 3, (now - changed_before_s) * 10**9)
    monkeypatch.setattr("storage.checked.time.time", lambda: float(now))
    checked.remember([(path, SHA, stamp)])
    monkeypatch.setattr("storage.checked.time.time", lambda: float(now + later_s))
    assert checked.known([(path, SHA, stamp)]) == ({path} if known else set())


@pytest.mark.parametrize("field", range(5), ids=["device", "inode", "size", "modified", "changed"])
def test_any_difference_of_the_stamp_is_a_stranger(tmp_path: Path, field: int) -> None:
    checked, path = CheckedFiles(tmp_path), tmp_path / "data"
    stamp = (1, 2, 2**21, 3, 4)
    checked.remember([(path, SHA, stamp)])
    a, b, c, d, e = (n + (i == field) for i, n in enumerate(stamp))
    assert checked.known([(path, SHA, (a, b, c, d, e))]) == set()
    assert checked.known([(path, "1" * 64, stamp)]) == set()
    assert checked.known([(path, SHA, stamp)]) == {path}


def test_a_copy_is_a_stranger(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"x")
    before = stamp_of(path)
    copy = tmp_path / "copy"
    copy.write_bytes(b"x")
    os.utime(copy, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    copy.replace(path)
    assert stamp_of(path) != before
