"""A command as data: what runs in the sandbox, what it may read, what it must leave behind, and its limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one command. All are enforced; reaching one raises ``LimitExceeded``."""

    wall_s: float = 60.0
    cpu_s: int = 600
    data_bytes: int = 2048 * MIB
    """RLIMIT_DATA of each process."""
    tree_bytes: int = 4096 * MIB
    """Resident memory of the whole process tree, watched from outside."""
    file_bytes: int = 2048 * MIB
    processes: int = 512
    open_files: int = 1024
    tmp_bytes: int = 1024 * MIB
    stdout_bytes: int = 256 * MIB


@dataclass(frozen=True, slots=True)
class Command:
    """One sandboxed process.

    ``argv`` refers to inputs as ``/in/NAME`` and to outputs as ``/out/NAME``. User text never stands in ``argv``: it travels in
    an input file. ``inputs`` maps NAME to a host file, mounted read-only. ``texts`` maps NAME to file content written for this run.
    ``folders`` maps an absolute path inside the sandbox to a host folder, read-only. ``outputs`` lists the names that must exist
    afterwards; anything else under ``/out`` is refused. ``writable`` lists sub-folders made in the private ``/tmp``.
    """

    argv: tuple[str, ...]
    inputs: Mapping[str, Path] = field(default_factory=dict)
    texts: Mapping[str, bytes] = field(default_factory=dict)
    folders: Mapping[str, Path] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    stdin: bytes | None = None


@dataclass(frozen=True, slots=True)
class Completed:
    """What a command left. A non-zero ``returncode`` is a result, not an exception: the caller decides what it means."""

    returncode: int
    stdout: bytes
    stderr: str
    outputs: Mapping[str, Path]
    """Collected output files in ``workdir``, owned by the caller."""
    wall_us: int


class Sandbox(Protocol):
    """Runs commands. Every implementation passes the conformance suite in tests/hostile."""

    name: str
    """'bubblewrap', or 'process' where it was asked for by name; recorded in every trajectory."""

    def run(self, command: Command, workdir: Path) -> Completed:
        """Run to the end and collect the outputs into ``workdir`` (an existing host folder).

        Raises:
            SandboxUnavailable: a layer is missing on this host.
            LimitExceeded: a limit was reached; no process is left.
            OutputRejected: an output is missing, a link, a device, over the cap, or undeclared. Only checked when returncode is 0.
        """
        ...

    def stream(self, command: Command, consume: Callable[[IO[bytes]], None]) -> Completed:
        """Run while ``consume`` reads the child's stdout as it comes (raw frames, PCM). ``stdout`` of the result is empty.

        ``consume`` may stop early by returning; the child is then ended and ``returncode`` may be a signal number.
        ``Limits.stdout_bytes`` does not apply. Raises as :meth:`run`.
        """
        ...
