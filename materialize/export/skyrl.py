"""SkyRL: SFT lines with tool calls and tool schemas as JSON text, and RL prompts with what the environment restores beside them."""

from __future__ import annotations

from typing import Any

from materialize.export.card import card, licence_files, sources
from materialize.export.conversation import Conversation
from materialize.export.folder import ExportFolder
from materialize.export.hub_parquet import TEXT, Table, TableColumn, plain, struct
from materialize.export.json_lines import LinesConsumer
from materialize.export.options import ExportReport
from materialize.export.parquet_folder import ParquetConsumer
from materialize.export.records import Records
from materialize.export.snippets import snippets
from materialize.export.tables import PROMPT, TABLES
from materialize.export.verl import RESTORE, restored

ENVIRONMENT = "workprint"

_LOADING = """SkyRL's SFT trainer loads the folder and trains the last message of each row:

```sh
python -m skyrl.train.main_sft train_datasets="['path/to/this/folder']" train_dataset_splits="['train']" max_length=32768
```

It passes no template variables, so with a thinking model the template's empty thinking block counts as part of the answer and is trained.
"""


def _line(item: Conversation) -> dict[str, Any]:
    calls = f"[{','.join(c.as_json() for c in item.calls)}]" if item.calls else ""
    messages = [{"role": role, "content": content, "tool_calls": ""} for role, content in item.prompt]
    return {
        "messages": [*messages, {"role": "assistant", "content": item.content, "tool_calls": calls}],
        "tools": f"[{','.join(item.tools)}]" if item.tools else "",
    }


_PROMPTS = Table(
    "rl",
    (
        PROMPT,
        plain("env_class", TEXT, "environment that runs the episode", lambda _i: ENVIRONMENT, few_values=True),
        struct(
            "reward_spec",
            {"method": TEXT, "ground_truth": TEXT},
            "rewards are executed; the restored state stands for a truth",
            lambda i: {"method": "executed", "ground_truth": i.row["snapshot_id"]},
        ),
        plain(
            "tools_json",
            TEXT,
            "tool schemas as exact text, for the environment to put into the prompt: SkyRL renders none itself",
            lambda i: f"[{','.join(i.tools)}]",
            few_values=True,
        ),
    ),
)


def _restore(name: str, kind: Any) -> TableColumn:
    return plain(name, kind, "what the environment restores, or where the row comes from", lambda i: restored(i.row)[name])


def skyrl(kind: str) -> LinesConsumer | ParquetConsumer:
    """``export KIND --to skyrl``."""
    if kind == "rl":
        return ParquetConsumer("skyrl", Table("rl", (*_PROMPTS.columns, *(_restore(n, t) for n, t in RESTORE.items()))), _documents)
    return LinesConsumer("skyrl", TABLES[kind], _line, _LOADING, has_head=True)


def _documents(folder: ExportFolder, report: ExportReport, records: Records[Any, Any], table: Table) -> None:
    folder.write("sources.jsonl", sources(records.connection, report))
    licence_files(folder, report)
    folder.write("README.md", card(report, table, snippets(report.kind, "skyrl"), folder.names()).encode())
