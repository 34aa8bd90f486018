"""Supervised examples for any consumer: selection, checks, shards, manifest. A consumer says how a shard and the documents look.

Streams: one shard's rows are in memory at a time. Owns what becomes of bad rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import orjson

from materialize.export.conversation import Conversation, conversation
from materialize.export.folder import ExportFolder, new_folder
from materialize.export.options import ExportOptions, ExportReport, LeftOut
from materialize.export.selection import Key, Selection, Source, select
from materialize.export.texts import BadText
from schemas.errors import ExportRefused

Note = Callable[[str], None]

BATCH = 2048
"""Conversations handed to a writer at once; one row group of a Parquet file."""

_NAMED = 20
"""Bad rows named in an error."""


class ShardWriter(Protocol):
    """Writes the conversations of one shard."""

    def write(self, items: Sequence[Conversation]) -> None:
        """Append, in order."""
        ...


class Consumer(Protocol):
    """The shape of an export."""

    @property
    def name(self) -> str:
        """As on the command line."""
        ...

    def accept(self, item: Conversation) -> None:
        """Whether a conversation can be said in this form.

        Raises:
            BadText: it cannot, without changing what is trained.
        """
        ...

    def shard(self, folder: ExportFolder, split: str, index: int, count: int) -> AbstractContextManager[ShardWriter]:
        """Open shard ``index`` of ``count`` of a split."""
        ...

    def documents(self, folder: ExportFolder, report: ExportReport, selection: Selection) -> None:
        """Write what goes with the data: card, maps, schemas. The report has no files yet."""
        ...


@dataclass(slots=True)
class _Tally:
    rows: Counter[str] = field(default_factory=Counter)
    by_role: Counter[str] = field(default_factory=Counter)
    by_kind: Counter[str] = field(default_factory=Counter)
    by_licence: Counter[str] = field(default_factory=Counter)
    projects: dict[str, str] = field(default_factory=dict)
    configs: set[str] = field(default_factory=set)
    left_out: list[LeftOut] = field(default_factory=list)
    escaped: int = 0
    prompt_tokens: int | None = 0
    completion_tokens: int | None = 0

    def add(self, item: Conversation) -> None:
        row = item.row
        self.rows[row["split"]] += 1
        self.by_role[row["role"]] += 1
        self.by_kind[row["kind"]] += 1
        self.by_licence[row["licence"]] += 1
        self.projects[row["project_id"]] = row["split"]
        self.configs.add(row["config_digest"])
        self.escaped += item.escaped
        self.prompt_tokens = _plus(self.prompt_tokens, row["prompt_tokens"])
        self.completion_tokens = _plus(self.completion_tokens, row["completion_tokens"])


def export_sft(consumer: Consumer, source: Source, out: Path, options: ExportOptions, note: Note) -> ExportReport:
    """Write an SFT export into the new folder ``out``.

    Raises:
        ConfigInvalid: there is something at ``out``, or nothing to export.
        ExportRefused: bad rows, unless ``options.bad_rows`` is ``leave_out``; names them.
        StorageFull, StorageFault: it could not be written. After any error nothing is at ``out``.
    """
    selection = select(source, options)
    tally = _Tally()
    with new_folder(out) as folder:
        for split in selection.keys:
            shards = list(selection.shards(split, options.rows_per_shard))
            for index, keys in enumerate(shards):
                with consumer.shard(folder, split, index, len(shards)) as writer:
                    for batch in _batches(consumer, selection, keys, tally, options):
                        for item in batch:
                            tally.add(item)
                        writer.write(batch)
                note(f"{split}: shard {index + 1} of {len(shards)}, {tally.rows.total()} of {selection.total} examples")
        _refuse(tally, options)
        report = _report(consumer.name, options, selection, tally)
        consumer.documents(folder, report, selection)
        report = report.model_copy(update={"files": folder.files()})
        folder.write("manifest.json", orjson.dumps(report.model_dump(mode="json"), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    return report


def _batches(
    consumer: Consumer, selection: Selection, keys: list[Key], tally: _Tally, options: ExportOptions
) -> Iterator[list[Conversation]]:
    batch: list[Conversation] = []
    for row in selection.read(keys):
        try:
            item = conversation(row)
            consumer.accept(item)
            batch.append(item)
        except BadText as bad:
            tally.left_out.append(LeftOut(example_id=row["example_id"], reason=str(bad)))
            if options.bad_rows == "refuse" and len(tally.left_out) >= _NAMED:
                _refuse(tally, options)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _refuse(tally: _Tally, options: ExportOptions) -> None:
    if not tally.left_out or options.bad_rows == "leave_out":
        return
    named = "; ".join(f"{bad.example_id}: {bad.reason}" for bad in tally.left_out)
    more = " or more" if len(tally.left_out) >= _NAMED else ""
    raise ExportRefused(
        "bad_rows",
        f"{len(tally.left_out)}{more} examples cannot be exported as they are: {named}",
        "look at them with 'workprint query', or leave them out (bad rows: leave_out)",
    )


def _report(consumer: str, options: ExportOptions, selection: Selection, tally: _Tally) -> ExportReport:
    return ExportReport(
        kind="sft",
        consumer=consumer,
        options=options,
        rows={split: tally.rows[split] for split in selection.keys},
        by_role=_sorted(tally.by_role),
        by_kind=_sorted(tally.by_kind),
        by_licence=_sorted(tally.by_licence),
        projects=dict(sorted(tally.projects.items())),
        config_digests=tuple(sorted(tally.configs)),
        not_taken=dict(sorted(selection.not_taken.items())),
        left_out=tuple(tally.left_out),
        escaped=tally.escaped,
        prompt_tokens=tally.prompt_tokens,
        completion_tokens=tally.completion_tokens,
        files=(),
    )


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items()))


def _plus(total: int | None, more: int | None) -> int | None:
    return None if total is None or more is None else total + more
