"""Takes the products out of a job's output folder.

Owns the rules under which a file of the sandbox becomes a file of ours: declared, regular, single link, under the cap. Nothing is
opened before its kind is known, no link is followed, and what is handed over is the very file that was checked.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from media.watch import Halt
from schemas.errors import OutputRejected

DEEPEST = 16
MOST_ENTRIES = 2000
"""More entries than this under ``/out`` end a run: outputs are a few declared files."""


def collect(folder: Path, names: Sequence[str], workdir: Path, cap: int) -> Mapping[str, Path]:
    """Hand the declared outputs over to ``workdir``. Call only when no process of the run is left.

    Args:
        folder: the job's output folder on the host.
        names: declared output names; all must exist, and nothing else may.
        workdir: folder of the caller; must not hold files of these names yet.
        cap: largest size of one output, bytes.

    Raises:
        OutputRejected: with code undeclared, missing, link, not_a_file, hard_link, too_large or name_taken.
    """
    present = sorted(os.listdir(folder))
    for name in present:
        if name not in names:
            raise OutputRejected("undeclared", f"the command left '{_shown(name)}', which is not among its declared outputs", "")
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return {name: _take(at, name, workdir / name, cap) for name in names}
    finally:
        os.close(at)


def _take(folder: int, name: str, goal: Path, cap: int) -> Path:
    try:
        seen = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        raise OutputRejected("missing", f"the command ended well but left no '{name}'", "") from None
    _accept(name, seen, cap)
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        opened = os.fstat(fd)
        if (opened.st_dev, opened.st_ino) != (seen.st_dev, seen.st_ino):
            raise OutputRejected("link", f"'{name}' changed while it was collected", "")
        _accept(name, opened, cap)
        _hand_over(folder, fd, goal)
    finally:
        os.close(fd)
    return goal


def _accept(name: str, info: os.stat_result, cap: int) -> None:
    if stat.S_ISLNK(info.st_mode):
        raise OutputRejected("link", f"output '{name}' is a symbolic link", "")
    if not stat.S_ISREG(info.st_mode):
        raise OutputRejected("not_a_file", f"output '{name}' is no regular file (mode {stat.filemode(info.st_mode)})", "")
    if info.st_nlink != 1:
        raise OutputRejected("hard_link", f"output '{name}' has {info.st_nlink} names; expected 1", "")
    if info.st_size > cap:
        raise OutputRejected("too_large", f"output '{name}' has {info.st_size} bytes; at most {cap} are taken", "raise Limits.file_bytes")


def _hand_over(folder: int, fd: int, goal: Path) -> None:
    """Give the open file a name in the caller's folder (a second link where the folders share a file system, else a copy)."""
    try:
        # with a folder descriptor Python calls linkat, which follows the link to the open file; without one it would link the link
        os.link(f"/proc/self/fd/{fd}", goal, src_dir_fd=folder, follow_symlinks=True)
        os.fchown(fd, os.geteuid(), os.getegid())
        os.fchmod(fd, 0o644)
        return
    except FileExistsError:
        raise OutputRejected(
            "name_taken", f"the folder of the caller already holds '{goal.name}'", "use a fresh folder or another name"
        ) from None
    except OSError:
        pass
    with open(goal, "xb") as copy, os.fdopen(os.dup(fd), "rb") as source:
        while chunk := source.read(1 << 20):
            copy.write(chunk)


def volume(folder: Path, cap: int) -> Halt | None:
    """Whether an output folder holds more than ``cap`` bytes on disk or more than :data:`MOST_ENTRIES` entries
    or is nested deeper than :data:`DEEPEST`."""
    entries, held, queue = 0, 0, [(folder, 0)]
    while queue:
        at, depth = queue.pop()
        try:
            with os.scandir(at) as listing:
                for entry in listing:
                    entries += 1
                    if entries > MOST_ENTRIES or depth > DEEPEST:
                        return Halt.OUTPUT
                    info = entry.stat(follow_symlinks=False)
                    held += info.st_blocks * 512
                    if stat.S_ISDIR(info.st_mode):
                        queue.append((Path(entry.path), depth + 1))
        except OSError:
            continue
    return Halt.OUTPUT if held > cap else None


def _shown(name: str) -> str:
    """A hostile name, fit for a message."""
    return name.encode("unicode_escape", "replace").decode("ascii")[:120]
