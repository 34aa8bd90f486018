"""The lake: immutable Parquet files, an artifact store, and a ledger that says which of them are true.

A commit writes its files, makes them durable, and then becomes true in one ledger transaction: rows of all tables, artifact references and
the completion of the stage. A crash at any moment leaves either all of it or none; files that no ledger row names are garbage, never data.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from schemas.canonical import Sha256, digest_of
from schemas.errors import AlreadyDone, ConfigInvalid, DigestMismatch, SchemaMismatch, StorageFault
from schemas.tables import TABLE
from storage import arrow, durable, history, upkeep
from storage.artifacts import ArtifactStore, is_digest
from storage.checked import SMALLEST_BYTES, CheckedFiles, Stamp, stamp_of
from storage.fsck import FsckReport, fsck
from storage.history import DataFile, LakeVersion, StageRecord
from storage.ledger import ARTIFACT_REF, FAILURE, STAGE_RUN, Ledger, sqlite_url
from storage.marker import open_marker, open_shared_marker
from storage.place import cache_folder, place_of
from storage.snapshots import SnapshotStore
from storage.upgrade import upgraded
from storage.views import open_views, refuse_writes, tables_in

_READERS = 4
"""Threads that read and digest files."""

_WORD = re.compile(r"[a-z][a-z0-9_]{0,40}")


@dataclass(frozen=True, slots=True)
class StageCommit:
    """What one finished stage wants to be true.

    ``status`` is done or rejected. ``scope`` is what is replaced: a commit takes the place of the older one with the same (stage, scope).
    ``rows`` maps table names to rows of deterministic columns. ``artifacts`` lists digests that must be kept and must be there; digests in
    ``*sha256`` columns are added if the store has them. ``retires`` names further (stage, scope) pairs whose rows end with this commit,
    e.g. later stages of a project that is now rejected.
    """

    stage: str
    stage_key: str
    subject: str
    scope: str
    status: str
    output_sha256: Sha256 | None = None
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    artifacts: tuple[Sha256, ...] = ()
    run_id: str = ""
    retires: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """Columns and rows of a query."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


class Lake:
    """A folder with everything a run produced. Any number of processes may read and write it at once."""

    def __init__(self, location: Path | str, *, create: bool = True, ledger_url: str | None = None) -> None:
        """Open a lake, or make one in a missing or empty folder, or in a bucket.

        Args:
            location: a folder, or ``s3://bucket/prefix`` (see :mod:`storage.place`).
            create: False refuses to make one.
            ledger_url: SQLAlchemy URL of a Postgres ledger. A lake keeps the kind of ledger it was made with.

        Raises:
            ConfigInvalid: the folder holds other things, there is no lake and ``create`` is False, or its ledger is not named.
            SchemaMismatch: the lake was made by another release.
            StorageFault: it cannot be opened or made.
        """
        place = place_of(location, ledger_url)
        self.location, self.root, self.bucket = place.location, place.root, place.bucket
        self._ledger_url = place.ledger_url
        self._latch = durable.Latch()
        lake_id = None
        if self.bucket is None:
            lake_id = open_marker(self.root, "sqlite" if place.ledger_url is None else "postgres", create=create)
        else:
            open_shared_marker(self.bucket, None, create=create)
        self.store = ArtifactStore(self.root / "artifacts", self.bucket)
        self.snapshots = SnapshotStore(self.store)
        self._temp = self.root / "tmp"
        with self._latch.writing("opening the lake"):
            for folder in (self._temp, self.root / "tables", self.root / "journals"):
                durable.make_folder(folder)
            self.ledger = Ledger(place.ledger_url or sqlite_url(self.root / "ledger.sqlite"), lake_id)
        if self.bucket is not None:
            open_shared_marker(self.bucket, self.ledger.lake_id, create=create)
        self._verified: dict[str, Stamp] = {}
        self._checked = CheckedFiles(cache_folder())
        self._folders: set[str] = set()

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self.location, self._ledger_url)

    # -- writing ---------------------------------------------------------------------------------------------------------------

    def done(self, stage_key: str) -> StageRecord | None:
        """The live completion of a stage key, or None.

        Raises:
            StorageFault: the ledger cannot be read.
        """
        with self.ledger.reading() as con:
            return history.live_run(con, stage_key=stage_key)

    def live(self, subject: str) -> list[StageRecord]:
        """All live completions of a subject (a project id), in the order they were committed.

        Raises:
            StorageFault: the ledger cannot be read.
        """
        with self.ledger.reading() as con:
            return history.live_runs(con, subject)

    def commit(self, commit: StageCommit) -> int:
        """Make a stage's rows, references and completion true, all or nothing; durable on return.

        Returns:
            the new version of the lake.

        Raises:
            AlreadyDone: the stage key is live already; nothing was changed.
            SchemaMismatch: rows do not fit their tables; nothing was changed.
            StorageFault: an artifact is missing, or the device failed (StorageFull: no space); nothing was acknowledged. After a device
                failure this object takes no more commits: open the lake anew.
        """
        for word in (commit.stage, *(stage for stage, _ in commit.retires)):
            if not _WORD.fullmatch(word):
                raise ConfigInvalid("stage_name", f"{word[:60]!r} is not a stage name", "lower-case letters, digits and _")
        self._latch.check()
        if self.done(commit.stage_key) is not None:
            raise _already(commit.stage_key)
        tables = self._tables(commit)
        references = self._references(commit)
        needed = sorted(references | self._records(commit))
        if self.bucket is not None:
            self.store.sync()  # what only this machine has yet
        files = self.write_tables(commit.stage, tables)
        try:
            with self.ledger.writing() as con:
                if history.live_run(con, stage_key=commit.stage_key) is not None:
                    raise _already(commit.stage_key)
                for sha256 in needed:  # under the lock that garbage collection deletes under
                    if not self.store.is_shared(sha256):
                        raise StorageFault(
                            "artifact_missing", f"stage {commit.stage} refers to artifact {sha256}, which is not in the store"
                        )
                version = history.next_version(
                    con, _now_us(), kind="commit", stage=commit.stage, subject=commit.subject, run_id=commit.run_id
                )
                for stage, scope in ((commit.stage, commit.scope), *commit.retires):
                    history.retire(con, version, stage, scope)
                columns = {n: getattr(commit, n) for n in ("stage_key", "stage", "subject", "scope", "status", "output_sha256", "run_id")}
                rows_out = sum(len(r) for r in commit.rows.values())
                con.execute(sa.insert(STAGE_RUN).values(run_number=version, rows_out=rows_out, **columns))
                parts = [(file, {commit.stage_key: file.rows}) for file in files]
                history.add_files(con, version, parts, stage=commit.stage, scope=commit.scope)
                if references:
                    con.execute(sa.insert(ARTIFACT_REF), [{"run_number": version, "sha256": s} for s in sorted(references)])
        except AlreadyDone:
            self._drop(files)
            raise
        durable.hit("committed", self.root)
        return version

    def record_failure(
        self,
        *,
        stage: str,
        subject: str,
        uri: str,
        error_type: str,
        code: str,
        message: str,
        attempts: int,
        quarantined: bool,
        run_id: str,
    ) -> str:
        """Add one row to ``failures``; the same failure twice is one row.

        Returns:
            the failure id.

        Raises:
            StorageFault: nothing was acknowledged.
        """
        self._latch.check()
        message = message.encode("utf-8", "backslashreplace").decode()  # tool output may hold what text columns refuse
        failure_id = f"fail_{digest_of([stage, subject, attempts, error_type, code, message])[:24]}"
        row: dict[str, Any] = {
            "failure_id": failure_id,
            "stage": stage,
            "subject": subject,
            "uri": uri,
            "error_type": error_type,
            "code": code,
        }
        row |= {"message": message, "attempts": attempts, "quarantined": quarantined}
        spec = TABLE["failures"]
        table = arrow.table_of(spec, arrow.finish_rows(spec, [row], stage_key=failure_id, run_id=run_id))
        with self.ledger.reading() as con:
            if con.execute(sa.select(FAILURE).where(FAILURE.c.failure_id == failure_id)).first() is not None:
                return failure_id
        files = self.write_tables("failure", {"failures": table})
        try:
            with self.ledger.writing() as con:
                version = history.next_version(con, _now_us(), kind="failure", stage=stage, subject=subject, run_id=run_id)
                con.execute(sa.insert(FAILURE).values(failure_id=failure_id, added_version=version))
                history.add_files(con, version, [(file, {failure_id: 1}) for file in files])
        except AlreadyDone:  # another process recorded the same one in between
            self._drop(files)
        return failure_id

    def _tables(self, commit: StageCommit) -> dict[str, pa.Table]:
        own = sorted({"stage_runs", "failures"} & set(commit.rows))
        unknown = sorted(set(commit.rows) - set(TABLE))
        if own or unknown:
            raise SchemaMismatch("unknown_table", f"a stage cannot write to table {(unknown + own)[0]!r}", "see docs/tables.md")
        run: dict[str, Any] = {
            "stage": commit.stage,
            "subject": commit.subject,
            "status": commit.status,
            "output_sha256": commit.output_sha256,
        }
        run["rows_out"] = sum(len(r) for r in commit.rows.values())
        out = {}
        for name, rows in {**commit.rows, "stage_runs": [run]}.items():
            if rows:
                spec = TABLE[name]
                out[name] = arrow.table_of(spec, arrow.finish_rows(spec, rows, stage_key=commit.stage_key, run_id=commit.run_id))
        return out

    def _references(self, commit: StageCommit) -> set[Sha256]:
        """Digests the ledger keeps for this commit: those it names, and those its rows name where the store has them."""
        found = {*commit.artifacts, *([commit.output_sha256] if commit.output_sha256 is not None else [])}
        for name, rows in commit.rows.items():
            columns = [c.name for c in TABLE[name].columns if c.name.endswith("sha256")]
            named = {value for row in rows for c in columns if isinstance(value := row.get(c), str)}
            found |= {n for n in named if is_digest(n) and self.store.has(n)}
        return found

    def _records(self, commit: StageCommit) -> set[Sha256]:
        """Records of the snapshots in a commit. They are found through their manifests and need no reference of their own."""
        return {part for row in commit.rows.get("snapshots", []) for part in self.snapshots.parts(row["snapshot_id"])}

    def write_tables(self, stage: str, tables: dict[str, pa.Table]) -> list[DataFile]:
        """Write one Parquet file for each table; durable on return, and part of no version until the ledger says so."""
        files: list[DataFile] = []
        paths: list[Path] = []
        folders: dict[Path, None] = {}
        with self._latch.writing("writing Parquet files"):
            for name, table in tables.items():
                folder = self.root / "tables" / name
                if name not in self._folders:
                    durable.make_folder(folder)
                    folders[folder.parent] = None  # another process may have made it and died before its fsync
                temp, sha256, size = durable.write_temp(self._temp, [arrow.parquet_bytes(table)], sync=False)
                path = folder / f"{stage}-{uuid.uuid4().hex}.parquet"
                durable.publish([(temp, path)], sync=False)
                paths.append(path)
                folders[folder] = None
                relative = path.relative_to(self.root).as_posix()
                files.append(DataFile(relative, name, table.num_rows, size, sha256, TABLE[name].version))
            if self.bucket is not None:
                self.bucket.upload({f.path: path for f, path in zip(files, paths, strict=True)})
            else:
                durable.fsync_together(paths, folders)
            self._folders.update(tables)
        return files

    def _drop(self, files: list[DataFile]) -> None:
        """Remove files that became part of no version."""
        for file in files:
            durable.remove(self.root / file.path)
            if self.bucket is not None:
                self.bucket.remove(file.path)

    # -- reading ---------------------------------------------------------------------------------------------------------------

    def versions(self) -> list[LakeVersion]:
        """All versions that can be opened, oldest first."""
        with self.ledger.reading() as con:
            return history.versions(con)

    def files(self, version: int | None = None, table: str | None = None) -> list[DataFile]:
        """The files of a version (None: the newest), sorted by path.

        Raises:
            ConfigInvalid: there is no such version, or it was given up by garbage collection.
        """
        with self.ledger.reading() as con:
            return history.files_at(con, version, None if table is None else (table,))

    def connect(
        self, version: int | None = None, *, threads: int | None = None, memory_limit: str | None = None, verify: bool = True
    ) -> duckdb.DuckDBPyConnection:
        """A DuckDB connection with a view for every table of a version (None: the newest); close it when done.

        It sees that version for good, whatever is committed meanwhile. It reaches no file outside the lake's tables; see :meth:`query` for
        text that is not trusted. In Ray workers set ``threads`` and ``memory_limit``.

        Args:
            verify: check each file's digest the first time this object meets it (about 1 s for 1 GB, see :mod:`storage.checked`); DuckDB
                itself does not notice flipped bits.

        Raises:
            ConfigInvalid: no such version, or a bad setting.
            StorageFault, DigestMismatch: a file is missing or damaged.
            SchemaMismatch: a file was written by a newer release.
        """
        files = self.files(version)
        if verify:
            self.verify(files)
        return open_views(self.root, files, threads=threads, memory_limit=memory_limit)

    def query(self, sql: str, parameters: object = None, version: int | None = None, *, verify: bool = True) -> Answer:
        """Answer a query that may come from outside: only SELECT statements are run.

        Raises:
            ConfigInvalid: it is no query, or DuckDB refuses it (its message is passed on).
            StorageFault, DigestMismatch, SchemaMismatch: as :meth:`connect`.
        """
        refuse_writes(sql)
        needed = tables_in(sql)
        with self.ledger.reading() as reading:
            files = history.files_at(reading, version, needed)
        if verify:
            self.verify(files)
        con = open_views(self.root, files, only=needed)
        try:
            cursor = con.execute(sql, parameters)
            columns = tuple(str(d[0]) for d in cursor.description or ())
            return Answer(columns, cursor.fetchall())
        except duckdb.Error as error:
            raise ConfigInvalid("query", str(error).strip(), "tables and columns are listed in docs/tables.md") from error
        finally:
            con.close()

    def scan(self, table: str, version: int | None = None) -> pa.Table:
        """All rows of a table as Arrow, sorted by the project and the key.

        Raises:
            ConfigInvalid: no such table or version.
            StorageFault, DigestMismatch: a file is missing or damaged.
        """
        if table not in TABLE:
            raise ConfigInvalid("no_table", f"there is no table {table!r}", f"one of: {', '.join(TABLE)}")
        spec = TABLE[table]
        files = self.files(version, table)
        self.verify(files)
        parts = [self.read_file(f) for f in files]
        whole = pa.concat_tables(parts) if parts else arrow.schema_of(spec).empty_table()
        return arrow.sort_table(spec, whole)

    def rows_of(self, table: str, stage_key: str) -> list[dict[str, Any]]:
        """The live rows that one stage wrote to a table; found through the ledger, so it costs the same in a large lake.

        Raises:
            StorageFault, DigestMismatch: a file is missing or damaged.
        """
        with self.ledger.reading() as con:
            files = history.files_of(con, table, stage_key)
        self.verify(files)
        own = pc.field("stage_key") == stage_key
        return [row for file in files for row in self.read_file(file).filter(own).to_pylist()]

    def read_file(self, file: DataFile) -> pa.Table:
        """The live rows of one data file.

        Raises:
            StorageFault: it is missing or cannot be read.
        """
        spec = TABLE[file.table]
        if file.schema_version > spec.version:
            raise SchemaMismatch("table_version", f"{file.path} was written by a newer release", "use that release")
        try:
            table = upgraded(spec, file.schema_version, arrow.read_parquet(self.root / file.path))
        except (OSError, pa.ArrowException) as error:
            raise StorageFault("unreadable", f"{file.path} cannot be read: {error}", "run `fsck` on the lake") from error
        return arrow.without_keys(table, file.dead)

    def compact(self, *, target_bytes: int = upkeep.TARGET_BYTES) -> upkeep.Compaction:
        """Merge small files; see :func:`storage.upkeep.compact`."""
        return upkeep.compact(self, target_bytes=target_bytes)

    def small_files(self, *, below_bytes: int) -> dict[str, int]:
        """How many live files of each table are smaller than this; tables without any are left out."""
        with self.ledger.reading() as con:
            return history.small_files(con, below_bytes)

    def gc(self, *, grace_s: float = upkeep.GRACE_S, keep_versions: int | None = None, dry_run: bool = False) -> upkeep.Collection:
        """Remove what nothing refers to; see :func:`storage.upkeep.collect`."""
        return upkeep.collect(self, grace_s=grace_s, keep_versions=keep_versions, dry_run=dry_run)

    def fsck(self) -> FsckReport:
        """Check every byte and every reference, changing nothing; see :func:`storage.fsck.fsck`."""
        return fsck(self)

    def verify(self, files: Iterable[DataFile]) -> None:
        """Check the digests of files that this object has not met yet, or that changed since; large ones once a week and machine.

        Raises:
            StorageFault: a file is missing.
            DigestMismatch: a file's bytes are not those that were committed.
        """
        unread: list[tuple[DataFile, Path, Stamp]] = []
        for file in files:
            path = self.root / file.path
            try:
                stamp = stamp_of(path)
            except FileNotFoundError:
                stamp = stamp_of(self._fetched(file))
            if self._verified.get(file.path) != stamp:
                unread.append((file, path, stamp))
        large = [(p, f.sha256, s) for f, p, s in unread if s[2] >= SMALLEST_BYTES]
        known = self._checked.known(large) if large else set()
        with ThreadPoolExecutor(_READERS) as pool:
            found = pool.map(durable.digest_file, [p for _, p, _ in unread if p not in known])
            for file, path, stamp in unread:
                if path not in known and next(found) != (file.sha256, file.bytes):
                    raise DigestMismatch("data_file_damaged", f"{file.path} no longer has the bytes that were committed", "run `fsck`")
                self._verified[file.path] = stamp
        self._checked.remember(x for x in large if x[0] not in known)

    def _fetched(self, file: DataFile) -> Path:
        """Bring a data file from the bucket into the working folder.

        Raises:
            StorageFault: it is not there, or the bucket does not answer.
        """
        path = self.root / file.path
        try:
            if self.bucket is None:
                raise FileNotFoundError
            durable.make_folder(path.parent)
            temp, _, _ = durable.write_temp(self._temp, self.bucket.chunks(file.path), sync=False)
            durable.publish([(temp, path)], sync=False)
        except FileNotFoundError:
            raise StorageFault("data_file_missing", f"{file.path} is missing", "run `fsck` on the lake") from None
        except OSError as error:
            raise durable.fault_from(error, "reading from the bucket") from error
        return path


def _reopen(location: Path, ledger_url: str | None) -> Lake:
    return Lake(location, create=False, ledger_url=ledger_url)


def _now_us() -> int:
    return time.time_ns() // 1000


def _already(stage_key: str) -> AlreadyDone:
    return AlreadyDone("already_done", f"stage key {stage_key} is committed already")
