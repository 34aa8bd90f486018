"""OpenAI fine-tuning lines, one example a line: supervised (``messages, tools, parallel_tool_calls``) and preference (``input,
preferred_output, non_preferred_output``).

The only assistant message of a supervised line is the completion, so training on assistant messages trains the completion.
"""

from __future__ import annotations

from typing import Any

import orjson

from materialize.export.compared import Compared
from materialize.export.conversation import Answer, Conversation
from materialize.export.json_lines import Line, LinesConsumer
from materialize.export.tables import TABLES
from materialize.export.texts import BadText

_JOB = """
```python
from openai import OpenAI

client = OpenAI()
with open("path/to/this/folder/train.jsonl", "rb") as lines:
    file = client.files.create(file=lines, purpose="fine-tune")
job = client.fine_tuning.jobs.create(training_file=file.id, model="gpt-4.1-mini-2025-04-14", method={"type": "METHOD"})
```

A set of several shards (`--rows-per-shard`) is uploaded file by file, or written again as one.
"""
_LOADING = {
    "sft": """Each line is one training example of the chat format for fine-tuning: `messages`, `tools`, `parallel_tool_calls`. The only
assistant message is the completion.
"""
    + _JOB.replace("METHOD", "supervised"),
    "pref": """Each line is one pair of the preference format for fine-tuning: `input` (messages and tools), `preferred_output` and
`non_preferred_output` (one assistant message each).
"""
    + _JOB.replace("METHOD", "dpo"),
}


def said(item: Answer | Conversation) -> dict[str, Any]:
    """An assistant message with arguments as text."""
    answer: dict[str, Any] = {"role": "assistant", "content": item.content}
    if item.calls:
        answer["tool_calls"] = [
            {"id": c.call_id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in item.calls
        ]
    return answer


def _input(item: Conversation) -> dict[str, Any]:
    out: dict[str, Any] = {"messages": [{"role": role, "content": content} for role, content in item.prompt]}
    if item.tools:
        out["tools"] = [orjson.Fragment(t) for t in item.tools]
        out["parallel_tool_calls"] = False
    return out


def _line(item: Conversation) -> dict[str, Any]:
    out = _input(item)
    out["messages"].append(said(item))
    return out


def _pair(row: Compared) -> dict[str, Any]:
    if row.rejected is None:
        raise BadText("no_rejected", "a pair needs a rejected output")
    return {"input": _input(row.item), "preferred_output": [said(row.item)], "non_preferred_output": [said(row.rejected)]}


_LINES: dict[str, Line] = {"sft": _line, "rft": _line, "pref": _pair}


def openai(kind: str) -> LinesConsumer:
    """``export KIND --to openai-jsonl``."""
    return LinesConsumer("openai-jsonl", TABLES[kind], _LINES[kind], _LOADING["pref" if kind == "pref" else "sft"])
