"""Checking a lake without changing it: every byte against its digest, every reference against what is there.

Reports; repairs nothing.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy as sa

from schemas.canonical import Sha256
from schemas.errors import PipelineError, StorageFault
from schemas.snapshot import Snapshot
from schemas.tables import TABLE
from storage import durable, upkeep
from storage.journal import is_journal, read_journal
from storage.ledger import ARTIFACT_REF, DATA_FILE, DATA_PART
from storage.views import open_views

if TYPE_CHECKING:
    from storage.lake import Lake


class Fault(StrEnum):
    """What is wrong with a thing. Orphans and unfinished files are legal: garbage collection removes them."""

    DAMAGED = "damaged"
    MISSING = "missing"
    DUPLICATE_KEY = "duplicate_key"
    WRONG_ROWS = "wrong_rows"
    LEDGER = "ledger"
    ORPHAN = "orphan"
    UNFINISHED = "unfinished"


_LEGAL = (Fault.ORPHAN, Fault.UNFINISHED)


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. ``subject`` is a path relative to the lake, the digest of a missing artifact, a table, or 'ledger'."""

    fault: Fault
    subject: str
    detail: str


@dataclass(frozen=True, slots=True)
class FsckReport:
    """All findings, sorted, and how much was looked at."""

    findings: tuple[Finding, ...]
    data_files: int
    artifacts: int
    bytes: int

    @property
    def is_sound(self) -> bool:
        """Nothing is damaged, missing, doubled or inconsistent."""
        return all(f.fault in _LEGAL for f in self.findings)

    def of(self, fault: Fault) -> tuple[str, ...]:
        """Subjects with this fault."""
        return tuple(f.subject for f in self.findings if f.fault is fault)


class _Check:
    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self.found: list[Finding] = []
        self.data_files = self.artifacts = self.bytes = 0

    def add(self, fault: Fault, subject: str, detail: str) -> None:
        self.found.append(Finding(fault, subject, detail))

    def ledger(self) -> bool:
        """The database is sound and its tables agree."""
        for text in self.lake.ledger.integrity():
            self.add(Fault.LEDGER, "ledger", text)
        return not self.found

    def files(self) -> None:
        """Every data file of every version: there, the right bytes, the right rows."""
        with self.lake.ledger.reading() as con:
            entries = con.execute(sa.select(DATA_FILE).order_by(DATA_FILE.c.path)).all()
            total = sa.func.sum(DATA_PART.c.rows)
            parts = {path: int(rows) for path, rows in con.execute(sa.select(DATA_PART.c.path, total).group_by(DATA_PART.c.path))}
        for row in entries:
            self.data_files += 1
            found = self._digest(row.path)
            if found is None:
                self.add(Fault.MISSING, row.path, f"data file of table {row.table_name}")
                continue
            sha256, size = found
            self.bytes += size
            if (sha256, size) != (row.sha256, row.bytes):
                self.add(Fault.DAMAGED, row.path, _difference(row.bytes, size))
            elif (seen := self._rows(row.path)) != row.rows or parts.get(row.path) != row.rows:
                self.add(Fault.WRONG_ROWS, row.path, f"the ledger says {row.rows} rows, its parts {parts.get(row.path)}, the file {seen}")

    def _digest(self, key: str) -> tuple[Sha256, int] | None:
        """Digest and size of the bytes that count: those in the bucket, if there is one. None if there are none."""
        try:
            if self.lake.bucket is not None:
                return self.lake.bucket.digest(key)
            path = self.lake.root / key
            return durable.digest_file(path) if path.is_file() else None
        except FileNotFoundError:
            return None

    def _rows(self, key: str) -> int:
        if self.lake.bucket is None:
            return int(pq.read_metadata(self.lake.root / key).num_rows)
        return int(pq.read_metadata(pa.BufferReader(b"".join(self.lake.bucket.chunks(key)))).num_rows)

    def store(self) -> None:
        """Every artifact: the right bytes; every reference: an artifact."""
        store = self.lake.store
        for name in store.names():
            self.artifacts += 1
            sha256, size = self._digest(store.key(name)) or ("", 0)
            self.bytes += size
            if sha256 != name:
                self.add(Fault.DAMAGED, store.key(name), "its bytes have another digest than its name")
        with self.lake.ledger.reading() as con:
            named = set(con.execute(sa.select(ARTIFACT_REF.c.sha256).distinct()).scalars())
        wanted = {name: "named by the ledger" for name in named}
        for name in sorted(named):
            wanted |= {record: f"record of snapshot {name[:12]}" for record in self._snapshot_records(name)}
        for name, why in sorted(wanted.items()):
            if not store.is_shared(name):
                self.add(Fault.MISSING, name, f"artifact {why}")

    def _snapshot_records(self, name: Sha256) -> set[Sha256]:
        try:
            chunks = self.lake.store.chunks(name)
            data = b"".join(itertools.islice(chunks, 4))
        except (OSError, StorageFault):
            return set()  # reported as missing
        if b'"snapshot.' not in data:
            return set()
        try:
            manifest = Snapshot.model_validate_json(data)
        except ValueError:
            return set()  # not a manifest, or damaged and reported as such
        records = {manifest.film_record, manifest.task_record, *manifest.shot_pages}
        try:
            return records | {digest for _, digest in self.lake.snapshots.shot_records(manifest)}
        except PipelineError:
            return records  # a page is missing or damaged, and reported as such

    def garbage(self) -> None:
        """What nothing refers to."""
        for name in upkeep.unreferenced(self.lake):
            unfinished = name.rpartition("/")[2].startswith(durable.TEMP_PREFIX)
            self.add(Fault.UNFINISHED if unfinished else Fault.ORPHAN, name, "nothing refers to it")

    def keys(self) -> None:
        """No key of the newest version occurs twice (in files that can be read)."""
        bad = {f.subject for f in self.found}
        files = [f for f in self.lake.files() if f.path not in bad]
        if self.lake.bucket is not None:
            self.lake.verify(files)  # brings them here
        filled = {f.table for f in files}
        con = open_views(self.lake.root, files, threads=2, only=filled)
        try:
            for spec in (t for t in TABLE.values() if t.name in filled):
                relation = con.table(spec.name).aggregate(", ".join((*spec.key, "count(*) as n"))).filter("n > 1").limit(100)
                for row in relation.to_arrow_table().to_pylist():
                    times = row.pop("n")
                    self.add(Fault.DUPLICATE_KEY, spec.name, f"{times} live rows have the key {row}")
        finally:
            con.close()

    def journals(self) -> None:
        """Every journal's chain."""
        for path in sorted((self.lake.root / "journals").rglob("*")):
            if path.is_file() and is_journal(path):
                try:
                    read_journal(path)
                except StorageFault as error:
                    self.add(Fault.DAMAGED, _inside(self.lake.root, path), error.message)


def fsck(lake: Lake) -> FsckReport:
    """Check a whole lake. Best run while nothing is being committed; what commits meanwhile may show as an orphan.

    Raises:
        StorageFault: the ledger cannot be read at all.
    """
    check = _Check(lake)
    if check.ledger():
        check.files()
        check.store()
        check.garbage()
        check.keys()
        check.journals()
    found = tuple(sorted(check.found, key=lambda f: (f.fault.value, f.subject, f.detail)))
    return FsckReport(found, check.data_files, check.artifacts, check.bytes)


def _difference(expected: int, seen: int) -> str:
    return "flipped bits: the size is right, the digest is not" if expected == seen else f"{seen} bytes instead of {expected}"


def _inside(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix()
