"""SFT as OpenAI fine-tuning lines: ``{"messages": […], "tools": […], "parallel_tool_calls": false}``, one example a line.

The only assistant message of a line is the completion, so training on assistant messages trains the completion.
"""

from __future__ import annotations

from typing import Any

import orjson

from materialize.export.conversation import Conversation
from materialize.export.json_lines import LinesConsumer

_LOADING = """Each line is one training example of the chat format for fine-tuning: `messages`, `tools`, `parallel_tool_calls`. The only
assistant message is the completion.
"""


def _line(item: Conversation) -> dict[str, Any]:
    answer: dict[str, Any] = {"role": "assistant", "content": item.content}
    if item.calls:
        answer["tool_calls"] = [
            {"id": c.call_id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in item.calls
        ]
    out: dict[str, Any] = {"messages": [{"role": role, "content": content} for role, content in item.prompt] + [answer]}
    if item.tools:
        out["tools"] = [orjson.Fragment(t) for t in item.tools]
        out["parallel_tool_calls"] = False
    return out


def openai() -> LinesConsumer:
    """``export sft --to openai-jsonl``."""
    return LinesConsumer("openai-jsonl", _line, _LOADING)
