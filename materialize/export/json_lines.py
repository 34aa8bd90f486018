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

from materialize.export.card import plain_card, sources
from materialize.export.conversation import Conversation
from materialize.export.folder import ExportFolder
from materialize.export.hub_parquet import ROW_COLUMNS
from materialize.export.options import ExportReport
from materialize.export.selection import Selection

Line = Callable[[Conversation], dict[str, Any]]
"""What one line holds; may raise ``BadText``, by :func:`materialize.export.sft.Consumer.accept`."""

_BREAKS = {"\u2028": "\\u2028", "\u2029": "\\u2029", "\x85": "\\u0085"}
"""Characters at which some readers end a line though JSON does not; written as escapes."""


class JsonLines:
    """Writes one pair of files."""

    def __init__(self, lines: IO[bytes], origins: IO[bytes], line: Line) -> None:
        self._lines = lines
        self._origins = origins
        self._line = line
        self.rows = 0

    def write(self, items: Sequence[Conversation]) -> None:
        """Append one line to each file for every conversation."""
        for item in items:
            self._lines.write(one_line(self._line(item)))
            self._origins.write(one_line({c.name: c.of(item.row) for c in ROW_COLUMNS if c.name != "completion_json"}))
        self.rows += len(items)


@dataclass(frozen=True, slots=True)
class LinesConsumer:
    """An export of lines.

    Args:
        name: as on the command line.
        line: what a line holds.
        loading: what the card says on loading.
        beside: further files, by name, made from the names of the data files by split.
    """

    name: str
    line: Line
    loading: str
    beside: Callable[[dict[str, list[str]]], dict[str, bytes]] = lambda _files: {}

    def accept(self, item: Conversation) -> None:
        """Whether a conversation can be said in this form.

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
            shard = JsonLines(lines, origins, self.line)
            yield shard
        for name in names:
            folder.set_rows(name, shard.rows)

    def documents(self, folder: ExportFolder, report: ExportReport, selection: Selection) -> None:
        """A plain card, the list of sources, and what the consumer wants beside them."""
        folder.write("sources.jsonl", sources(selection, report))
        folder.write("README.md", plain_card(report, self.loading).encode())
        data: dict[str, list[str]] = {}
        for split in report.rows:
            data[split] = [n for n in folder.names() if n.startswith(split) and not n.endswith(".origins.jsonl")]
        for name, content in self.beside(data).items():
            folder.write(name, content)


def one_line(value: Any) -> bytes:
    """A value as JSON that every reader takes for one line."""
    text = orjson.dumps(value).decode()
    for character, escape in _BREAKS.items():
        if character in text:
            text = text.replace(character, escape)
    return text.encode() + b"\n"
