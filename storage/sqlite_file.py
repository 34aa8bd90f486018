"""Opening the embedded ledger's SQLite file: to write it, or only to read it where nothing may be written.

A lake on a read-only mount, or of another user, has to be readable. SQLite wants to write its shared memory file beside the database
even for reading; where that cannot be, the file is opened as immutable if no writer left anything unfinished, else a copy is read.
Must not know the ledger's tables.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from pathlib import Path
from urllib.parse import quote

BUSY_S = 60
"""Seconds a transaction waits for another writer."""

_TRIES = 20


def can_write(path: Path) -> bool:
    """This process may write the database: the file (if it is there) and the folder beside it."""
    return os.access(path.parent, os.W_OK) and (not path.exists() or os.access(path, os.W_OK))


def connect(path: Path) -> sqlite3.Connection:
    """A connection to the database, made if it is missing; read-only where :func:`can_write` says no.

    Raises:
        sqlite3.Error: it cannot be opened.
        OSError: a private copy cannot be made.
    """
    if can_write(path):
        con = sqlite3.connect(path, timeout=BUSY_S, check_same_thread=False)
        for pragma in ("journal_mode = wal", "synchronous = full", "foreign_keys = on"):
            con.execute(f"pragma {pragma}").fetchall()
    else:
        con = _read_only(path)
    con.isolation_level = None  # transactions are begun by the ledger alone
    return con


def _read_only(path: Path) -> sqlite3.Connection:
    """Read beside a living writer if there is one, else from the file as it lies, else from a copy."""
    try:
        return _probed(f"file:{quote(str(path))}?mode=ro")
    except sqlite3.OperationalError:
        log = path.with_name(path.name + "-wal")
        if not log.exists() or log.stat().st_size == 0:
            return _probed(f"file:{quote(str(path))}?mode=ro&immutable=1")
        return _probed(_copy(path, log))


def _probed(uri: str) -> sqlite3.Connection:
    con = sqlite3.connect(uri, uri=True, timeout=BUSY_S, check_same_thread=False)
    try:
        con.execute("select count(*) from sqlite_master").fetchall()
    except BaseException:
        con.close()
        raise
    return con


def _copy(path: Path, log: Path) -> str:
    """URI of a copy in the machine's temporary folder, taken while nothing was written; SQLite replays the log there."""
    folder = Path(tempfile.mkdtemp(prefix="workprint-ledger-"))
    for _ in range(_TRIES):
        before = _stamp(path, log)
        for file in (path, log):
            shutil.copyfile(file, folder / file.name)
        if _stamp(path, log) == before:
            return f"file:{quote(str(folder / path.name))}"
    raise sqlite3.OperationalError("the ledger is being written by a process that cannot be read beside; try again")


def _stamp(*files: Path) -> list[tuple[int, int, int]]:
    return [(s.st_ino, s.st_size, s.st_mtime_ns) for s in (f.stat() for f in files)]
