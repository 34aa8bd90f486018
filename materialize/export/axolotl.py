"""SFT for Axolotl: OpenAI messages with arguments and tool schemas as JSON text, and the configuration that reads them.

As text because Axolotl decodes both and Arrow would otherwise fill the keys of other calls with nulls.
"""

from __future__ import annotations

from typing import Any

import orjson
import yaml

from materialize.export.conversation import Conversation
from materialize.export.json_lines import LinesConsumer
from materialize.export.openai_jsonl import said
from materialize.export.tables import TABLES
from materialize.export.texts import BadText

_LOADING = """`axolotl.yaml` in this folder holds the `datasets` part of a configuration; set its `path` to where the folder lies and add
your model. Only assistant turns are trained, and there is one in each row. Axolotl removes arguments that are null; rows
with one are bad rows here, and tools of this project take none.
"""


def _line(item: Conversation) -> dict[str, Any]:
    if any(_has_null(orjson.loads(call.arguments)) for call in item.calls):
        raise BadText("null_argument", "Axolotl takes arguments that are null away")
    messages = [{"role": role, "content": content} for role, content in item.prompt]
    return {"messages": [*messages, said(item)], "tools": f"[{','.join(item.tools)}]" if item.tools else "[]"}


def _has_null(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_null(v) for v in value.values())
    return value is None or (isinstance(value, list) and any(_has_null(v) for v in value))


def _config(files: dict[str, list[str]]) -> dict[str, bytes]:
    def entry(name: str) -> dict[str, Any]:
        return {
            "path": name,
            "ds_type": "json",
            "type": "chat_template",
            "field_messages": "messages",
            "field_tools": "tools",
            "roles_to_train": ["assistant"],
            "train_on_eos": "turn",
        }

    config: dict[str, Any] = {"chat_template": "tokenizer_default", "chat_template_kwargs": {"enable_thinking": False}}
    keys = {"train": "datasets", "validation": "test_datasets"}
    config |= {keys[split]: [entry(n) for n in names] for split, names in files.items()}
    return {"axolotl.yaml": yaml.safe_dump(config, sort_keys=False).encode()}


def axolotl(kind: str) -> LinesConsumer:
    """``export KIND --to axolotl``."""
    return LinesConsumer("axolotl", TABLES[kind], _line, _LOADING, _config)
