"""Lakes that may only be read: on a read-only mount, or of another user, closed cleanly or left by a killed writer."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.lake import Lake
from tests.fault.forks import Acknowledge, ended, fork
from tests.storage.lakes import commit_of

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import sys
from pathlib import Path
from schemas.errors import StorageFault
from storage.lake import Lake
from tests.storage.lakes import commit_of
lake = Lake(Path(sys.argv[1]), create=False)
print(lake.query("select count(*) from words").rows[0][0], lake.scan("projects").num_rows, [v.version for v in lake.versions()])
print(lake.fsck().is_sound)
try:
    lake.commit(commit_of(9))
except StorageFault as fault:
    print(fault.code)
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user can reach."""
    path = Path(tempfile.mkdtemp(prefix="wp-read-only"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def left_behind(root: Path, how: str) -> Path:
    """A lake with two commits, its last writer closed or killed, or still there."""
    if how == "killed":

        def work(_acknowledge: Acknowledge) -> None:
            lake = Lake(root)
            lake.commit(commit_of(1))
            lake.commit(commit_of(2))
            os.kill(os.getpid(), signal.SIGKILL)

        assert ended(*fork(work))[0] == -9
        assert (root / "ledger.sqlite-wal").stat().st_size > 0
    else:
        lake = Lake(root)
        lake.commit(commit_of(1))
        lake.commit(commit_of(2))
        lake.ledger.close()
        assert not (root / "ledger.sqlite-wal").exists()
    return root


@pytest.mark.parametrize("who", ["a read-only mount", "another user"])
@pytest.mark.parametrize("how", ["closed", "killed"])
def test_a_lake_can_be_read_where_it_cannot_be_written(folder: Path, how: str, who: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("another user, and mounting, need root")
    root = left_behind(folder / "lake", how)
    read = [sys.executable, "-c", PROGRAM, str(root)]
    if who == "another user":
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *read]
    else:
        mounting = f'mount --bind {root} {root} && mount -o remount,ro,bind {root} && exec "$@"'
        command = ["unshare", "-m", "bash", "-c", mounting, "bash", *read]
    environment = {**os.environ, "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    before = sorted((p.name, p.stat().st_size) for p in root.rglob("*") if not p.name.endswith("-shm"))
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120, env=environment)
    if "permission denied" in done.stderr.lower() and "mount" in done.stderr:
        pytest.skip(f"no mounting here: {done.stderr.strip()[:200]}")
    assert done.stdout.splitlines() == ["6 2 [1, 2]", "True", "read_only"], done.stderr
    assert sorted((p.name, p.stat().st_size) for p in root.rglob("*") if not p.name.endswith("-shm")) == before


BESIDE = """
import sys
from pathlib import Path
from storage.lake import Lake
lake = Lake(Path(sys.argv[1]), create=False)
print(lake.scan("projects").num_rows, flush=True)
sys.stdin.readline()
print(lake.scan("projects").num_rows, flush=True)
"""


def test_a_reader_without_permission_sees_what_a_living_writer_commits(folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("another user needs root")
    lake = Lake(folder / "lake")
    lake.commit(commit_of(1))
    command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable, "-c", BESIDE, str(lake.root)]
    environment = {**os.environ, "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "1\n"
        lake.commit(commit_of(2))
        assert reader.communicate("\n", timeout=60)[0] == "2\n"
