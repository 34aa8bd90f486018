"""The canonical folder: Parquet shards and everything that a data set on the Hub should come with.

Card, sources, licences, split map, tool schemas by digest, JSON Schemas, reports on repetition, contamination and audit, Croissant,
changelog. Everything is made from the export and the lake; nothing depends on a clock.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import duckdb
import orjson

from materialize.export.card import card, licence_files, sources
from materialize.export.croissant import croissant
from materialize.export.folder import ExportFolder
from materialize.export.hub_parquet import Table
from materialize.export.options import ExportReport
from materialize.export.parquet_folder import ParquetConsumer
from materialize.export.records import Records
from materialize.export.row_schema import row_schema
from materialize.export.selection import has_table
from materialize.export.snippets import snippets
from materialize.export.tables import TABLES
from materialize.leakage import GRAM
from schemas.canonical import sha256_bytes

_PRETTY = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE

_CHANGES = """# Changelog

Versions of this folder's form (`schema_version` of `manifest.json`). What a new export of the same lake holds otherwise is told by
comparing the manifests.

## export.3

- `groups` tells what the runtime answered to each output (`observation_json`), the state it led to (`state_after`), and of outputs of a
  model the model, its settings, token ids and log probabilities.
- `reports/dedup.json` counts the rows that were left out (`rows_left_out`), and names ids only where they differ (`left_out_for`, which was
  `removed`).
- `options.tokenizer` of the manifest names the tokenizer of rows that are tokens.

## export.2

- `license` is an SPDX name, the licence as the lake has it stands in `license_given`; `LICENSES/` holds one file for each.
- New columns: `quality`, `license_given`. New files: `schemas/`, `reports/`, `croissant.json`, `CHANGELOG.md`.
- `manifest.json` names the tokenizer that tokens were counted with, and the tool schemas that rows have.

## export.1

- Prompt, completion and tools; card, sources, split map, tool schemas, manifest.
"""


def hub(kind: str) -> ParquetConsumer:
    """``export KIND --to hf``."""
    return ParquetConsumer("hf", TABLES[kind], _documents)


def _documents(folder: ExportFolder, report: ExportReport, records: Records[Any, Any], table: Table) -> None:
    con = records.connection
    folder.write("sources.jsonl", sources(con, report))
    licence_files(folder, report)
    pairs = con.execute("select distinct project_id, split from examples order by 1, 2").fetchall()
    folder.write("splits.json", orjson.dumps(dict(pairs), option=_PRETTY))
    folder.write("tools.json", orjson.dumps(_registries(con, report), option=_PRETTY))
    folder.write("schemas/row.schema.json", orjson.dumps(row_schema(table), option=_PRETTY))
    folder.write("schemas/manifest.schema.json", orjson.dumps(ExportReport.model_json_schema(), option=_PRETTY | orjson.OPT_SORT_KEYS))
    repeated = {
        "rule": records.equal,
        "rows_left_out": report.not_taken.get("repeated", 0),
        "left_out_for": records.repeated,
        "near_duplicate_projects": _kin(con),
    }
    folder.write("reports/dedup.json", orjson.dumps(repeated, option=_PRETTY))
    overlaps = [{"project_id": o.project_id, "held_out": o.held_out, "grams": o.grams} for o in records.overlaps]
    contamination = {
        "rule": f"{GRAM} words in a row shared with a held-out project",
        "checked": report.options.decontaminate and has_table(con, "storyboards"),
        "left_out": overlaps,
    }
    folder.write("reports/contamination.json", orjson.dumps(contamination, option=_PRETTY))
    audit = _audit(con)
    folder.write("reports/audit.json", orjson.dumps(audit, option=_PRETTY))
    folder.write("CHANGELOG.md", _CHANGES.encode())
    more = _checks(report, records, audit)
    folder.write("README.md", card(report, table, snippets(report.kind, "hf"), folder.names(), more).encode())
    folder.write("croissant.json", orjson.dumps(croissant(report, table, folder.files()), option=_PRETTY))


def _registries(con: duckdb.DuckDBPyConnection, report: ExportReport) -> list[dict[str, Any]]:
    """Tool schemas of the exported rows by the digest of their exact text."""
    found = con.execute("select distinct tools_json from examples where tools_json <> '[]' order by 1").fetchall()
    if has_table(con, "distillation"):
        found += con.execute("select distinct tools_json from distillation where tools_json <> '[]' order by 1").fetchall()
    texts = {sha256_bytes(t.encode()): t for (t,) in found}
    return [{"sha256": sha, "tools": orjson.loads(texts[sha])} for sha in report.tool_registries if sha in texts]


def _kin(con: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Projects that share their split with a near-duplicate, and the project that decides for them."""
    if not has_table(con, "splits"):
        return {}
    return dict(con.execute("select project_id, group_id from splits where project_id <> group_id order by 1").fetchall())


def _audit(con: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """How many runs, examples and groups were executed again and came out equal, where ``workprint audit`` recorded it."""
    if not has_table(con, "audits"):
        return {"run": False}
    found = con.execute(
        "select kind, count(*), count(*) filter (equal), max(stored) from audits group by kind order by kind desc"
    ).fetchall()
    kinds = {kind: {"audited": audited, "equal": equal, "stored": stored} for kind, audited, equal, stored in found}
    return {"run": bool(kinds), **({"kinds": kinds} if kinds else {})}


def _checks(report: ExportReport, records: Records[Any, Any], audit: dict[str, Any]) -> str:
    kinds: dict[str, dict[str, int]] = audit.get("kinds", {})
    executed = (
        "; ".join(f"{kind}: {n['equal']} of {n['audited']} audited came out equal, {n['stored']} stored" for kind, n in kinds.items())
        or "not run"
    )
    lines = [
        "## Checks",
        "",
        f"- Repetition: {report.not_taken.get('repeated', 0)} rows were left out for another with {records.equal} (`reports/dedup.json`).",
        f"- Contamination: {len(records.overlaps)} overlaps of {GRAM} words in a row with held-out projects; the projects that have one are"
        " left out (`reports/contamination.json`).",
        f"- Audit (executed again and compared with the recording): {executed} (`reports/audit.json`).",
        f"- Made by workprint {version('workprint')}; equal rows, options and versions give equal bytes.",
        "",
        "`schemas/` describes rows and manifest as JSON Schema, `tools.json` holds the tool schemas by the digest of their text,"
        " `splits.json` the split of every project of the lake, `croissant.json` the same facts for machines.",
        "",
    ]
    return "\n".join(lines) + "\n"
