"""What a chat model's reply says, in whatever form it says it: native tool calls, Hermes JSON in text, Qwen XML in text, or JSON content.

Owns finding the decision in a reply. Judges nothing: a call without sense, a second call, broken JSON all go to the runtime as they
are, which answers with typed blockers. Text is kept exactly; only the values of the XML form, which has no types, are typed by the
tool's schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

Form = Literal["native", "hermes", "qwen_xml", "json", "text"]

_THINKING = re.compile(r"\A\s*(?:<think>)?.*?</think>\s*", re.DOTALL)
_UNFINISHED = re.compile(r"\A\s*<think>(?!.*</think>).*\Z", re.DOTALL)
_OPEN = re.compile(r"<tool_call>\s*")
_CLOSE = re.compile(r"\s*</tool_call>")
_FUNCTION = re.compile(r"<function(?:=|\s+name=)\"?([^>\"\n]*)\"?\s*>")
_NEXT = r"<parameter(?:=|\s+name=)"
_PARAMETER = re.compile(
    rf"{_NEXT}\"?([^>\"\n]*)\"?\s*>(?:((?:(?!{_NEXT}).)*?)</parameter>|((?:(?!{_NEXT}).)*?)(?={_NEXT}|</function>))", re.DOTALL
)
"""A value ends at its own closing tag; where that was forgotten, at the next parameter or at the end of the call."""
_OPENING = re.compile(_NEXT)
_LINE_END = re.compile(r"\A\r?\n|\r?\n\Z")
_WRITTEN = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Said:
    """A reply's decision."""

    form: Form
    text: str
    """What was written, reasoning left out."""
    tool: str | None = None
    """Name of the one tool called; None where there is no call, or more than one."""
    arguments_json: str | None = None
    """Arguments as exact text."""


def without_thinking(text: str) -> str:
    """A text with its leading reasoning taken off. Reasoning that never ended leaves nothing."""
    if _UNFINISHED.match(text):
        return ""
    return _THINKING.sub("", text, count=1) if "</think>" in text else text


def tool_call(content: str, native: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]]) -> Said:
    """The tool call of an orchestrator's reply.

    Args:
        content: text of the reply.
        native: tool calls that came in the protocol's own form.
        tools: function schemas offered; they type the values of the XML form.
    """
    text = without_thinking(content)
    if native:
        return _native(text, native)
    blocks = _blocks(text)
    if not blocks and _FUNCTION.match(text.lstrip()):
        blocks = [(text.strip(), False)]
    if len(blocks) != 1:
        return Said("text", text)
    block, closed = blocks[0]
    return _xml(text, block, closed, tools) if _FUNCTION.match(block) else _hermes(text, block)


def _blocks(text: str) -> list[tuple[str, bool]]:
    """What stands in each ``<tool_call>``, and whether it was closed. A closing tag inside a string of JSON closes nothing."""
    out: list[tuple[str, bool]] = []
    at = 0
    while opening := _OPEN.search(text, at):
        start = opening.end()
        try:
            _, end = json.JSONDecoder().raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start
        closing = _CLOSE.match(text, end) or _CLOSE.search(text, start)
        stop = closing.start() if closing else len(text)
        out.append((text[start:stop].rstrip(), closing is not None))
        at = closing.end() if closing else len(text)
    return out


def _xml(text: str, block: str, closed: bool, tools: Sequence[dict[str, Any]]) -> Said:
    """The form without types. A call that was cut off, or gives a parameter twice, keeps its text: what was meant nobody knows."""
    opening = _FUNCTION.match(block)
    assert opening is not None  # noqa: S101
    name, end, body = opening.group(1).strip(), opening.end(), block[opening.end() :]
    found = list(_PARAMETER.finditer(block, end))
    rest = block[found[-1].end() if found else end :]
    if _FUNCTION.search(_PARAMETER.sub("", body)):
        return Said("qwen_xml", text)
    told_twice = len({m.group(1).strip() for m in found}) < len(found)
    if told_twice or _OPENING.search(rest) or not (closed or "</function>" in rest):
        return Said("qwen_xml", text, name, block)
    values = [(m.group(1), _LINE_END.sub("", m.group(2) if m.group(2) is not None else m.group(3))) for m in found]
    return Said("qwen_xml", text, name, _typed(values, _properties(name, tools)))


def content(text: str) -> Said:
    """The content of a generator's or critic's reply: all that was written but reasoning."""
    return Said("json", without_thinking(text))


def _native(text: str, calls: Sequence[dict[str, Any]]) -> Said:
    if len(calls) != 1:
        return Said("native", text or json.dumps(list(calls), ensure_ascii=False))
    function = calls[0].get("function")
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        return Said("native", text or json.dumps(calls[0], ensure_ascii=False))
    arguments = function.get("arguments")
    if arguments is None:
        arguments = ""
    return Said("native", text, function["name"], arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False))


def _hermes(text: str, block: str) -> Said:
    try:
        call = json.loads(block)
    except (ValueError, RecursionError):
        named = re.search(r'"name"\s*:\s*"([^"\\]{1,80})"', block)
        return Said("hermes", text, named.group(1) if named else None, block if named else None)
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return Said("hermes", text)
    arguments = call.get("arguments", call.get("parameters", {}))
    return Said("hermes", text, call["name"], arguments if isinstance(arguments, str) else _exact(block, arguments))


def _exact(block: str, arguments: Any) -> str:
    """The arguments' own characters out of a call, for text is kept exactly."""
    found = re.search(r'"(?:arguments|parameters)"\s*:\s*', block)
    if found:
        try:
            value, end = json.JSONDecoder().raw_decode(block, found.end())
        except (ValueError, RecursionError):
            value, end = None, 0
        if value == arguments:
            return block[found.end() : end]
    return json.dumps(arguments, ensure_ascii=False)


def _properties(name: str, tools: Sequence[dict[str, Any]]) -> dict[str, Any]:
    for tool in tools:
        function = tool.get("function", {})
        if function.get("name") == name:
            return dict(function.get("parameters", {}).get("properties", {}))
    return {}


def _typed(parameters: Sequence[tuple[str, str]], properties: dict[str, Any]) -> str:
    values: dict[str, Any] = {}
    for name, text in parameters:
        kind = properties.get(name.strip(), {}).get("type", "string")
        value: Any = text
        if kind == "integer" and re.fullmatch(r"\s*-?\d{1,18}\s*", text):
            value = int(text)
        elif kind == "boolean":
            value = _WRITTEN.get(text.strip().lower(), text)
        values[name.strip()] = value
    return json.dumps(values, ensure_ascii=False)
