"""Tool schemas as text for endpoints that take none: appended to the system message, in the two forms that Qwen-like models are trained
on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

_HEAD = "\n\nTools you may call, one JSON object a line:\n<tools>\n"
_HERMES = (
    "\n</tools>\n\nAnswer with exactly one call in this form and nothing after it:\n"
    '<tool_call>\n{"name": "tool name", "arguments": {"argument": "value"}}\n</tool_call>'
)
_XML = (
    "\n</tools>\n\nAnswer with exactly one call in this form and nothing after it:\n"
    "<tool_call>\n<function=tool name>\n<parameter=argument>\nvalue\n</parameter>\n</function>\n</tool_call>"
)


def with_tools(messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]], form: str) -> list[dict[str, Any]]:
    """Messages whose first one also lists the tools and says how to call them.

    Args:
        form: ``hermes`` or ``qwen_xml``.
    """
    lines = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
    first, *rest = messages
    return [{**first, "content": first["content"] + _HEAD + lines + (_HERMES if form == "hermes" else _XML)}, *rest]
