"""ms-swift: its agent form, in which a call is a message of its own with its JSON as text, so that nothing is merged or filled.

Supervised, preference (``rejected_messages``), KTO (``label``) and distillation rows (prompts, with ``dataset`` as the teacher's tag).
"""

from __future__ import annotations

from typing import Any

import orjson

from materialize.export.compared import Compared
from materialize.export.conversation import Answer, Conversation
from materialize.export.distilled import Prompted
from materialize.export.json_lines import Line, LinesConsumer
from materialize.export.tables import TABLES
from materialize.export.texts import BadText

_SCALE = "--loss_scale default+ignore_empty_think"
_COMMANDS = {
    "sft": f"swift sft --model Qwen/Qwen3-8B {_SCALE}",
    "rft": f"swift sft --model Qwen/Qwen3-8B {_SCALE}",
    "pref": f"swift rlhf --rlhf_type dpo --model Qwen/Qwen3-8B {_SCALE}",
    "kto": f"swift rlhf --rlhf_type kto --model Qwen/Qwen3-8B {_SCALE}",
    "opd": "swift rlhf --rlhf_type gkd --lmbda 1 --model Qwen/Qwen3-0.6B --teacher_model Qwen/Qwen3-8B",
}
_LOADING = """```sh
{command} \\
  --dataset path/to/this/folder/{split}.jsonl --agent_template hermes --enable_thinking false
```

`--agent_template` writes the same calls in the form of another model family (`qwen3_5`, `qwen3_coder`, ...).{more}
"""
_EMPTY = " The loss\nscale keeps the empty thinking block, which ms-swift writes before an answer, from being trained."
_MORE = {
    "sft": _EMPTY + " Only the last\nmessage is an answer, and it carries `loss: true`.",
    "rft": _EMPTY + " Only the last\nmessage is an answer, and it carries `loss: true`.",
    "pref": _EMPTY + " The\nlast message of `messages` is the chosen answer, that of `rejected_messages` the rejected one.",
    "kto": _EMPTY + " The\nlast message is the answer that `label` judges.",
    "opd": " The\nstudent answers `messages` itself; `dataset` says whose turn was recorded,"
    " and teachers can be chosen by it\n(`--teacher_tag_key`).",
}


def _prompt(item: Conversation | Prompted) -> list[dict[str, Any]]:
    return [{"role": role, "content": content} for role, content in item.prompt]


def _said(item: Answer | Conversation) -> list[dict[str, Any]]:
    if item.calls and item.content:
        raise BadText("text_beside_call", "the form takes either tool calls or text")
    if not item.calls:
        return [{"role": "assistant", "content": item.content, "loss": True}]
    return [
        {
            "role": "tool_call",
            "content": f'{{"name": {orjson.dumps(call.name).decode()}, "arguments": {call.arguments}}}',
            "loss": True,
        }
        for call in item.calls
    ]


def _tools(item: Conversation | Prompted) -> dict[str, Any]:
    return {"tools": f"[{','.join(item.tools)}]"} if item.tools else {}


def _line(item: Conversation) -> dict[str, Any]:
    return {"messages": [*_prompt(item), *_said(item)], **_tools(item)}


def _pair(row: Compared) -> dict[str, Any]:
    if row.rejected is None:
        raise BadText("no_rejected", "a pair needs a rejected output")
    prompt = _prompt(row.item)
    return {"messages": [*prompt, *_said(row.item)], "rejected_messages": [*prompt, *_said(row.rejected)], **_tools(row.item)}


def _labelled(row: Compared) -> dict[str, Any]:
    return _line(row.item) | {"label": row.label}


def _turn(item: Prompted) -> dict[str, Any]:
    return {"messages": _prompt(item), **_tools(item), "dataset": item.row["turn_owner"]}


_LINES: dict[str, Line] = {"sft": _line, "rft": _line, "pref": _pair, "kto": _labelled, "opd": _turn}


def swift(kind: str) -> LinesConsumer:
    """``export KIND --to swift``."""
    loading = _LOADING.replace("{command}", _COMMANDS[kind]).replace("{split}", "train").replace("{more}", _MORE[kind])
    return LinesConsumer("swift", TABLES[kind], _LINES[kind], loading)
