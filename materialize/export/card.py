"""The texts that go with an export: dataset card with its machine-readable head, the list of sources, the licences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import orjson
import yaml

from materialize.export.folder import ExportFolder
from materialize.export.hub_parquet import Table
from materialize.export.licences import licence_file, spdx
from materialize.export.options import ExportReport

_HUB_LICENCES = frozenset(
    "apache-2.0 mit cc0-1.0 cc-by-2.0 cc-by-2.5 cc-by-3.0 cc-by-4.0 cc-by-sa-3.0 cc-by-sa-4.0 cc-by-nc-2.0 cc-by-nc-3.0 cc-by-nc-4.0"
    " cc-by-nc-sa-2.0 cc-by-nc-sa-3.0 cc-by-nc-sa-4.0 cc-by-nd-4.0 cc-by-nc-nd-3.0 cc-by-nc-nd-4.0 pddl odc-by".split()
)
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"), (10_000_000, "1M<n<10M"))

_ABOUT = {
    "sft": """Each row is one decision of an agent that edits narrated video: what it saw (`prompt`, `tools`) and what it answered
(`completion`). The decisions were recovered from finished videos and executed with real production tools; rows come from runs
whose film was rendered and checked, unless the filters below say otherwise.""",
    "rft": """Each row is one decision of a student's run that was admitted: a success of its own, or its valid prefix with the suffix
that a teacher made anew from the state before the first failure. Admitted runs were executed again and passed all
checks on their bytes.""",
    "pref": """Each row is one state of an edit with two outputs that were both executed from it and continued alike: `chosen` was worth
more than `rejected` by at least 0.05. Rows without rewards are from repairs: the accepted output that
mended a run, and the refused one.""",
    "kto": """Each row is one executed output with a label: `true` when it was worth more than the mean of its group and was accepted.
Rows without a reward are repair requests: `true` when all repairs that they asked for held.""",
    "opd": """Each row is the state of an edit in which a teacher or a student took a turn. Trainers sample from `prompt`; what was said
stands beside it, with token ids and log probabilities where the endpoint gave them.""",
    "rl": """Each row is a recorded state of an edit to start from: the prompt that is seen there, and what the environment restores. It
holds no answer; rewards are executed.""",
    "groups": """Each row is one output of a group: all outputs of a group were executed from one restored state and continued by the same
frozen policy with the same seeds, so their rewards can be compared inside the group and nowhere else.""",
    "benchmark": """Each row is the beginning of an edit of a held-out source: the task as an agent first sees it, and the state to restore.
It holds no answer. **Do not train on these rows or their sources.** No training export of the same lake holds a row of these projects.""",
}
_ROLES = """Three roles speak: the orchestrator calls tools, the generator writes segments, shot plans, queries and slot texts, the
critic reflects, inspects and asks for repairs."""


def card(report: ExportReport, table: Table, how: Sequence[tuple[str, str]], names: Sequence[str], more: str = "") -> str:
    """README.md of a folder for ``datasets``, with configuration and features in its head. ``names``: files of the folder."""
    head = yaml.safe_dump(_head(report, table), sort_keys=False, allow_unicode=True)
    return f"---\n{head}---\n\n{_body(report)}{more}{_loading(report, how, names)}{_columns(table)}"


def plain_card(report: ExportReport, loading: str, files: dict[str, list[str]] | None = None) -> str:
    """README.md for consumers that read the files directly. ``loading`` says how.

    Args:
        files: names by split, for consumers that load the folder with ``datasets``, which would take the files of origins too.
    """
    head = ""
    if files is not None:
        parts = [{"split": split, "path": names} for split, names in files.items()]
        configs = {"configs": [{"config_name": report.kind, "default": True, "data_files": parts}]}
        head = f"---\n{yaml.safe_dump(configs, sort_keys=False)}---\n\n"
    return f"{head}{_body(report)}## Loading\n\n{loading}"


def sources(connection: duckdb.DuckDBPyConnection, report: ExportReport) -> bytes:
    """``sources.jsonl``: one line for each exported project with split, licence, attribution and number of examples in the lake."""
    found = connection.execute(
        "select project_id, min(split), min(licence), min(attribution), count(*) from examples group by project_id order by project_id"
    ).fetchall()
    return b"".join(
        orjson.dumps({"source_project": p, "split": split, "license": spdx(licence), "attribution": who, "examples_in_lake": n}) + b"\n"
        for p, split, licence, who, n in found
        if p in report.projects
    )


def licence_files(folder: ExportFolder, report: ExportReport) -> None:
    """``LICENSES/``: a file for each licence that occurs, and for no other."""
    for name in sorted({spdx(given) for given in report.by_licence}):
        path, text = licence_file(name)
        folder.write(path, text.encode())


def table_of(name: str, counts: dict[str, int], what: str = "rows") -> str:
    """A small Markdown table of counts."""
    rows = "".join(f"| {_cell(key)} | {n} |\n" for key, n in counts.items())
    return f"| {name} | {what} |\n| --- | ---: |\n{rows}"


def _head(report: ExportReport, table: Table) -> dict[str, Any]:
    total = sum(report.rows.values())
    licences = {spdx(licence).lower() for licence in report.by_licence}
    head: dict[str, Any] = {}
    if len(licences) == 1 and licences <= _HUB_LICENCES:
        head["license"] = licences.pop()
    else:
        head |= {"license": "other", "license_name": "per-row", "license_link": "sources.jsonl"}
    tags = ["agent", "tool-use", "video-editing", report.kind] + (["benchmark"] if report.kind == "benchmark" else [])
    return head | {
        "pretty_name": "workprint editing decisions",
        "task_categories": ["text-generation"] + (["reinforcement-learning"] if report.kind in ("rl", "groups", "benchmark") else []),
        "tags": list(dict.fromkeys(tags)),
        "annotations_creators": ["machine-generated"],
        "source_datasets": ["original"],
        "size_categories": [next((name for limit, name in _SIZES if total < limit), "n>10M")],
        "configs": [
            {
                "config_name": table.name,
                "default": True,
                "data_files": [{"split": split, "path": f"data/{split}-*.parquet"} for split in report.rows],
            }
        ],
        "dataset_info": {"config_name": table.name, "features": table.features_yaml()},
    }


def _body(report: ExportReport) -> str:
    lines = [
        "# Editing decisions for tool-using agents",
        "",
        _ABOUT[report.kind],
        "",
        _ROLES,
        "",
        table_of("split", report.rows),
        table_of("role", report.by_role),
        table_of("kind", report.by_kind),
        table_of("license", report.by_licence),
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
        whose = report.tokenizer.name if report.tokenizer else "Qwen3"
        lines += [f"Tokens ({whose}): {report.prompt_tokens} in prompts, {report.completion_tokens} in completions.", ""]
    lines += [
        "Licence and attribution of every source stand in `sources.jsonl`; `LICENSES/` tells where the licences' texts are. Digests of all"
        " files: `manifest.json`.",
        "",
    ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _loading(report: ExportReport, how: Sequence[tuple[str, str]], names: Sequence[str]) -> str:
    split, *others = report.rows
    first, check = (next(n for n in sorted(names) if n.startswith(f"data/{s}-")) for s in (split, (*others, split)[0]))
    places = {"{first}": first, "{split}": split, "{check}": check}
    out = "## Loading\n\n"
    for who, text in how:
        for place, value in places.items():
            text = text.replace(place, value)
        out += f"### {who}\n\n{text}\n"
    return out


def _columns(table: Table) -> str:
    rows = "".join(f"| `{name}` | {_cell(doc)} |\n" for name, doc in table.docs.items())
    return f"## Columns\n\n| column | meaning |\n| --- | --- |\n{rows}"
