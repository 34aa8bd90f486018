"""Preference and KTO sets for TRL, from executed groups: ``export pref`` and ``export kto``.

A pair is made inside one group and nowhere else, so both outputs answer the same context in the same state and were continued alike. The
chosen one is the best that was accepted and is no mistake; every output that is worth less by ``MARGIN`` is rejected in favour of it. For
KTO an output is desirable when its advantage (eq. 8) is above 0. Held-out and contaminated projects never leave, as in :mod:`.selection`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from materialize.export.conversation import Conversation, conversation
from materialize.export.folder import new_folder
from materialize.export.hub_parquet import FEATURES, SCHEMA, answers, record_batch
from materialize.export.options import ExportOptions, ExportReport, LeftOut
from materialize.export.selection import COLUMNS, TRAINING_SPLITS, Source, rule_against
from materialize.export.sft import Note
from materialize.export.texts import BadText
from materialize.leakage import contaminated
from schemas.canonical import canonical_text
from schemas.errors import ConfigInvalid

MARGIN = 0.05
"""Least difference of the rewards of a pair."""

Kind = Literal["pref", "kto"]


@dataclass(frozen=True, slots=True)
class Compared:
    """One row: the output trained on (or chosen), and what it is compared with."""

    item: Conversation
    rejected: Conversation | None
    label: bool
    group_id: str
    reward: float
    other_reward: float | None


def export_compared(kind: Kind, source: Source, out: Path, options: ExportOptions, note: Note) -> ExportReport:
    """Write a preference or KTO set into the new folder ``out``.

    Raises:
        ConfigInvalid: there is something at ``out``, the source is no lake, or it has no accepted groups.
        StorageFull, StorageFault: it could not be written.
    """
    if isinstance(source, pa.Table):
        raise ConfigInvalid("no_groups", "preferences are made of groups, and a bare table of examples has none", "export from a lake")
    not_taken: Counter[str] = Counter()
    left_out: list[LeftOut] = []
    rows = list(_rows(kind, source, options, not_taken, left_out))
    if not rows:
        raise ConfigInvalid(
            "nothing_to_export", f"no accepted group gave a row ({dict(not_taken)})", "make groups with: workprint groups --lake LAKE"
        )
    schema = _schema(kind)
    with new_folder(out) as folder:
        counts: dict[str, int] = {}
        for split in (s.value for s in TRAINING_SPLITS):
            part = [r for r in rows if r.item.row["split"] == split]
            if not part:
                continue
            counts[split] = len(part)
            name = f"data/{split}-00000-of-00001.parquet"
            with pq.ParquetWriter(folder.path(name, len(part)), schema, compression="zstd", write_page_checksum=True) as writer:
                writer.write_batch(_batch(kind, part, schema))
            note(f"{split}: {len(part)} rows")
        report = ExportReport(
            kind=kind,
            consumer="trl",
            options=options,
            rows=counts,
            by_role=dict(sorted(Counter(r.item.row["role"] for r in rows).items())),
            by_kind=dict(sorted(Counter(r.item.row["kind"] for r in rows).items())),
            by_licence=dict(sorted(Counter(r.item.row["licence"] for r in rows).items())),
            projects=dict(sorted((r.item.row["project_id"], r.item.row["split"]) for r in rows)),
            config_digests=tuple(sorted({r.item.row["config_digest"] for r in rows})),
            not_taken=dict(sorted(not_taken.items())),
            left_out=tuple(left_out),
            escaped=sum(r.item.escaped for r in rows),
            prompt_tokens=None,
            completion_tokens=None,
            files=(),
        )
        report = report.model_copy(update={"files": folder.files()})
        folder.write("manifest.json", orjson.dumps(report.model_dump(mode="json"), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    return report


def _rows(kind: Kind, source: Any, options: ExportOptions, not_taken: Counter[str], left_out: list[LeftOut]) -> Iterator[Compared]:
    tainted = {o.project_id for o in contaminated(source)} if options.decontaminate else set()
    columns = ", ".join(f"e.{c}" for c in COLUMNS)
    found = source.execute(
        f"select {columns}, g.group_id, list({{'i': c.candidate_index, 'origin': c.origin, 'output': c.output_json, 'refused': c.refused, "  # noqa: S608 - own names
        "'reward': c.reward, 'advantage': c.advantage} order by c.candidate_index) as members "
        "from groups g join candidates c using (group_id) "
        "join examples e on e.trajectory_id = g.trajectory_id and e.call_index = g.call_index "
        "where g.status = 'accepted' group by all order by g.group_id"
    )
    names = [d[0] for d in found.description]
    for values in found.fetchall():
        row = dict(zip(names, values, strict=True))
        rule = rule_against(
            options, row["split"], row["role"], row["kind"], row["provenance"], row["licence"], row["project_id"], row["verified"]
        )
        if rule is None and row["project_id"] in tainted:
            rule = "contaminated"
        if rule is not None:
            not_taken[rule] += 1
            continue
        members = []
        for member in row["members"]:
            try:
                members.append((_conversation(row, member), member))
            except BadText as bad:
                left_out.append(LeftOut(example_id=f"{row['group_id']}.{member['i']}", reason=str(bad)))
        made = list(_pairs(row["group_id"], members) if kind == "pref" else _labels(row["group_id"], members))
        if not made:
            not_taken["no_difference"] += 1
        yield from made


def _pairs(group: str, members: list[tuple[Conversation, dict[str, Any]]]) -> Iterator[Compared]:
    good = [m for m in members if not m[1]["refused"] and m[1]["origin"] != "mistake"]
    if not good:
        return
    best, about = max(good, key=lambda m: (m[1]["reward"], -m[1]["i"]))
    for other, member in members:
        if about["reward"] - member["reward"] >= MARGIN:
            yield Compared(best, other, True, group, about["reward"], member["reward"])


def _labels(group: str, members: list[tuple[Conversation, dict[str, Any]]]) -> Iterator[Compared]:
    for item, member in members:
        advantage = member["advantage"]
        if advantage:
            yield Compared(item, None, advantage > 0 and not member["refused"], group, member["reward"], None)


def _conversation(row: dict[str, Any], member: dict[str, Any]) -> Conversation:
    output = orjson.loads(member["output"])
    completion: dict[str, Any] = {"role": "assistant", "content": output["text"]}
    if row["role"] == "orchestrator":
        function = {"name": output["tool"] or "", "arguments": output["arguments_json"] or ""}
        completion["tool_calls"] = [{"id": f"call_{row['call_index']}", "type": "function", "function": function}]
    return conversation({**row, "completion_json": canonical_text(completion), "provenance": output["provenance"]})


def _schema(kind: Kind) -> pa.Schema:
    """The SFT schema with what is compared in place of, or beside, the completion."""
    fields: list[pa.Field] = []
    features: dict[str, Any] = {}
    for field in SCHEMA:
        if field.name == "completion" and kind == "pref":
            fields += [pa.field("chosen", field.type), pa.field("rejected", field.type)]
            features |= {"chosen": FEATURES["completion"], "rejected": FEATURES["completion"]}
            continue
        fields.append(field)
        features[field.name] = FEATURES[field.name]
    text, number = {"dtype": "string", "_type": "Value"}, {"dtype": "float64", "_type": "Value"}
    fields += [pa.field("group_id", pa.string()), pa.field("reward", pa.float64())]
    features |= {"group_id": text, "reward": number}
    if kind == "pref":
        fields.append(pa.field("rejected_reward", pa.float64()))
        features["rejected_reward"] = number
    else:
        fields.append(pa.field("label", pa.bool_()))
        features["label"] = {"dtype": "bool", "_type": "Value"}
    return pa.schema(fields, metadata={b"huggingface": orjson.dumps({"info": {"features": features}})})


def _batch(kind: Kind, rows: list[Compared], schema: pa.Schema) -> pa.RecordBatch:
    base = record_batch([r.item for r in rows])
    columns: dict[str, pa.Array] = {name: base.column(name) for name in base.schema.names}
    columns["group_id"] = pa.array([r.group_id for r in rows], pa.string())
    columns["reward"] = pa.array([r.reward for r in rows], pa.float64())
    if kind == "pref":
        columns["chosen"] = columns.pop("completion")
        columns["rejected"] = answers([r.rejected for r in rows if r.rejected is not None])
        columns["rejected_reward"] = pa.array([r.other_reward for r in rows], pa.float64())
    else:
        columns["label"] = pa.array([r.label for r in rows], pa.bool_())
    return pa.RecordBatch.from_arrays([columns[f.name] for f in schema], schema=schema)
