"""SFT for ms-swift: its agent form, in which a call is a message of its own with its JSON as text, so that nothing is merged or filled."""

from __future__ import annotations

from typing import Any

import orjson

from materialize.export.conversation import Conversation
from materialize.export.json_lines import LinesConsumer
from materialize.export.texts import BadText

_LOADING = """```sh
swift sft --model Qwen/Qwen3-8B --dataset path/to/this/folder/train.jsonl --agent_template hermes --enable_thinking false
```

`--agent_template` writes the same calls in the form of another model family (`qwen3_5`, `qwen3_coder`, ...). Only the last
message is an answer, and it carries `loss: true`.
"""


def _line(item: Conversation) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": role, "content": content} for role, content in item.prompt]
    if item.calls and item.content:
        raise BadText("text_beside_call", "the form takes either tool calls or text")
    for call in item.calls:
        text = f'{{"name": {orjson.dumps(call.name).decode()}, "arguments": {call.arguments}}}'
        messages.append({"role": "tool_call", "content": text, "loss": True})
    if not item.calls:
        messages.append({"role": "assistant", "content": item.content, "loss": True})
    return {"messages": messages, "tools": f"[{','.join(item.tools)}]"} if item.tools else {"messages": messages}


def swift() -> LinesConsumer:
    """``export sft --to swift``."""
    return LinesConsumer("swift", _line, _LOADING)
