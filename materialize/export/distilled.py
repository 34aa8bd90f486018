"""On-policy distillation records for TRL: ``export opd``. Trainers sample from ``prompt``; what was said and by whom stands beside it.

Recorded log probabilities have no loader in TRL; they are exact JSON text under the names that other trainers use. Held-out and
contaminated projects never leave, as in :mod:`.selection`.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from materialize.export.conversation import prompt_of, tools_of
from materialize.export.folder import new_folder
from materialize.export.hub_parquet import FEATURES, SCHEMA, messages, tool_lists
from materialize.export.options import ExportOptions, ExportReport, LeftOut
from materialize.export.selection import TRAINING_SPLITS, Source
from materialize.export.sft import Note
from materialize.export.texts import BadText
from materialize.leakage import contaminated
from schemas.errors import ConfigInvalid

_PLAIN: dict[str, tuple[pa.DataType, str, str]] = {
    "source_project": (pa.string(), "string", "project_id"),
    "trajectory_id": (pa.string(), "string", "trajectory_id"),
    "call_index": (pa.int64(), "int64", "call_index"),
    "role": (pa.string(), "string", "role"),
    "turn_owner": (pa.string(), "string", "turn_owner"),
    "beta": (pa.float64(), "float64", "beta"),
    "update": (pa.int64(), "int64", "update"),
    "status": (pa.string(), "string", "status"),
    "license": (pa.string(), "string", "licence"),
    "attribution": (pa.string(), "string", "attribution"),
    "snapshot_id": (pa.string(), "string", "snapshot_id"),
    "context_sha256": (pa.string(), "string", "context_sha256"),
    "completion_json": (pa.string(), "string", "completion_json"),
    "model": (pa.string(), "string", "model"),
    "sampling_json": (pa.string(), "string", "sampling_json"),
    "logprobs_json": (pa.string(), "string", "logprobs_json"),
}
_IDS = ("prompt_token_ids", "completion_token_ids")


def export_distilled(source: Source, out: Path, options: ExportOptions, note: Note) -> ExportReport:
    """Write an OPD set into the new folder ``out``.

    Raises:
        ConfigInvalid: there is something at ``out``, the source is no lake, or no teacher or student took part in its runs.
        StorageFull, StorageFault: it could not be written.
    """
    if isinstance(source, pa.Table):
        raise ConfigInvalid("no_turns", "a bare table of examples does not say whose turn it was", "export from a lake")
    tainted = {o.project_id for o in contaminated(source)} if options.decontaminate else set()
    found = source.execute("select * from distillation order by project_id, trajectory_id, call_index")
    names = [d[0] for d in found.description]
    not_taken: Counter[str] = Counter()
    left_out: list[LeftOut] = []
    rows: list[tuple[dict[str, Any], Any, Any]] = []
    escaped = 0
    for values in found.fetchall():
        row = dict(zip(names, values, strict=True))
        rule = _rule(options, row, tainted)
        if rule is not None:
            not_taken[rule] += 1
            continue
        try:
            prompt, was_escaped = prompt_of(row["prompt_json"])
            rows.append((row, prompt, tools_of(row["tools_json"])))
            escaped += was_escaped
        except BadText as bad:
            left_out.append(LeftOut(example_id=f"{row['trajectory_id']}.{row['call_index']}", reason=str(bad)))
    if not rows:
        raise ConfigInvalid(
            "nothing_to_export",
            f"no turn of a teacher or a student can be exported ({dict(not_taken)})",
            "replay with policy 'chat' or 'mixed', then run again",
        )
    schema = _schema()
    counts: dict[str, int] = {}
    with new_folder(out) as folder:
        for split in (s.value for s in TRAINING_SPLITS):
            part = [r for r in rows if r[0]["split"] == split]
            if part:
                counts[split] = len(part)
                name = f"data/{split}-00000-of-00001.parquet"
                with pq.ParquetWriter(folder.path(name, len(part)), schema, compression="zstd", write_page_checksum=True) as writer:
                    writer.write_batch(_batch(part, schema))
                note(f"{split}: {len(part)} rows")
        report = ExportReport(
            kind="opd",
            consumer="trl",
            options=options,
            rows=counts,
            by_role=dict(sorted(Counter(r["role"] for r, _, _ in rows).items())),
            by_kind=dict(sorted(Counter(r["turn_owner"] for r, _, _ in rows).items())),
            by_licence=dict(sorted(Counter(r["licence"] for r, _, _ in rows).items())),
            projects=dict(sorted((r["project_id"], r["split"]) for r, _, _ in rows)),
            config_digests=(),
            not_taken=dict(sorted(not_taken.items())),
            left_out=tuple(left_out),
            escaped=escaped,
            prompt_tokens=None,
            completion_tokens=None,
            files=(),
        )
        report = report.model_copy(update={"files": folder.files()})
        folder.write("manifest.json", orjson.dumps(report.model_dump(mode="json"), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    return report


def _rule(options: ExportOptions, row: dict[str, Any], tainted: set[str]) -> str | None:
    f = options.filters
    if row["split"] not in {s.value for s in TRAINING_SPLITS}:
        return "held_out"
    for name, allowed, value in (
        ("split", f.splits, row["split"]),
        ("role", f.roles, row["role"]),
        ("provenance", f.provenance, row["turn_owner"]),
        ("licence", f.licences, row["licence"]),
        ("project", f.projects, row["project_id"]),
    ):
        if allowed and value not in allowed:
            return f"filter_{name}"
    return "contaminated" if row["project_id"] in tainted else None


def _schema() -> pa.Schema:
    fields = [SCHEMA.field("prompt"), SCHEMA.field("tools")]
    features: dict[str, Any] = {"prompt": FEATURES["prompt"], "tools": FEATURES["tools"]}
    for name, (kind, dtype, _) in _PLAIN.items():
        fields.append(pa.field(name, kind))
        features[name] = {"dtype": dtype, "_type": "Value"}
    for name in _IDS:
        fields.append(pa.field(name, pa.list_(pa.int64())))
        features[name] = {"feature": {"dtype": "int64", "_type": "Value"}, "_type": "List"}
    return pa.schema(fields, metadata={b"huggingface": orjson.dumps({"info": {"features": features}})})


def _batch(rows: list[tuple[dict[str, Any], Any, Any]], schema: pa.Schema) -> pa.RecordBatch:
    columns = [messages([p for _, p, _ in rows]), tool_lists([t for _, _, t in rows])]
    columns += [pa.array([r[lake] for r, _, _ in rows], kind) for kind, _, lake in _PLAIN.values()]
    columns += [pa.array([r[name] for r, _, _ in rows], pa.list_(pa.int64())) for name in _IDS]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
