"""SFT as OpenAI fine-tuning lines: ``{"messages": […], "tools": […], "parallel_tool_calls": false}``, one example a line.

The only assistant message of a line is the completion, so training on assistant messages trains the completion. Ids, licences and
digests stand in a second file with the same line numbers, because the API refuses other keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

import orjson

from materialize.export.card import plain_card, sources
from materialize.export.conversation import Conversation
from materialize.export.folder import ExportFolder
from materialize.export.hub_parquet import ROW_COLUMNS
from materialize.export.options import ExportReport
from materialize.export.selection import Selection

_BREAKS = {"\u2028": "\\u2028", "\u2029": "\\u2029", "\x85": "\\u0085"}
"""Characters at which some readers end a line though JSON does not; written as escapes."""


class JsonLines:
    """Writes one pair of files."""

    def __init__(self, lines: IO[bytes], origins: IO[bytes]) -> None:
        self._lines = lines
        self._origins = origins
        self.rows = 0

    def write(self, items: Sequence[Conversation]) -> None:
        """Append one line to each file for every conversation."""
        for item in items:
            self._lines.write(_line(_openai(item)))
            self._origins.write(_line({c.name: c.of(item.row) for c in ROW_COLUMNS if c.name != "completion_json"}))
        self.rows += len(items)


class OpenAI:
    """``export sft --to openai-jsonl``."""

    name = "openai-jsonl"

    @contextmanager
    def shard(self, folder: ExportFolder, split: str, index: int, count: int) -> Iterator[JsonLines]:
        """``train.jsonl`` and ``train.origins.jsonl``; numbered when a split has several shards."""
        stem = split if count == 1 else f"{split}-{index:05d}-of-{count:05d}"
        names = (f"{stem}.jsonl", f"{stem}.origins.jsonl")
        with folder.path(names[0]).open("wb") as lines, folder.path(names[1]).open("wb") as origins:
            shard = JsonLines(lines, origins)
            yield shard
        for name in names:
            folder.set_rows(name, shard.rows)

    def documents(self, folder: ExportFolder, report: ExportReport, selection: Selection) -> None:
        """A plain card and the list of sources."""
        folder.write("sources.jsonl", sources(selection, report))
        folder.write("README.md", plain_card(report).encode())


def _openai(item: Conversation) -> dict[str, Any]:
    answer: dict[str, Any] = {"role": "assistant", "content": item.content}
    if item.calls:
        answer["tool_calls"] = [
            {"id": c.call_id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in item.calls
        ]
    out: dict[str, Any] = {"messages": [{"role": role, "content": content} for role, content in item.prompt] + [answer]}
    if item.tools:
        out["tools"] = [orjson.Fragment(t) for t in item.tools]
        out["parallel_tool_calls"] = False
    return out


def _line(value: Any) -> bytes:
    text = orjson.dumps(value).decode()
    for character, escape in _BREAKS.items():
        if character in text:
            text = text.replace(character, escape)
    return text.encode() + b"\n"
