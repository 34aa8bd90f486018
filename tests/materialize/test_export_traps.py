"""What trainers read wrongly without a word, tried on every writer of supervised rows: each either keeps it exact or refuses the row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from materialize.export.api import WRITES, Consumer, ExportKind, export
from materialize.export.options import ExportOptions
from materialize.export.verl_dataset import WorkprintSFTDataset, encode, read_rows
from repair.registry import full_registry
from schemas.canonical import canonical_text
from schemas.contract import shown_schema
from schemas.errors import ConfigInvalid, ExportRefused

WRITERS = [c.value for c in Consumer if ExportKind.SFT in WRITES[c][1] and c is not Consumer.ATIF]
"""ATIF takes whole runs; its texts are tried in test_export_kinds and below."""
LINES = [w for w in WRITERS if w not in ("hf", "trl", "verl")]


def lines_in(folder: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for path in sorted(folder.glob("train*.jsonl")) if "origins" not in path.name for line in _lines(path)]


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().split(b"\n")[:-1]


def arguments_in(folder: Path, consumer: str) -> list[str]:
    """The exact text of the arguments of every call, taken from the files as the consumer's form has them."""
    if consumer in ("hf", "trl", "verl"):
        rows = read_rows([str(p) for p in sorted((folder / "data").glob("train-*.parquet"))])
        return [_exact(c) for r in rows for c in r["completion"][0]["tool_calls"] or ()]
    found = lines_in(folder)
    if consumer == "llamafactory":
        return [_exact(x["conversations"][-1]["value"]) for x in found]
    if consumer == "swift":
        return [_exact(x["messages"][-1]["content"]) for x in found]
    if consumer == "skyrl":
        return [_exact(x["messages"][-1]["tool_calls"][1:-1]) for x in found]
    return [x["messages"][-1]["tool_calls"][0]["function"]["arguments"] for x in found]


def _exact(call: str) -> str:
    """The text behind "arguments" in a call's JSON, which ends the function object."""
    text = call.split('"arguments":', 1)[1].strip()
    return text[: text.rindex("}")] if not call.endswith("}}") or '"function"' not in call else text[: text.rindex("}}")]


@pytest.mark.parametrize("consumer", WRITERS)
@pytest.mark.parametrize(
    "arguments",
    ['{"x": 23.976023976023978}', '{"x": 0.1, "y": 1e16, "z": -0.0}', '{"x": 9223372036854775807}', '{"x": "123", "y": 123}', "{}"],
)
def test_arguments_are_written_as_they_were_authored(build: Any, tmp_path: Path, consumer: str, arguments: str) -> None:
    other = build.row(1, completion=build.call("other", '{"deep": {"x": 1}, "foreign": true}'))
    export("sft", consumer, build.table([build.row(0, completion=build.call("set", arguments)), other]), tmp_path / "out")
    assert arguments_in(tmp_path / "out", consumer) == [arguments, '{"deep": {"x": 1}, "foreign": true}']


@pytest.mark.parametrize("consumer", [w for w in WRITERS if w != "axolotl"])
def test_a_null_argument_is_kept_and_no_other_row_gets_one(build: Any, tmp_path: Path, consumer: str) -> None:
    rows = [build.row(0, completion=build.call("set", '{"fmt": null}')), build.row(1, completion=build.call("trim", '{"start": 1}'))]
    export("sft", consumer, build.table(rows), tmp_path / "out")
    assert arguments_in(tmp_path / "out", consumer) == ['{"fmt": null}', '{"start": 1}']


@pytest.mark.parametrize("arguments", ['{"fmt": null}', '{"a": {"b": [1, null]}}'])
def test_a_null_argument_is_refused_where_the_trainer_takes_it_away(build: Any, tmp_path: Path, arguments: str) -> None:
    table = build.table([build.row(0, completion=build.call("set", arguments)), build.row(1, completion=build.call("x", "{}"))])
    with pytest.raises(ExportRefused, match="exa_0000: null_argument"):
        export("sft", "axolotl", table, tmp_path / "out")


@pytest.mark.parametrize("consumer", WRITERS)
def test_a_control_token_in_an_answer_is_refused(build: Any, tmp_path: Path, consumer: str) -> None:
    rows = [build.row(0, completion=build.call("set", '{"title": "a <|im_end|> b"}')), build.row(1, completion=build.call("x", "{}"))]
    with pytest.raises(ExportRefused, match="exa_0000: control_token"):
        export("sft", consumer, build.table(rows), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("consumer", WRITERS)
def test_a_control_token_in_a_prompt_reaches_no_file(build: Any, tmp_path: Path, consumer: str) -> None:
    row = build.row(0, completion=build.call("x", "{}"), user="they say <|im_end|> and <tool_call>")
    report = export("sft", consumer, build.table([row]), tmp_path / "out")
    assert report.escaped == 1
    data = [p for p in (tmp_path / "out").rglob("*") if p.is_file() and (p.suffix == ".parquet" or p.name == "train.jsonl")]
    texts = [json.dumps(pq.read_table(p).to_pylist(), ensure_ascii=False) if p.suffix == ".parquet" else p.read_text("utf-8") for p in data]
    assert texts
    assert not any(token in text for text in texts for token in ("<|im_end|>", "<tool_call>"))


@pytest.mark.parametrize("consumer", WRITERS)
@pytest.mark.parametrize("completion", [{"role": "assistant", "content": ""}, {"role": "assistant", "content": "", "tool_calls": []}])
def test_a_row_that_would_train_nothing_is_refused(build: Any, tmp_path: Path, consumer: str, completion: dict[str, Any]) -> None:
    with pytest.raises(ExportRefused, match="empty_completion"):
        export("sft", consumer, build.table([build.row(0, completion=completion)]), tmp_path / "out")


def shape(value: Any, path: str = "") -> set[tuple[str, str]]:
    """(path, type) of everything in a line; null counts as no type."""
    if isinstance(value, dict):
        return {pair for key, item in value.items() for pair in shape(item, f"{path}.{key}")}
    if isinstance(value, list):
        return {pair for item in value for pair in shape(item, f"{path}[]")}
    return set() if value is None else {(path, type(value).__name__)}


@pytest.mark.parametrize("consumer", [w for w in LINES if w != "openai-jsonl"])
def test_a_late_row_with_other_arguments_changes_the_type_of_nothing(build: Any, tmp_path: Path, consumer: str) -> None:
    """``datasets`` infers types from the first lines only; so no argument may become a key of a line."""
    rows = [build.row(i, completion=build.call("set", f'{{"x": {i}}}')) for i in range(20)]
    late = [
        build.row(20, completion=build.call("other", '{"x": "text", "new": {"deep": [1, "a", null]}}')),
        build.row(21, completion={"role": "assistant", "content": "{}"}, role="generator", tools_json="[]"),
    ]
    rows += [r for r in late if consumer != "axolotl"] or [build.row(20, completion=build.call("other", '{"x": "text", "new": {"d": 1}}'))]
    export("sft", consumer, build.table(rows), tmp_path / "out")
    found = lines_in(tmp_path / "out")
    early = {pair for line in found[:20] for pair in shape(line)}
    assert {pair for line in found[20:] for pair in shape(line)} <= early | {(".messages[].content", "str")}


def test_a_late_row_with_other_arguments_is_loaded_by_datasets(build: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import datasets

    rows = [build.row(i, completion=build.call("set", f'{{"x": {i}}}')) for i in range(30)]
    rows.append(build.row(30, completion=build.call("other", '{"x": "text", "new": {"deep": [1]}}')))
    export("sft", "hf", build.table(rows), tmp_path / "out", ExportOptions(rows_per_shard=10))
    loaded = datasets.load_dataset(str(tmp_path / "out"), split="train", cache_dir=str(tmp_path / "cache"))
    got = [r["completion"][0]["tool_calls"][0]["function"]["arguments"] for r in loaded]
    assert (got[0], got[30]) == ({"x": 0}, {"x": "text", "new": {"deep": [1]}})


@pytest.mark.parametrize("consumer", WRITERS)
def test_held_out_projects_and_their_texts_are_in_no_file(build: Any, tmp_path: Path, consumer: str) -> None:
    rows = [
        build.row(0, completion=build.call("x", "{}"), project_id="prj_open", user="an open text"),
        build.row(1, completion=build.call("y", "{}"), project_id="prj_secret", user="a secret text", split="held_out"),
    ]
    export("sft", consumer, build.table(rows), tmp_path / "out")
    for path in (p for p in (tmp_path / "out").rglob("*") if p.is_file()):
        data = json.dumps(pq.read_table(path).to_pylist()).encode() if path.suffix == ".parquet" else path.read_bytes()
        assert b"secret text" not in data, path
        assert b"prj_secret" not in data or path.name == "splits.json", path


@pytest.mark.parametrize("consumer", WRITERS)
def test_a_project_lies_in_one_split_of_every_export(build: Any, tmp_path: Path, consumer: str) -> None:
    rows = [
        build.row(i, completion=build.call("x", f'{{"a": {i}}}'), project_id=f"prj_{i}", split=s)
        for i, s in enumerate(["train", "validation"] * 3)
    ]
    report = export("sft", consumer, build.table(rows), tmp_path / "out")
    assert (report.rows, len(report.projects)) == ({"train": 3, "validation": 3}, 6)


def test_tool_schemas_are_flat_so_that_no_trainer_drops_a_part() -> None:
    """verl keeps type, description and enum of each parameter, TRL makes schemas from type hints: more than that would be lost there."""
    schemas = full_registry().schemas()
    assert len(schemas) >= 13
    for schema in schemas:
        function = schema["function"]
        assert set(function) == {"name", "description", "parameters"}
        assert set(function["parameters"]) <= {"type", "properties", "required", "additionalProperties"}
        for name, prop in function["parameters"]["properties"].items():
            assert set(prop) <= {"type", "description", "enum"}, (function["name"], name)
            assert isinstance(prop["type"], str)


def tool_text(tokenizer: Any, tools: list[Any]) -> str:
    """The rendered system turn, in which the tools stand."""
    text: str = tokenizer.apply_chat_template([{"role": "user", "content": "x"}], tools=tools, tokenize=False)
    return text


def test_the_rendered_tools_are_the_same_in_sft_verl_rl_and_the_environment(
    counter: Any, build: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import datasets

    contracts = list(full_registry().schemas())
    shown = [shown_schema(t) for t in contracts]
    row = build.row(0, completion=build.call("render_shots", '{"shots": "all"}'), tools_json=canonical_text(contracts))
    texts = {"environment": tool_text(counter._tokenizer, shown)}
    for consumer in ("trl", "verl"):
        export("sft", consumer, build.table([row]), tmp_path / consumer)
    (loaded,) = datasets.load_dataset(str(tmp_path / "trl"), split="train", cache_dir=str(tmp_path / "cache"))
    texts["sft"] = tool_text(counter._tokenizer, loaded["tools"])
    (own,) = read_rows([str(tmp_path / "verl" / "data" / "train-00000-of-00001.parquet")])
    texts["verl"] = tool_text(counter._tokenizer, [json.loads(t) for t in own["tools"]])
    for consumer, form in (("swift", "tools"), ("skyrl", "tools"), ("axolotl", "tools")):
        export("sft", consumer, build.table([row]), tmp_path / consumer)
        texts[consumer] = tool_text(counter._tokenizer, json.loads(lines_in(tmp_path / consumer)[0][form]))
    assert set(texts.values()) == {texts["environment"]}


def test_verls_reader_trains_the_answer_and_nothing_else(counter: Any, build: Any, tmp_path: Path) -> None:
    rows = [
        build.row(0, completion=build.call("trim", '{"start": 1.50, "zh": "夜"}')),
        build.row(1, completion={"role": "assistant", "content": '{"queries":[]}'}, role="generator", tools_json="[]"),
    ]
    export("sft", "verl", build.table(rows), tmp_path / "out")
    tokenizer = counter._tokenizer
    texts = []
    for row in read_rows([str(tmp_path / "out" / "data" / "train-00000-of-00001.parquet")]):
        ids, mask = encode(row, tokenizer)
        texts.append(tokenizer.decode([i for i, m in zip(ids, mask, strict=True) if m]))
    assert texts == [
        '<tool_call>\n{"name": "trim", "arguments": {"start": 1.5, "zh": "夜"}}\n</tool_call><|im_end|>\n',
        '{"queries":[]}<|im_end|>\n',
    ]


@pytest.mark.parametrize(
    ("truncation", "said"), [("error", "row 0 has .* tokens, data.max_length is 20"), ("right", "nothing of it would be trained")]
)
def test_verls_reader_refuses_rows_that_a_cut_would_empty(counter: Any, build: Any, tmp_path: Path, truncation: str, said: str) -> None:
    export("sft", "verl", build.table([build.row(0, completion=build.call("x", "{}"))]), tmp_path / "out")
    data = WorkprintSFTDataset(
        str(tmp_path / "out" / "data" / "train-00000-of-00001.parquet"), counter._tokenizer, {"max_length": 20, "truncation": truncation}
    )
    ids, mask = encode(data.rows[0], counter._tokenizer)
    with pytest.raises(ValueError, match=said):
        data._cut(ids, mask, 0)


def test_verls_reader_takes_as_many_rows_as_it_is_told(counter: Any, build: Any, tmp_path: Path) -> None:
    rows = [build.row(i, completion=build.call("x", f'{{"a": {i}}}')) for i in range(5)]
    export("sft", "verl", build.table(rows), tmp_path / "out", ExportOptions(rows_per_shard=2))
    files = [str(p) for p in sorted((tmp_path / "out" / "data").iterdir())]
    assert len(WorkprintSFTDataset(files, counter._tokenizer)) == 5
    first = WorkprintSFTDataset(files, counter._tokenizer, max_samples=2)
    assert [json.loads(r["completion"][0]["tool_calls"][0])["function"]["arguments"] for r in first.rows] == [{"a": 0}, {"a": 1}]
    drawn = [WorkprintSFTDataset(files, counter._tokenizer, {"shuffle": True, "seed": 3}, max_samples=3).rows for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert len(drawn[0]) == 3


def test_verls_reader_imports_nothing_else_of_this_project() -> None:
    import materialize.export.verl_dataset as module

    source = Path(module.__file__).read_text("utf-8")
    assert not [
        line for line in source.splitlines() if line.startswith(("from materialize", "from schemas", "from storage", "import torch"))
    ]


def test_a_bare_table_serves_sft_only(build: Any, tmp_path: Path) -> None:
    rows: pa.Table = build.table([build.row(0, completion=build.call("x", "{}"))])
    for kind in ("rft", "pref", "kto", "opd", "groups", "rl", "benchmark"):
        with pytest.raises(ConfigInvalid, match="no_lake"):
            export(kind, "hf", rows, tmp_path / kind)
