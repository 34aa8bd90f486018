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
_BLOCK = re.compile(r"<tool_call>\s*(.*?)\s*(?:</tool_call>|\Z)", re.DOTALL)
_FUNCTION = re.compile(r"\A<function=([^>\n]*)>\s*(.*?)\s*(?:</function>\s*)?\Z", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^>\n]*)>\n?(.*?)\n?</parameter>", re.DOTALL)
_BARE = re.compile(r"\A<function=", re.DOTALL)
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
    blocks = _BLOCK.findall(text)
    if not blocks and _BARE.match(text.lstrip()):
        blocks = [text.strip()]
    if len(blocks) != 1:
        return Said("text", text)
    block = blocks[0]
    xml = _FUNCTION.match(block)
    if xml:
        name = xml.group(1).strip()
        return Said("qwen_xml", text, name, _typed(_PARAMETER.findall(xml.group(2)), _properties(name, tools)))
    return _hermes(text, block)


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
    except ValueError:
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
        except ValueError:
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
