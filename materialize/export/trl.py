"""What TRL reads unchanged: Parquet with the loss on the completion only (``sft``, ``rft``), pairs, labels, prompts."""

from __future__ import annotations

from typing import Any

from materialize.export.card import card, licence_files, sources
from materialize.export.folder import ExportFolder
from materialize.export.hub_parquet import Table
from materialize.export.options import ExportReport
from materialize.export.parquet_folder import ParquetConsumer
from materialize.export.records import Records
from materialize.export.snippets import TOKENS, snippets
from materialize.export.tables import TABLES, TOKENISED


def trl(kind: str) -> ParquetConsumer:
    """``export KIND --to trl``."""
    return ParquetConsumer("trl", TABLES[kind], _documents)


def trl_tokens(kind: str) -> ParquetConsumer:
    """``export KIND --to trl --tokenizer FOLDER``."""
    return ParquetConsumer("trl", TOKENISED[kind], _documents)


def _documents(folder: ExportFolder, report: ExportReport, records: Records[Any, Any], table: Table) -> None:
    folder.write("sources.jsonl", sources(records.connection, report))
    licence_files(folder, report)
    how = TOKENS if report.options.tokenizer else snippets(report.kind, "trl")
    folder.write("README.md", card(report, table, how, folder.names()).encode())
