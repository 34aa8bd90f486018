"""SFT for LLaMA-Factory: ShareGPT lines and the ``dataset_info.json`` that names them.

Its ``sharegpt`` form, not its ``openai`` form, which encodes arguments twice or fills them with nulls. A call's value is its JSON with the
arguments' exact text. Text beside a call cannot be said in this form, and such a row is bad rather than cut.
"""

from __future__ import annotations

from typing import Any

import orjson

from materialize.export.conversation import Conversation
from materialize.export.json_lines import LinesConsumer
from materialize.export.texts import BadText

_LOADING = """Point `dataset_dir` at this folder and name the dataset `workprint` (or `workprint_validation`):

```yaml
dataset_dir: path/to/this/folder
dataset: workprint
template: qwen3_nothink
cutoff_len: 32768
```

The completions hold no reasoning, hence a template without thinking. LLaMA-Factory trains the last turn only when told so; here the only
answer is the last turn. Rows longer than `cutoff_len` are cut by LLaMA-Factory: look at `prompt_tokens` in the origins before choosing it.
"""


def _line(item: Conversation) -> dict[str, Any]:
    system = [content for role, content in item.prompt if role == "system"]
    turns = [content for role, content in item.prompt if role != "system"]
    if len(system) > 1 or len(turns) != 1:
        raise BadText("prompt_shape", "the form takes one system and one user message")
    if len(item.calls) > 1 or (item.calls and item.content):
        raise BadText("text_beside_call", "the form takes either one tool call or text")
    answer = {"from": "function_call", "value": _call(item)} if item.calls else {"from": "gpt", "value": item.content}
    return {
        "conversations": [{"from": "human", "value": turns[0]}, answer],
        "system": system[0] if system else "",
        "tools": f"[{','.join(_function(t) for t in item.tools)}]" if item.tools else "",
    }


def _call(item: Conversation) -> str:
    (call,) = item.calls
    return f'{{"name": {orjson.dumps(call.name).decode()}, "arguments": {call.arguments}}}'


def _function(tool: str) -> str:
    return orjson.dumps(orjson.loads(tool)["function"]).decode()


def _info(files: dict[str, list[str]]) -> dict[str, bytes]:
    """One entry a shard: LLaMA-Factory takes one file name each; several are joined with commas in ``dataset``."""
    entries: dict[str, Any] = {}
    for split, names in files.items():
        for place, name in enumerate(names):
            key = "workprint" if split == "train" else f"workprint_{split}"
            entries[key if len(names) == 1 else f"{key}_{place:05d}"] = {
                "file_name": name,
                "formatting": "sharegpt",
                "columns": {"messages": "conversations", "system": "system", "tools": "tools"},
            }
    return {"dataset_info.json": orjson.dumps(entries, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)}


def llamafactory() -> LinesConsumer:
    """``export sft --to llamafactory``."""
    return LinesConsumer("llamafactory", _line, _LOADING, _info)
