"""On-policy distillation rows: ``export opd``. Trainers sample from ``prompt``; what was said and by whom stands beside it.

Held-out and contaminated projects never leave, as in :mod:`.selection`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from materialize.export.conversation import prompt_of, tools_of
from materialize.export.options import ExportOptions, LeftOut
from materialize.export.records import Records
from materialize.export.selection import (
    Key,
    Rules,
    Source,
    arranged,
    has_table,
    lake_of,
    read_rows,
)
from materialize.export.texts import BadText
from schemas.errors import ConfigInvalid
from schemas.tables import TABLE

_COLUMNS = tuple(c.name for c in TABLE["distillation"].columns)


@dataclass(frozen=True, slots=True)
class Prompted:
    """A recorded state as a prompt: no answer belongs to it."""

    prompt: tuple[tuple[str, str], ...]
    tools: tuple[str, ...]
    escaped: bool
    row: dict[str, Any]
    ident: str


def prompted(row: dict[str, Any], ident: str) -> Prompted | LeftOut:
    """A lake row with ``prompt_json`` and ``tools_json``, checked."""
    try:
        prompt, escaped = prompt_of(row["prompt_json"])
        return Prompted(prompt, tools_of(row["tools_json"]), escaped, row, ident)
    except BadText as bad:
        return LeftOut(example_id=ident, reason=str(bad))


def distilled_records(source: Source, options: ExportOptions) -> Records[Key, Prompted]:
    """One row for each turn of a teacher or a student, refused ones too.

    Raises:
        ConfigInvalid: the source is no lake, the filters ask for kinds or for held-out projects, or no teacher or student took part in its
            runs.
    """
    con = lake_of(source, "does not say whose turn it was")
    if options.filters.kinds:
        raise ConfigInvalid(
            "opd_filter",
            "a turn of a teacher or a student is no example and has no kind",
            "filter by role, or by provenance: whose turn it was",
        )
    rules = Rules.of(con, options)
    taken: list[Key] = []
    digests: dict[str, str] = {}
    found = con.execute(
        "select project_id, trajectory_id, call_index, split, role, turn_owner, licence, row_digest from distillation "
        "order by split <> 'train', project_id, trajectory_id, call_index"
    ).fetchall()
    for project, trajectory, index, split, role, owner, licence, digest in found:
        if rules.leave_out(split, role, "", owner, licence, project, trajectory, True):
            continue
        key = Key(project, trajectory, index, f"{trajectory}.{index}", split)
        taken.append(key)
        digests[key.ident] = digest
    keys, state = arranged(taken, options, rules.not_taken, digests)
    if not taken:
        raise rules.nothing("turns of a teacher or a student", "set replay.policy to 'chat' or 'mixed', then run again")

    shas: dict[str, str] = (
        dict(con.execute("select trajectory_id, trajectory_sha256 from trajectories").fetchall()) if has_table(con, "trajectories") else {}
    )

    def read(shard: list[Key]) -> Iterator[Prompted | LeftOut]:
        for row in read_rows(con, "distillation", _COLUMNS, shard, by_id=False):
            row |= {"kind": row["turn_owner"], "trajectory_sha256": shas.get(row["trajectory_id"], "")}
            yield prompted(row, f"{row['trajectory_id']}.{row['call_index']}")

    return Records("opd", con, keys, read, state, rules.not_taken, overlaps=rules.overlaps)
