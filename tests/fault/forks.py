"""Children that are forked, acknowledge over a pipe, and are killed."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from storage import durable

Acknowledge = Callable[[int], None]
OPERATIONS = ("write", "fsync", "rename", "fsync_folder", "mkdir", "truncate", "unlink", "ledger_begin", "ledger_commit", "committed")


def fork(work: Callable[[Acknowledge], None]) -> tuple[int, int]:
    """Run ``work`` in a child; returns its pid and the descriptor on which its acknowledgements (one byte, 0 to 255) arrive."""
    read_end, write_end = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(read_end)
            work(lambda n: os.write(write_end, bytes([n])) and None)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(write_end)
    return pid, read_end


def ended(pid: int, read_end: int) -> tuple[int, list[int]]:
    """Wait for a child; returns its exit status (negative: the signal) and everything it acknowledged."""
    seen = b""
    while chunk := os.read(read_end, 65536):
        seen += chunk
    os.close(read_end)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), list(seen)


def told(read_end: int, count: int) -> tuple[list[int], list[float]]:
    """Wait for so many acknowledgements of a child; returns them, and when each came (monotonic seconds)."""
    seen: list[int] = []
    times: list[float] = []
    while len(seen) < count and (one := os.read(read_end, 1)):
        seen += one
        times.append(time.monotonic())
    return seen, times


def kill_after(pid: int, seconds: float) -> None:
    """SIGKILL a child after a while."""
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)


class Points:
    """A fault point that counts, and acts at one point."""

    def __init__(self, act: Callable[[str, str], None] | None = None, at: int = -1) -> None:
        self.seen: list[str] = []
        self._act = act
        self._at = at

    def __call__(self, operation: str, path: str) -> None:
        assert operation in OPERATIONS
        self.seen.append(operation)
        if self._act is not None and len(self.seen) == self._at + 1:
            self._act(operation, path)


def die(_operation: str, _path: str) -> None:
    """End this process as a power switch ends it, with the kernel still running."""
    os.kill(os.getpid(), signal.SIGKILL)


def failing(number: int) -> Callable[[str, str], None]:
    """Fail with an operating system error."""

    def act(_operation: str, _path: str) -> None:
        raise OSError(number, os.strerror(number))

    return act


class PowerLoss:
    """A fault point that loses power at one point: bytes that were not fsynced and names whose folder was not fsynced are gone, then the
    process dies. (The ledger's database looks after itself.)"""

    def __init__(self, at: int) -> None:
        self._at = at
        self._count = 0
        self._pending: tuple[str, str] | None = None
        self._bytes: set[Path] = set()
        self._names: dict[Path, set[Path]] = {}

    def __call__(self, operation: str, path: str) -> None:
        if self._pending is not None:
            self._happened(*self._pending)
        if self._count == self._at:
            self._lose()
            die(operation, path)
        self._count += 1
        self._pending = (operation, path)

    def _happened(self, operation: str, path: str) -> None:
        match operation:
            case "write":
                self._bytes.add(Path(path))
            case "fsync":
                self._bytes.discard(Path(path))
            case "rename":
                old, new = map(Path, path.split("\n"))
                if old in self._bytes:
                    self._bytes.remove(old)
                    self._bytes.add(new)
                self._names.setdefault(new.parent, set()).add(new)
            case "mkdir":
                self._names.setdefault(Path(path).parent, set()).add(Path(path))
            case "fsync_folder":
                self._names.pop(Path(path), None)

    def _lose(self) -> None:
        for path in self._bytes:
            if path.is_file():
                os.truncate(path, 0)
        for path in {p for names in self._names.values() for p in names}:
            if path.is_dir():
                for inside in sorted(path.rglob("*"), reverse=True):
                    inside.unlink() if inside.is_file() else inside.rmdir()
                path.rmdir()
            elif path.exists():
                path.unlink()


def set_fault_point(point: Callable[[str, str], None]) -> None:
    """Install a fault point in this (forked) process."""
    durable.fault_point = point
