"""What a reply says: every form in which models call tools, and what is no call."""

from __future__ import annotations

import json
from typing import Any

import pytest

from replay.chat.parsing import content, tool_call, without_thinking
from replay.chat.text_tools import with_tools

TOOLS: tuple[dict[str, Any], ...] = (
    {
        "type": "function",
        "function": {
            "name": "render_shots",
            "description": "Render.",
            "parameters": {
                "type": "object",
                "properties": {"shots": {"type": "string"}, "limit": {"type": "integer"}, "again": {"type": "boolean"}},
                "required": ["shots"],
            },
        },
    },
)


def native(name: Any, arguments: Any) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize(
    ("text", "form", "tool", "arguments"),
    [
        (
            '<tool_call>\n{"name": "render_shots", "arguments": {"shots": "all"}}\n</tool_call>',
            "hermes",
            "render_shots",
            '{"shots": "all"}',
        ),
        ('I will.\n<tool_call>{"name":"render_shots","arguments":{}}</tool_call>', "hermes", "render_shots", "{}"),
        (
            '<think>\nwhich?</think>\n<tool_call>{"name":"render_shots","arguments":{"a":1}}</tool_call>',
            "hermes",
            "render_shots",
            '{"a":1}',
        ),
        ('<tool_call>{"name":"render_shots","parameters":{"a": 1.50}}</tool_call>', "hermes", "render_shots", '{"a": 1.50}'),
        ('<tool_call>{"name":"render_shots","arguments":"{\\"a\\": 1}"}</tool_call>', "hermes", "render_shots", '{"a": 1}'),
        ('<tool_call>{"name":"render_shots"}</tool_call>', "hermes", "render_shots", "{}"),
        ('<tool_call>{"name":"fly","arguments":{"zh":"镜头"}}</tool_call>', "hermes", "fly", '{"zh":"镜头"}'),
        (
            "<tool_call>\n<function=render_shots>\n<parameter=shots>\ns001\n</parameter>\n<parameter=limit>\n3\n</parameter>\n"
            "<parameter=again>\nTrue\n</parameter>\n</function>\n</tool_call>",
            "qwen_xml",
            "render_shots",
            '{"shots": "s001", "limit": 3, "again": true}',
        ),
        ("<function=render_shots>\n<parameter=shots>\n7\n</parameter>\n</function>", "qwen_xml", "render_shots", '{"shots": "7"}'),
        ("<tool_call><function=render_shots></function></tool_call>", "qwen_xml", "render_shots", "{}"),
        (
            "<tool_call><function=render_shots><parameter=limit>three</parameter></function></tool_call>",
            "qwen_xml",
            "render_shots",
            '{"limit": "three"}',
        ),
        (
            "<tool_call><function=fly><parameter=wings>\na\nb\n</parameter></function></tool_call>",
            "qwen_xml",
            "fly",
            '{"wings": "a\\nb"}',
        ),
        (
            '<tool_call>{"name":"render_shots","arguments":{"shots":"a </tool_call> b"}}</tool_call>',
            "hermes",
            "render_shots",
            '{"shots":"a </tool_call> b"}',
        ),
        (
            "<tool_call>\r\n<function=render_shots>\r\n<parameter=shots>\r\ns001\r\n</parameter>\r\n</function>\r\n</tool_call>",
            "qwen_xml",
            "render_shots",
            '{"shots": "s001"}',
        ),
        (
            '<function name="render_shots">\n<parameter name="limit">3</parameter>\n</function>',
            "qwen_xml",
            "render_shots",
            '{"limit": 3}',
        ),
        (
            "<function=render_shots>\n<parameter=shots>\ns001\n<parameter=limit>\n3\n</function>",
            "qwen_xml",
            "render_shots",
            '{"shots": "s001", "limit": 3}',
        ),
        (
            "<tool_call><function=render_shots><parameter=shots>a</function>b</parameter></function></tool_call>",
            "qwen_xml",
            "render_shots",
            '{"shots": "a</function>b"}',
        ),
        (
            "<tool_call><function=render_shots></function><function=render_shots></function></tool_call>",
            "qwen_xml",
            None,
            None,
        ),
        ("I would render the shots now.", "text", None, None),
        ("", "text", None, None),
        ("<think>I never stop", "text", None, None),
        (
            '<tool_call>{"name":"render_shots","arguments":{}}</tool_call><tool_call>{"name":"render_shots","arguments":{}}</tool_call>',
            "text",
            None,
            None,
        ),
        ("<tool_call>nonsense</tool_call>", "hermes", None, None),
        ("<tool_call>[1, 2]</tool_call>", "hermes", None, None),
    ],
)
def test_a_call_in_text_is_found(text: str, form: str, tool: str | None, arguments: str | None) -> None:
    said = tool_call(text, (), TOOLS)
    assert (said.form, said.tool, said.arguments_json) == (form, tool, arguments)


@pytest.mark.parametrize(
    "broken",
    [
        '{"name": "render_shots", "arguments": {"shots": "s0',
        '{"name": "render_shots", "arguments": ' + "[" * 5000 + "]" * 5000 + "}",
        "<function=render_shots>\n<parameter=shots>\ns0",
        "<function=render_shots>\n<parameter=shots>\ns001\n</parameter>\n<parameter=limit>",
        "<function=render_shots>\n<parameter=shots>\ns001\n</parameter>",
        "<function=render_shots><parameter=limit>1</parameter><parameter=limit>2</parameter></function>",
    ],
    ids=["JSON", "JSON too deep to read", "in a value", "before a value", "between values", "value given twice"],
)
def test_a_call_that_cannot_be_read_keeps_its_name_and_its_text(broken: str) -> None:
    said = tool_call("<tool_call>" + broken, (), TOOLS)
    assert (said.tool, said.arguments_json) == ("render_shots", broken)


@pytest.mark.parametrize(
    ("calls", "tool", "arguments"),
    [
        ([native("render_shots", '{"shots": "all"}')], "render_shots", '{"shots": "all"}'),
        ([native("render_shots", '{"shots": ')], "render_shots", '{"shots": '),
        ([native("render_shots", {"shots": "all"})], "render_shots", '{"shots": "all"}'),
        ([native("render_shots", None)], "render_shots", ""),
        ([native(None, "{}")], None, None),
        ([{"id": "c1"}], None, None),
        ([native("a", "{}"), native("b", "{}")], None, None),
    ],
)
def test_a_native_call_is_taken_as_it_is(calls: list[dict[str, Any]], tool: str | None, arguments: str | None) -> None:
    said = tool_call("", calls, TOOLS)
    assert (said.form, said.tool, said.arguments_json) == ("native", tool, arguments)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('<think>a</think>{"x": 1}', '{"x": 1}'),
        ('a</think>\n\n{"x": 1}', '{"x": 1}'),
        ('{"x": "</thinking>"}', '{"x": "</thinking>"}'),
        ("<think>never ends", ""),
        ('```json\n{"x": 1}\n```', '```json\n{"x": 1}\n```'),
    ],
)
def test_reasoning_is_left_out_and_nothing_else(text: str, left: str) -> None:
    assert without_thinking(text) == left
    assert content(text).text == left


@pytest.mark.parametrize("form", ["hermes", "qwen_xml"])
def test_tools_as_text_stand_in_the_first_message_as_they_are(form: str) -> None:
    messages = with_tools([{"role": "system", "content": "Edit."}, {"role": "user", "content": "Go."}], TOOLS, form)
    assert json.dumps(TOOLS[0], ensure_ascii=False) in messages[0]["content"]
    assert messages[1] == {"role": "user", "content": "Go."}
