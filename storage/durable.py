"""Durable file operations: the only place that writes, fsyncs, renames and removes.

Order of every publication: bytes to a temporary name, fsync, rename, fsync of the folder. Each operation first calls
:data:`fault_point`, so that tests can kill or fail the process at any of them. Must not know what the bytes mean.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
import stat
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from schemas.canonical import Sha256
from schemas.errors import LockHeld, StorageFault, StorageFull

TEMP_PREFIX = ".tmp-"
"""Files of this prefix are unfinished: never read, removed by garbage collection."""

CHUNK = 1024 * 1024
FILE_MODE = 0o644
FOLDER_MODE = 0o755

FaultPoint = Callable[[str, str], None]


def _no_fault(operation: str, path: str) -> None:
    """Do nothing."""


fault_point: FaultPoint = _no_fault
"""Called as ``fault_point(operation, path)`` before each operation: write, fsync, rename, fsync_folder, mkdir, truncate, unlink,
ledger_begin, ledger_commit, and after the last one of a commit: committed. Replaced by tests only."""


def hit(operation: str, path: Path | str) -> None:
    """Announce an operation to :data:`fault_point`."""
    fault_point(operation, str(path))


def fault_from(error: OSError, what: str) -> StorageFault:
    """The typed error of an operating system error."""
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return StorageFault("read_only", f"{what} is not allowed: {error}", "this lake may only be read from here; write to another one")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFull("no_space", f"no space left while {what}: {error}", "free space on the device, then start again: it resumes")
    return StorageFault("io_error", f"{what} failed: {error}", "check the device, then start again: it resumes")


class Latch:
    """Closes a writer after its first storage fault: a later fsync that succeeds proves nothing about the one that failed.

    Recovery is the normal start-up path: open the store or the lake anew.
    """

    def __init__(self) -> None:
        self._fault: StorageFault | None = None

    def check(self) -> None:
        """Raises StorageFault when an earlier write failed."""
        if self._fault is not None:
            raise StorageFault(
                "closed_after_fault",
                f"an earlier write failed ({self._fault.code}: {self._fault.message}); nothing is acknowledged after it",
                "open it anew: everything acknowledged before the fault is there",
            )

    def trip(self, fault: StorageFault) -> StorageFault:
        """Remember a fault; returns it to be raised."""
        self._fault = self._fault or fault
        return fault

    @contextmanager
    def writing(self, what: str) -> Iterator[None]:
        """Run writes; an operating system error closes the writer.

        Raises:
            StorageFull: no space left.
            StorageFault: any other operating system error, or an earlier fault.
        """
        self.check()
        try:
            yield
        except OSError as error:
            raise self.trip(fault_from(error, what)) from error


def temp_name(folder: Path) -> Path:
    """A fresh temporary name in ``folder``."""
    return folder / f"{TEMP_PREFIX}{os.getpid()}-{uuid.uuid4().hex}"


def make_folder(path: Path) -> None:
    """Make a folder and its parents, world-readable; each new entry is fsynced into its parent."""
    missing: list[Path] = []
    at = path
    while not at.is_dir():
        missing.append(at)
        at = at.parent
    for folder in reversed(missing):
        hit("mkdir", folder)
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        folder.chmod(FOLDER_MODE)
        fsync_folder(folder.parent)


def fsync_folder(path: Path) -> None:
    """Make the entries of a folder durable."""
    hit("fsync_folder", path)
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def fsync_together(files: Iterable[Path], folders: Iterable[Path]) -> None:
    """Make finished files and the entries of folders durable, all at once: the file system then writes its journal once, not for each.

    Only for files that mean nothing before a later step names them, since a crash may leave a name without its bytes.

    Raises:
        OSError: one of them failed; the others may or may not be durable.
    """
    waiting: list[tuple[Path, int]] = []
    for path in files:
        hit("fsync", path)
        waiting.append((path, os.O_RDONLY))
    for path in folders:
        hit("fsync_folder", path)
        waiting.append((path, os.O_RDONLY | os.O_DIRECTORY))
    if len(waiting) < 2:
        for path, flags in waiting:
            _fsync(path, flags)
        return
    with ThreadPoolExecutor(min(len(waiting), 16)) as pool:  # an own pool: a shared one would not survive a fork
        for done in [pool.submit(_fsync, path, flags) for path, flags in waiting]:
            done.result()


def _fsync(path: Path, flags: int) -> None:
    fd = os.open(path, flags | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def fsync_file(path: Path) -> None:
    """Make the bytes of a finished file durable and readable by all."""
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.fchmod(fd, FILE_MODE)
        hit("fsync", path)
        os.fsync(fd)
    finally:
        os.close(fd)


def write_temp(folder: Path, chunks: Iterable[bytes], *, sync: bool = True) -> tuple[Path, Sha256, int]:
    """Write bytes under a temporary name and fsync them, unless ``sync`` is False: then the caller must before it promises anything.

    Returns:
        path, sha256 and number of bytes as written.
    """
    temp = temp_name(folder)
    digest = hashlib.sha256()
    size = 0
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(fd, FILE_MODE)
        for chunk in chunks:
            hit("write", temp)
            write_all(fd, chunk)
            digest.update(chunk)
            size += len(chunk)
        if sync:
            hit("fsync", temp)
            os.fsync(fd)
    except BaseException:
        os.close(fd)
        temp.unlink(missing_ok=True)
        raise
    os.close(fd)
    return temp, digest.hexdigest(), size


def write_all(fd: int, data: bytes) -> None:
    """Write every byte; short writes go on."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def publish(moves: Iterable[tuple[Path, Path]], *, sync: bool = True) -> None:
    """Rename finished, fsynced files to their places and fsync each folder once (unless ``sync`` is False, as for write_temp)."""
    folders: dict[Path, None] = {}
    for temp, final in moves:
        hit("rename", f"{temp}\n{final}")
        temp.replace(final)
        folders[final.parent] = None
    for folder in folders if sync else ():
        fsync_folder(folder)


def write_file(path: Path, data: bytes) -> None:
    """Write a file so that readers see the old bytes or all of the new ones, also after a crash.

    Raises:
        StorageFull, StorageFault: the file was not written.
    """
    try:
        make_folder(path.parent)
        temp, _, _ = write_temp(path.parent, [data])
        publish([(temp, path)])
    except OSError as error:
        raise fault_from(error, f"writing {path.name}") from error


def copy_file(source: Path, target: Path) -> None:
    """Copy a regular file in the manner of :func:`write_file`.

    Raises:
        StorageFull, StorageFault: the file was not copied.
    """
    try:
        make_folder(target.parent)
        temp, _, _ = write_temp(target.parent, read_chunks(source))
        publish([(temp, target)])
    except OSError as error:
        raise fault_from(error, f"copying to {target.name}") from error


def read_chunks(path: Path) -> Iterator[bytes]:
    """The bytes of a regular file, in pieces of :data:`CHUNK`.

    Raises:
        StorageFault: it cannot be opened or is not a regular file.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise StorageFault("unreadable", f"cannot open {path.name}: {error}", "check that the file is still there") from error
    with os.fdopen(fd, "rb", buffering=0) as handle:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise StorageFault("not_a_file", f"{path.name} is not a regular file")
        while chunk := handle.read(CHUNK):
            yield chunk


def digest_file(path: Path) -> tuple[Sha256, int]:
    """sha256 and size of a file."""
    digest = hashlib.sha256()
    size = 0
    for chunk in read_chunks(path):
        digest.update(chunk)
        size += len(chunk)
    return digest.hexdigest(), size


def remove(path: Path) -> bool:
    """Remove a file; False when it was gone already."""
    hit("unlink", path)
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True


def lock_fd(fd: int, what: str, *, wait: bool = False) -> None:
    """Take the exclusive lock of an open file; released when the descriptor is closed or the process ends.

    Raises:
        LockHeld: another process has it and ``wait`` is False.
    """
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError as error:
        raise LockHeld("lock_held", f"another process is using {what}", "wait for it to end, or stop it") from error


@contextmanager
def exclusive(path: Path, what: str, *, wait: bool = False) -> Iterator[None]:
    """Hold the exclusive lock named by a file (made if missing) or an existing folder.

    Raises:
        LockHeld: another process has it and ``wait`` is False.
    """
    flags = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
    fd = os.open(path, flags | os.O_CLOEXEC, FILE_MODE)
    try:
        lock_fd(fd, what, wait=wait)
        yield
    finally:
        os.close(fd)


def remove_folder(path: Path) -> None:
    """Remove a folder with all that is in it; nothing happens when it is gone already."""
    hit("unlink", path)
    shutil.rmtree(path, ignore_errors=True)
