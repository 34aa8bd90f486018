"""A version of the lake as a standard table format: Delta Lake tables, or a DuckLake catalogue. Copies; the lake stays what it is.

The packages are optional and imported only here. Must not change the lake.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import duckdb
import pyarrow as pa

from schemas.errors import ConfigInvalid
from schemas.tables import TABLES, TableSpec
from storage import arrow

if TYPE_CHECKING:
    from storage.lake import Lake

Format = Literal["delta", "ducklake"]


def export_tables(lake: Lake, to: str, out: Path, *, version: int | None = None) -> dict[str, int]:
    """Write every table of a version (None: the newest) in another format into a new or empty folder.

    Args:
        to: ``delta`` (one Delta table a folder, ``out/TABLE``) or ``ducklake`` (``out/catalog.ducklake`` with its data in ``out/data``).

    Returns:
        rows written, by table.

    Raises:
        ConfigInvalid: no such format, its package is not installed, or the folder is not empty.
        StorageFault, DigestMismatch: a file of the lake is missing or damaged.
    """
    writers: dict[str, Callable[[Lake, Path, int | None], dict[str, int]]] = {"delta": _delta, "ducklake": _ducklake}
    if to not in writers:
        raise ConfigInvalid("no_format", f"there is no lake format {to!r}", f"one of: {', '.join(writers)}")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigInvalid("not_empty", f"{out} is not an empty folder", "name a new folder")
    return writers[to](lake, out, version)


def _batches(lake: Lake, spec: TableSpec, version: int | None) -> Iterator[Any]:
    """The table's rows, one data file at a time, each verified."""
    files = lake.files(version, spec.name)
    for file in files:
        lake.verify([file])
        yield lake.read_file(file)


def _delta(lake: Lake, out: Path, version: int | None) -> dict[str, int]:
    if importlib.util.find_spec("deltalake") is None:
        raise ConfigInvalid("delta_missing", "the Delta writer is not installed", "pip install 'deltalake>=1.6'")
    deltalake: Any = importlib.import_module("deltalake")
    counts: dict[str, int] = {}
    for spec in TABLES:
        schema = arrow.schema_of(spec).remove_metadata()
        counts[spec.name] = 0

        def rows(spec: TableSpec = spec, schema: Any = schema) -> Iterator[Any]:
            for table in _batches(lake, spec, version):
                counts[spec.name] += table.num_rows
                yield from table.replace_schema_metadata(None).cast(schema).to_batches()

        reader = pa.RecordBatchReader.from_batches(schema, rows())
        deltalake.write_deltalake(str(out / spec.name), reader, name=spec.name, description=spec.doc)
    return counts


def _ducklake(lake: Lake, out: Path, version: int | None) -> dict[str, int]:
    con = duckdb.connect()
    try:
        try:
            _load_ducklake(con)
        except duckdb.Error as error:
            raise ConfigInvalid(
                "ducklake_missing",
                f"DuckDB {duckdb.__version__} has no ducklake extension here: {str(error).splitlines()[0]}",
                "with internet: duckdb -c 'install ducklake'; offline: duckdb==1.5.5 with duckdb-extension-ducklake==1.5.5",
            ) from error
        out.mkdir(parents=True, exist_ok=True)
        place = str(out.resolve()).replace("'", "''")
        con.execute(f"attach 'ducklake:{place}/catalog.ducklake' as exported (data_path '{place}/data')").fetchall()
        counts: dict[str, int] = {}
        con.execute("begin transaction").fetchall()  # one snapshot of the catalogue for one version of the lake
        for spec in TABLES:
            columns = ", ".join(f'"{c.name}" {arrow.DUCKDB[c.type]}' for c in spec.all_columns)
            con.execute(f'create table exported."{spec.name}" ({columns})').fetchall()
            counts[spec.name] = 0
            for table in _batches(lake, spec, version):
                con.register("incoming", table)
                con.execute(f'insert into exported."{spec.name}" from incoming').fetchall()
                con.unregister("incoming")
                counts[spec.name] += table.num_rows
        con.execute("commit").fetchall()
        return counts
    finally:
        con.close()


def _load_ducklake(con: duckdb.DuckDBPyConnection) -> None:
    """Load the extension from its package if there is one, else as DuckDB finds it."""
    found = importlib.util.find_spec("duckdb_extension_ducklake")
    if found is not None and found.submodule_search_locations:
        folder = Path(next(iter(found.submodule_search_locations)))
        for file in sorted(folder.rglob("ducklake.duckdb_extension")):
            con.execute(f"load '{str(file).replace(chr(39), chr(39) * 2)}'").fetchall()
            return
    con.execute("set autoinstall_known_extensions = false").fetchall()  # nothing is downloaded unasked
    con.execute("load ducklake").fetchall()
