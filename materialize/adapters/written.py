"""Tool calls as models write them in plain text, and tool schemas as templates write them into a prompt.

For frameworks that pass text and know no tools (SkyRL). Two forms are read, of the templates that this project exports for: JSON in
``<tool_call>`` (Qwen3 and other Hermes templates) and ``<function=...>`` with ``<parameter=...>`` (Qwen3-Coder, Qwen3.5 and later).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from schemas.canonical import canonical_text
from schemas.errors import ConfigInvalid

_CALL = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)
_FUNCTION = re.compile(r"<function=([^>\s]+)>(.*?)</function>", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^>\s]+)>(.*?)</parameter>", re.DOTALL)
_STOPS = ("<|im_end|>", "<|endoftext|>")


def answer_of(text: str) -> str:
    """What a model said, without its thinking and without the tokens that end a turn."""
    said = text.rpartition("</think>")[2]
    for stop in _STOPS:
        said = said.partition(stop)[0]
    return said.strip()


def first_call(text: str, tools: Sequence[Mapping[str, Any]]) -> tuple[str, str] | None:
    """Name and argument text of the first call in a model's answer; None when it holds none that can be read.

    Args:
        tools: OpenAI function schemas, by which values of the second form get their types.
    """
    for block in _CALL.findall(answer_of(text)):
        found = _json_call(block) or _tagged_call(block, tools)
        if found is not None:
            return found
    return None


def with_tools(tokenizer: Any, messages: Sequence[Mapping[str, str]], tools: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Messages whose system text holds what a tokenizer's template would write for these tools, so that rendering them without tools gives
    the very text of rendering them with tools.

    Raises:
        ConfigInvalid: the template writes tools elsewhere than into the system text.
    """
    given = [dict(m) for m in messages]
    if not tools:
        return given
    if not given or given[0]["role"] != "system":
        raise ConfigInvalid("no_system", "the prompt has no system message to show tools in")
    plain, told = (tokenizer.apply_chat_template(given, tools=t, tokenize=False, add_generation_prompt=True) for t in (None, list(tools)))
    before, system, after = plain.partition(given[0]["content"])
    if system and told.startswith(before) and told.endswith(after):
        shown = [{**given[0], "content": told[len(before) : len(told) - len(after)]}, *given[1:]]
        if tokenizer.apply_chat_template(shown, tokenize=False, add_generation_prompt=True) == told:
            return shown
    raise ConfigInvalid("template", "the template does not write tools into the system text", "take a tokenizer of a Qwen model")


def _json_call(block: str) -> tuple[str, str] | None:
    try:
        call = orjson.loads(block)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return None
    arguments = call.get("arguments", {})
    return call["name"], arguments if isinstance(arguments, str) else canonical_text(arguments)


def _tagged_call(block: str, tools: Sequence[Mapping[str, Any]]) -> tuple[str, str] | None:
    found = _FUNCTION.search(block)
    if found is None:
        return None
    name = found[1]
    schemas = {t["function"]["name"]: t["function"].get("parameters", {}).get("properties", {}) for t in tools}
    types = {key: spec.get("type") for key, spec in schemas.get(name, {}).items()}
    values = {key: _typed(value, types.get(key)) for key, value in _PARAMETER.findall(found[2])}
    return name, canonical_text(values)


def _typed(text: str, kind: str | None) -> Any:
    """A written value by the type of its schema; the text itself where it does not fit, which the runtime then refuses."""
    value = text.removeprefix("\n").removesuffix("\n")
    if kind == "boolean" and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    if kind == "integer" and re.fullmatch(r"\s*[+-]?\d{1,18}\s*", value):
        return int(value)
    return value
