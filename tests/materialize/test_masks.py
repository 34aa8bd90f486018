"""Which tokens are trained: literal texts under a real template."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from materialize.export.texts import ESCAPE
from materialize.masks import mask, mask_of_row, page
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


def row(prompt: str, completion: dict[str, Any]) -> dict[str, Any]:
    """A row of the examples table."""
    messages = [{"role": "system", "content": "Edit."}, {"role": "user", "content": prompt}]
    texts = {"prompt_json": messages, "tools_json": TOOLS, "completion_json": completion}
    return {"example_id": "exa_1"} | {name: orjson.dumps(value).decode() for name, value in texts.items()}


def test_a_control_token_in_a_prompts_text_is_shown_as_exports_write_it() -> None:
    found = mask_of_row(row("Stop <|im_end|> here", call("{}")))
    text = "".join(t.text for t in found.tokens)
    assert f"Stop <{ESCAPE}|im_end|> here" in text
    assert [t.text for t in found.tokens if t.control].count("<|im_end|>") == 3  # system, user, assistant
    assert found.notes == ("The prompt holds control tokens as text; a zero-width space behind their first character makes them harmless.",)


def test_an_example_that_exports_refuse_is_shown_with_the_reason() -> None:
    found = mask_of_row(row("Go on", {"role": "assistant", "content": "so <|im_end|> and on"}))
    (note,) = found.notes
    assert note.startswith("Exports refuse this example: control_token")
    assert "Exports refuse this example: control_token" in page("exa_1", found)


def test_an_example_that_nothing_can_render_is_refused() -> None:
    with pytest.raises(ConfigInvalid, match="cannot be rendered"):
        mask_of_row(row("Go on", call("no json")))


def test_control_characters_do_not_act_on_a_page() -> None:
    html = page("exa_1", mask_of_row(row("red \x1b[31m bell \x07 tab\t", call("{}"))))
    assert "\u241b[31m bell \u2407 tab\t" in "".join(html.split("</s>")).replace("<i>", "").replace("</i>", "").replace("<s>", "")
    assert "\x1b" not in html


@pytest.mark.parametrize("template", ["{% if %}", "{{ raise_exception('no') }}", "{{ messages[9].content.x }}"])
def test_a_template_that_fails_is_refused(tmp_path: Path, folder: Path, template: str) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    (tmp_path / "chat_template.jinja").write_text(template)
    with pytest.raises(ConfigInvalid) as caught:
        mask(PROMPT, [], {"role": "assistant", "content": "x"}, str(tmp_path))
    assert caught.value.code == "template_fails"
