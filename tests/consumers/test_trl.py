"""TRL trains exactly what was authored (checks A, B and D): supervised, preference, KTO and distillation sets, in one process."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from materialize.distillation import distillation_rows
from materialize.export.api import export
from materialize.export.tokenised import IGNORED
from materialize.tokens import load_tokenizer
from schemas.example import Split
from tests.consumers.cases import wanted
from tests.consumers.conftest import run_script
from tests.materialize.conftest import storyboard, whole_run
from tests.materialize.test_distillation import connect as connect_turns
from tests.materialize.test_distillation import taken_in_turns
from tests.materialize.test_export_compared import connect, tables  # noqa: F401 - a fixture
from tests.materialize.test_groups import world  # noqa: F401 - a fixture

TEMPLATES = ("qwen3", "qwen3_5_think", "qwen3_8")
JOBS = (*(("sft", t) for t in TEMPLATES), ("tokens", "qwen3_5_think"), ("pref", "qwen3"), ("kto", "qwen3"), ("opd", "qwen3"))
Results = dict[tuple[str, str], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def groups(tables: dict[str, pa.Table]) -> duckdb.DuckDBPyConnection:  # noqa: F811
    """Executed groups of the three roles."""
    return connect(tables)


@pytest.fixture(scope="module")
def results(
    examples: pa.Table,
    exported: Callable[[str], Path],
    tokenizers: Path,
    groups: duckdb.DuckDBPyConnection,
    tmp_path_factory: pytest.TempPathFactory,
) -> Results:
    """What the jobs printed."""
    root = tmp_path_factory.mktemp("trl")
    run = whole_run(root / "store")
    turns = distillation_rows(
        taken_in_turns(run, {"beta_start": 0.8, "update": 50, "decay_updates": 100}), storyboard("prj_one"), run.store, Split.TRAIN
    )
    sources = {"pref": groups, "kto": groups, "opd": connect_turns(turns)}
    for kind, source in sources.items():
        export(kind, "trl", source, root / kind)
    folders = {"sft": exported("trl"), "tokens": root / "tokens"} | {kind: root / kind for kind in sources}
    export("sft", "trl", examples, folders["tokens"], tokenizer=str(tokenizers / dict(JOBS)["tokens"]))
    lines = run_script("trl", "trl_train.py", *(a for kind, t in JOBS for a in (kind, folders[kind], tokenizers / t)), cwd=root)
    found: Results = defaultdict(list)
    for line in lines:
        assert "error" not in line, f"{JOBS[line['job']]}: {line['error']}"
        found[JOBS[line["job"]]].append(line)
    return found


def authored(tables: dict[str, pa.Table]) -> dict[str, set[str]]:  # noqa: F811
    """What Qwen3's template makes of the candidates of each group."""
    found: dict[str, set[str]] = defaultdict(set)
    for row in tables["candidates"].to_pylist():
        said = json.loads(row["output_json"])
        text = said["text"]
        if said["role"] == "orchestrator":
            try:
                arguments = json.loads(said["arguments_json"])
            except ValueError:
                continue  # a spoiled call cannot be rendered, and is left out
            text = f'<tool_call>\n{{"name": "{said["tool"]}", "arguments": {json.dumps(arguments, ensure_ascii=False)}}}\n</tool_call>'
        found[row["group_id"]].add(text + "<|im_end|>\n")
    return found


@pytest.mark.parametrize("template", TEMPLATES)
def test_sft_trains_the_authored_text_and_nothing_else(results: Results, template: str) -> None:
    *rows, end = results["sft", template]
    assert {r["id"]: r["trained"] for r in rows} == wanted(template)
    assert end["steps"] == 2
    assert all(0 < loss < 20 for loss in end["losses"])


def test_rows_that_are_tokens_already_train_the_same_tokens(results: Results) -> None:
    ((_, template),) = [job for job in JOBS if job[0] == "tokens"]
    *rows, end = results["tokens", template]
    assert {r["id"]: r["trained"] for r in rows} == wanted(template)
    assert [(r["id"], r["tokens"], r["all"]) for r in rows] == [(r["id"], r["tokens"], r["all"]) for r in results["sft", template][:-1]]
    assert end["steps"] == 2


@pytest.mark.parametrize("template", TEMPLATES)
def test_tokens_of_every_template_are_labelled_as_trl_trains_chats(
    results: Results, examples: pa.Table, tokenizers: Path, tmp_path: Path, template: str
) -> None:
    export("sft", "trl", examples, tmp_path / "out", tokenizer=str(tokenizers / template))
    tokenizer = load_tokenizer(tokenizers / template)
    rows = {r["example_id"]: r for r in pq.read_table(tmp_path / "out" / "data").to_pylist()}
    assert {name: tokenizer.decode([i for i in r["labels"] if i != IGNORED]) for name, r in rows.items()} == wanted(template)
    trained = {r["id"]: (r["tokens"], r["all"]) for r in results["sft", template][:-1]}
    assert {name: (r["completion_tokens"], tokenizer.decode(r["input_ids"])) for name, r in rows.items()} == trained


@pytest.mark.parametrize("template", TEMPLATES)
def test_control_tokens_in_a_prompt_stay_text(results: Results, template: str) -> None:
    (row,) = [r for r in results["sft", template] if r.get("id") == "exa_control_token_in_the_prompt"]
    assert row["all"].count("<|im_end|>") == 3  # system, user, assistant


def test_preference_pairs_are_trained_as_authored(results: Results, tables: dict[str, pa.Table]) -> None:  # noqa: F811
    *rows, end = results["pref", "qwen3"]
    said = authored(tables)
    assert len(rows) > 3
    assert all({r["chosen"], r["rejected"]} <= said[r["group"]] and r["chosen"] != r["rejected"] for r in rows)
    assert '<tool_call>\n{"name": "compose_timeline", "arguments": {}}\n</tool_call><|im_end|>\n' in {r["chosen"] for r in rows}
    assert len(end["losses"]) == end["steps"] == 2


def test_kto_labels_stand_at_what_was_authored(results: Results, tables: dict[str, pa.Table]) -> None:  # noqa: F811
    *rows, end = results["kto", "qwen3"]
    said = authored(tables)
    assert {r["label"] for r in rows} == {True, False}
    assert all(r["trained"] in said[r["group"]] for r in rows)
    assert len(end["losses"]) == end["steps"] == 2


def test_a_teacher_is_distilled_on_recorded_prompts(results: Results) -> None:
    (end,) = results["opd", "qwen3"]
    assert end["steps"] == 1
    assert all(loss > 0 for loss in end["losses"])


@pytest.mark.full
def test_verl_trains_the_same_tokens_as_trl(results: Results, exported: Callable[[str], Path], tokenizers: Path, tmp_path: Path) -> None:
    folders = [tokenizers / template for template in TEMPLATES]
    rows = run_script("verl", "verl_sets.py", "sft", exported("verl"), *folders, cwd=tmp_path)
    for template in TEMPLATES:
        *trl, _ = results["sft", template]
        verl = [r for r in rows if r["template"] == template]
        assert [r["trained"] for r in verl] == list(wanted(template).values())
        assert [(r["tokens"], r["all"]) for r in verl] == [(r["tokens"], r["all"]) for r in trl]


COMPARED = {"pref": ("rm", "rlhf", ("chosen", "rejected")), "kto": ("kto", "kto", ("trained", "label"))}
"""Kind to LLaMA-Factory's stage, ms-swift's mode, and what a row says."""


@pytest.mark.full
@pytest.mark.parametrize("consumer", ["llamafactory", "swift"])
@pytest.mark.parametrize("kind", COMPARED)
def test_other_trainers_compare_the_same_outputs(
    kind: str, consumer: str, results: Results, groups: duckdb.DuckDBPyConnection, tokenizers: Path, tmp_path: Path
) -> None:
    """The pairs, or the texts with their labels, that TRL takes."""
    stage, mode, fields = COMPARED[kind]
    export(kind, consumer, groups, tmp_path / kind)
    if consumer == "llamafactory":
        given = ("llamafactory_labels.py", tmp_path / kind, tokenizers / "qwen3", "qwen3_nothink", stage)
    else:
        given = ("swift_labels.py", tmp_path / kind / "train.jsonl", tokenizers / "qwen3", "qwen3", "hermes", mode)
    rows = run_script(consumer, *given, cwd=tmp_path)
    *trl, _ = results[kind, "qwen3"]
    assert sorted([r[field] for field in fields] for r in rows) == sorted([r[field] for field in fields] for r in trl)
