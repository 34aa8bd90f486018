"""The ledger: which files make up which version of the lake, which stages are done, what they refer to.

One set of tables for SQLite (embedded) and Postgres (several machines). Everything a commit says becomes true in one transaction; a version
is the number of that transaction. Owns the database; must not read or write data files.
"""

from __future__ import annotations

import os
import sqlite3
import uuid
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.pool import QueuePool

from schemas.errors import AlreadyDone, ConfigInvalid, LockHeld, SchemaMismatch, StorageFault, StorageFull
from storage import durable, sqlite_file

LEDGER_VERSION = "ledger.1"
_WRITER_LOCK = 0x776F726B  # the advisory lock of Postgres that stands for SQLite's one writer
_UPKEEP_LOCK = _WRITER_LOCK + 1

METADATA = sa.MetaData()

META = sa.Table("meta", METADATA, sa.Column("name", sa.Text, primary_key=True), sa.Column("value", sa.Text, nullable=False))

LAKE_VERSION = sa.Table(
    "lake_version",
    METADATA,
    sa.Column("version", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.Text, nullable=False),  # commit, failure, compaction
    sa.Column("stage", sa.Text),
    sa.Column("subject", sa.Text),
    sa.Column("run_id", sa.Text),
    sa.Column("committed_us", sa.BigInteger, nullable=False),  # for people; order is by version
)

DATA_FILE = sa.Table(
    "data_file",
    METADATA,
    sa.Column("path", sa.Text, primary_key=True),  # relative to the lake
    sa.Column("table_name", sa.Text, nullable=False),
    sa.Column("stage", sa.Text),  # null: rows of several stages, compacted
    sa.Column("scope", sa.Text),
    sa.Column("rows", sa.BigInteger, nullable=False),
    sa.Column("bytes", sa.BigInteger, nullable=False),
    sa.Column("sha256", sa.Text, nullable=False),
    sa.Column("schema_version", sa.Integer, nullable=False),
    sa.Column("added_version", sa.BigInteger, nullable=False),
    sa.Column("removed_version", sa.BigInteger),
)
sa.Index(
    "data_file_live",
    DATA_FILE.c.table_name,
    DATA_FILE.c.sha256,
    unique=True,
    sqlite_where=DATA_FILE.c.removed_version.is_(None),
    postgresql_where=DATA_FILE.c.removed_version.is_(None),
)

DATA_PART = sa.Table(  # the rows of one stage key inside a file
    "data_part",
    METADATA,
    sa.Column("path", sa.Text, sa.ForeignKey("data_file.path", ondelete="CASCADE"), primary_key=True),
    sa.Column("stage_key", sa.Text, primary_key=True),
    sa.Column("rows", sa.BigInteger, nullable=False),
    sa.Column("removed_version", sa.BigInteger),
)
sa.Index("data_part_key", DATA_PART.c.stage_key)

STAGE_RUN = sa.Table(
    "stage_run",
    METADATA,
    sa.Column("run_number", sa.BigInteger, primary_key=True, autoincrement=False),  # the version that added it
    sa.Column("stage_key", sa.Text, nullable=False),
    sa.Column("stage", sa.Text, nullable=False),
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("scope", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("output_sha256", sa.Text),
    sa.Column("rows_out", sa.BigInteger, nullable=False),
    sa.Column("run_id", sa.Text, nullable=False),
    sa.Column("removed_version", sa.BigInteger),
    sa.CheckConstraint("status in ('done', 'rejected')", name="stage_run_status"),
)
for _name, _columns in (("stage_run_live_key", ("stage_key",)), ("stage_run_live_scope", ("stage", "scope"))):
    sa.Index(
        _name,
        *(STAGE_RUN.c[c] for c in _columns),
        unique=True,
        sqlite_where=STAGE_RUN.c.removed_version.is_(None),
        postgresql_where=STAGE_RUN.c.removed_version.is_(None),
    )

_LATER = (
    sa.Index("stage_run_subject", STAGE_RUN.c.subject),
    sa.Index(
        "data_part_ended",
        DATA_PART.c.path,
        sqlite_where=DATA_PART.c.removed_version.is_not(None),
        postgresql_where=DATA_PART.c.removed_version.is_not(None),
    ),
)
"""Came after the first ledgers: added to those when they are opened for writing."""

ARTIFACT_REF = sa.Table(
    "artifact_ref",
    METADATA,
    sa.Column("run_number", sa.BigInteger, sa.ForeignKey("stage_run.run_number", ondelete="CASCADE"), primary_key=True),
    sa.Column("sha256", sa.Text, primary_key=True),
)
sa.Index("artifact_ref_sha256", ARTIFACT_REF.c.sha256)

FAILURE = sa.Table(
    "failure",
    METADATA,
    sa.Column("failure_id", sa.Text, primary_key=True),
    sa.Column("added_version", sa.BigInteger, nullable=False),
)


class Ledger:
    """Transactions on the ledger's database. One connection stays open between them; an object may cross a fork."""

    def __init__(self, url: str, lake_id: str | None) -> None:
        """Open the ledger, making its tables if there are none. Where its file may not be written it is opened for reading.

        Args:
            url: SQLAlchemy URL: ``sqlite:////absolute/path`` or ``postgresql+psycopg://...``.
            lake_id: identity of the lake; a ledger serves one lake. None takes the one that the ledger has, or gives it a new one.

        Raises:
            StorageFault: the database cannot be opened, or is damaged.
            SchemaMismatch: it was written by another release, or belongs to another lake.
            ConfigInvalid: the driver of the database is not installed.
        """
        self._latch = durable.Latch()
        self.is_sqlite = url.startswith("sqlite")
        self._file = Path(sa.make_url(url).database or "") if self.is_sqlite else None
        self._folder = self._file.parent if self._file is not None else None
        self._url = url
        known = _ENGINES.get(self._identity())
        self._engine = known or self._open_engine()
        _LEDGERS.add(self)
        with self._mapped():
            self._prepare(lake_id)
            if known is None and not self.is_read_only:
                self._complete()
        _remember(self._identity(), self._engine)

    def _open_engine(self) -> sa.Engine:
        pool: dict[str, Any] = {"poolclass": QueuePool, "pool_size": 1, "max_overflow": -1}
        if self._file is not None:
            file = self._file
            engine = sa.create_engine("sqlite://", creator=lambda: sqlite_file.connect(file), **pool)
            sa.event.listen(engine, "begin", _sqlite_begin)
            return engine
        try:
            return sa.create_engine(self._url, pool_pre_ping=True, **pool)
        except ImportError as error:
            raise ConfigInvalid("no_driver", f"the driver of the ledger is not installed: {error}", "install workprint[cluster]") from error

    def _identity(self) -> tuple[object, ...]:
        """What tells this database from any other: all ledgers of one share an engine, its connection and its compiled statements."""
        if self._file is None:
            return (self._url,)
        try:
            s = self._file.stat()
        except OSError:
            return (self._url, "new", id(self))
        return (self._url, s.st_dev, s.st_ino, sqlite_file.can_write(self._file))

    @property
    def is_read_only(self) -> bool:
        """The database may not be written by this process."""
        return self._file is not None and not sqlite_file.can_write(self._file)

    @property
    def _where(self) -> str:
        return str(self._file) if self._file is not None else self._engine.url.database or ""

    def close(self) -> None:
        """Close the connection that is kept open; the next transaction opens another."""
        self._engine.dispose()

    def _prepare(self, lake_id: str | None) -> None:
        with self._engine.connect() as con:
            con.execution_options(reading=True)
            known = _meta(con) if sa.inspect(con).has_table("meta") else {}
        if not known:
            with self._making(), self._engine.begin() as con:
                self._serialise(con)
                METADATA.create_all(con)
                if not con.execute(sa.select(META)).first():
                    con.execute(
                        sa.insert(META),
                        [{"name": "version", "value": LEDGER_VERSION}, {"name": "lake_id", "value": lake_id or uuid.uuid4().hex}],
                    )
                known = _meta(con)
        if known["version"] != LEDGER_VERSION:
            raise SchemaMismatch("ledger_version", f"the ledger is of version {known['version']}, expected {LEDGER_VERSION}")
        self.lake_id = known["lake_id"]
        if lake_id is not None and known["lake_id"] != lake_id:
            raise SchemaMismatch("foreign_ledger", "the ledger belongs to another lake", "give each lake a ledger of its own")

    def _complete(self) -> None:
        """Add what ledgers of earlier releases lack."""
        with self._engine.connect() as con:
            con.execution_options(reading=True)
            inspector = sa.inspect(con)
            known = {index["name"] for table in {str(i.table) for i in _LATER} for index in inspector.get_indexes(table)}
        lacking = [index for index in _LATER if index.name not in known]
        if lacking:
            with self._making(), self._engine.begin() as con:
                self._serialise(con)
                for index in lacking:
                    index.create(con, checkfirst=True)

    @contextmanager
    def _making(self) -> Iterator[None]:
        """One process makes the tables; the others of the machine wait for it."""
        if self._folder is None:
            yield
            return
        with durable.exclusive(self._folder, "the lake", wait=True):
            yield

    def _serialise(self, con: sa.Connection) -> None:
        if not self.is_sqlite:
            con.execute(sa.text("select pg_advisory_xact_lock(:k)"), {"k": _WRITER_LOCK})

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A consistent view of the ledger; never waits for a writer.

        Raises:
            StorageFault: the database cannot be read.
        """
        with self._mapped(), self._engine.connect() as con:
            options: dict[str, Any] = {"reading": True} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
            yield con.execution_options(**options)

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """The one write transaction; committed when the block ends, undone when it raises.

        Raises:
            AlreadyDone: the block would have broken a unique key: another worker was first.
            StorageFull, StorageFault: nothing was acknowledged. Except when waiting took too long, the ledger accepts no more writes.
        """
        self._latch.check()
        with self._mapped(), self._engine.connect() as con:
            durable.hit("ledger_begin", self._where)
            with con.begin() as transaction:
                self._serialise(con)
                yield con
                durable.hit("ledger_commit", self._where)
                transaction.commit()

    @contextmanager
    def _mapped(self) -> Iterator[None]:
        try:
            yield
        except IntegrityError as error:
            if not _is_unique(error):
                raise self._broken(_fault(error, self._folder)) from error
            raise AlreadyDone("already_done", f"another worker committed the same work first: {error.orig}") from error
        except DBAPIError as error:
            fault = _fault(error, self._folder)
            raise fault if fault.code == "ledger_busy" else self._broken(fault) from error
        except OSError as error:
            raise self._broken(durable.fault_from(error, "writing the ledger")) from error

    def _broken(self, fault: StorageFault) -> StorageFault:
        """Take no more writes, and leave the connection to nobody."""
        for identity in [k for k, engine in _ENGINES.items() if engine is self._engine]:
            del _ENGINES[identity]
        with suppress(sa.exc.SQLAlchemyError):
            self._engine.dispose()
        return self._latch.trip(fault)

    @contextmanager
    def upkeep(self) -> Iterator[None]:
        """Hold the lock of compaction and garbage collection: over all machines with Postgres, over this one's processes else.

        Raises:
            LockHeld: another upkeep is running.
            StorageFault: the database cannot be reached.
        """
        if self._folder is not None:
            with durable.exclusive(self._folder / "upkeep.lock", "the lake's upkeep"):
                yield
            return
        with self._mapped(), self._engine.connect() as con:
            if not con.execute(sa.text("select pg_try_advisory_lock(:k)"), {"k": _UPKEEP_LOCK}).scalar_one():
                raise LockHeld("lock_held", "another process is using the lake's upkeep", "wait for it to end, or stop it")
            con.commit()
            try:
                yield
            finally:
                con.execute(sa.text("select pg_advisory_unlock(:k)"), {"k": _UPKEEP_LOCK})
                con.commit()

    def integrity(self) -> list[str]:
        """What the database's own check finds wrong; empty is well. (Postgres checks its pages itself.)"""
        if self._file is None:
            return []
        try:
            con = sqlite_file.connect(self._file)  # one that has no page in memory yet
            try:
                found = [str(r[0]) for r in con.execute("pragma integrity_check").fetchall()]
                found += [f"foreign key: {r}" for r in con.execute("pragma foreign_key_check").fetchall()]
            finally:
                con.close()
        except sqlite3.Error as error:
            return [str(error)]
        return [f for f in found if f != "ok"]


def _meta(con: sa.Connection) -> dict[str, str]:
    return {str(name): str(value) for name, value in con.execute(sa.select(META.c.name, META.c.value))}


def sqlite_url(path: Path) -> str:
    """SQLAlchemy URL of an SQLite file."""
    return sa.URL.create("sqlite", database=str(path)).render_as_string(hide_password=False)


def _sqlite_begin(con: sa.Connection) -> None:
    con.exec_driver_sql("begin" if con.get_execution_options().get("reading") else "begin immediate")


def _is_unique(error: IntegrityError) -> bool:
    codes = (sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
    return getattr(error.orig, "sqlite_errorcode", None) in codes or getattr(error.orig, "sqlstate", None) == "23505"


def _is_full(folder: Path) -> bool:
    """Too little space for SQLite's shared memory file, whose failure it reports as a plain I/O error."""
    with suppress(OSError):
        s = os.statvfs(folder)
        return s.f_bavail * s.f_frsize < 128 * 1024
    return False


def _fault(error: DBAPIError, folder: Path | None) -> StorageFault:
    code = getattr(error.orig, "sqlite_errorcode", None)
    primary = code & 0xFF if code is not None else None
    full = primary == sqlite3.SQLITE_FULL or getattr(error.orig, "sqlstate", None) == "53100"
    if full or (primary in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN) and folder is not None and _is_full(folder)):
        return StorageFull(
            "no_space", f"no space left for the ledger: {error.orig}", "free space on the device, then start again: it resumes"
        )
    if primary == sqlite3.SQLITE_READONLY:
        return StorageFault("read_only", f"the ledger may not be written: {error.orig}", "work on a copy of the lake")
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StorageFault(
            "ledger_busy", f"the ledger was busy for over {sqlite_file.BUSY_S} s: {error.orig}", "use Postgres for many writers"
        )
    if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StorageFault("ledger_damaged", f"the ledger is damaged: {error.orig}", "restore ledger.sqlite from a copy")
    return StorageFault("ledger_failed", f"the ledger refused: {error.orig}", "check the device or the database server, then start again")


_ENGINES: dict[tuple[object, ...], sa.Engine] = {}
_ENGINES_KEPT = 8

_LEDGERS: weakref.WeakSet[Ledger] = weakref.WeakSet()
_INHERITED: list[object] = []
"""Connections of a parent process: kept so that they are never closed here."""


def _remember(identity: tuple[object, ...], engine: sa.Engine) -> None:
    _ENGINES[identity] = engine
    while len(_ENGINES) > _ENGINES_KEPT:
        _ENGINES.pop(next(iter(_ENGINES))).dispose()


def _after_fork() -> None:
    """In a child process: leave the parent's connections alone, neither used nor closed."""
    for engine in {*_ENGINES.values(), *(ledger._engine for ledger in _LEDGERS)}:
        _INHERITED.append(engine.pool)
        engine.dispose(close=False)


os.register_at_fork(after_in_child=_after_fork)
