"""The private job folder of one sandboxed run, and the way host files get in front of an unprivileged uid.

Owns temporary folders and the staging cache; nothing here is data of a lake. Must not start the command itself.

Started by root, the sandbox runs as uid 65534, which cannot walk into a 0700 home folder and cannot read a 0600 file. Such inputs
are staged: hard-linked where the file itself is readable, copied otherwise. Started by anyone else, no staging is ever needed.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import hashlib
import os
import shutil
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from schemas.errors import SandboxUnavailable, ToolFailed

NOBODY = 65534
"""uid and gid of everything inside."""

SMALL_FOLDER = 500
"""A folder of up to so many entries is compared in full at every run, a bigger one by its first level."""

KEEP_STAGED_S = 24 * 3600
"""A staged folder whose source changed is removed once it has not been used for so long."""

KEEP_COPIES = 8
"""Staged files kept for later runs of this process."""

_COMPLETE = ".workprint-complete"
_COPIES = "workprint-copies-"


@dataclass(frozen=True, slots=True)
class Job:
    """Folders of one run: ``inputs`` becomes ``/in`` (read-only), ``outputs`` becomes ``/out``."""

    root: Path
    inputs: Path
    outputs: Path


def privileged() -> bool:
    """We are root, so the sandbox must drop to :data:`NOBODY` first."""
    return os.geteuid() == 0


@contextlib.contextmanager
def open_job() -> Iterator[Job]:
    """A fresh job folder that only we and the sandbox can enter; removed afterwards, whatever was put into it.

    Raises:
        SandboxUnavailable: there is no temporary folder that the sandbox could enter.
    """
    root = Path(tempfile.mkdtemp(prefix="workprint-", dir=scratch_folder()))
    try:
        job = Job(root, root / "in", root / "out")
        job.inputs.mkdir()
        job.outputs.mkdir(mode=0o700)
        if privileged():
            _give_to_group(root, 0o710)
            _give_to_group(job.inputs, 0o750)
            os.chown(job.outputs, NOBODY, NOBODY)
        yield job
    finally:
        _release(root)
        scrub(root)


def scratch_folder() -> Path:
    """The folder for temporary files: the usual one, or the first common one that uid 65534 can enter when we are root."""
    if not privileged():
        return Path(tempfile.gettempdir())
    tried = [tempfile.gettempdir(), "/tmp", "/var/tmp"]  # noqa: S108  (a private folder is made inside)
    for name in tried:
        path = Path(name).resolve()
        if path.is_dir() and _enterable(path) and os.access(path, os.W_OK):
            return path
    raise SandboxUnavailable(
        "temporary_folder",
        f"none of {', '.join(dict.fromkeys(tried))} can be entered by uid {NOBODY}",
        "set TMPDIR to a folder whose parents are open to all (mode o+x)",
    )


def place_text(job: Job, name: str, content: bytes) -> None:
    """Write one text of the command to ``/in/NAME``."""
    target = _target(job, name)
    target.write_bytes(content)
    _open_to_sandbox(target)


def place_file(job: Job, name: str, source: Path) -> Path:
    """Prepare a host file for ``/in/NAME``: a placeholder in the job folder, and the file to mount over it.

    Returns:
        The resolved host path, or that of its staged copy where uid 65534 could not read it.

    Raises:
        ToolFailed: there is no regular file at ``source``, or no room to stage it.
    """
    target = _target(job, name)
    try:
        resolved = source.resolve(strict=True)
        info = resolved.stat()
    except (OSError, RuntimeError) as error:
        raise ToolFailed("input_missing", f"input '{name}' cannot be opened: {error}", "check that the file still exists") from error
    if not stat.S_ISREG(info.st_mode):
        raise ToolFailed("input_not_a_file", f"input '{name}' is no regular file", "give a file")
    target.touch()
    _open_to_sandbox(target)
    if not privileged() or (_enterable(resolved.parent) and _readable(info)):
        return resolved
    return _staged_file(resolved, info, job)


_copies: dict[tuple[object, ...], Path] = {}
_copy_folders: list[Path] = []
_copies_lock = threading.Lock()
_held: dict[Path, set[tuple[object, ...]]] = {}
"""Staged files that a run under way was promised: they stay, however many there are."""


def _staged_file(source: Path, info: os.stat_result, job: Job) -> Path:
    """A link to, or else a copy of, one file, kept while this process lives and the file does not change."""
    key: tuple[object, ...] = (source, info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns)
    if not _readable(info):  # what is copied may change in place; a link would change this time itself
        key = (*key, info.st_ctime_ns)
    with _copies_lock:
        _held.setdefault(job.root, set()).add(key)
        if key in _copies:
            _copies[key] = _copies.pop(key)
            return _copies[key]
        folders = _folders_for_copies()
        name = f"{hashlib.sha256(repr(key).encode()).hexdigest()[:24]}"
        target = folders[0] / name
        if not (_readable(info) and any(_link(source, target := folder / name) for folder in folders)):
            target = max(folders, key=lambda folder: shutil.disk_usage(folder).free) / name
            try:
                shutil.copyfile(source, target)
            except OSError as error:
                raise ToolFailed(
                    "input_not_staged", f"'{source.name}' could not be copied for the sandbox: {error}", "free temporary space"
                ) from error
            _open_to_sandbox(target)
        _copies[key] = target
        _forget_oldest()
        return target


def _forget_oldest() -> None:
    """Remove staged files beyond :data:`KEEP_COPIES`, oldest first, save those that a run still needs. Call with the lock held."""
    needed = set().union(*_held.values())
    for key in [k for k in _copies if k not in needed][: max(0, len(_copies) - KEEP_COPIES)]:
        _copies.pop(key).unlink(missing_ok=True)


def _release(root: Path) -> None:
    """A run is over: its staged files may go."""
    with _copies_lock:
        if _held.pop(root, None):
            _forget_oldest()


def _scrub_own(folder: Path, pid: int) -> None:
    """At exit: remove the folder, but not from a forked child that merely inherited it."""
    if os.getpid() == pid:
        scrub(folder)


def _folders_for_copies() -> list[Path]:
    """Folders of this process for staged files, on the file systems of the common temporary folders."""
    if not _copy_folders:
        roots = {path.stat().st_dev: path for path in (Path("/var/tmp"), scratch_folder()) if path.is_dir() and _enterable(path)}  # noqa: S108
        for root in reversed(roots.values()):
            for old in root.glob(f"{_COPIES}*-*"):
                if old.lstat().st_uid == os.geteuid() and not Path(f"/proc/{old.name[len(_COPIES) :].partition('-')[0]}").exists():
                    scrub(old)
            folder = Path(tempfile.mkdtemp(prefix=f"{_COPIES}{os.getpid()}-", dir=root))
            _give_to_group(folder, 0o710)
            atexit.register(_scrub_own, folder, os.getpid())
            _copy_folders.append(folder)
    return _copy_folders


def place_folder(source: Path) -> Path:
    """A host folder that the sandbox can read: ``source`` itself, or its staged copy.

    Raises:
        ToolFailed: there is no such folder.
        SandboxUnavailable: the staging cache cannot be trusted.
    """
    try:
        resolved = source.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise ToolFailed("folder_missing", f"folder '{source.name}' cannot be opened: {error}", "run 'workprint doctor'") from error
    if not resolved.is_dir():
        raise ToolFailed("folder_missing", f"'{source.name}' is no folder", "run 'workprint doctor'")
    if not privileged() or (_enterable(resolved) and all(_open_entry(entry) for entry in os.scandir(resolved))):
        return resolved
    return _staged(resolved)


_staged_before: dict[tuple[str, str], Path] = {}


def _staged(folder: Path) -> Path:
    """The cached copy of a folder, keyed by its path and by names, sizes and times of what is in it."""
    quick = (str(folder), _first_level(folder))
    known = _staged_before.get(quick)
    if known is not None and (known / _COMPLETE).exists():
        os.utime(known / _COMPLETE)
        return known
    cache = _stage_cache()
    origin = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    entry = cache / f"{origin}-{_fingerprint(folder)}"
    with open(cache / f"{origin}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (entry / _COMPLETE).exists():
            scrub(entry)
            _copy_folder(folder, entry)
            (entry / _COMPLETE).touch()
        os.utime(entry / _COMPLETE)
        for old in cache.glob(f"{origin}-*"):
            if old != entry and _idle_s(old) > KEEP_STAGED_S:
                scrub(old)
    _staged_before[quick] = entry
    return entry


def _stage_cache() -> Path:
    """Folder of staged folders: ours alone to write, open to the sandbox to read."""
    cache = scratch_folder() / f"workprint-staged-{os.geteuid()}"
    cache.mkdir(mode=0o700, exist_ok=True)
    info = os.lstat(cache)
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid() or info.st_mode & 0o022:
        raise SandboxUnavailable("staging_cache", f"{cache} is not a folder of ours alone", "remove it, then run again")
    _give_to_group(cache, 0o710)
    return cache


def _copy_folder(source: Path, target: Path) -> None:
    """Link or copy a whole folder; links inside stay links, everything else that is no file is left out."""
    target.mkdir()
    _give_to_group(target, 0o750)
    for entry in os.scandir(source):
        goal = target / entry.name
        if entry.is_symlink():
            goal.symlink_to(os.readlink(entry.path))
        elif entry.is_dir():
            _copy_folder(Path(entry.path), goal)
        elif entry.is_file():
            if _readable(entry.stat()) and _link(Path(entry.path), goal):
                continue
            shutil.copyfile(entry.path, goal)
            shutil.copymode(entry.path, goal)
            _open_to_sandbox(goal)


def _fingerprint(folder: Path) -> str:
    """sha256 over path, kind, size and time of everything in a folder."""
    digest = hashlib.sha256()
    for line in sorted(_walk(folder)):
        digest.update(line)
    return digest.hexdigest()[:24]


def _first_level(folder: Path) -> str:
    """Fingerprint of a small folder, or of the first level of a big one."""
    lines: list[bytes] = []
    for line in _walk(folder):
        lines.append(line)
        if len(lines) > SMALL_FOLDER:
            lines = [_line(entry, entry.name) for entry in os.scandir(folder)]
            break
    return hashlib.sha256(b"\0".join(sorted(lines))).hexdigest()


def _walk(folder: Path, under: str = "") -> Iterator[bytes]:
    for entry in os.scandir(folder):
        name = f"{under}{entry.name}"
        yield _line(entry, name)
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry.path), f"{name}/")


def _line(entry: os.DirEntry[str], name: str) -> bytes:
    info = entry.stat(follow_symlinks=False)
    return os.fsencode(f"{name}\0{info.st_mode}\0{info.st_size}\0{info.st_mtime_ns}\n")


def _idle_s(entry: Path) -> float:
    try:
        return time.time() - (entry / _COMPLETE).stat().st_mtime
    except OSError:
        return float("inf")


def _target(job: Job, name: str) -> Path:
    """Path of ``/in/NAME`` in the job folder, with its parents made."""
    target = job.inputs / name
    for parent in reversed(target.relative_to(job.inputs).parents[:-1]):
        folder = job.inputs / parent
        if not folder.is_dir():
            folder.mkdir()
            if privileged():
                _give_to_group(folder, 0o750)
    return target


def _link(source: Path, target: Path) -> bool:
    try:
        os.link(source, target)
    except OSError:
        return False
    return True


def _open_to_sandbox(path: Path) -> None:
    if privileged():
        _give_to_group(path, 0o640 | (stat.S_IMODE(path.stat().st_mode) & 0o110))


def _give_to_group(path: Path, mode: int) -> None:
    os.chown(path, -1, NOBODY)
    os.chmod(path, mode)


def _enterable(folder: Path) -> bool:
    """uid 65534 can walk down to and into this folder."""
    return all(_bit(parent.stat(), 0o1) for parent in (folder, *folder.parents))


def _readable(info: os.stat_result) -> bool:
    return _bit(info, 0o4)


def _open_entry(entry: os.DirEntry[str]) -> bool:
    if entry.is_symlink():
        return True
    info = entry.stat()
    return _bit(info, 0o5 if entry.is_dir() else 0o4)


def _bit(info: os.stat_result, wanted: int) -> bool:
    """Permission bits as they apply to uid and gid 65534."""
    if info.st_uid == NOBODY:
        shift = 6
    elif info.st_gid == NOBODY:
        shift = 3
    else:
        shift = 0
    return (info.st_mode >> shift) & wanted == wanted


def scrub(folder: Path) -> None:
    """Remove a scratch folder, however deep, closed or crowded a hostile command left it. Links in it are never followed."""
    if not os.path.lexists(folder):
        return
    with contextlib.suppress(OSError, RecursionError):
        shutil.rmtree(folder)
        return
    for command in (["chmod", "-R", "u+rwx", "--"], ["rm", "-rf", "--one-file-system", "--"]):
        subprocess.run([*command, str(folder)], check=False, stdin=subprocess.DEVNULL, capture_output=True)  # noqa: S603
