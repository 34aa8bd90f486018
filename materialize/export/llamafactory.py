"""LLaMA-Factory: ShareGPT lines and the ``dataset_info.json`` that names them, for supervised, preference and KTO training.

Its ``sharegpt`` form, not its ``openai`` form, which encodes arguments twice or fills them with nulls. A call's value is its JSON with the
arguments' exact text. Text beside a call cannot be said in this form, and such a row is bad rather than cut.
"""

from __future__ import annotations

from typing import Any

import orjson

from materialize.export.compared import Compared
from materialize.export.conversation import Answer, Conversation
from materialize.export.json_lines import Line, LinesConsumer
from materialize.export.tables import TABLES
from materialize.export.texts import BadText

_LOADING = """Point `dataset_dir` at this folder and name the dataset `workprint` (or `workprint_validation`):

```yaml
stage: {stage}
dataset_dir: path/to/this/folder
dataset: workprint
template: qwen3_nothink
cutoff_len: 32768
```

The completions hold no reasoning, hence a template without thinking. LLaMA-Factory trains the last turn only when told so; here the only
answer is the last turn. Rows longer than `cutoff_len` are cut by LLaMA-Factory: look at `prompt_tokens` in the origins before choosing it.
"""
_STAGES = {"sft": "sft", "rft": "sft", "pref": "dpo", "kto": "kto"}


def _conversation(item: Conversation) -> dict[str, Any]:
    """The prompt in this form."""
    system = [content for role, content in item.prompt if role == "system"]
    turns = [content for role, content in item.prompt if role != "system"]
    if len(system) > 1 or len(turns) != 1:
        raise BadText("prompt_shape", "the form takes one system and one user message")
    return {
        "conversations": [{"from": "human", "value": turns[0]}],
        "system": system[0] if system else "",
        "tools": f"[{','.join(_function(t) for t in item.tools)}]" if item.tools else "",
    }


def _answer(item: Answer | Conversation) -> dict[str, str]:
    if len(item.calls) > 1 or (item.calls and item.content):
        raise BadText("text_beside_call", "the form takes either one tool call or text")
    if not item.calls:
        return {"from": "gpt", "value": item.content}
    (call,) = item.calls
    return {"from": "function_call", "value": f'{{"name": {orjson.dumps(call.name).decode()}, "arguments": {call.arguments}}}'}


def _line(item: Conversation) -> dict[str, Any]:
    line = _conversation(item)
    line["conversations"].append(_answer(item))
    return line


def _pair(row: Compared) -> dict[str, Any]:
    if row.rejected is None:
        raise BadText("no_rejected", "a pair needs a rejected output")
    return _conversation(row.item) | {"chosen": _answer(row.item), "rejected": _answer(row.rejected)}


def _labelled(row: Compared) -> dict[str, Any]:
    return _line(row.item) | {"label": row.label}


_LINES: dict[str, Line] = {"sft": _line, "rft": _line, "pref": _pair, "kto": _labelled}


def _function(tool: str) -> str:
    return orjson.dumps(orjson.loads(tool)["function"]).decode()


def llamafactory(kind: str) -> LinesConsumer:
    """``export KIND --to llamafactory``."""

    def info(files: dict[str, list[str]]) -> dict[str, bytes]:
        """One entry a shard: LLaMA-Factory takes one file name each; several are joined with commas in ``dataset``."""
        columns = {"messages": "conversations", "system": "system", "tools": "tools"}
        if kind == "pref":
            columns |= {"chosen": "chosen", "rejected": "rejected"}
        if kind == "kto":
            columns |= {"kto_tag": "label"}
        entries: dict[str, Any] = {}
        for split, names in files.items():
            for place, name in enumerate(names):
                key = "workprint" if split == "train" else f"workprint_{split}"
                entries[key if len(names) == 1 else f"{key}_{place:05d}"] = {
                    "file_name": name,
                    "formatting": "sharegpt",
                    **({"ranking": True} if kind == "pref" else {}),
                    "columns": columns,
                }
        return {"dataset_info.json": orjson.dumps(entries, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)}

    return LinesConsumer("llamafactory", TABLES[kind], _LINES[kind], _LOADING.replace("{stage}", _STAGES[kind]), info)
