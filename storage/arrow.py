"""Rows and Arrow: every table's schema comes from its spec, and rows enter with types that do not depend on their values.

Owns the mapping TableSpec -> Arrow -> Parquet. Must not know where files lie.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from schemas.errors import SchemaMismatch
from schemas.tables import Column, ColumnType, TableSpec

BATCH = 4096
"""Rows turned into Arrow at a time: twice as fast as all at once."""

ROW_GROUP = 8192

FEW_BYTES = 32 * 1024

_ARROW: dict[ColumnType, Any] = {
    "text": pa.string(),
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "text_list": pa.list_(pa.string()),
    "int_list": pa.list_(pa.int64()),
}

DUCKDB: dict[ColumnType, str] = {
    "text": "VARCHAR",
    "int": "BIGINT",
    "float": "DOUBLE",
    "bool": "BOOLEAN",
    "text_list": "VARCHAR[]",
    "int_list": "BIGINT[]",
}
"""DuckDB's name of each column type."""

_INT64 = range(-(2**63), 2**63)


def schema_of(spec: TableSpec) -> Any:
    """The Arrow schema of a table: all columns with provenance, nullable only where the spec says so."""
    fields = [pa.field(c.name, _ARROW[c.type], nullable=c.null is not None) for c in spec.all_columns]
    return pa.schema(fields, metadata={"workprint.table": spec.name, "workprint.version": str(spec.version)})


def sort_columns(spec: TableSpec) -> list[str]:
    """What files are sorted by: the project first, so that one project's rows lie together, then the key."""
    names = [c.name for c in spec.columns]
    first = [n for n in ("project_id",) if n in names and n not in spec.key]
    return [*first, *spec.key]


def finish_rows(spec: TableSpec, rows: Sequence[dict[str, Any]], *, stage_key: str, run_id: str) -> list[dict[str, Any]]:
    """Validate rows and add provenance.

    Raises:
        SchemaMismatch: a row does not fit the spec, a key occurs twice, or a value cannot be stored; names table, row and column.
    """
    floats = [c.name for c in spec.columns if c.type == "float"]
    ints = [c.name for c in spec.columns if c.type == "int"]
    lists = [c for c in spec.columns if c.type in ("text_list", "int_list")]
    out: list[dict[str, Any]] = []
    seen: set[tuple[Any, ...]] = set()
    for index, row in enumerate(rows):
        whole = {n: float(row[n]) for n in floats if type(row.get(n)) is int} if floats else None  # 1 and 1.0 are one value: one digest
        try:
            done = spec.finish({**row, **whole} if whole else row, stage_key=stage_key, run_id=run_id)
        except (TypeError, ValueError, OverflowError) as error:  # values that have no canonical JSON
            raise _unstorable(spec, row, index, error) from error
        if not (
            all((v := done[n]) is None or -(2**63) <= v < 2**63 for n in ints)
            and all((v := done[n]) is None or math.isfinite(v) for n in floats)
            and all(_fits(c, done[c.name]) for c in lists)
        ):
            raise _unstorable(spec, row, index, None)
        key = tuple(done[k] for k in spec.key)
        if key in seen:
            raise SchemaMismatch("duplicate_key", f"table {spec.name} gets key {key!r} twice in one commit (row {index})")
        seen.add(key)
        out.append(done)
    return out


def table_of(spec: TableSpec, finished: Sequence[dict[str, Any]]) -> Any:
    """Finished rows as an Arrow table in the spec's schema, sorted; empty and all-null columns keep their types.

    Raises:
        SchemaMismatch: a value does not fit its column; names the table.
    """
    schema = schema_of(spec)
    try:
        batches = [pa.RecordBatch.from_pylist(list(finished[at : at + BATCH]), schema) for at in range(0, len(finished), BATCH)]
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError, OverflowError) as error:
        raise SchemaMismatch("bad_value", f"table {spec.name} holds a value that does not fit its column: {error}") from error
    return sort_table(spec, pa.Table.from_batches(batches, schema))


def sort_table(spec: TableSpec, table: Any) -> Any:
    """Sort by :func:`sort_columns`; equal rows in any order give equal bytes."""
    return table.sort_by([(name, "ascending") for name in sort_columns(spec)])


def parquet_bytes(table: Any) -> Any:
    """A table as the bytes of a Parquet file (zstd 3, row groups of 8,192, page index, page checksums); equal tables give equal bytes.

    Tables of a few rows take snappy: setting zstd up costs more than it saves, and they are merged before long.
    """
    few = table.nbytes < FEW_BYTES
    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        compression="snappy" if few else "zstd",
        compression_level=None if few else 3,
        row_group_size=ROW_GROUP,
        write_page_index=True,
        write_page_checksum=True,
    )
    return memoryview(sink.getvalue())


def without_keys(table: Any, stage_keys: Sequence[str]) -> Any:
    """The rows whose stage key is none of these."""
    if not stage_keys:
        return table
    dead = pc.is_in(table["stage_key"], value_set=pa.array(stage_keys, pa.string()))
    return table.filter(pc.invert(dead))


def read_parquet(path: Path) -> Any:
    """Read one Parquet file as it is. Page checksums are verified.

    Raises:
        OSError: the file cannot be read, or a page's checksum is wrong.
    """
    return pq.ParquetFile(path, page_checksum_verification=True).read()


def conform(table: Any, spec: TableSpec) -> Any:
    """A table in the spec's schema: columns in order, missing ones null."""
    schema = schema_of(spec)
    have = set(table.column_names)
    columns = [table[f.name].cast(f.type) if f.name in have else pa.nulls(table.num_rows, f.type) for f in schema]
    return pa.table(columns, schema=schema)


def _fits(column: Column, value: Any) -> bool:
    match column.type:
        case "int":
            return value is None or value in _INT64
        case "float":
            return value is None or math.isfinite(value)
        case "text_list":
            return value is None or all(isinstance(v, str) for v in value)
        case "int_list":
            return value is None or all(isinstance(v, int) and not isinstance(v, bool) and v in _INT64 for v in value)
        case _:
            return True


def _unstorable(spec: TableSpec, row: dict[str, Any], index: int, error: Exception | None) -> SchemaMismatch:
    """Find the column that is to blame."""
    for column in spec.columns:
        value = row.get(column.name)
        where = f"{spec.name}.{column.name} of row {index}"
        for text in _texts(value):
            try:
                text.encode()
            except UnicodeEncodeError as e:
                return SchemaMismatch(
                    "bad_text", f"{where} holds a lone surrogate at character {e.start}", "replace it before the row is written"
                )
        if value is not None and not _fits(column, value):
            return SchemaMismatch("bad_value", f"{where} holds {str(value)[:60]}, which a column of type {column.type} cannot hold")
    return SchemaMismatch("bad_value", f"row {index} of table {spec.name} cannot be stored: {error}")


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, (list, tuple)):
        return (v for v in value if isinstance(v, str))
    return ()
