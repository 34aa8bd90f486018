"""A disk that is really full: typed, nothing acknowledged is lost, and the work goes on once there is space."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from schemas.errors import StorageFault, StorageFull
from storage.journal import Journal, read_journal
from storage.lake import Lake
from tests.conftest import Tally
from tests.storage.lakes import assert_sound, commit_of, count, put

pytestmark = pytest.mark.fault

SIZE = "16m"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MiB of its own; skips where none can be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        pytest.skip(f"a small file system cannot be mounted here: {made.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)  # an open lake may still hold its ledger


def test_a_full_disk_loses_nothing_and_the_work_goes_on(small_disk: Path, tally: Tally) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"\0" * (10 << 20))
    root = small_disk / "lake"
    lake = Lake(root)
    acknowledged = 0
    with pytest.raises(StorageFull):  # noqa: PT012 (the commit at which the disk is full is not known beforehand)
        for n in range(10_000):
            lake.commit(commit_of(n, artifacts=(put(lake, os.urandom(20_000)),)))
            acknowledged += 1
    assert acknowledged > 10
    with pytest.raises(StorageFault):
        lake.commit(commit_of(99_999))
    ballast.unlink()
    again = Lake(root)
    assert count(again, "projects") == acknowledged
    assert_sound(again)
    for n in range(acknowledged, acknowledged + 5):
        again.commit(commit_of(n, artifacts=(put(again, os.urandom(20_000)),)))
    assert count(again, "projects") == acknowledged + 5
    assert_sound(again)
    tally("R6", disk=SIZE, acknowledged=acknowledged, lost=0, completed=True)


def test_a_ledger_without_space_is_a_full_disk(small_disk: Path) -> None:
    lake = Lake(small_disk / "lake")
    lake.commit(commit_of(0))
    lake.ledger.close()
    ballast = small_disk / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as f:
        while f.write(b"\0" * 4096):
            pass
    with pytest.raises(StorageFull):
        lake.done("stg_1_a")
    with pytest.raises(StorageFull):
        Lake(lake.root)
    with ballast.open("rb+") as f:
        f.truncate(ballast.stat().st_size - 65536)  # enough to open the ledger, not to write
    again = Lake(lake.root)
    with pytest.raises(StorageFull), again.ledger.writing() as con:
        con.exec_driver_sql("create table ballast as select zeroblob(200000) as x")
    ballast.unlink()
    again = Lake(lake.root)
    assert count(again, "projects") == 1
    again.commit(commit_of(1))
    assert_sound(again)


def test_a_journal_on_a_full_disk_keeps_what_it_acknowledged(small_disk: Path) -> None:
    path = small_disk / "journal"
    journal = Journal(path)
    acknowledged = 0
    with pytest.raises(StorageFull):  # noqa: PT012
        for n in range(10_000):
            journal.append({"call": n, "text": "x" * 5000})
            acknowledged += 1
    journal.close()
    assert acknowledged > 100
    assert [r["call"] for r in read_journal(path)] == list(range(acknowledged))
    with Journal(path) as again:  # reopening cuts the torn line, which makes the space for this one
        assert len(again) == acknowledged
        again.append({"call": "small"})
