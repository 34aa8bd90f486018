"""Exports of one JSON object a line: the files, their line numbers, and the file of origins beside them. A consumer says what a line holds.

Where each line comes from (ids, licences, digests) stands in a second file with the same line numbers, because several readers refuse
keys they do not know or mix them into types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

import orjson

from materialize.export.card import licence_files, plain_card, sources
from materialize.export.folder import ExportFolder
from materialize.export.hub_parquet import Table
from materialize.export.options import ExportReport
from materialize.export.records import Records

Line = Callable[[Any], dict[str, Any]]
"""What one line holds; may raise ``BadText``, by :func:`materialize.export.writing.Consumer.accept`."""

_BREAKS = {"\u2028": "\\u2028", "\u2029": "\\u2029", "\x85": "\\u0085"}
"""Characters at which some readers end a line though JSON does not; written as escapes."""

_ORIGINS = """
Line n of a `.origins.jsonl` file tells where line n of the data comes from. Held-out projects are never part of a training export.
"""


class JsonLines:
    """Writes one pair of files."""

    def __init__(self, lines: IO[bytes], origins: IO[bytes], line: Line, table: Table) -> None:
        self._lines, self._origins = lines, origins
        self._line, self._table = line, table
        self.rows = 0

    def write(self, items: Sequence[Any]) -> None:
        """Append one line to each file for every item."""
        for item in items:
            self._lines.write(one_line(self._line(item)))
            self._origins.write(one_line(self._table.origin(item)))
        self.rows += len(items)


@dataclass(frozen=True, slots=True)
class LinesConsumer:
    """An export of lines.

    Args:
        name: as on the command line.
        table: gives the columns of the origins.
        line: what a line holds.
        loading: what the card says on loading.
        beside: further files, by name, made from the names of the data files by split.
        has_head: the card's head names the data files, for a consumer that loads the folder with ``datasets``.
    """

    name: str
    table: Table
    line: Line
    loading: str
    beside: Callable[[dict[str, list[str]]], dict[str, bytes]] = lambda _files: {}
    has_head: bool = False

    def accept(self, item: Any) -> None:
        """Whether a row can be said in this form.

        Raises:
            BadText: it cannot, without changing what is trained.
        """
        self.line(item)

    @contextmanager
    def shard(self, folder: ExportFolder, split: str, index: int, count: int) -> Iterator[JsonLines]:
        """``train.jsonl`` and ``train.origins.jsonl``; numbered when a split has several shards."""
        stem = split if count == 1 else f"{split}-{index:05d}-of-{count:05d}"
        names = (f"{stem}.jsonl", f"{stem}.origins.jsonl")
        with folder.path(names[0]).open("wb") as lines, folder.path(names[1]).open("wb") as origins:
            shard = JsonLines(lines, origins, self.line, self.table)
            yield shard
        for name in names:
            folder.set_rows(name, shard.rows)

    def documents(self, folder: ExportFolder, report: ExportReport, records: Records[Any, Any]) -> None:
        """A plain card, the list of sources, the licences, and what the consumer wants beside them."""
        data = {
            split: [n for n in folder.names() if n.startswith(split) and n.endswith(".jsonl") and not n.endswith(".origins.jsonl")]
            for split in report.rows
        }
        plain_documents(folder, report, records, self.loading + _ORIGINS, data if self.has_head else None)
        for name, content in self.beside(data).items():
            folder.write(name, content)


def plain_documents(
    folder: ExportFolder, report: ExportReport, records: Records[Any, Any], loading: str, files: dict[str, list[str]] | None = None
) -> None:
    """Card, sources, licences."""
    folder.write("sources.jsonl", sources(records.connection, report))
    licence_files(folder, report)
    folder.write("README.md", plain_card(report, loading, files).encode())


def one_line(value: Any) -> bytes:
    """A value as JSON that every reader takes for one line."""
    text = orjson.dumps(value).decode()
    for character, escape in _BREAKS.items():
        if character in text:
            text = text.replace(character, escape)
    return text.encode() + b"\n"
