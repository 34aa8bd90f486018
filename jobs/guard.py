"""Limits of a stage: how long it may take and how much memory its process tree may hold.

Every engine that opens a file has its own limits in the sandbox (media.command.Limits); these here are for what runs in the worker
itself. A stage over its limit gets an exception; one that does not heed it, or takes too much memory, ends with its worker process, and
the runner tries again or gives the project up. Must not touch the lake: a worker that hangs may be holding it.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from jobs.config import LimitsConfig
from jobs.progress import Doing, EventLog, doing
from schemas.errors import LimitExceeded

POLL_S = 0.2
_deaf = False
_unheard: list[LimitExceeded] = []
_PAGE = os.sysconf("SC_PAGE_SIZE")


@contextmanager
def guarded(limits: LimitsConfig, log: EventLog, *, may_die: bool) -> Iterator[None]:
    """Watch over the stages that this process runs inside the block.

    Args:
        may_die: the process is a worker and ends when a stage goes over the memory limit or does not heed its time-out. Else (the process
            is the whole run) such a stage gets the exception only.

    Raises:
        LimitExceeded: inside the stage, if this is the process's main thread.
    """
    guard = _Guard(limits, log, may_die)
    main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGALRM, guard.interrupted) if main else None
    thread = threading.Thread(target=guard.watch, args=(threading.get_ident() if main else None,), daemon=True, name="stage-guard")
    thread.start()
    try:
        yield
    finally:
        guard.over.set()
        thread.join()
        if main:
            signal.signal(signal.SIGALRM, before)


@contextmanager
def undisturbed() -> Iterator[None]:
    """What a stage is told inside the block (of the main thread), it hears at its end: for short calls into code that an exception out of a
    signal's handler would break.

    Raises:
        LimitExceeded: at the end of the block.
    """
    global _deaf
    _unheard.clear()
    _deaf = True
    try:
        yield
    finally:
        _deaf = False
    if _unheard:
        raise _unheard.pop()


def tree_memory(pid: int) -> int:
    """Resident bytes of a process and all its descendants, shared pages counted as often as they are mapped."""
    parents: dict[int, list[int]] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                text = Path(entry.path, "stat").read_text()
                parents.setdefault(int(text.rpartition(")")[2].split()[1]), []).append(int(entry.name))
            except (OSError, ValueError, IndexError):
                continue
    total, waiting = 0, [pid]
    while waiting:
        at = waiting.pop()
        waiting += parents.get(at, [])
        try:
            total += int(Path(f"/proc/{at}/statm").read_text().split()[1]) * _PAGE
        except (OSError, ValueError, IndexError):
            continue
    return total


class _Guard:
    def __init__(self, limits: LimitsConfig, log: EventLog, may_die: bool) -> None:
        self._limits = limits
        self._log = log
        self._may_die = may_die
        self._breach: tuple[Doing, str, str] | None = None
        self._told = 0.0
        self.over = threading.Event()

    def watch(self, thread: int | None) -> None:
        while not self.over.wait(POLL_S):
            now = doing()
            if now is None:
                continue
            if self._breach is not None and self._breach[0] == now:  # told, and still in the same stage
                if self._may_die and time.monotonic() - self._told > self._limits.grace_s:
                    self._die(self._breach)
                continue
            found = self._found(now)
            if found is None:
                continue
            self._breach, self._told = (now, *found), time.monotonic()
            if found[0] == "memory_limit" and self._may_die:
                self._die(self._breach)
            if thread is not None:
                signal.pthread_kill(thread, signal.SIGALRM)

    def _found(self, now: Doing) -> tuple[str, str] | None:
        seconds = self._limits.seconds(now.stage)
        passed = time.monotonic() - now.since
        if seconds is not None and passed > seconds:
            return "stage_timeout", f"stage {now.stage} took over {seconds:g} s"
        if self._limits.memory_bytes is not None:
            held = tree_memory(os.getpid())
            if held > self._limits.memory_bytes:
                return "memory_limit", f"stage {now.stage} held {held} bytes, the limit is {self._limits.memory_bytes}"
        return None

    def interrupted(self, _number: int, _frame: FrameType | None) -> None:
        if self._breach is not None and self._breach[0] == doing():
            _, code, message = self._breach
            error = LimitExceeded(code, message, "raise run.limits in the configuration, or leave this source out")
            if not _deaf:
                raise error
            _unheard[:] = [error]

    def _die(self, breach: tuple[Doing, str, str]) -> None:
        """Say why, then end this worker; its sandboxed children die with it."""
        now, code, message = breach
        self._log.key = now.key
        self._log.write("failed", stage=now.stage, code=code, message=message, attempt=0, quarantined=False)
        os.kill(os.getpid(), signal.SIGKILL)
