"""Which tokens are trained: literal texts under a real template."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from materialize.masks import mask, page
from materialize.tokens import TokenCounter
from media.assets import asset
from schemas.errors import ConfigInvalid, EngineMissing

PROMPT = [{"role": "system", "content": "Edit."}, {"role": "user", "content": "Go on, 继续 🎬 <b>"}]
TOOLS = [{"type": "function", "function": {"name": "cut", "description": "Cut.", "parameters": {"type": "object", "properties": {}}}}]


@pytest.fixture(scope="module", autouse=True)
def folder() -> Path:
    try:
        return asset("qwen3-tokenizer")
    except EngineMissing as error:
        pytest.skip(f"the Qwen3 tokenizer is not here: {error.next_step}")


def call(arguments: str) -> dict[str, Any]:
    function = {"name": "cut", "arguments": arguments}
    return {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "type": "function", "function": function}]}


@pytest.mark.parametrize(
    ("completion", "tools", "trained"),
    [
        ({"role": "assistant", "content": '{"queries": ["夜空 🌌"]}'}, [], '{"queries": ["夜空 🌌"]}<|im_end|>\n'),
        (call('{"shots": "all"}'), TOOLS, '<tool_call>\n{"name": "cut", "arguments": {"shots": "all"}}\n</tool_call><|im_end|>\n'),
        (call("{}"), TOOLS, '<tool_call>\n{"name": "cut", "arguments": {}}\n</tool_call><|im_end|>\n'),
    ],
)
def test_the_answer_and_the_end_of_its_turn_are_trained_and_nothing_else(
    completion: dict[str, Any], tools: list[dict[str, Any]], trained: str
) -> None:
    found = mask(PROMPT, tools, completion)
    assert found.trained_text == trained
    assert [t for t, _ in found.spans()] == [False, True]


def test_the_counts_are_those_of_the_examples_table(folder: Path) -> None:
    completion = call('{"shots": "all"}')
    found, counted = mask(PROMPT, TOOLS, completion), TokenCounter(folder).count(PROMPT, TOOLS, completion)
    assert (found.total - found.trained, found.trained) == (counted.prompt, counted.completion)


def test_the_text_is_whole() -> None:
    found = mask(PROMPT, TOOLS, call("{}"))
    text = "".join(t.text for t in found.tokens)
    assert "Go on, 继续 🎬 <b>" in text
    assert text.startswith("<|im_start|>system\nEdit.")


def test_a_page_shows_texts_as_texts() -> None:
    html = page("exa_1", mask(PROMPT, [], {"role": "assistant", "content": "<script>alert(1)</script>"}))
    assert "<script" not in html
    assert 'class="yes"' in html


def test_an_unknown_template_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigInvalid, match="there is no template 'llama9'"):
        mask(PROMPT, [], {"role": "assistant", "content": "x"}, "llama9")


def test_a_template_that_moves_the_prompt_is_refused(tmp_path: Path, folder: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    template = "{% if not add_generation_prompt %}answered {% endif %}{% for m in messages %}{{ m.content }}{% endfor %}"
    (tmp_path / "chat_template.jinja").write_text(template)
    with pytest.raises(ConfigInvalid) as caught:
        mask(PROMPT, [], {"role": "assistant", "content": "x"}, str(tmp_path))
    assert caught.value.code == "template_moves_prompt"
