"""Exports of Parquet shards: what TRL, verl and SkyRL read, and what the canonical folder adds documents to.

A table says what the rows hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from materialize.export.folder import ExportFolder
from materialize.export.hub_parquet import Table
from materialize.export.options import ExportReport
from materialize.export.records import Records

Documents = Callable[[ExportFolder, ExportReport, Records[Any, Any], Table], None]
"""Writes what goes with the data."""


class ParquetShard:
    """Writes one Parquet shard."""

    def __init__(self, writer: pq.ParquetWriter, table: Table, schema: pa.Schema) -> None:
        self._writer, self._table, self._schema = writer, table, schema
        self.rows = 0

    def write(self, items: Sequence[Any]) -> None:
        """Append one row group."""
        self._writer.write_batch(self._table.batch(items, self._schema))
        self.rows += len(items)


@dataclass(frozen=True, slots=True)
class ParquetConsumer:
    """An export of Parquet shards.

    Args:
        name: as on the command line.
        table: the rows.
        write_documents: what goes with them.
    """

    name: str
    table: Table
    write_documents: Documents

    def accept(self, item: Any) -> None:
        """Every checked row can be said in this form."""

    @contextmanager
    def shard(self, folder: ExportFolder, split: str, index: int, count: int) -> Iterator[ParquetShard]:
        """``data/train-00000-of-00002.parquet`` and so on."""
        name = f"data/{split}-{index:05d}-of-{count:05d}.parquet"
        schema = self.table.schema
        with self.table.open_writer(folder.path(name), schema) as writer:
            shard = ParquetShard(writer, self.table, schema)
            yield shard
        folder.set_rows(name, shard.rows)

    def documents(self, folder: ExportFolder, report: ExportReport, records: Records[Any, Any]) -> None:
        """What goes with the data."""
        self.write_documents(folder, report, records, self.table)
