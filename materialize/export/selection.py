"""Which rows of the examples table an export takes, and in which order. Reads the lake; writes nothing.

Held-out projects never leave in a training export, nor do projects that share twelve words in a row with one (materialize.leakage). Of
examples with equal context and completion one is taken, from the training split if it is there. Order is by project, trajectory, call and
id; a limit chooses by hash, so that the choice depends on nothing but the seed and the ids.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import duckdb
import pyarrow as pa

from materialize.export.options import ExportOptions
from materialize.leakage import contaminated
from schemas.errors import ConfigInvalid
from schemas.example import Split
from schemas.tables import TABLE

COLUMNS = tuple(c.name for c in TABLE["examples"].columns)
_ROWS_AT_ONCE = 512
"""Rows of a shard that are Python objects at the same time."""

TRAINING_SPLITS = (Split.TRAIN, Split.VALIDATION)

Source: TypeAlias = duckdb.DuckDBPyConnection | pa.Table
"""A connection with a view or table ``examples`` (storage.lake.Lake.connect), or that table itself."""


@dataclass(frozen=True, slots=True)
class Key:
    """Names one row of the selection."""

    project_id: str
    trajectory_id: str
    call_index: int
    example_id: str
    split: str


@dataclass(slots=True)
class Selection:
    """The rows to export, by split, in order, and what was not taken."""

    connection: duckdb.DuckDBPyConnection
    keys: dict[str, list[Key]] = field(default_factory=dict)
    not_taken: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Number of rows."""
        return sum(len(k) for k in self.keys.values())

    def shards(self, split: str, rows_per_shard: int) -> Iterator[list[Key]]:
        """The keys of one split in shards of at most ``rows_per_shard`` rows."""
        keys = self.keys[split]
        for start in range(0, len(keys), rows_per_shard):
            yield keys[start : start + rows_per_shard]

    def read(self, shard: list[Key]) -> Iterator[dict[str, Any]]:
        """The rows of one shard as dicts, in order. Only the projects of the shard are read.

        Files of a lake are sorted by project, so rows come nearly in order; the few that come early wait here. DuckDB is not asked to
        sort, because its sort holds the long texts twice.
        """
        columns = ", ".join(f'"{c}"' for c in COLUMNS)
        table = self.connection.sql(
            f"select {columns} from examples where project_id between $1 and $2 and list_contains($3, project_id)",  # noqa: S608 - own names
            params=[shard[0].project_id, shard[-1].project_id, sorted({k.project_id for k in shard})],
        ).to_arrow_table()
        place = {(k.trajectory_id, k.call_index, k.example_id): i for i, k in enumerate(shard)}
        early: dict[int, dict[str, Any]] = {}
        due = 0
        for batch in table.to_batches(max_chunksize=_ROWS_AT_ONCE):
            keys = zip(*(batch.column(c).to_pylist() for c in ("trajectory_id", "call_index", "example_id")), strict=True)
            keep = [(at, i) for i, key in enumerate(keys) if (at := place.pop(key, None)) is not None]
            if keep:
                rows = batch.take(pa.array([i for _, i in keep], pa.int64())).to_pylist()
                early |= {at: row for (at, _), row in zip(keep, rows, strict=True)}
            while due in early:
                yield early.pop(due)
                due += 1


def select(source: Source, options: ExportOptions) -> Selection:
    """Decide on the rows of a training export.

    Raises:
        ConfigInvalid: the filters ask for held-out examples, or leave nothing.
    """
    if Split.HELD_OUT in options.filters.splits:
        raise ConfigInvalid(
            "held_out",
            "held-out projects feed the benchmark and are never exported for training",
            "ask for the splits train and validation",
        )
    connection = _connection(source)
    found = connection.execute(
        "select project_id, trajectory_id, call_index, example_id, split, role, kind, provenance, licence, verified,"
        " context_sha256 || md5(completion_json) from examples"
        " order by split <> 'train', project_id, trajectory_id, call_index, example_id"
    ).fetchall()
    selection = Selection(connection)
    tainted = {o.project_id for o in contaminated(connection)} if options.decontaminate and _has_scripts(connection) else set()
    taken: list[Key] = []
    seen: set[str] = set()
    for project, trajectory, index, example, split, role, kind, provenance, licence, verified, content in found:
        rule = rule_against(options, split, role, kind, provenance, licence, project, verified)
        if rule is None and project in tainted:
            rule = "contaminated"
        if rule is None and not seen.isdisjoint((example, content)):
            rule = "repeated"
        if rule is not None:
            selection.not_taken[rule] = selection.not_taken.get(rule, 0) + 1
            continue
        seen |= {example, content}
        taken.append(Key(project, trajectory, index, example, split))
    if options.limit is not None and len(taken) > options.limit:
        chosen = set(sorted((k.example_id for k in taken), key=lambda e: _draw(options.seed, e))[: options.limit])
        selection.not_taken["limit"] = len(taken) - options.limit
        taken = [k for k in taken if k.example_id in chosen]
    for split in (s.value for s in TRAINING_SPLITS):
        keys = [k for k in taken if k.split == split]
        if keys:
            selection.keys[split] = keys
    if not taken:
        raise ConfigInvalid(
            "nothing_to_export", _why_empty(len(found), selection.not_taken), "loosen the filters, or add projects to the lake"
        )
    return selection


def _connection(source: Source) -> duckdb.DuckDBPyConnection:
    if isinstance(source, pa.Table):
        connection = duckdb.connect()
        connection.register("examples", source)
        return connection
    return source


def _has_scripts(connection: duckdb.DuckDBPyConnection) -> bool:
    """The connection is a lake's, not one to a bare table of examples."""
    return connection.execute("select 1 from information_schema.tables where table_name = 'storyboards'").fetchone() is not None


def rule_against(
    options: ExportOptions, split: str, role: str, kind: str, provenance: str, licence: str, project: str, verified: bool
) -> str | None:
    """Why the filters, or the rule on held-out projects, leave an example out; None when they do not."""
    f = options.filters
    if split not in {s.value for s in TRAINING_SPLITS}:
        return "held_out"
    if f.verified_only and not verified:
        return "not_verified"
    for name, allowed, value in (
        ("split", f.splits, split),
        ("role", f.roles, role),
        ("kind", f.kinds, kind),
        ("provenance", f.provenance, provenance),
        ("licence", f.licences, licence),
        ("project", f.projects, project),
    ):
        if allowed and value not in allowed:
            return f"filter_{name}"
    return None


def _draw(seed: int, example_id: str) -> bytes:
    return hashlib.sha256(f"{seed}\n{example_id}".encode()).digest()


def _why_empty(found: int, not_taken: dict[str, int]) -> str:
    if not found:
        return "the lake has no examples"
    rules = ", ".join(f"{rule} {n}" for rule, n in sorted(not_taken.items()))
    return f"none of the {found} examples passed the filters ({rules})"
