"""A lake row as a checked conversation: prompt, one assistant message, tools. What every chat-shaped export starts from.

The exact text of tool-call arguments is kept; nothing is merged, filled or re-rendered.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from materialize.export.texts import BadText, check_text, escape_control, read_json, refuse_control
from schemas.canonical import canonical_text
from schemas.contract import shown_schema


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of the completion."""

    call_id: str
    name: str
    arguments: str
    """Exact JSON text of an object."""

    def as_json(self) -> str:
        """OpenAI form with the arguments as an object, exact text inside: ``{"id":…,"type":"function","function":{…}}``."""
        head = f'{{"id":{_quoted(self.call_id)},"type":"function","function":{{"name":{_quoted(self.name)},"arguments":'
        return f"{head}{self.arguments}}}}}"


@dataclass(frozen=True, slots=True)
class Answer:
    """One assistant message."""

    content: str
    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class Conversation:
    """One example, ready to be written."""

    prompt: tuple[tuple[str, str], ...]
    """(role, content), control tokens escaped."""
    content: str
    calls: tuple[ToolCall, ...]
    tools: tuple[str, ...]
    """Exact JSON text of each tool schema; empty for none."""
    escaped: bool
    """The prompt held control tokens."""
    row: dict[str, Any]
    """The lake row it was made from."""

    @property
    def ident(self) -> str:
        """Its example id."""
        return str(self.row["example_id"])


def conversation(row: dict[str, Any]) -> Conversation:
    """Check one row of the examples table and take it apart.

    Raises:
        BadText: a trainer would read the row otherwise than it was recorded.
    """
    prompt, escaped = prompt_of(row["prompt_json"])
    answer = answer_of(row["completion_json"])
    return Conversation(prompt, answer.content, answer.calls, tools_of(row["tools_json"]), escaped, row)


def answer_of(completion_json: str) -> Answer:
    """Check what is trained and take it apart.

    Raises:
        BadText: a trainer would read it otherwise than it was authored.
    """
    content, said = _message(read_json(completion_json, "completion"))
    refuse_control(content, "the completion")
    calls = []
    for name, tool, arguments in said:
        if not isinstance(read_json(arguments, "the arguments"), dict):
            raise BadText("not_an_object", "the arguments are not a JSON object")
        refuse_control(arguments, "the arguments")
        refuse_control(_unescaped(arguments), "the arguments")
        calls.append(ToolCall(name, tool, arguments))
    if not content.strip() and not calls:
        raise BadText("empty_completion", "there is nothing to train on")
    return Answer(content, tuple(calls))


def _message(completion: Any) -> tuple[str, list[tuple[str, str, str]]]:
    """Text of an assistant message, and (id, tool, arguments) of its calls."""
    try:
        content = completion["content"] or ""
        calls = [(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in completion.get("tool_calls") or ()]
    except (KeyError, TypeError, AttributeError):
        raise BadText("not_a_message", "the completion is no assistant message") from None
    if not all(isinstance(text, str) for text in (content, *(text for call in calls for text in call))):
        raise BadText("not_a_message", "the completion holds something else than text")
    return content, calls


def prompt_of(text: str) -> tuple[tuple[tuple[str, str], ...], bool]:
    """(role, content) of a prompt's messages with control tokens made harmless, and whether there were any.

    Raises:
        BadText: a trainer would read it otherwise than it was recorded.
    """
    try:
        messages = orjson.loads(text)
    except orjson.JSONDecodeError:
        messages = read_json(text, "the prompt")
        raise BadText("not_json", "the prompt cannot be read") from None
    out: list[tuple[str, str]] = []
    escaped = False
    for message in messages if isinstance(messages, list) else [messages]:
        role, content = (message.get("role"), message.get("content")) if isinstance(message, dict) else (None, None)
        if not isinstance(role, str) or not isinstance(content, str):
            raise BadText("prompt_shape", "the prompt holds something else than messages of text")
        if "\x00" in content:
            check_text(content, "the prompt")
        safe = escape_control(content)
        escaped = escaped or safe != content
        out.append((role, safe))
    if not out or out[-1][0] != "user":
        raise BadText("prompt_shape", "the prompt does not end with a user message, which chat templates ask for")
    return tuple(out), escaped


@lru_cache(maxsize=64)
def tools_of(text: str) -> tuple[str, ...]:
    """JSON text of each tool schema, in the form in which every policy is shown it (:func:`schemas.contract.shown_schema`).

    Raises:
        BadText: they hold control tokens or are no JSON.
    """
    tools = read_json(text, "the tool schemas")
    refuse_control(text, "the tool schemas")
    try:
        return tuple(orjson.dumps(shown_schema(tool)).decode() for tool in tools)
    except (KeyError, TypeError, AttributeError):
        raise BadText("not_a_tool", "the tool schemas are no list of functions") from None


def _unescaped(arguments: str) -> str:
    return canonical_text(orjson.loads(arguments)) if "\\" in arguments else arguments


def _quoted(text: str) -> str:
    return orjson.dumps(text).decode()
