"""The device's own errors inside SQLite and the kernel calls of every other write, injected by strace into a cold process."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from storage.lake import Lake
from tests.conftest import Tally
from tests.storage.lakes import assert_sound, commit_of

pytestmark = [pytest.mark.fault, pytest.mark.slow]

ROOT = Path(__file__).resolve().parent.parent.parent

PROGRAM = """
import sys
from pathlib import Path
from schemas.errors import StorageFault
from storage.lake import Lake
from tests.storage.lakes import commit_of
try:
    lake = Lake(Path(sys.argv[1]))
    for n in (1, 2):
        lake.commit(commit_of(n))
        print("acknowledged", n, flush=True)
except StorageFault as fault:
    print("fault", fault.code, flush=True)
    try:
        lake.commit(commit_of(9))
        print("acknowledged after the fault", flush=True)
    except (StorageFault, NameError):
        pass
"""


@pytest.mark.parametrize(
    ("call", "error", "code", "where"),
    [
        ("fdatasync", "EIO", "ledger_failed", ((1, ""), (2, ""))),
        ("fdatasync", "ENOSPC", "ledger_failed", ((1, ""),)),
        ("fsync", "EIO", "io_error", ((1, ""), (1, "tables/words"))),  # any; the folder of one table
        ("fsync", "ENOSPC", "no_space", ((1, "tables/stage_runs"),)),
    ],
)
def test_no_acknowledgement_after_a_failed_sync(
    tmp_path: Path, call: str, error: str, code: str, where: tuple[tuple[int, str], ...], tally: Tally
) -> None:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    for number, (when, under) in enumerate(where):
        root = tmp_path / f"lake{number}"
        Lake(root).commit(commit_of(0))
        trace = [strace, "-f", "-qq", "--seccomp-bpf", "-o", str(tmp_path / "log"), "-e", f"trace={call}"]
        trace += ["-P", str(root / under)] if under else []
        done = subprocess.run(
            [*trace, "-e", f"inject={call}:error={error}:when={when}+", sys.executable, "-c", PROGRAM, str(root)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        if "ptrace" in done.stderr.lower():
            pytest.skip(f"tracing is not allowed here: {done.stderr.strip()[:200]}")
        lines = done.stdout.splitlines()
        assert lines, done.stderr
        assert lines[-1] == f"fault {code}"
        assert "INJECTED" in (tmp_path / "log").read_text()
        acknowledged = {0} | {int(n) for n in re.findall(r"^acknowledged (\d)$", done.stdout, re.M)}
        lake = Lake(root)
        there = {int(r["project_id"][4:]) for r in lake.scan("projects").to_pylist()}
        assert acknowledged <= there
        assert_sound(lake)
        for n in {1, 2} - there:
            lake.commit(commit_of(n))
        assert_sound(lake)
    tally("R5", call=call, error=error, failures=len(where), acknowledged_after=0, lost=0)


CHECKPOINT = """
import sys
from pathlib import Path
from storage.lake import Lake
from storage import sqlite_file
from tests.storage.lakes import commit_of
lake = Lake(Path(sys.argv[1]))
for n in range(1, 6):
    lake.commit(commit_of(n))
print("acknowledged 5", flush=True)
lake.ledger.close()
"""
"""Closing the last connection copies the log into the database: the checkpoint."""


@pytest.mark.parametrize(
    ("call", "how"), [("pwrite64", "error=EIO:when=3+"), ("pwrite64", "error=ENOSPC:when=2+"), ("fdatasync", "error=EIO")]
)
def test_a_checkpoint_that_is_cut_short_loses_nothing(tmp_path: Path, call: str, how: str, tally: Tally) -> None:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    root = tmp_path / "lake"
    lake = Lake(root)
    lake.commit(commit_of(0))
    lake.ledger.close()  # only the last connection to close moves the log
    log = tmp_path / "log"
    trace = [strace, "-f", "-qq", "--seccomp-bpf", "-o", str(log), "-e", f"trace={call}", "-P", str(root / "ledger.sqlite")]
    done = subprocess.run(
        [*trace, "-e", f"inject={call}:{how}", sys.executable, "-c", CHECKPOINT, str(root)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if "ptrace" in done.stderr.lower():
        pytest.skip(f"tracing is not allowed here: {done.stderr.strip()[:200]}")
    assert "acknowledged 5" in done.stdout, done.stderr
    text = log.read_text()
    assert "INJECTED" in text, text[-500:]
    lake = Lake(root)
    assert sorted(int(r["project_id"][4:]) for r in lake.scan("projects").to_pylist()) == [0, 1, 2, 3, 4, 5]
    lake.commit(commit_of(6))
    assert_sound(lake)
    tally("R4", how=f"{call} {how}", recovered=True, lost=0)
