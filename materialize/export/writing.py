"""How any export is written: shards, checks, tally, manifest. A consumer says how a shard and the documents look.

Streams: one batch of a shard's rows is in memory at a time. Owns what becomes of bad rows, and what a killed export need not do again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol, TypeVar

import orjson

from materialize.export.folder import ExportFolder, new_folder
from materialize.export.options import ExportOptions, ExportReport, LeftOut, TokenizerDigest
from materialize.export.records import Counting, Item, Records, Tally, together
from materialize.export.texts import BadText
from materialize.export.tokenised import digest_of_tokenizer
from schemas.canonical import digest_of
from schemas.errors import EngineMissing, ExportRefused

Note = Callable[[str], None]

BATCH = 2048
"""Rows handed to a writer at once; one row group of a Parquet file."""

_NAMED = 20
"""Bad rows named in an error."""

I = TypeVar("I", bound=Item, contravariant=True)  # noqa: E741 - item


class ShardWriter(Protocol[I]):
    """Writes the rows of one shard."""

    def write(self, items: Sequence[I]) -> None:
        """Append, in order."""
        ...


class Consumer(Protocol[I]):
    """The shape of an export."""

    @property
    def name(self) -> str:
        """As on the command line."""
        ...

    def accept(self, item: I) -> None:
        """Whether a row can be said in this form.

        Raises:
            BadText: it cannot, without changing what is trained.
        """
        ...

    def shard(self, folder: ExportFolder, split: str, index: int, count: int) -> AbstractContextManager[ShardWriter[I]]:
        """Open shard ``index`` of ``count`` of a split."""
        ...

    def documents(self, folder: ExportFolder, report: ExportReport, records: Records[Any, Any]) -> None:
        """Write what goes with the data: card, maps, schemas. The report has no files yet."""
        ...


def write_export(
    consumer: Consumer[Any], records: Records[Any, Any], out: Path, options: ExportOptions, note: Note = lambda _text: None
) -> ExportReport:
    """Write an export into the new folder ``out``, going on behind the finished shards of one that was killed.

    Raises:
        ConfigInvalid: there is something at ``out``.
        ExportRefused: bad rows, unless ``options.bad_rows`` is ``leave_out``; names them. Or there are no others.
        LockHeld: another process is writing this export.
        StorageFull, StorageFault: it could not be written. After any error nothing is at ``out``.
    """
    key = digest_of([records.kind, consumer.name, options.model_dump(mode="json"), records.digest, _versions()])
    tallies: list[Tally] = []
    rows = 0
    with new_folder(out, key) as folder:
        for split in records.keys:
            shards = list(records.shards(split, options.rows_per_shard))
            others, rows_before = set(folder.names()), rows
            for index, keys in enumerate(shards):
                name = f"{split}-{index:05d}"
                tally = folder.finished(name)
                again = tally is not None
                if tally is None:
                    before = set(folder.names())
                    tally = _shard(consumer, records, keys, consumer.shard(folder, split, index, len(shards)), options)
                    if options.bad_rows == "leave_out" or not tally.left_out:
                        folder.finish(name, sorted(set(folder.names()) - before), tally)
                tallies.append(tally)
                rows += sum(tally.rows.values())
                note(f"{split}: shard {index + 1} of {len(shards)}, {rows} of {records.total} rows{' (was there)' if again else ''}")
            if rows == rows_before:  # a split without rows is one that loaders cannot open
                folder.forget(set(folder.names()) - others)
        whole = together(tallies)
        _refuse(whole.left_out, options)
        if not sum(whole.rows.values()):
            raise ExportRefused(
                "only_bad_rows",
                f"all {len(whole.left_out)} rows were left out, for one {whole.left_out[0].example_id}: {whole.left_out[0].reason}",
                "look at them with 'workprint query', or export for another consumer",
            )
        report = _report(consumer.name, options, records, whole)
        consumer.documents(folder, report, records)
        report = report.model_copy(update={"files": folder.files()})
        folder.write("manifest.json", orjson.dumps(report.model_dump(mode="json"), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    return report


def _shard(
    consumer: Consumer[Any],
    records: Records[Any, Any],
    keys: list[Any],
    opened: AbstractContextManager[ShardWriter[Any]],
    options: ExportOptions,
) -> Tally:
    counting = Counting()
    with opened as writer:
        for batch in _batches(consumer, records, keys, counting, options):
            for item in batch:
                counting.add(item)
            writer.write(batch)
    return counting.done()


def _batches(
    consumer: Consumer[Any], records: Records[Any, Any], keys: list[Any], counting: Counting, options: ExportOptions
) -> Iterator[list[Any]]:
    batch: list[Any] = []
    for item in records.read(keys):
        bad = item if isinstance(item, LeftOut) else _refused(consumer, item)
        if bad is None:
            batch.append(item)
        else:
            counting.left_out.append(bad)
            if options.bad_rows == "refuse" and len(counting.left_out) >= _NAMED:
                _refuse(counting.left_out, options)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _refused(consumer: Consumer[Any], item: Item) -> LeftOut | None:
    try:
        consumer.accept(item)
    except BadText as bad:
        return LeftOut(example_id=item.ident, reason=str(bad))
    return None


def _refuse(left_out: Sequence[LeftOut], options: ExportOptions) -> None:
    if not left_out or options.bad_rows == "leave_out":
        return
    named = "; ".join(f"{bad.example_id}: {bad.reason}" for bad in left_out[:_NAMED])
    more = " or more" if len(left_out) >= _NAMED else ""
    raise ExportRefused(
        "bad_rows",
        f"{len(left_out)}{more} examples cannot be exported as they are: {named}",
        "look at them with 'workprint query', or leave them out with --bad-rows leave-out",
    )


def _report(consumer: str, options: ExportOptions, records: Records[Any, Any], tally: Tally) -> ExportReport:
    counted = bool(tally.prompt_tokens)
    return ExportReport(
        kind=records.kind,
        consumer=consumer,
        options=options,
        rows={split: tally.rows[split] for split in records.keys if tally.rows.get(split)},
        by_role=tally.by_role,
        by_kind=tally.by_kind,
        by_licence=tally.by_licence,
        projects=tally.projects,
        config_digests=tally.configs,
        not_taken=dict(sorted(records.not_taken.items())),
        left_out=(*records.left_out, *tally.left_out),
        escaped=tally.escaped,
        prompt_tokens=tally.prompt_tokens if counted else None,
        completion_tokens=tally.completion_tokens if counted else None,
        tokenizer=options.tokenizer or (_tokenizer() if counted else None),
        tool_registries=tally.tools,
        files=(),
    )


def _tokenizer() -> TokenizerDigest | None:
    """Of the tokenizer that counts examples; None where its files are not installed."""
    try:
        return digest_of_tokenizer("qwen3")
    except EngineMissing:
        return None


def _versions() -> list[str]:
    return [version(name) for name in ("workprint", "pyarrow")]
