"""What is true in which version: the statements that commits, readers and upkeep make on the ledger's tables.

A file belongs to version v when it was added at or before v and not removed at or before v; inside a file, the rows of a stage key end with
their part. Must not open data files.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa

from schemas.canonical import Sha256
from schemas.errors import ConfigInvalid
from storage.ledger import DATA_FILE, DATA_PART, LAKE_VERSION, STAGE_RUN

Status = Literal["done", "rejected"]


@dataclass(frozen=True, slots=True)
class DataFile:
    """One Parquet file of a version. ``dead`` names the stage keys whose rows in it are no longer part of that version."""

    path: str
    """Relative to the lake."""
    table: str
    rows: int
    bytes: int
    sha256: Sha256
    schema_version: int
    dead: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StageRecord:
    """A stage key that is done and live."""

    stage: str
    stage_key: str
    subject: str
    scope: str
    status: Status
    output_sha256: Sha256 | None
    rows_out: int
    run_id: str
    version: int


@dataclass(frozen=True, slots=True)
class LakeVersion:
    """One version of the lake. ``committed_us`` is the writer's clock, for people only."""

    version: int
    kind: str
    stage: str | None
    subject: str | None
    run_id: str | None
    committed_us: int


def latest_version(con: sa.Connection) -> int:
    """The newest version, 0 for an empty lake."""
    return int(con.execute(sa.select(sa.func.coalesce(sa.func.max(LAKE_VERSION.c.version), 0))).scalar_one())


def next_version(con: sa.Connection, now_us: int, **columns: Any) -> int:
    """Enter the next version; call it inside ``Ledger.writing``."""
    version = latest_version(con) + 1
    con.execute(sa.insert(LAKE_VERSION).values(version=version, committed_us=now_us, **columns))
    return version


def versions(con: sa.Connection) -> list[LakeVersion]:
    """All versions that can be opened, oldest first."""
    return [LakeVersion(*row) for row in con.execute(sa.select(LAKE_VERSION).order_by(LAKE_VERSION.c.version))]


def files_at(con: sa.Connection, version: int | None, tables: Collection[str] | None = None) -> list[DataFile]:
    """The files of a version (None: the newest), of all or some tables, sorted by path.

    Raises:
        ConfigInvalid: there is no such version, or it was given up by garbage collection.
    """
    latest = latest_version(con)
    at = latest if version is None else version
    missing = not 0 <= at <= latest
    if missing or (at not in (0, latest) and con.execute(sa.select(LAKE_VERSION).where(LAKE_VERSION.c.version == at)).first() is None):
        raise ConfigInvalid("no_version", f"the lake has no version {at}; the newest is {latest}", "see `workprint status`")
    visible: sa.ColumnElement[bool] = DATA_FILE.c.removed_version.is_(None)
    if at != latest:  # the newest version is found by its indexes alone, however many came before it
        visible = sa.and_(DATA_FILE.c.added_version <= at, sa.or_(visible, DATA_FILE.c.removed_version > at))
    if tables is not None:
        visible = sa.and_(visible, DATA_FILE.c.table_name.in_(sorted(tables)))
    within = DATA_PART.c.path.in_(sa.select(DATA_FILE.c.path).where(visible))
    ended = sa.and_(DATA_PART.c.removed_version.is_not(None), DATA_PART.c.removed_version <= at)
    dead: dict[str, list[str]] = {}
    for path, key in con.execute(sa.select(DATA_PART.c.path, DATA_PART.c.stage_key).where(ended, within)):
        dead.setdefault(path, []).append(key)
    found = [
        DataFile(f.path, f.table_name, f.rows, f.bytes, f.sha256, f.schema_version, tuple(sorted(dead.get(f.path, ()))))
        for f in con.execute(sa.select(DATA_FILE).where(visible))
    ]
    return sorted(found, key=lambda f: f.path)


def files_of(con: sa.Connection, table: str, stage_key: str) -> list[DataFile]:
    """The files that hold live rows of a stage key, sorted by path."""
    query = sa.select(DATA_FILE).join(DATA_PART, DATA_PART.c.path == DATA_FILE.c.path)
    query = query.where(DATA_PART.c.stage_key == stage_key, DATA_PART.c.removed_version.is_(None), DATA_FILE.c.table_name == table)
    found = con.execute(query.order_by(DATA_FILE.c.path))
    return [DataFile(f.path, f.table_name, f.rows, f.bytes, f.sha256, f.schema_version) for f in found]


def small_files(con: sa.Connection, below_bytes: int) -> dict[str, int]:
    """How many live files of a table are smaller than this, for tables that have any."""
    query = sa.select(DATA_FILE.c.table_name, sa.func.count()).where(DATA_FILE.c.removed_version.is_(None), DATA_FILE.c.bytes < below_bytes)
    return {str(name): int(count) for name, count in con.execute(query.group_by(DATA_FILE.c.table_name))}


def live_run(con: sa.Connection, *, stage_key: str | None = None, stage: str | None = None, scope: str | None = None) -> StageRecord | None:
    """The live run of a stage key, or of a (stage, scope)."""
    query = sa.select(STAGE_RUN).where(STAGE_RUN.c.removed_version.is_(None))
    if stage_key is not None:
        query = query.where(STAGE_RUN.c.stage_key == stage_key)
    else:
        query = query.where(STAGE_RUN.c.stage == stage, STAGE_RUN.c.scope == scope)
    r = con.execute(query).first()
    return None if r is None else _record(r)


def live_runs(con: sa.Connection, subject: str) -> list[StageRecord]:
    """All live runs of a subject, in the order they were committed."""
    query = sa.select(STAGE_RUN).where(STAGE_RUN.c.removed_version.is_(None), STAGE_RUN.c.subject == subject)
    return [_record(r) for r in con.execute(query.order_by(STAGE_RUN.c.run_number))]


def _record(r: Any) -> StageRecord:
    return StageRecord(r.stage, r.stage_key, r.subject, r.scope, r.status, r.output_sha256, r.rows_out, r.run_id, r.run_number)


def retire(con: sa.Connection, version: int, stage: str, scope: str) -> None:
    """End the live run of a (stage, scope), if there is one: its rows are in no version from this one on."""
    old = live_run(con, stage=stage, scope=scope)
    if old is None:
        return
    con.execute(sa.update(STAGE_RUN).where(STAGE_RUN.c.run_number == old.version).values(removed_version=version))
    live = sa.and_(DATA_PART.c.stage_key == old.stage_key, DATA_PART.c.removed_version.is_(None))
    paths = con.execute(sa.select(DATA_PART.c.path).where(live)).scalars().all()
    con.execute(sa.update(DATA_PART).where(live).values(removed_version=version))
    for path in paths:
        rest = sa.select(DATA_PART.c.path).where(DATA_PART.c.path == path, DATA_PART.c.removed_version.is_(None))
        if con.execute(rest).first() is None:
            remove_file(con, version, path)


def remove_file(con: sa.Connection, version: int, path: str) -> bool:
    """End a file and all its parts with a version; False if it had ended before."""
    for table in (DATA_PART, DATA_FILE):
        ended = con.execute(sa.update(table).where(table.c.path == path, table.c.removed_version.is_(None)).values(removed_version=version))
    return bool(ended.rowcount)


def add_files(
    con: sa.Connection,
    version: int,
    files: Sequence[tuple[DataFile, Mapping[str, int]]],
    *,
    stage: str | None = None,
    scope: str | None = None,
) -> None:
    """Enter files, each with how many rows every stage key has in it. Stage keys in ``file.dead`` end with this version."""
    if not files:
        return
    common = {"stage": stage, "scope": scope, "added_version": version}
    con.execute(
        sa.insert(DATA_FILE),
        [
            {
                "path": f.path,
                "table_name": f.table,
                "rows": f.rows,
                "bytes": f.bytes,
                "sha256": f.sha256,
                "schema_version": f.schema_version,
            }
            | common
            for f, _ in files
        ],
    )
    con.execute(
        sa.insert(DATA_PART),
        [
            {"path": f.path, "stage_key": k, "rows": n, "removed_version": version if k in f.dead else None}
            for f, parts in files
            for k, n in parts.items()
        ],
    )


def live_keys(con: sa.Connection, paths: Sequence[str]) -> set[tuple[str, str]]:
    """(path, stage key) of all parts of these files that are live now."""
    query = sa.select(DATA_PART.c.path, DATA_PART.c.stage_key).where(DATA_PART.c.path.in_(paths), DATA_PART.c.removed_version.is_(None))
    return {(path, key) for path, key in con.execute(query)}
