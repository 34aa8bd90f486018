"""Supervised examples (``sft``), and those of admitted student runs (``rft``), as rows of an export."""

from __future__ import annotations

from collections.abc import Iterator

from materialize.export.conversation import Conversation, conversation
from materialize.export.options import ExportOptions, LeftOut
from materialize.export.records import Records
from materialize.export.selection import RFT_ROWS, Key, Selection, Source, lake_of, select
from materialize.export.texts import BadText

_ADMITTED = ("outputs of admitted runs", "admit some with: workprint rft --lake LAKE")


def sft_records(source: Source, options: ExportOptions) -> Records[Key, Conversation]:
    """One row for each example that the filters leave.

    Raises:
        ConfigInvalid: as :func:`materialize.export.selection.select`.
    """
    return _records("sft", select(source, options), verified=False)


def rft_records(source: Source, options: ExportOptions) -> Records[Key, Conversation]:
    """One row for each output of an admitted run of table ``rft``: a student's own success, or its valid prefix with the teacher's suffix.

    Admission (evaluation.rft) takes the place of the rule on delivered runs.

    Raises:
        ConfigInvalid: the source is no lake, or nothing was admitted or passes the filters.
    """
    lake_of(source, "does not say which runs were admitted")
    return _records("rft", select(source, options, rows=RFT_ROWS, any_run=True, what=_ADMITTED), verified=True)


def _records(kind: str, chosen: Selection, *, verified: bool) -> Records[Key, Conversation]:
    def read(keys: list[Key]) -> Iterator[Conversation | LeftOut]:
        for row in chosen.read(keys):
            if verified:
                row["verified"] = True
            try:
                yield conversation(row)
            except BadText as bad:
                yield LeftOut(example_id=row["example_id"], reason=str(bad))

    return Records(kind, chosen.connection, chosen.keys, read, chosen.digest, chosen.not_taken, chosen.repeated, overlaps=chosen.overlaps)
