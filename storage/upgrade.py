"""Rows of older table versions, read as rows of today's: one upgrade for each step of a table's version.

A table's version is raised when a column is added, changed or dropped. A file keeps the version it was written with and is never
rewritten in place; readers see it through its upgrades, and compaction writes the result down. Columns that are only added and may be null
need no entry here. Owns the upgrades and their SQL; must not read files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import duckdb

from schemas.tables import TableSpec
from storage import arrow


@dataclass(frozen=True, slots=True)
class Upgrade:
    """From one version of a table to the next, as DuckDB expressions over the older columns."""

    adds: Mapping[str, str] = field(default_factory=dict)
    changes: Mapping[str, str] = field(default_factory=dict)
    drops: tuple[str, ...] = ()

    def select(self, source: str) -> str:
        """The query that turns rows of the older version into rows of the next."""
        star = "*"
        if self.drops:
            star += f" exclude ({', '.join(map(_name, self.drops))})"
        if self.changes:
            star += f" replace ({', '.join(f'{sql} as {_name(column)}' for column, sql in self.changes.items())})"
        added = "".join(f", {sql} as {_name(column)}" for column, sql in self.adds.items())
        return " ".join(("select", star + added, "from", source))


UPGRADES: dict[tuple[str, int], Upgrade] = {
    ("groups", 1): Upgrade(adds={"variance": "0.0", "rounds": "1", "status": "'queued'"}),
    ("candidates", 1): Upgrade(adds={"origin": "'sample'", "refused": "false", "calls": "0"}),
}
"""(table, version) -> the way to version + 1."""


def upgraded_sql(spec: TableSpec, version: int, source: str) -> str:
    """A source of rows of ``version`` as a source of rows of today's version; columns that are still lacking are null."""
    for step in range(version, spec.version):
        if (spec.name, step) in UPGRADES:
            source = f"({UPGRADES[(spec.name, step)].select(source)})"
    typed = ", ".join(f"cast(null as {arrow.DUCKDB[c.type]}) as {_name(c.name)}" for c in spec.all_columns)
    columns = ", ".join(_name(c.name) for c in spec.all_columns)
    together = " ".join(("(select * from (select", typed, ") where false union all by name select * from", source, ")"))
    return " ".join(("(select", columns, "from", together, ")"))


def upgraded(spec: TableSpec, version: int, table: Any) -> Any:
    """An Arrow table of ``version`` in today's schema."""
    if version >= spec.version:
        return arrow.conform(table, spec)
    con = duckdb.connect()
    try:
        con.register("older", table)
        return arrow.conform(con.sql(" ".join(("select * from", upgraded_sql(spec, version, "older")))).to_arrow_table(), spec)
    finally:
        con.close()


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
