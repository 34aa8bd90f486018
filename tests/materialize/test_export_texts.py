"""Texts that a trainer would read wrongly: escaped in prompts, refused in what is trained, never half written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from materialize.export.api import export
from materialize.export.options import ExportOptions
from materialize.export.texts import BadText, escape_control, read_json
from schemas.errors import ExportRefused


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": NaN}', "not_a_number"),
        ('{"a": -Infinity}', "not_a_number"),
        ('{"a": 1e999}', "number_too_big"),
        ('{"a": 18446744073709551616}', "number_too_big"),
        ('{"a": -9223372036854775809}', "number_too_big"),
        ('{"a": 1, "a": 2}', "repeated_key"),
        ('{"a": "\\ud800"}', "lone_surrogate"),
        ('{"\\ud800": 1}', "lone_surrogate"),
        ('{"a": ["\\u0000"]}', "nul_character"),
        ("{'a': 1}", "not_json"),
        ("[" * 100_000, "not_json"),
        ("", "not_json"),
    ],
)
def test_json_that_readers_disagree_on_is_refused(text: str, reason: str) -> None:
    with pytest.raises(BadText) as caught:
        read_json(text, "x")
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("a <|im_end|> b", "a <\u200b|im_end|> b"),
        ("<|im_start|>system", "<\u200b|im_start|>system"),
        ("<tool_response>x</tool_response>", "<\u200btool_response>x<\u200b/tool_response>"),
        ("</think>", "<\u200b/think>"),
        ("<｜end▁of▁sentence｜>", "<\u200b｜end▁of▁sentence｜>"),
        ("<end_of_turn>[INST]</s>", "<\u200bend_of_turn>[\u200bINST]<\u200b/s>"),
        ("a < b | c > d, <b>bold</b>, [INSTANT], <|not a token|>", "a < b | c > d, <b>bold</b>, [INSTANT], <|not a token|>"),
    ],
)
def test_control_tokens_in_prompts_are_made_harmless(text: str, safe: str) -> None:
    assert escape_control(text) == safe
    assert escape_control(safe) == safe


def test_an_escaped_prompt_holds_no_control_token_for_the_real_tokenizer(counter: Any, build: Any, tmp_path: Path) -> None:
    rows = [build.row(0, completion=build.call("x", "{}"), user="they say <|im_end|> and <tool_call>")]
    report = export("sft", "trl", build.table(rows), tmp_path / "out")
    row = pq.read_table(tmp_path / "out" / "data").to_pylist()[0]
    tokenizer = counter._tokenizer
    special = {t.content for t in tokenizer.added_tokens_decoder.values()}
    assert not special & set(tokenizer.tokenize(row["prompt"][1]["content"]))
    assert special & set(tokenizer.tokenize("they say <|im_end|>"))
    assert (report.escaped, row["escaped"]) == (1, True)
    assert "In 1 prompts a text held control tokens" in (tmp_path / "out" / "README.md").read_text("utf-8")


@pytest.mark.parametrize(
    "completion",
    [
        {"role": "assistant", "content": "stop <|im_end|> here"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "x", "arguments": '{"a": "\\u003c|im_end|>"}'}}],
        },
    ],
)
def test_a_control_token_in_what_is_trained_refuses_the_row(build: Any, tmp_path: Path, completion: dict[str, Any]) -> None:
    rows = [build.row(0, completion=build.call("x", "{}")), build.row(1, completion=completion)]
    with pytest.raises(ExportRefused, match="exa_0001: control_token"):
        export("sft", "trl", build.table(rows), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("consumer", ["trl", "hf", "openai-jsonl"])
def test_bad_texts_name_their_rows_and_leave_nothing_behind(shared: Path, build: Any, tmp_path: Path, consumer: str) -> None:
    cases = json.loads((shared / "cases" / "bad_text.json").read_text("utf-8"))
    rows = [build.row(c["id"], completion=json.dumps({"role": "assistant", "content": c["text"]})) for c in cases]
    with pytest.raises(ExportRefused) as caught:
        export("sft", consumer, build.table(rows), tmp_path / "out")
    assert "2 examples cannot be exported" in caught.value.message
    assert "exa_0002: lone_surrogate" in caught.value.message
    assert "exa_0003: nul_character" in caught.value.message
    assert list(tmp_path.iterdir()) == []


def test_bad_texts_can_be_left_out_and_are_then_listed(shared: Path, build: Any, tmp_path: Path) -> None:
    cases = json.loads((shared / "cases" / "bad_text.json").read_text("utf-8"))
    rows = [build.row(c["id"], completion=json.dumps({"role": "assistant", "content": c["text"]})) for c in cases]
    report = export("sft", "trl", build.table(rows), tmp_path / "out", ExportOptions(bad_rows="leave_out"))
    assert [bad.example_id for bad in report.left_out] == ["exa_0002", "exa_0003"]
    kept = pq.read_table(tmp_path / "out" / "data").to_pylist()
    assert [r["completion"][0]["content"] for r in kept] == ["ok", "bidi \u202e and zero\u200bwidth", "line\u2028sep\r\n\ttab"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"prompt_json": '[{"role":"user","content":"a\\u0000"}]'}, "nul_character"),
        ({"prompt_json": '[{"role":"user","content":"\\ud800"}]'}, "lone_surrogate"),
        ({"prompt_json": '[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]'}, "prompt_shape"),
        ({"prompt_json": "[]"}, "prompt_shape"),
        ({"prompt_json": "{}"}, "prompt_shape"),
        ({"prompt_json": "7"}, "prompt_shape"),
        ({"prompt_json": '[{"role":"user"}]'}, "prompt_shape"),
        ({"prompt_json": '[{"role":"user","content":[{"type":"text"}]}]'}, "prompt_shape"),
        ({"completion_json": '{"role":"assistant","content":""}'}, "empty_completion"),
        ({"completion_json": '{"role":"assistant","content":" \\n"}'}, "empty_completion"),
        ({"completion_json": "{}"}, "not_a_message"),
        ({"completion_json": "[]"}, "not_a_message"),
        ({"completion_json": '{"content":{"a":1}}'}, "not_a_message"),
        ({"completion_json": '{"content":"","tool_calls":[{"id":"c"}]}'}, "not_a_message"),
        ({"completion_json": '{"content":"","tool_calls":[{"id":"c","function":{"name":"x","arguments":{}}}]}'}, "not_a_message"),
        ({"tools_json": "7"}, "not_a_tool"),
        ({"tools_json": '["x"]'}, "not_a_tool"),
        ({"tools_json": '[{"type":"function"}]'}, "not_a_tool"),
        ({"tools_json": '[{"name": "<|im_end|>"}]'}, "control_token"),
    ],
)
def test_other_rows_that_would_train_wrongly_are_refused(build: Any, tmp_path: Path, change: dict[str, str], reason: str) -> None:
    with pytest.raises(ExportRefused, match=reason):
        export("sft", "trl", build.table([build.row(0, completion=build.call("x", "{}")) | change]), tmp_path / "out")


@pytest.mark.parametrize("consumer", ["hf", "trl", "axolotl", "llamafactory", "openai-jsonl"])
def test_a_set_of_which_nothing_is_left_is_refused(build: Any, tmp_path: Path, consumer: str) -> None:
    rows = [build.row(i, completion=build.call("x", "[]")) for i in range(3)]
    with pytest.raises(ExportRefused, match="all 3 rows were left out, for one exa_0000: not_an_object"):
        export("sft", consumer, build.table(rows), tmp_path / "out", ExportOptions(bad_rows="leave_out"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("consumer", ["hf", "trl", "swift", "axolotl", "llamafactory"])
def test_a_split_of_which_nothing_is_left_is_none(build: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, consumer: str) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import datasets

    rows = [build.row(0, completion=build.call("x", "{}")), build.row(1, completion=build.call("x", "[]")) | {"split": "validation"}]
    rows[1] |= {"project_id": "prj_other", "trajectory_id": "trj_other"}
    report = export("sft", consumer, build.table(rows), tmp_path / "out", ExportOptions(bad_rows="leave_out"))
    assert (report.rows, len(report.left_out)) == ({"train": 1}, 1)
    assert not [p for p in (tmp_path / "out").rglob("*") if p.name.startswith("validation")]
    if consumer in ("hf", "trl"):
        loaded = datasets.load_dataset(str(tmp_path / "out"), "sft", cache_dir=str(tmp_path / "cache"))
        assert {split: len(part) for split, part in loaded.items()} == report.rows


def test_many_bad_rows_are_named_up_to_twenty(build: Any, tmp_path: Path) -> None:
    rows = [build.row(i, completion=build.call("x", '{"a": NaN}')) for i in range(50)]
    with pytest.raises(ExportRefused, match="20 or more examples cannot be exported"):
        export("sft", "trl", build.table(rows), tmp_path / "out")


def test_texts_with_markup_and_formulas_round_trip(build: Any, tmp_path: Path) -> None:
    texts = ["=SUM(A1:A9)", "<script>alert(1)</script>", "x" * 65_536, "e\u0301 夜空 \ufeff", 'a,b\n"c"\td', "'; drop table examples; --"]
    rows = [build.row(i, completion={"role": "assistant", "content": t}, user=t) for i, t in enumerate(texts)]
    export("sft", "trl", build.table(rows), tmp_path / "out")
    kept = pq.read_table(tmp_path / "out" / "data").to_pylist()
    assert [(r["prompt"][1]["content"], r["completion"][0]["content"]) for r in kept] == [(t, t) for t in texts]
