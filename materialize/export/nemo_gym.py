"""NeMo Gym: RL prompts as requests of the Responses form, with what the environment restores as fields beside them."""

from __future__ import annotations

from typing import Any

import orjson

from materialize.export.distilled import Prompted
from materialize.export.json_lines import LinesConsumer
from materialize.export.tables import TABLES
from materialize.export.verl import restored

_LOADING = """Each line is one task: `responses_create_params` (prompt and tools, in the flat form of the Responses API) and, beside it,
what your resources server's `seed_session` restores: `trajectory_sha256`, `call_index`, `snapshot_id`.

```sh
ng_collect_rollouts +agent_name=YOUR_AGENT +input_jsonl_fpath=path/to/this/folder/train.jsonl +output_jsonl_fpath=rollouts.jsonl
```
"""


def _line(item: Prompted) -> dict[str, Any]:
    params: dict[str, Any] = {"input": [{"role": role, "content": content, "type": "message"} for role, content in item.prompt]}
    if item.tools:
        params |= {"tools": [_flat(t) for t in item.tools], "parallel_tool_calls": False}
    return {"responses_create_params": params, **restored(item.row)}


def _flat(tool: str) -> dict[str, Any]:
    function = orjson.loads(tool)["function"]
    return {
        "type": "function",
        "name": function["name"],
        "description": function.get("description"),
        "parameters": function["parameters"],
        "strict": False,
    }


def nemo_gym() -> LinesConsumer:
    """``export rl --to nemo-gym``."""
    return LinesConsumer("nemo-gym", TABLES["rl"], _line, _LOADING)
