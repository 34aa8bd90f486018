"""S3 and R18: every resource is bounded, the run ends in time with a typed error, and nothing of it is left."""

from __future__ import annotations

import secrets
import time
from pathlib import Path

import pytest

from media.command import MIB, Command, Limits, Sandbox
from media.sandbox import open_sandbox
from schemas.errors import LimitExceeded

from .conftest import processes_with

pytestmark = pytest.mark.hostile


def _run(sandbox: Sandbox, script: str, folder: Path, limits: Limits) -> tuple[str, float]:
    """Code of the limit that ended it, and seconds."""
    mark = f"mark-{secrets.token_hex(8)}"
    start = time.monotonic()
    with pytest.raises(LimitExceeded) as caught:
        sandbox.run(Command(argv=("/bin/sh", "-c", f": {mark}; {script}"), limits=limits), folder)
    seconds = time.monotonic() - start
    assert processes_with(mark) == []
    return caught.value.code, seconds


@pytest.mark.parametrize(
    ("script", "limits", "code"),
    [
        ("sleep 60", Limits(wall_s=0.5), "wall_clock"),
        ("kill -STOP $$; sleep 60", Limits(wall_s=0.5), "wall_clock"),
        ("trap '' TERM INT HUP; sleep 60 & wait; sleep 60", Limits(wall_s=0.5), "wall_clock"),
        ("(setsid sh -c 'setsid sleep 60 &' &) ; sleep 60", Limits(wall_s=0.5), "wall_clock"),
        ("while :; do :; done", Limits(wall_s=20, cpu_s=1), "cpu_s"),
        ("head -c 50000000 /dev/zero", Limits(wall_s=20, stdout_bytes=MIB), "stdout_bytes"),
        ("head -c 50000000 /dev/zero >/out/big", Limits(wall_s=20, file_bytes=8 * MIB), "file_bytes"),
        (
            "for i in 1 2 3 4 5 6 7 8; do head -c 4000000 /dev/zero >/out/$i; done; sleep 20",
            Limits(wall_s=20, file_bytes=8 * MIB),
            "output_folder",
        ),
        ("i=0; while :; do i=$((i+1)); : >/out/$i; done", Limits(wall_s=20), "output_folder"),
        ("i=0; while [ $i -lt 60 ]; do i=$((i+1)); mkdir d; cd d; done; sleep 20", Limits(wall_s=20), "output_folder"),
        ("i=0; while :; do i=$((i+1)); : >/tmp/$i; done", Limits(wall_s=60), "temporary_files"),
        ("x=$(head -c 400000000 /dev/zero | tr '\\0' a); sleep 20", Limits(wall_s=20, tree_bytes=200 * MIB), "memory"),
        (
            "for i in 1 2 3 4; do (x=$(head -c 90000000 /dev/zero | tr '\\0' a); sleep 20) & done; wait",
            Limits(wall_s=20, tree_bytes=200 * MIB),
            "memory",
        ),
    ],
    ids=[
        *("asleep", "stopped", "deaf", "detached", "processor", "output stream", "file", "folder", "entries", "depth", "temporary files"),
        *("memory of one", "memory of many"),
    ],
)
def test_limit_ends_the_run(sandbox: Sandbox, tmp_path: Path, script: str, limits: Limits, code: str) -> None:
    seen, seconds = _run(sandbox, script, tmp_path, limits)
    assert seen == code
    assert seconds < limits.wall_s + 2


def test_fork_bomb_stops_at_the_limit_of_its_own_run(sandbox: Sandbox, tmp_path: Path) -> None:
    script = "n=0; while [ $n -lt 200 ]; do n=$((n+1)); sleep 5 & done 2>/tmp/err; ls -d /proc/[0-9]* | wc -l"
    done = sandbox.run(Command(argv=("/bin/sh", "-c", script), limits=Limits(wall_s=20, processes=64)), tmp_path)
    alive = int(done.stdout.split()[0]) if done.stdout.strip() else 64
    assert alive <= 64 + 3


def test_two_runs_do_not_share_a_count_of_processes(sandbox: Sandbox, tmp_path: Path) -> None:
    seen: list[int] = []

    def while_another_runs(pipe: object) -> None:
        pipe.readline()  # type: ignore[attr-defined]
        done = sandbox.run(Command(argv=("/bin/sh", "-c", "sleep 0 & sleep 0 & wait"), limits=Limits(processes=12)), tmp_path)
        seen.append(done.returncode)

    crowd = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 5 & done; echo ready; wait"
    sandbox.stream(Command(argv=("/bin/sh", "-c", crowd), limits=Limits(wall_s=20, processes=64)), while_another_runs)
    assert seen == [0]


def test_temporary_space_is_bounded(sandbox: Sandbox, tmp_path: Path) -> None:
    script = "head -c 50000000 /dev/zero >/tmp/big; head -c 400000000 /dev/zero >/dev/shm/big; du -sm /tmp /dev/shm"
    done = sandbox.run(Command(argv=("/bin/sh", "-c", script), limits=Limits(wall_s=20, tmp_bytes=8 * MIB)), tmp_path)
    tmp, shm = (int(line.split()[0]) for line in done.stdout.decode().splitlines())
    assert tmp <= 8
    assert shm <= 257
    assert "No space left" in done.stderr


def test_memory_of_one_process_is_bounded(sandbox: Sandbox, tmp_path: Path) -> None:
    script = "x=$(head -c 400000000 /dev/zero | tr '\\0' a); echo survived"
    done = sandbox.run(Command(argv=("/bin/sh", "-c", script), limits=Limits(wall_s=20, data_bytes=100 * MIB)), tmp_path)
    assert b"survived" not in done.stdout


def test_descriptors_are_bounded(sandbox: Sandbox, tmp_path: Path) -> None:
    done = sandbox.run(Command(argv=("/bin/sh", "-c", "ulimit -n; ulimit -Hn"), limits=Limits(open_files=64)), tmp_path)
    assert done.stdout.split() == [b"64", b"64"]


def test_the_first_process_inside_is_bound_too(sandbox: Sandbox, tmp_path: Path) -> None:
    """A command can write into the memory of bubblewrap's own process inside; that must not free it of the limits."""
    limits = Limits(data_bytes=300 * MIB, file_bytes=64 * MIB, open_files=64, cpu_s=9)
    done = sandbox.run(Command(argv=("cat", "/proc/1/limits"), limits=limits), tmp_path)
    hard = {line[:25].strip(): line[26:].split()[1] for line in done.stdout.decode().splitlines()[1:]}
    assert hard["Max data size"] == str(300 * MIB)
    assert hard["Max file size"] == str(64 * MIB)
    assert hard["Max open files"] == "64"
    assert hard["Max cpu time"] == "10"
    assert hard["Max core file size"] == "1"
    assert int(hard["Max processes"]) <= 16_384


def test_stderr_flood_is_cut_in_the_middle(sandbox: Sandbox, tmp_path: Path) -> None:
    script = "echo first >&2; head -c 3000000 /dev/zero | tr '\\0' x >&2; echo last >&2"
    done = sandbox.run(Command(argv=("/bin/sh", "-c", script)), tmp_path)
    assert done.stderr.startswith("first")
    assert done.stderr.rstrip().endswith("last")
    assert len(done.stderr) < 250_000


def test_a_stream_that_stalls_is_ended(sandbox: Sandbox) -> None:
    def read_all(pipe: object) -> None:
        while pipe.read(4096):  # type: ignore[attr-defined]
            pass

    start = time.monotonic()
    with pytest.raises(LimitExceeded, match="wall_clock"):
        sandbox.stream(Command(argv=("/bin/sh", "-c", "echo a; sleep 60"), limits=Limits(wall_s=0.5)), read_all)
    assert time.monotonic() - start < 2.5


@pytest.mark.parametrize(
    ("script", "limits", "code"),
    [
        ("(setsid sh -c 'setsid sleep 60 &' &) ; sleep 60", Limits(wall_s=0.5), "wall_clock"),
        ("head -c 50000000 /dev/zero", Limits(wall_s=20, stdout_bytes=MIB), "stdout_bytes"),
        ("x=$(head -c 400000000 /dev/zero | tr '\\0' a); sleep 20", Limits(wall_s=20, tree_bytes=200 * MIB), "memory"),
    ],
    ids=["wall_clock", "stdout_bytes", "memory"],
)
def test_the_process_sandbox_bounds_too(tmp_path: Path, script: str, limits: Limits, code: str) -> None:
    seen, seconds = _run(open_sandbox("process"), script, tmp_path, limits)
    assert seen == code
    assert seconds < limits.wall_s + 2.5
