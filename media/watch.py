"""Watches one running command: wall clock, memory of the whole process tree, output volume, disk.

Owns the loop that ends a process tree when a limit is reached, and the proof that nothing of it is left. Must not decide how a
command is started or what its exit status means.
"""

from __future__ import annotations

import contextlib
import io
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from media.command import Limits

TICK_S = 0.05
"""Time between two looks at memory and disk."""
RESCAN_TICKS = 4
"""The list of processes is read again at every fourth look."""
GRACE_S = 5.0
"""A killed tree that is not gone after this long is reported as it is."""
STDERR_KEPT = 65_536
"""Bytes of stderr kept from its start, and as many from its end."""
_PAGE = os.sysconf("SC_PAGE_SIZE")
_CHUNK = 1 << 16


class Halt(StrEnum):
    """Which limit ended a run."""

    WALL = "wall_clock"
    MEMORY = "memory"
    STDOUT = "stdout_bytes"
    OUTPUT = "output_folder"
    TMP = "temporary_files"


class Tree(Protocol):
    """The processes of one run."""

    def pids(self) -> list[int]:
        """All processes alive now."""
        ...

    def kill(self) -> None:
        """End all of them, at once."""
        ...

    def ended(self) -> None:
        """The first process has exited; end what it may have left behind."""
        ...

    def status_line(self, line: bytes) -> None:
        """A line the launcher wrote on its status descriptor."""
        ...


class Stopwatch:
    """Wall time that counts against the limit: all of it, but not the time a stream's reader spends on what it has read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spent = 0.0
        self._since: float | None = time.monotonic()
        self.started = time.monotonic()

    def pause(self) -> None:
        """The reader has data and works on it."""
        with self._lock:
            if self._since is not None:
                self._spent += time.monotonic() - self._since
                self._since = None

    def resume(self) -> None:
        """The reader waits for the command again."""
        with self._lock:
            if self._since is None:
                self._since = time.monotonic()

    def elapsed(self) -> float:
        """Seconds that count so far."""
        with self._lock:
            return self._spent + (time.monotonic() - self._since if self._since is not None else 0.0)


class MeteredPipe(io.RawIOBase):
    """The read end of a stream's stdout; tells the stopwatch whether we or the command are being waited for."""

    def __init__(self, fd: int, clock: Stopwatch) -> None:
        super().__init__()
        self._fd = fd
        self._clock = clock
        self.at_end = False

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read what is there, at least one byte unless the stream has ended."""
        self._clock.resume()
        try:
            count = os.readv(self._fd, [buffer])
        finally:
            self._clock.pause()
        if count == 0 and len(buffer) > 0:
            self.at_end = True
        return count


class Watch:
    """Supervises one child until it and its tree are gone.

    Args:
        child: started with pipes for stdout and stderr (and stdin if there is any).
        status_fd: read end of the launcher's status descriptor, or None.
        capture: collect stdout here; False where a stream's reader owns it.
        disk: called at every look; returns the limit it saw broken, if any.
    """

    def __init__(
        self,
        child: subprocess.Popen[bytes],
        tree: Tree,
        limits: Limits,
        clock: Stopwatch,
        *,
        stdin: bytes | None,
        capture: bool,
        status_fd: int | None,
        disk: Callable[[], Halt | None],
    ) -> None:
        self._child, self._tree, self._limits, self._clock, self._disk = child, tree, limits, clock, disk
        self._stdin = memoryview(stdin) if stdin is not None else None
        self._capture = capture
        self._status_fd = status_fd
        self._status_rest = b""
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._exit = os.pidfd_open(child.pid)
        self._stdout = bytearray()
        self._stderr = _HeadAndTail(STDERR_KEPT)
        self._known: list[int] = []
        self._ticks = 0
        self._closing = threading.Lock()
        self._over = False
        self._gone = False
        self._killed_at: float | None = None
        self.halt: Halt | None = None
        self.peak_bytes = 0
        """Highest memory of the tree that was seen."""
        self.returncode = 0

    @property
    def stdout(self) -> bytes:
        """What was captured."""
        return bytes(self._stdout)

    @property
    def stderr(self) -> str:
        """Start and end of stderr, decoded with replacement."""
        return self._stderr.text()

    def stop(self) -> None:
        """End the tree from another thread; not a limit."""
        with self._closing:
            if not self._over:
                os.eventfd_write(self._wake, 1)

    def loop(self) -> None:
        """Run until the child is gone and its pipes are empty. Kills the tree if this is interrupted."""
        try:
            self._loop()
        except BaseException:
            self._tree.kill()
            self._child.kill()
            raise
        finally:
            self.returncode = self._child.wait()
            with self._closing:
                self._over = True
                for fd in (self._exit, self._wake):
                    os.close(fd)
            for pipe in (self._child.stderr, self._child.stdin, self._child.stdout if self._capture else None):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()

    def _loop(self) -> None:
        with selectors.DefaultSelector() as ready:
            pipes = self._register(ready)
            ready.register(self._exit, selectors.EVENT_READ, self._on_exit)
            ready.register(self._wake, selectors.EVENT_READ, self._on_stop)
            look_at = time.monotonic() + TICK_S
            while not self._gone or any(fd in ready.get_map() for fd in pipes):
                for key, _ in ready.select(max(0.0, look_at - time.monotonic())):
                    if not key.data():
                        ready.unregister(key.fd)
                now = time.monotonic()
                if now >= look_at:
                    look_at = now + TICK_S
                    self._look()
                if self._killed_at is not None and now - self._killed_at > GRACE_S:
                    self._child.kill()
                    break

    def _register(self, ready: selectors.DefaultSelector) -> list[int]:
        """Register all pipes; returns those that must run dry before the run counts as over."""
        assert self._child.stderr is not None  # noqa: S101
        pipes = [self._child.stderr.fileno()]
        ready.register(pipes[0], selectors.EVENT_READ, self._on_stderr)
        if self._capture:
            assert self._child.stdout is not None  # noqa: S101
            pipes.append(self._child.stdout.fileno())
            ready.register(pipes[1], selectors.EVENT_READ, self._on_stdout)
        if self._status_fd is not None:
            pipes.append(self._status_fd)
            ready.register(self._status_fd, selectors.EVENT_READ, self._on_status)
        if self._stdin is not None and self._child.stdin is not None:
            os.set_blocking(self._child.stdin.fileno(), False)
            ready.register(self._child.stdin.fileno(), selectors.EVENT_WRITE, self._on_stdin)
        return pipes

    def _on_exit(self) -> bool:
        self._gone = True
        self._tree.ended()
        return False

    def _on_stop(self) -> bool:
        os.eventfd_read(self._wake)
        self._end()
        return False

    def _on_stderr(self) -> bool:
        assert self._child.stderr is not None  # noqa: S101
        data = os.read(self._child.stderr.fileno(), _CHUNK)
        self._stderr.add(data)
        return bool(data)

    def _on_stdout(self) -> bool:
        assert self._child.stdout is not None  # noqa: S101
        data = os.read(self._child.stdout.fileno(), _CHUNK)
        if self.halt is None:
            self._stdout += data
            if len(self._stdout) > self._limits.stdout_bytes:
                self._stdout.clear()
                self._end(Halt.STDOUT)
        return bool(data)

    def _on_status(self) -> bool:
        assert self._status_fd is not None  # noqa: S101
        data = os.read(self._status_fd, _CHUNK)
        *lines, self._status_rest = (self._status_rest + data).split(b"\n")
        for line in lines:
            self._tree.status_line(line)
        return bool(data)

    def _on_stdin(self) -> bool:
        assert self._stdin is not None  # noqa: S101
        assert self._child.stdin is not None  # noqa: S101
        try:
            self._stdin = self._stdin[os.write(self._child.stdin.fileno(), self._stdin[:_CHUNK]) :]
        except BlockingIOError:
            return True
        except BrokenPipeError:
            self._stdin = self._stdin[:0]
        if not self._stdin:
            self._child.stdin.close()
            self._child.stdin = None
            return False
        return True

    def _look(self) -> None:
        """One look at clock, memory and disk."""
        if self.halt is not None or self._gone:
            return
        if self._clock.elapsed() > self._limits.wall_s:
            self._end(Halt.WALL)
            return
        if self._ticks % RESCAN_TICKS == 0:
            self._known = self._tree.pids()
        self._ticks += 1
        held = sum(resident_bytes(pid) for pid in self._known)
        if held > self._limits.tree_bytes:
            held = sum(proportional_bytes(pid) for pid in self._known)
        self.peak_bytes = max(self.peak_bytes, held)
        if held > self._limits.tree_bytes:
            self._end(Halt.MEMORY)
            return
        broken = self._disk()
        if broken is not None:
            self._end(broken)

    def _end(self, why: Halt | None = None) -> None:
        if self.halt is None:
            self.halt = why
        if self._killed_at is None:
            self._killed_at = time.monotonic()
        self._tree.kill()


class _HeadAndTail:
    """The first and the last bytes of a stream."""

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def add(self, data: bytes) -> None:
        room = self._kept - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room > 0 else data
        if len(self._tail) > 2 * self._kept:
            self._left_out += len(self._tail) - self._kept
            del self._tail[: -self._kept]

    def text(self) -> str:
        middle = f"\n[{self._left_out} bytes left out]\n".encode() if self._left_out else b""
        return bytes(self._head + middle + self._tail).decode("utf-8", "replace")


def resident_bytes(pid: int) -> int:
    """Resident memory of one process; shared pages count in full. 0 if it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return 0


def proportional_bytes(pid: int) -> int:
    """Memory of one process with shared pages divided among their users; resident memory where that cannot be read."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_bytes().splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    except (OSError, IndexError, ValueError):
        pass
    return resident_bytes(pid)


def descendants(root: int) -> list[int]:
    """``root`` and all processes below it."""
    found, queue = [root], [root]
    while queue:
        for child in _children(queue.pop()):
            if child not in found:
                found.append(child)
                queue.append(child)
    return found


_CHILDREN_LISTED = Path(f"/proc/self/task/{threading.get_native_id()}/children").exists()


def _children(pid: int) -> list[int]:
    if not _CHILDREN_LISTED:
        return [one for one, parent in _parents() if parent == pid]
    out: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                out += [int(word) for word in Path(f"/proc/{pid}/task/{task}/children").read_bytes().split()]
    except OSError:
        pass
    return out


def _parents() -> list[tuple[int, int]]:
    """Process and parent numbers of the whole machine, for kernels that list no children."""
    out: list[tuple[int, int]] = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                out.append((int(name), int(Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()[1])))
    return out


def send_kill(pidfd: int) -> None:
    """SIGKILL through a descriptor: never hits a process that took over the number."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
