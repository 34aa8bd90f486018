"""Which rows of the lake an export takes, and in which order. Reads the lake; writes nothing.

Held-out projects never leave in a training export, nor do projects that share twelve words in a row with one (materialize.leakage). Of
examples with equal context and completion one is taken, from the training split if it is there. Order is by project, trajectory, call and
id; a limit chooses by hash, so that the choice depends on nothing but the seed and the ids.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, TypeVar

import duckdb
import pyarrow as pa

from materialize.export.licences import spdx
from materialize.export.options import ExportOptions
from materialize.leakage import Overlap, contaminated
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
    """Names one call of a trajectory, and the row of the selection that is made of it."""

    project_id: str
    trajectory_id: str
    call_index: int
    ident: str
    split: str


class _Placed(Protocol):
    @property
    def ident(self) -> str: ...
    @property
    def split(self) -> str: ...


P = TypeVar("P", bound=_Placed)


@dataclass(slots=True)
class Selection:
    """What was chosen, by split, in order, and what was not taken."""

    connection: duckdb.DuckDBPyConnection
    keys: dict[str, list[Key]]
    not_taken: dict[str, int]
    digest: str
    repeated: dict[str, str] = field(default_factory=dict)
    overlaps: tuple[Overlap, ...] = ()
    qualities: dict[str, float] = field(default_factory=dict)
    """Final quality of each trajectory; empty without a lake."""

    def read(self, shard: list[Key], columns: Sequence[str] = COLUMNS, table: str = "examples") -> Iterator[dict[str, Any]]:
        """The rows of one shard as dicts, in order, with the quality of their run. Only the projects of the shard are read."""
        for row in read_rows(self.connection, table, columns, shard, by_id=table == "examples"):
            row["quality"] = self.qualities.get(row["trajectory_id"])
            yield row


def read_rows(
    connection: duckdb.DuckDBPyConnection, table: str, columns: Sequence[str], shard: list[Key], *, by_id: bool
) -> Iterator[dict[str, Any]]:
    """Rows of a table with columns ``project_id, trajectory_id, call_index`` (and ``example_id``, ``by_id``), in the order of the keys.

    Files of a lake are sorted by project, so rows come nearly in order; the few that come early wait here. DuckDB is not asked to
    sort, because its sort holds the long texts twice.
    """
    listed = ", ".join(f'"{c}"' for c in columns)
    found = connection.sql(
        f"select {listed} from {table} where project_id between $1 and $2 and list_contains($3, project_id)",  # noqa: S608 - own names
        params=[min(k.project_id for k in shard), max(k.project_id for k in shard), sorted({k.project_id for k in shard})],
    ).to_arrow_table()
    names = ("trajectory_id", "call_index", *(("example_id",) if by_id else ()))
    place = {(k.trajectory_id, k.call_index, *((k.ident,) if by_id else ())): i for i, k in enumerate(shard)}
    early: dict[int, dict[str, Any]] = {}
    due = 0
    for batch in found.to_batches(max_chunksize=_ROWS_AT_ONCE):
        keys = zip(*(batch.column(c).to_pylist() for c in names), strict=True)
        keep = [(at, i) for i, key in enumerate(keys) if (at := place.pop(key, None)) is not None]
        if keep:
            rows = batch.take(pa.array([i for _, i in keep], pa.int64())).to_pylist()
            early |= {at: row for (at, _), row in zip(keep, rows, strict=True)}
        while due in early:
            yield early.pop(due)
            due += 1


RFT_ROWS = (
    "(select e.* from examples e join calls x on x.trajectory_id = e.trajectory_id and x.call_index = e.call_index where exists ("
    "select 1 from calls c join rft r on r.trajectory_id = c.trajectory_id where r.admitted and c.context_sha256 = x.context_sha256 "
    "and c.role = x.role and c.tool is not distinct from x.tool and c.arguments_json is not distinct from x.arguments_json "
    "and c.content_json is not distinct from x.content_json))"
)
"""Examples of the calls of admitted runs. An output is stored once, with the first run that had it: so calls are found by what they saw
and said, whichever run holds the example."""


SAME_ANSWER = "context_sha256 || md5(completion_json)"
SAME_STATE = "context_sha256"


def select(
    source: Source,
    options: ExportOptions,
    *,
    rows: str = "examples",
    any_run: bool = False,
    same: str = SAME_ANSWER,
    what: tuple[str, str] = ("examples", "add projects to the lake with: workprint run"),
) -> Selection:
    """Decide on the rows of a training export of examples.

    Args:
        rows: the table, or a query in brackets, with the columns of ``examples``.
        any_run: outputs of runs that did not deliver are taken too, because another rule admitted them.
        same: of rows that are equal in this, one is taken.
        what: what the rows are called, and how a lake that has none gets some.

    Raises:
        ConfigInvalid: the filters ask for held-out examples or an unknown project, need a lake where there is none, or leave nothing.
    """
    connection = connection_of(source)
    rules = Rules.of(connection, options)
    found = connection.execute(
        "select project_id, trajectory_id, call_index, example_id, split, role, kind, provenance, licence, verified,"  # noqa: S608 - own names
        f" {same}, row_digest from {rows}"
        " order by split <> 'train', project_id, trajectory_id, call_index, example_id"
    ).fetchall()
    repeated: dict[str, str] = {}
    taken: list[Key] = []
    digests: dict[str, str] = {}
    seen: dict[str, str] = {}
    for project, trajectory, index, example, split, role, kind, provenance, licence, verified, content, digest in found:
        if rules.leave_out(split, role, kind, provenance, licence, project, trajectory, any_run or verified):
            continue
        if (other := seen.get(example) or seen.get(content)) is not None:
            rules.count("repeated")
            if other != example:
                repeated.setdefault(example, other)
            continue
        seen[example] = seen[content] = example
        taken.append(Key(project, trajectory, index, example, split))
        digests[example] = digest
    keys, digest = arranged(taken, options, rules.not_taken, digests)
    if not taken:
        raise rules.nothing(*what)
    return Selection(connection, keys, rules.not_taken, digest, repeated, rules.overlaps, rules.qualities)


def arranged(
    taken: list[P], options: ExportOptions, not_taken: dict[str, int], digests: dict[str, str], splits: Iterable[Split] = TRAINING_SPLITS
) -> tuple[dict[str, list[P]], str]:
    """Rows under the limit, by split in their order, and a digest of them and their content (``digests``, by ident)."""
    if options.limit is not None and len(taken) > options.limit:
        chosen = set(sorted((k.ident for k in taken), key=lambda e: _draw(options.seed, e))[: options.limit])
        not_taken["limit"] = len(taken) - options.limit
        taken = [k for k in taken if k.ident in chosen]
    keys = {s.value: part for s in splits if (part := [k for k in taken if k.split == s.value])}
    state = hashlib.sha256()
    for part in keys.values():
        for key in part:
            state.update(f"{key.split}\n{key.ident}\n{digests.get(key.ident, '')}\n".encode())
    return keys, state.hexdigest()


def connection_of(source: Source) -> duckdb.DuckDBPyConnection:
    """A connection to a source."""
    if isinstance(source, pa.Table):
        connection = duckdb.connect()
        connection.register("examples", source)
        return connection
    return source


def has_table(connection: duckdb.DuckDBPyConnection, name: str) -> bool:
    """The connection has a view or table of this name; one to a bare table of examples has no other."""
    return connection.execute("select 1 from information_schema.tables where table_name = $1", [name]).fetchone() is not None


def lake_of(source: Source, what: str) -> duckdb.DuckDBPyConnection:
    """A source that must be a lake's connection.

    Raises:
        ConfigInvalid: it is a bare table of examples (``what`` says what that lacks).
    """
    if isinstance(source, pa.Table):
        raise ConfigInvalid("no_lake", f"a bare table of examples {what}", "export from a lake")
    return source


@dataclass(slots=True)
class Rules:
    """What leaves rows out of an export, whatever its kind, and how often each rule did: held-out projects, outputs that were not verified,
    the filters, contamination."""

    options: ExportOptions
    qualities: dict[str, float]
    """Final quality of each trajectory; empty without a lake."""
    overlaps: tuple[Overlap, ...] = ()
    """Projects that share words with a held-out one; none when the options do not ask, and none for the benchmark."""
    held_out: bool = False
    """Held-out projects are taken, and no others: the benchmark."""
    not_taken: dict[str, int] = field(default_factory=dict)
    tainted: frozenset[str] = frozenset()
    licences: frozenset[str] = frozenset()
    """SPDX names that the filters allow."""

    @classmethod
    def of(cls, connection: duckdb.DuckDBPyConnection, options: ExportOptions, *, held_out: bool = False) -> Rules:
        """The rules of an export from this connection.

        Raises:
            ConfigInvalid: a training export is asked for held-out projects, any export for a project that the lake does not have; or the
                filters ask for quality, and there is no table of trajectories.
        """
        if not held_out and Split.HELD_OUT in options.filters.splits:
            raise ConfigInvalid(
                "held_out",
                "held-out projects feed the benchmark and are never exported for training",
                "ask for the splits train and validation, or export benchmark",
            )
        qualities: dict[str, float] = {}
        if has_table(connection, "trajectories"):
            qualities = dict(connection.execute("select trajectory_id, quality from trajectories").fetchall())
        elif options.filters.quality is not None:
            raise ConfigInvalid("no_lake", "a bare table of examples does not tell the quality of their runs", "export from a lake")
        compare = options.decontaminate and not held_out and has_table(connection, "storyboards")
        overlaps = contaminated(connection) if compare else ()
        _known_projects(connection, options.filters.projects)
        return cls(
            options,
            qualities,
            overlaps,
            held_out,
            tainted=frozenset(o.project_id for o in overlaps),
            licences=frozenset(map(spdx, options.filters.licences)),
        )

    def count(self, rule: str) -> None:
        """A rule left a row out."""
        self.not_taken[rule] = self.not_taken.get(rule, 0) + 1

    def nothing(self, what: str, make: str) -> ConfigInvalid:
        """The error of an export without rows: there is nothing of the kind (``make`` says what makes some), or no row passes."""
        if not self.not_taken:
            return ConfigInvalid("nothing_to_export", f"the lake has no {what}", make)
        rules = ", ".join(f"{rule} {n}" for rule, n in sorted(self.not_taken.items()))
        seen = f"none of the {sum(self.not_taken.values())} {what} passed the rules and filters ({rules})"
        return ConfigInvalid("nothing_to_export", seen, "loosen the filters, or add projects to the lake")

    def leave_out_author(self, provenance: str) -> bool:
        """Whether the filter on authors leaves an output out whose other properties passed; counts it."""
        wrong = bool(self.options.filters.provenance) and provenance not in self.options.filters.provenance
        if wrong:
            self.count("filter_provenance")
        return wrong

    def leave_out(
        self, split: str | None, role: str, kind: str, provenance: str | None, licence: str, project: str, trajectory: str, verified: bool
    ) -> bool:
        """Whether a rule leaves a row out; counts it.

        ``split`` is None for what belongs to no example, ``provenance`` where :meth:`leave_out_author` decides. Rows that filters of role
        or kind do not apply to have empty ones; such filters must not be set then.
        """
        rule = self._against(split, role, kind, provenance, licence, project, trajectory, verified)
        if rule is not None:
            self.count(rule)
        return rule is not None

    def _against(
        self, split: str | None, role: str, kind: str, provenance: str | None, licence: str, project: str, trajectory: str, verified: bool
    ) -> str | None:
        f = self.options.filters
        if split is None:
            return "no_example"
        if (split == Split.HELD_OUT.value) is not self.held_out:
            return "not_held_out" if self.held_out else "held_out"
        if f.verified_only and not verified:
            return "not_verified"
        for name, allowed, value in (
            ("split", f.splits, split),
            ("role", f.roles, role),
            ("kind", f.kinds, kind),
            ("provenance", f.provenance, provenance),
            ("project", f.projects, project),
        ):
            if allowed and value is not None and value not in allowed:
                return f"filter_{name}"
        if f.licences and spdx(licence) not in self.licences:
            return "filter_licence"
        if f.quality is not None and ((quality := self.qualities.get(trajectory)) is None or quality < f.quality):
            return "filter_quality"
        return "contaminated" if project in self.tainted else None


def _known_projects(connection: duckdb.DuckDBPyConnection, asked: tuple[str, ...]) -> None:
    if not asked:
        return
    tables = [name for name in ("projects", "examples", "distillation") if has_table(connection, name)]
    known = {p for name in tables for (p,) in connection.execute(f"select distinct project_id from {name}").fetchall()}  # noqa: S608 - own
    if unknown := sorted(set(asked) - known):
        raise ConfigInvalid(
            "unknown_project",
            f"the lake has no project {', '.join(unknown)}",
            'name whole ids; list them with: workprint query "select project_id, title from projects"',
        )


def _draw(seed: int, ident: str) -> bytes:
    return hashlib.sha256(f"{seed}\n{ident}".encode()).digest()
