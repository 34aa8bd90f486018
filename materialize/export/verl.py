"""verl: the rows of SFT with a reader of our own (:mod:`.verl_dataset`), and RL prompts (``rl``, ``opd``) for its agent loops.

Every row's ``extra_info`` has the same fields, because structs are merged. What is restored and how it is scored is the agent loop's
business; the tools come from the restored environment and not from a file, so that their text is what SFT trained.
"""

from __future__ import annotations

from typing import Any

import yaml

from materialize.export.card import card, licence_files, sources
from materialize.export.folder import ExportFolder
from materialize.export.hub_parquet import INT, TEXT, Table, TableColumn, plain, struct
from materialize.export.licences import spdx
from materialize.export.options import ExportReport
from materialize.export.parquet_folder import ParquetConsumer
from materialize.export.records import Records
from materialize.export.snippets import snippets
from materialize.export.tables import PROMPT, TABLES, tools_digest
from schemas.canonical import sha256_bytes

AGENT = "workprint"
"""Name of the agent loop that restores a recorded state."""

AGENT_LOOP = "materialize.adapters.verl.agent_loop"

RESTORE = {
    "trajectory_sha256": TEXT,
    "trajectory_id": TEXT,
    "call_index": INT,
    "snapshot_id": TEXT,
    "role": TEXT,
    "split": TEXT,
    "group_id": TEXT,
    "tools_sha256": TEXT,
    "source_project": TEXT,
    "license": TEXT,
}
"""What an environment restores, and where a row comes from."""


def restored(row: dict[str, Any]) -> dict[str, Any]:
    """Values of :data:`RESTORE`."""
    return {
        "trajectory_sha256": row["trajectory_sha256"],
        "trajectory_id": row["trajectory_id"],
        "call_index": row["call_index"],
        "snapshot_id": row["snapshot_id"],
        "role": row["role"],
        "split": row["split"],
        "group_id": row.get("group_id") or "",
        "tools_sha256": tools_digest(row),
        "source_project": row["project_id"],
        "license": spdx(row["licence"]),
    }


def _number(ident: str) -> int:
    """A number for verl's traces that is the same in every export; 52 bits of the name's digest."""
    return int(sha256_bytes(ident.encode())[:13], 16)


def _agent(row: dict[str, Any]) -> str:
    """Contents are answered in one turn without tools; tool calls are executed."""
    return AGENT if row["role"] == "orchestrator" else "single_turn_agent"


_PROMPTS: tuple[TableColumn, ...] = (
    plain("data_source", TEXT, "who acts; rewards and teachers are chosen by it", lambda i: f"workprint/{i.row['role']}", few_values=True),
    plain("agent_name", TEXT, "agent loop that runs the episode", lambda i: _agent(i.row), few_values=True),
    plain("ability", TEXT, "kind of task", lambda _i: "tool_use", few_values=True),
    PROMPT,
    struct(
        "reward_model",
        {"style": TEXT, "ground_truth": TEXT},
        "rewards are executed; the restored state stands for a truth",
        lambda i: {"style": "rule", "ground_truth": f'{{"snapshot_id":"{i.row["snapshot_id"]}"}}'},
    ),
    struct(
        "extra_info",
        {"index": INT, **RESTORE},
        "number of the row, what the environment restores, and where the row comes from",
        lambda i: {"index": _number(i.ident), **restored(i.row)},
    ),
)


def verl(kind: str) -> ParquetConsumer:
    """``export KIND --to verl``."""
    prompts = kind in ("rl", "opd")
    return ParquetConsumer("verl", Table(kind, _PROMPTS) if prompts else TABLES[kind], _prompt_documents if prompts else _documents)


def _documents(folder: ExportFolder, report: ExportReport, records: Records[Any, Any], table: Table) -> None:
    folder.write("sources.jsonl", sources(records.connection, report))
    licence_files(folder, report)
    folder.write("README.md", card(report, table, snippets(report.kind, "verl"), folder.names()).encode())


def _prompt_documents(folder: ExportFolder, report: ExportReport, records: Records[Any, Any], table: Table) -> None:
    _documents(folder, report, records, table)
    loops = [{"name": AGENT, "_target_": AGENT_LOOP, "lake": "path/to/lake"}]
    folder.write("agent.yaml", yaml.safe_dump(loops, sort_keys=False).encode())
