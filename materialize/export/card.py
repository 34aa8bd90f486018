"""The texts that go with an export: dataset card with its machine-readable head, and the list of sources with licences."""

from __future__ import annotations

from typing import Any

import orjson
import yaml

from materialize.export.hub_parquet import COLUMN_DOCS, features_yaml
from materialize.export.options import ExportReport
from materialize.export.selection import Selection

_HUB_LICENCES = frozenset(
    "apache-2.0 mit cc0-1.0 cc-by-2.0 cc-by-2.5 cc-by-3.0 cc-by-4.0 cc-by-sa-3.0 cc-by-sa-4.0 cc-by-nc-2.0 cc-by-nc-3.0 cc-by-nc-4.0"
    " cc-by-nc-sa-2.0 cc-by-nc-sa-3.0 cc-by-nc-sa-4.0 cc-by-nd-4.0 cc-by-nc-nd-3.0 cc-by-nc-nd-4.0 pddl odc-by".split()
)
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"), (10_000_000, "1M<n<10M"))


def card(report: ExportReport) -> str:
    """README.md of a folder for ``datasets``, with configuration and features in its head."""
    return f"---\n{yaml.safe_dump(_head(report), sort_keys=False, allow_unicode=True)}---\n\n{_body(report)}{_LOADING}{_columns()}"


def plain_card(report: ExportReport, loading: str) -> str:
    """README.md without a head, for consumers that read the files directly. ``loading`` says how."""
    return f"{_body(report)}## Loading\n\n{loading}{_ORIGINS}"


def sources(selection: Selection, report: ExportReport) -> bytes:
    """``sources.jsonl``: one line for each exported project with split, licence, attribution and number of examples in the lake."""
    found = selection.connection.execute(
        "select project_id, min(split), min(licence), min(attribution), count(*) from examples group by project_id order by project_id"
    ).fetchall()
    return b"".join(
        orjson.dumps({"source_project": p, "split": split, "license": licence, "attribution": who, "examples_in_lake": n}) + b"\n"
        for p, split, licence, who, n in found
        if p in report.projects
    )


def _head(report: ExportReport) -> dict[str, Any]:
    total = sum(report.rows.values())
    licences = {licence.lower() for licence in report.by_licence}
    head: dict[str, Any] = {}
    if len(licences) == 1 and licences <= _HUB_LICENCES:
        head["license"] = licences.pop()
    else:
        head |= {"license": "other", "license_name": "per-row", "license_link": "sources.jsonl"}
    return head | {
        "pretty_name": "workprint editing decisions",
        "task_categories": ["text-generation"],
        "tags": ["agent", "tool-use", "video-editing", "sft"],
        "annotations_creators": ["machine-generated"],
        "size_categories": [next((name for limit, name in _SIZES if total < limit), "n>10M")],
        "configs": [
            {
                "config_name": "sft",
                "default": True,
                "data_files": [{"split": split, "path": f"data/{split}-*.parquet"} for split in report.rows],
            }
        ],
        "dataset_info": {"config_name": "sft", "features": features_yaml()},
    }


def _body(report: ExportReport) -> str:
    lines = [
        "# Editing decisions for tool-using agents",
        "",
        "Each row is one decision of an agent that edits narrated video: what it saw (`prompt`, `tools`) and what it answered",
        "(`completion`). The decisions were recovered from finished videos and executed with real production tools; rows come from runs",
        "whose film was rendered and checked, unless the filters below say otherwise. Three roles speak: the orchestrator calls tools,",
        "the generator writes segments, shot plans, queries and slot texts, the critic reflects, inspects and asks for repairs.",
        "",
        _table("split", report.rows),
        _table("role", report.by_role),
        _table("kind", report.by_kind),
        _table("license", report.by_licence),
        f"Source projects: {len(report.projects)}. A project lies in one split only. Held-out projects are never exported for training.",
        "",
        f"Filters: `{orjson.dumps(report.options.filters.model_dump(mode='json', exclude_defaults=True)).decode()}`;"
        f" verified only: {str(report.options.filters.verified_only).lower()}; limit: {report.options.limit}; seed: {report.options.seed}.",
        "",
    ]
    if report.not_taken:
        lines += ["Not taken: " + ", ".join(f"{rule} {n}" for rule, n in report.not_taken.items()) + ".", ""]
    if report.left_out:
        lines += [f"Left out because a trainer would read them wrongly: {len(report.left_out)} (named in `manifest.json`).", ""]
    if report.escaped:
        lines += [
            f"In {report.escaped} prompts a text held control tokens of chat templates; each got a zero-width space (U+200B) after its"
            " first character.",
            "",
        ]
    if report.prompt_tokens is not None and report.completion_tokens is not None:
        lines += [f"Tokens (Qwen3): {report.prompt_tokens} in prompts, {report.completion_tokens} in completions.", ""]
    lines += [
        "Licence and attribution of every source stand in `sources.jsonl` and in each row. Digests of all files: `manifest.json`.",
        "",
    ]
    return "\n".join(lines)


def _table(name: str, counts: dict[str, int]) -> str:
    rows = "".join(f"| {_cell(key)} | {n} |\n" for key, n in counts.items())
    return f"| {name} | examples |\n| --- | ---: |\n{rows}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _columns() -> str:
    rows = "".join(f"| `{name}` | {_cell(doc)} |\n" for name, doc in COLUMN_DOCS.items())
    return f"## Columns\n\n| column | meaning |\n| --- | --- |\n{rows}"


_LOADING = """## Loading

```python
from datasets import load_dataset  # 4.7 or later
from trl import SFTConfig, SFTTrainer

data = load_dataset("path/to/this/folder")
trainer = SFTTrainer(
    model="Qwen/Qwen3-8B",
    args=SFTConfig(output_dir="out", max_length=None),
    train_dataset=data["train"],
)
trainer.train()
```

TRL puts the loss on `completion` because the rows are prompt and completion. `max_length=None` keeps it from cutting: a row cut before
its completion trains nothing. `chat_template_kwargs` turns thinking off, so that the template's empty thinking block belongs to the prompt;
ask the trained model in the same way.

"""

_ORIGINS = """
Line n of a `.origins.jsonl` file tells where line n of the data comes from. Held-out projects are never part of an export.
"""
