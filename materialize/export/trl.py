"""SFT for TRL: a folder that ``datasets.load_dataset`` and ``trl.SFTTrainer`` read unchanged, with the loss on the completion only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow.parquet as pq

from materialize.export.card import card, sources
from materialize.export.conversation import Conversation
from materialize.export.folder import ExportFolder
from materialize.export.hub_parquet import open_writer, record_batch
from materialize.export.options import ExportReport
from materialize.export.selection import Selection


class ParquetShard:
    """Writes one Parquet shard."""

    def __init__(self, writer: pq.ParquetWriter) -> None:
        self._writer = writer
        self.rows = 0

    def write(self, items: Sequence[Conversation]) -> None:
        """Append one row group."""
        self._writer.write_batch(record_batch(items))
        self.rows += len(items)


class Trl:
    """``export sft --to trl``."""

    name = "trl"

    def accept(self, item: Conversation) -> None:
        """Every checked conversation can be said in this form."""

    @contextmanager
    def shard(self, folder: ExportFolder, split: str, index: int, count: int) -> Iterator[ParquetShard]:
        """``data/train-00000-of-00002.parquet`` and so on."""
        name = f"data/{split}-{index:05d}-of-{count:05d}.parquet"
        with open_writer(folder.path(name)) as writer:
            shard = ParquetShard(writer)
            yield shard
        folder.set_rows(name, shard.rows)

    def documents(self, folder: ExportFolder, report: ExportReport, selection: Selection) -> None:
        """Dataset card and the list of sources."""
        folder.write("sources.jsonl", sources(selection, report))
        folder.write("README.md", card(report).encode())
