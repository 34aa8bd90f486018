"""The two sandboxes: ``bubblewrap``, the default, and ``process``, which only bounds and must be asked for by name.

Owns how a command is started and what its end means. Must not know any engine. Bytes from outside are opened only by commands that
run here. See SECURITY.md for what each layer stops and what is not promised.
"""

from __future__ import annotations

import io
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Literal, Protocol

from media.bubblewrap import Launched, launch, verify_layers
from media.collect import collect, volume
from media.command import Command, Completed, Sandbox
from media.process_tree import launch_plain
from media.staging import Job, open_job, place_file, place_text
from media.watch import Halt, MeteredPipe, Stopwatch, Watch
from schemas.errors import ConfigInvalid, LimitExceeded, OutputRejected

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,199}")

_STREAM_BUFFER = 1 << 20


def open_sandbox(kind: Literal["bubblewrap", "process"] = "bubblewrap") -> Sandbox:
    """A sandbox whose layers have been seen to hold on this host (checked once per process, from inside).

    Raises:
        SandboxUnavailable: a layer is missing. There is no fall-back: 'process' has to be named.
        ConfigInvalid: there is no sandbox of this name.
    """
    if kind == "bubblewrap":
        verify_layers()
        return BubblewrapSandbox()
    if kind == "process":
        return ProcessSandbox()
    raise ConfigInvalid("sandbox", f"there is no sandbox '{kind}'; expected 'bubblewrap' or 'process'", "correct the configuration")


class _Start(Protocol):
    def __call__(self, command: Command, job: Job, bound: dict[str, Path], *, capture: bool) -> Launched: ...


class _Supervised:
    """What both sandboxes share: staging, watching, judging the end, collecting."""

    name: str
    _start: _Start

    def run(self, command: Command, workdir: Path) -> Completed:
        """See :meth:`media.command.Sandbox.run`."""
        return self._execute(command, workdir, None)

    def stream(self, command: Command, consume: Callable[[IO[bytes]], None]) -> Completed:
        """See :meth:`media.command.Sandbox.stream`. The wall clock stands still while ``consume`` works on what it has read."""
        return self._execute(command, None, consume)

    def _execute(self, command: Command, workdir: Path | None, consume: Callable[[IO[bytes]], None] | None) -> Completed:
        _check_names(command)
        with open_job() as job:
            bound = {name: place_file(job, name, path) for name, path in command.inputs.items()}
            for name, content in command.texts.items():
                place_text(job, name, content)
            clock = Stopwatch()
            launched = self._start(command, job, bound, capture=consume is None)
            watch = Watch(
                launched.child,
                launched.tree,
                command.limits,
                clock,
                stdin=command.stdin,
                capture=consume is None,
                status_fd=launched.status_fd,
                disk=lambda: launched.disk() or volume(job.outputs, command.limits.file_bytes),
            )
            try:
                stopped = False
                if consume is None:
                    watch.loop()
                else:
                    stopped = _feed(watch, launched, consume, clock, command)
            finally:
                launched.close()
            returncode = launched.judge(watch, stopped=stopped)
            _raise_if_limited(command, watch, returncode)
            outputs = (
                collect(job.outputs, command.outputs, workdir, command.limits.file_bytes) if workdir is not None and returncode == 0 else {}
            )
            return Completed(
                returncode=returncode,
                stdout=watch.stdout,
                stderr=watch.stderr,
                outputs=outputs,
                wall_us=round((time.monotonic() - clock.started) * 1e6),
            )


class BubblewrapSandbox(_Supervised):
    """Unprivileged uid, own namespaces, no network, only declared files, a system-call filter, rlimits, a watchdog."""

    name = "bubblewrap"

    def _start(self, command: Command, job: Job, bound: dict[str, Path], *, capture: bool) -> Launched:
        return launch(command, job, bound, capture=capture)


class ProcessSandbox(_Supervised):
    """Rlimits, wall clock and watchdog only: bounds a command, but hides nothing from it. Only by explicit name.

    There is no mount namespace, so ``/in/NAME``, ``/out/`` and the declared folders are written over with their host paths: in
    ``argv``, ``env``, and in texts whose name ends in ``.graph`` or ``.ffconcat``.
    """

    name = "process"

    def _start(self, command: Command, job: Job, bound: dict[str, Path], *, capture: bool) -> Launched:
        return launch_plain(command, job, bound, capture=capture)


def _feed(watch: Watch, launched: Launched, consume: Callable[[IO[bytes]], None], clock: Stopwatch, command: Command) -> bool:
    """Run ``consume`` here and the watch beside it. Returns whether ``consume`` stopped before the stream's end."""
    assert launched.child.stdout is not None  # noqa: S101
    pipe = MeteredPipe(launched.child.stdout.fileno(), clock)
    faults: list[BaseException] = []

    def watching() -> None:
        try:
            watch.loop()
        except BaseException as error:
            faults.append(error)

    thread = threading.Thread(target=watching, name="workprint-watch", daemon=True)
    thread.start()
    failure: BaseException | None = None
    try:
        consume(io.BufferedReader(pipe, _STREAM_BUFFER))
    except BaseException as error:
        failure = error
    clock.resume()
    if not pipe.at_end:
        watch.stop()
    thread.join()
    launched.child.stdout.close()
    if faults:
        raise faults[0]
    if failure is not None:
        if isinstance(failure, Exception):
            launched.judge(watch, stopped=True)
            _raise_if_limited(command, watch, launched.returncode(watch), failure)
        raise failure
    return not pipe.at_end


def _raise_if_limited(command: Command, watch: Watch, returncode: int, cause: BaseException | None = None) -> None:
    """Raise LimitExceeded if a limit ended the run."""
    limits = command.limits
    what = os.path.basename(command.argv[0])
    texts = {
        Halt.WALL: f"{what} ran longer than {limits.wall_s:g} s",
        Halt.MEMORY: f"{what} and its children held more than {limits.tree_bytes} bytes of memory (seen: {watch.peak_bytes})",
        Halt.STDOUT: f"{what} wrote more than {limits.stdout_bytes} bytes to its output stream",
        Halt.OUTPUT: f"{what} filled its output folder beyond {limits.file_bytes} bytes or with too many entries",
        Halt.TMP: f"{what} made too many temporary files",
    }
    if watch.halt is not None:
        raise LimitExceeded(watch.halt.value, f"{texts[watch.halt]}; it was ended", "raise the limit if the input is honest") from cause
    if returncode == 128 + signal.SIGXFSZ:
        raise LimitExceeded(
            "file_bytes", f"{what} wrote a file of more than {limits.file_bytes} bytes", "raise the limit if the input is honest"
        ) from cause
    if returncode == 128 + signal.SIGXCPU:
        raise LimitExceeded(
            "cpu_s", f"{what} used more than {limits.cpu_s} s of processor time", "raise the limit if the input is honest"
        ) from cause


def _check_names(command: Command) -> None:
    """Names that become paths are ours, never a user's: plain ASCII words."""
    if not command.argv:
        raise ConfigInvalid("command", "a command needs at least a program")
    for name in (*command.inputs, *command.texts):
        if not all(_NAME.fullmatch(part) for part in name.split("/")):
            raise ConfigInvalid("command", f"input name {name!r} is not made of plain words", "use letters, digits, dots, dashes and '/'")
    if twice := set(command.inputs) & set(command.texts):
        raise ConfigInvalid("command", f"the names {sorted(twice)} are given both as input and as text")
    for name in command.outputs:
        if not _NAME.fullmatch(name):
            raise OutputRejected("name", f"output name {name!r} is not a plain word", "use letters, digits, dots and dashes")
    for inside in command.folders:
        if not re.fullmatch(r"(/[A-Za-z0-9_@+-][A-Za-z0-9_.@+-]*)+", inside) or inside.split("/")[1] in (
            "in",
            "out",
            "usr",
            "proc",
            "dev",
            "tmp",
        ):
            raise ConfigInvalid("command", f"{inside!r} is no place for a folder inside the sandbox", "use a path such as /opt/name")
