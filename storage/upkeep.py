"""Upkeep of a lake: merging small files, and removing what nothing refers to.

Both may be killed at any moment and may run beside writers and readers; two upkeeps at once are refused. Removal happens under the ledger's
write lock, the same that commits check their references under, so a reference can never lose what it names.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from schemas.canonical import Sha256
from schemas.errors import ConfigInvalid
from schemas.tables import TABLE, TableSpec
from storage import arrow, durable, history, reach
from storage.bucket import StoredObject
from storage.history import DataFile
from storage.ledger import ARTIFACT_REF, DATA_FILE, LAKE_VERSION, STAGE_RUN

if TYPE_CHECKING:
    from storage.lake import Lake

TARGET_BYTES = 128 * 1024 * 1024
GRACE_S = 24 * 3600
_BATCH = 200
"""Files removed in one turn of the ledger's lock."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """What a compaction did."""

    files_before: int
    files_after: int
    versions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Collection:
    """What garbage collection removed (or would remove). Paths are relative to the lake."""

    removed: tuple[str, ...]
    bytes: int
    young: int
    """Unreferenced files that were left because they are younger than the grace period."""
    versions_given_up: int


def compact(lake: Lake, *, target_bytes: int = TARGET_BYTES) -> Compaction:
    """Merge the small files of every table into files of about ``target_bytes``, and drop rows that ended; one version a table.

    Older versions stay readable until :func:`collect` gives them up.

    Raises:
        LockHeld: another upkeep is running.
        StorageFault: the device failed; no rows are lost.
    """
    versions: list[int] = []
    before = after = 0
    with lake.ledger.upkeep():
        for spec in TABLE.values():
            files = lake.files(table=spec.name)
            groups = list(_groups(files, target_bytes))
            before += len(files)
            after += len(files)
            if groups:
                version, made = _merge(lake, spec, groups)
                versions += [version] if version else []
                after += made - sum(len(g) for g in groups) if version else 0
    return Compaction(before, after, tuple(versions))


def _groups(files: list[DataFile], target_bytes: int) -> Iterator[list[DataFile]]:
    """Files to be merged into one. Files that are large enough and whole stay as they are."""
    group: list[DataFile] = []
    size = 0
    for file in (f for f in files if f.dead or f.bytes < target_bytes // 2):
        if group and size + file.bytes > target_bytes:
            if len(group) > 1 or group[0].dead:
                yield group
            group, size = [], 0
        group.append(file)
        size += file.bytes
    if len(group) > 1 or (group and group[0].dead):
        yield group


def _merge(lake: Lake, spec: TableSpec, groups: list[list[DataFile]]) -> tuple[int | None, int]:
    """Write the merged files, then swap them in with one transaction; what ended meanwhile ends in the merged file too."""
    made: list[tuple[DataFile, list[DataFile], dict[str, int]]] = []
    for group in groups:
        lake.verify(group)
        table = arrow.sort_table(spec, pa.concat_tables([lake.read_file(f) for f in group]))
        counts = {str(c["values"]): int(c["counts"]) for c in pc.value_counts(table["stage_key"]).to_pylist()}
        made.append((lake.write_tables("packed", {spec.name: table})[0], group, counts))
    with lake.ledger.writing() as con:
        version = history.next_version(con, time.time_ns() // 1000, kind="compaction", stage=None, subject=spec.name, run_id=None)
        count = 0
        for file, group, counts in made:
            live = {key for _, key in history.live_keys(con, [f.path for f in group])}
            ended = [history.remove_file(con, version, f.path) for f in group]
            if any(ended) and live:
                dead = tuple(sorted(set(counts) - live))
                entered = DataFile(file.path, file.table, file.rows, file.bytes, file.sha256, spec.version, dead)
                history.add_files(con, version, [(entered, counts)])
                count += 1
    durable.hit("committed", lake.root)
    return version, count


def collect(lake: Lake, *, grace_s: float = GRACE_S, keep_versions: int | None = None, dry_run: bool = False) -> Collection:
    """Remove files and artifacts that nothing refers to and that are older than the grace period.

    Referenced is what any version that can be opened refers to, what journals of unfinished runs name, and all that can be reached from it.

    Args:
        grace_s: seconds; longer than any one run of a stage takes, since a running stage's artifacts have no reference yet.
        keep_versions: first give up the versions before this many, with what only they refer to; None keeps all. Versions that were the
            newest within the grace period are kept too, for the readers that have them open.
        dry_run: remove nothing, give up nothing, say what would be removed of what is unreferenced now.

    Raises:
        LockHeld: another upkeep is running.
        ConfigInvalid: a negative grace period, or fewer than one version to keep.
        StorageFault: the device failed; nothing referenced was removed.
    """
    if grace_s < 0 or (keep_versions is not None and keep_versions < 1):
        raise ConfigInvalid("gc", "grace_s is at least 0 and keep_versions at least 1")
    with lake.ledger.upkeep():
        given_up = 0 if dry_run or keep_versions is None else _give_up(lake, keep_versions, grace_s)
        removed: list[str] = []
        size = young = 0
        marked = _Marked(lake)
        for batch in _batches(_candidates(lake, marked)):
            with lake.ledger.writing() as con:
                while not marked.is_current(con):  # commits since the last look: look again, still under the lock
                    marked.update(con)
                for name in batch:
                    found = None if marked.keeps(name) else _look(lake, name)
                    if found is None:
                        continue
                    if time.time() - found.modified_s < grace_s:
                        young += 1
                        continue
                    if not dry_run:
                        _remove(lake, name)
                    removed.append(name)
                    size += found.size
    return Collection(tuple(removed), size, young, given_up)


class _Marked:
    """What is referenced, as of a version of the lake."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._version = -1
        self._files: set[str] = set()
        self._artifacts: set[Sha256] = set()
        with lake.ledger.reading() as con:
            self.update(con)

    def is_current(self, con: sa.Connection) -> bool:
        return self._version == history.latest_version(con)

    def update(self, con: sa.Connection) -> None:
        self._version = history.latest_version(con)
        self._files = set(con.execute(sa.select(DATA_FILE.c.path)).scalars())
        roots = set(con.execute(sa.select(ARTIFACT_REF.c.sha256).distinct()).scalars())
        roots |= reach.digests_under(self._lake.root / "journals")
        self._artifacts = reach.reachable(self._lake.store, roots, self._artifacts)

    def keeps(self, name: str) -> bool:
        return name.rpartition("/")[2] in self._artifacts or name in self._files


def unreferenced(lake: Lake) -> list[str]:
    """What is under the lake's care and nothing refers to: artifacts, data files, unfinished writes. Names are relative to the lake."""
    return list(_candidates(lake, _Marked(lake)))


def _candidates(lake: Lake, marked: _Marked) -> Iterator[str]:
    local: list[Path] = []
    for folder in (lake.root / "tmp", lake.store.root / "tmp"):
        local += sorted(p for p in folder.iterdir() if p.name.startswith(durable.TEMP_PREFIX))
    local += lake.store.stale_notes()
    yield from (p.relative_to(lake.root).as_posix() for p in local)
    if lake.bucket is not None:
        tables: Iterator[str] = (o.key for o in lake.bucket.list("tables"))
    else:
        tables = (p.relative_to(lake.root).as_posix() for p in sorted((lake.root / "tables").glob("*/*.parquet")))
    yield from (name for name in tables if not marked.keeps(name))
    yield from (name for name in map(lake.store.key, lake.store.names()) if not marked.keeps(name))


def _look(lake: Lake, name: str) -> StoredObject | None:
    """Size and age of a candidate now; None if it is gone."""
    path = lake.root / name
    if lake.bucket is not None and name.startswith(("tables/", "artifacts/")) and not _is_local(name):
        return lake.bucket.stat(name)
    try:
        s = path.stat()
    except FileNotFoundError:
        return None
    return StoredObject(name, s.st_size, s.st_mtime)


def _remove(lake: Lake, name: str) -> None:
    if lake.bucket is not None and not _is_local(name):
        lake.bucket.remove(name)
        if (lake.root / name).exists():  # this machine's copy
            durable.remove(lake.root / name)
    else:
        durable.remove(lake.root / name)


def _is_local(name: str) -> bool:
    """Unfinished writes and notes never are in a bucket."""
    return name.startswith(("tmp/", "artifacts/tmp/", "artifacts/recall/"))


def _batches(paths: Iterator[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    for path in paths:
        batch.append(path)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _give_up(lake: Lake, keep: int, grace_s: float) -> int:
    """Forget the versions before the newest ``keep``, with the files, runs and references that only they have."""
    number, when = LAKE_VERSION.c.version, LAKE_VERSION.c.committed_us
    with lake.ledger.writing() as con:
        kept = con.execute(sa.select(number).order_by(number.desc()).limit(keep)).scalars().all()
        settled = con.execute(sa.select(sa.func.max(number)).where(when <= int((time.time() - grace_s) * 1e6))).scalar_one()
        if not kept or settled is None:
            return 0
        oldest = min([*kept, settled])
        gone = con.execute(sa.delete(LAKE_VERSION).where(number < oldest)).rowcount
        con.execute(sa.delete(DATA_FILE).where(DATA_FILE.c.removed_version <= oldest))
        con.execute(sa.delete(STAGE_RUN).where(STAGE_RUN.c.removed_version <= oldest))
    return int(gone)
