"""The call journal: an append-only file of JSON lines in which every line carries a digest chained over the lines before it.

A record is durable before :meth:`Journal.append` returns. What a crash leaves half-written at the end is cut off when the journal is opened
again; damage anywhere else is refused. Must not interpret the records.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from schemas.canonical import Sha256, canonical_bytes, sha256_bytes
from schemas.errors import StorageFault
from storage import durable
from storage.artifacts import json_bytes

JOURNAL_VERSION = "journal.1"

_START: Sha256 = sha256_bytes(JOURNAL_VERSION.encode())
"""What the first line is chained to."""


def _line(sequence: int, previous: Sha256, record: bytes) -> tuple[bytes, Sha256]:
    chain = sha256_bytes(previous.encode() + b"%d" % sequence + record)
    return b'{"seq":%d,"chain":"%s","record":%s}\n' % (sequence, chain.encode(), record), chain


def _lines(data: bytes, name: str) -> Iterator[tuple[dict[str, Any], Sha256, int]]:
    """Records with their chain digest and the offset of their end. Stops before a torn tail: a last line without its line feed, or
    with bytes that never reached the disk (NUL)."""
    at, previous, sequence = 0, _START, 0
    while at < len(data):
        end = data.find(b"\n", at) + 1
        last = end in (0, len(data))
        if end == 0 or (last and b"\0" in data[at:end]):
            return
        line = data[at:end]
        try:
            parsed = orjson.loads(line)
            record = parsed["record"]
            expected, chain = _line(sequence, previous, canonical_bytes(record))
        except (orjson.JSONDecodeError, KeyError, TypeError):
            expected, chain = b"", ""
        if line != expected:
            raise StorageFault(
                "journal_broken",
                f"line {sequence + 1} of {name} does not continue the chain: it was changed, lost its neighbour or belongs elsewhere",
                "the calls before it can be trusted; move the journal away to run the project anew",
            )
        yield record, chain, end
        at, previous, sequence = end, chain, sequence + 1


def read_journal(path: Path) -> list[dict[str, Any]]:
    """The records of a journal that another process may be writing; a torn tail is left out, and left alone.

    Raises:
        StorageFault: the file cannot be read, or its chain is broken.
    """
    return [record for record, _, _ in _lines(b"".join(durable.read_chunks(path)), path.name)]


def is_journal(path: Path) -> bool:
    """The file begins as a journal does."""
    with path.open("rb") as f:
        return f.read(18) == b'{"seq":0,"chain":"'


def discard(path: Path) -> None:
    """Remove a journal whose run is committed; the artifacts that only it names become garbage. No error if there is none.

    Raises:
        LockHeld: another process has it open.
        StorageFault: it cannot be removed.
    """
    if not path.exists():
        return
    try:
        with durable.exclusive(path, f"the journal {path.name}"):
            durable.remove(path)
    except OSError as error:
        raise durable.fault_from(error, f"removing {path.name}") from error


class Journal:
    """One journal, open for appending by this process alone. After a failed append it accepts no more; open it anew."""

    def __init__(self, path: Path) -> None:
        """Open or make the journal, and cut off a torn tail.

        Raises:
            LockHeld: another process has it open.
            StorageFault: it cannot be opened, or its chain is broken.
        """
        self.path = Path(path)
        self._latch = durable.Latch()
        with self._latch.writing(f"opening {self.path.name}"):
            durable.make_folder(self.path.parent)
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, durable.FILE_MODE)
        try:
            durable.lock_fd(self._fd, f"the journal {self.path.name}")
            with self._latch.writing(f"opening {self.path.name}"):
                self._recover()
        except BaseException:
            self.close()
            raise

    def _recover(self) -> None:
        data = b"".join(durable.read_chunks(self.path))
        self._chain, self._count, self._size = _START, 0, 0
        for _, chain, end in _lines(data, self.path.name):
            self._chain, self._count, self._size = chain, self._count + 1, end
        if self._size < len(data):
            durable.hit("truncate", self.path)
            os.ftruncate(self._fd, self._size)
        durable.hit("fsync", self.path)
        os.fsync(self._fd)  # also the tail that the last process wrote but did not live to fsync
        durable.fsync_folder(self.path.parent)

    def append(self, record: dict[str, Any]) -> None:
        """Add a record; durable on return.

        Raises:
            SchemaMismatch: the record holds what JSON cannot (lone surrogates, foreign types); nothing was written.
            StorageFull, StorageFault: nothing was acknowledged; the journal is closed to further records.
        """
        line, chain = _line(self._count, self._chain, json_bytes(record))
        with self._latch.writing(f"appending to {self.path.name}"):
            durable.hit("write", self.path)
            durable.write_all(self._fd, line)
            durable.hit("fsync", self.path)
            os.fdatasync(self._fd)
        self._chain, self._count, self._size = chain, self._count + 1, self._size + len(line)

    def read(self) -> list[dict[str, Any]]:
        """All records, in order.

        Raises:
            StorageFault: the file cannot be read, or its chain is broken.
        """
        return read_journal(self.path)

    def __len__(self) -> int:
        return self._count

    def close(self) -> None:
        """Close the file and give the lock back; may be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
