"""Which large data files of lakes this machine has read in full and found right, so that a new process need not read them again.

One small SQLite file in the cache folder. What it remembers is the file's inode, size and both of its times: whoever changes a file
changes its time of change, which no program can set. It is a memory, never a truth: lost, damaged or not writable it only costs reading
the files again, and ``fsck`` never asks it. Must not know what the files hold.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from pathlib import Path

from schemas.canonical import Sha256

SMALLEST_BYTES = 1024 * 1024
"""Smaller files are read again: that costs no more than asking."""

AGE_S = 7 * 86400
"""After this a file is read again, because a disk can lose bits without anybody writing."""

SETTLED_S = 2
"""A file changed less than this before it was read is not remembered: a second change could carry the same time."""

_TABLE = """create table if not exists checked (
    path text primary key, device int, inode int, bytes int, modified_ns int, changed_ns int, sha256 text, checked_s int) without rowid"""

Stamp = tuple[int, int, int, int, int]
"""Device, inode, size in bytes, time of modification and of change in ns: equal stamps mean that nobody wrote the file between."""


def stamp_of(path: Path) -> Stamp:
    """The stamp of a file as it lies.

    Raises:
        FileNotFoundError: it is not there.
    """
    s = path.stat()
    return s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns


class CheckedFiles:
    """The memory of one machine and user; safe for many processes at once."""

    def __init__(self, cache: Path) -> None:
        self._path = cache / "checked.sqlite"

    def known(self, files: Iterable[tuple[Path, Sha256, Stamp]]) -> set[Path]:
        """Those of the files that were read in the last :data:`AGE_S` with this digest and have the same stamp still."""
        oldest = int(time.time()) - AGE_S
        found: set[Path] = set()
        with suppress(sqlite3.Error, OSError):
            if not self._path.is_file():
                return found
            with closing(sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", uri=True, timeout=1)) as con:
                for path, sha256, stamp in files:
                    row = con.execute("select * from checked where path = ?", (str(path),)).fetchone()
                    if row is not None and tuple(row[1:7]) == (*stamp, sha256) and row[7] >= oldest:
                        found.add(path)
        return found

    def remember(self, files: Iterable[tuple[Path, Sha256, Stamp]]) -> None:
        """Note files that were just read and found right; small and fresh ones are left out (see above)."""
        now = time.time()
        rows = [
            (str(path), *stamp, sha256, int(now))
            for path, sha256, stamp in files
            if stamp[2] >= SMALLEST_BYTES and stamp[4] < (now - SETTLED_S) * 1e9
        ]
        if not rows:
            return
        with suppress(sqlite3.OperationalError, OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._write(rows, int(now))
            except sqlite3.OperationalError:
                raise  # another process is writing, or this one may not
            except sqlite3.DatabaseError:
                self._path.unlink(missing_ok=True)  # damaged: it begins anew

    def _write(self, rows: Sequence[tuple[str | int, ...]], now_s: int) -> None:
        with closing(sqlite3.connect(self._path, timeout=1)) as con, con:
            self._path.chmod(0o600)
            con.execute("pragma synchronous = off")
            con.execute(_TABLE)
            con.execute("delete from checked where checked_s < ?", (now_s - AGE_S,))
            con.executemany("insert or replace into checked values (?, ?, ?, ?, ?, ?, ?, ?)", rows)
