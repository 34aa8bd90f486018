"""Starts a command with bounds only, for hosts whose owner has named the ``process`` sandbox.

Owns the rewriting of inside paths and the search for processes that a command left behind. Hides nothing from the command.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import subprocess
import time
from pathlib import Path

from media.bubblewrap import DEFAULT_ENV, Launched, find_program, limiter
from media.command import Command
from media.staging import Job
from media.watch import Watch, descendants, send_kill
from schemas.errors import SandboxUnavailable

_COOKIE = "WORKPRINT_RUN"
_REWRITTEN_TEXTS = (".graph", ".ffconcat")


class _Marked:
    """The processes of one run, known by their parents and by a mark in their environment."""

    def __init__(self) -> None:
        self.mark = secrets.token_hex(8)
        self._entry = f"{_COOKIE}={self.mark}".encode()
        self._seen: set[int] = set()
        self.child: subprocess.Popen[bytes] | None = None

    def status_line(self, line: bytes) -> None:
        """There is no status descriptor."""

    def pids(self) -> list[int]:
        alive = descendants(self.child.pid) if self.child is not None else []
        self._seen.update(alive)
        return alive

    def kill(self) -> None:
        """Kill until a search finds nothing more, at most for two seconds."""
        until = time.monotonic() + 2.0
        while True:
            left = self._left()
            for pid in left:
                with contextlib.suppress(OSError):
                    fd = os.pidfd_open(pid)
                    send_kill(fd)
                    os.close(fd)
            if not left or time.monotonic() > until:
                return
            time.sleep(0.01)

    def ended(self) -> None:
        self.kill()

    def _left(self) -> set[int]:
        left = set(self.pids()) | {pid for pid in self._seen if self._carries_mark(pid)}
        left |= {int(name) for name in os.listdir("/proc") if name.isdigit() and self._carries_mark(int(name))}
        return {pid for pid in left if _alive(pid)}

    def _carries_mark(self, pid: int) -> bool:
        try:
            return self._entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            return False


def launch_plain(command: Command, job: Job, bound: dict[str, Path], *, capture: bool) -> Launched:
    """Start ``command`` under rlimits.

    Raises:
        SandboxUnavailable: ``prlimit`` is missing.
    """
    where = _Places(command, job, bound)
    tree = _Marked()
    private = job.root / "tmp"
    private.mkdir()
    env = {**DEFAULT_ENV, "HOME": str(private), "TMPDIR": str(private), _COOKIE: tree.mark}
    env |= {key: where.rewrite(value) for key, value in command.env.items()}
    for name, content in command.texts.items():
        if name.endswith(_REWRITTEN_TEXTS):
            (job.inputs / name).write_text(where.rewrite(content.decode()))
    try:
        child = subprocess.Popen(  # noqa: S603
            [*limiter(find_program("prlimit"), command.limits, command.limits.processes), *(where.rewrite(word) for word in command.argv)],
            stdin=subprocess.PIPE if command.stdin is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=env,
            cwd=job.outputs,
            start_new_session=True,
            pipesize=-1 if capture else 1 << 20,
        )
    except OSError as error:
        raise SandboxUnavailable("launcher", f"the command could not be started: {error}", "run 'workprint doctor'") from error
    tree.child = child

    def judge(watch: Watch, stopped: bool) -> int:
        return 128 - watch.returncode if watch.returncode < 0 else watch.returncode

    return Launched(child, tree, None, judge)


class _Places:
    """Inside paths and the host paths that stand for them."""

    def __init__(self, command: Command, job: Job, bound: dict[str, Path]) -> None:
        self._places = {f"/in/{name}": str(bound.get(name, job.inputs / name)) for name in (*command.inputs, *command.texts)}
        self._places |= {inside: str(folder) for inside, folder in command.folders.items()}
        self._places |= {"/in/": f"{job.inputs}/", "/out/": f"{job.outputs}/"}
        self._inside = re.compile("|".join(re.escape(inside) for inside in sorted(self._places, key=len, reverse=True)))

    def rewrite(self, text: str) -> str:
        """Write host paths over inside paths, the longest match first."""
        return self._inside.sub(lambda match: self._places[match.group()], text)


def _alive(pid: int) -> bool:
    """The process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except (OSError, IndexError):
        return False
