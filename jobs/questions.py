"""Questions to a lake and exports from it, for the command line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import typer
from rich.console import Console
from rich.table import Table

from materialize.export.api import checked, export
from materialize.export.options import ExportOptions, ExportReport
from materialize.masks import visible
from schemas.errors import ConfigInvalid
from storage.bucket import is_bucket_url
from storage.lake import Lake
from storage.views import refuse_writes

SHOWN_ROWS = 200


@dataclass(frozen=True, slots=True)
class Answer:
    """Columns and rows of a query."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def as_json(self) -> list[dict[str, Any]]:
        """One object a row. Of columns with one name the second is called ``NAME_2``, and so on."""
        names: dict[str, None] = {}
        for column in self.columns:
            name, number = column, 1
            while name in names:
                number += 1
                name = f"{column}_{number}"
            names[name] = None
        return [dict(zip(names, (_plain(v) for v in row), strict=True)) for row in self.rows]

    def print(self) -> None:
        """A table; long results are cut with a remark."""
        table = Table(box=None, pad_edge=False)
        for name in self.columns:
            table.add_column(visible(name).replace("[", "\\["), overflow="fold")
        for row in self.rows[:SHOWN_ROWS]:
            table.add_row(*("" if v is None else visible(_text(v)).replace("[", "\\[") for v in row))
        Console().print(table)
        if len(self.rows) > SHOWN_ROWS:
            typer.echo(f"({len(self.rows) - SHOWN_ROWS} more rows; use --json for all)", err=True)


def open_lake(path: Path) -> Lake:
    """Open a lake that must exist already.

    Raises:
        ConfigInvalid: there is no lake at this path.
    """
    if not is_bucket_url(str(path)) and not path.is_dir():
        raise ConfigInvalid("no_lake", f"there is no lake at {path}", "name one with --lake, or make one with 'workprint run'")
    return Lake(path, create=False)


def ask(lake: Path, sql: str, version: int | None) -> Answer:
    """Run one query over the views of a lake.

    Raises:
        ConfigInvalid: it is no SELECT, or several, or DuckDB refuses it; its own message is passed on.
    """
    refuse_writes(sql)
    if (count := len(duckdb.extract_statements(sql))) > 1:
        raise ConfigInvalid("several_queries", f"these are {count} statements", "ask one, or give them to 'workprint sql' on its input")
    found = open_lake(lake).query(sql, version=version)
    return Answer(found.columns, found.rows)


def export_dataset(
    lake: Path, kind: str, to: str, out: Path, options: ExportOptions, note: Callable[[str], None], tokenizer: str | None = None
) -> ExportReport:
    """Export rows of a lake; see materialize.export.api for what each combination writes and raises."""
    checked(kind, to)
    opened = open_lake(lake)
    con = opened.connect()
    try:
        return export(kind, to, con, out, options, note, opened.store, tokenizer)
    finally:
        con.close()


def _plain(value: Any) -> Any:
    """A value of DuckDB as JSON has it: numbers as numbers where 64 bits hold them, everything that JSON does not know as text."""
    if isinstance(value, dict):
        return {_key(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return str(value)
    return value if isinstance(value, str | int | float | None) else _text(value)


def _key(value: Any) -> str:
    return value if isinstance(value, str) else _text(_plain(value))


def _text(value: Any) -> str:
    """A value as one reads it: bytes in hexadecimal, lengths of time in seconds."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, timedelta):
        return f"{Decimal(value // timedelta(microseconds=1)) / 1_000_000} s"
    return str(value)
