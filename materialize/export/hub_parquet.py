"""Prompt-completion rows as Parquet that ``datasets`` reads with its own types: tool calls and tool schemas are ``Json()``.

The JSON elements are written as exact text, never as Arrow structs: structs would give every call the keys of all other calls,
filled with nulls, and these would be trained. Needs ``datasets`` 4.7 or later to be read as objects; pandas, polars and DuckDB see text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from materialize.export.conversation import Conversation
from materialize.tokens import THINKING_OFF

_TEXT = pa.string()
_INT = pa.int64()
_BOOL = pa.bool_()
_JSON = pa.json_()
_MESSAGE = pa.struct([("role", _TEXT), ("content", _TEXT)])
_ANSWER = pa.struct([("role", _TEXT), ("content", _TEXT), ("tool_calls", pa.list_(_JSON))])
_KWARGS = pa.struct([("enable_thinking", _BOOL)])


@dataclass(frozen=True, slots=True)
class RowColumn:
    """A column beside the conversation: name, type, meaning, and the lake column it is taken from."""

    name: str
    type: pa.DataType
    doc: str
    lake: str

    def of(self, row: dict[str, Any]) -> Any:
        """Its value in a lake row."""
        return row[self.lake]


def _column(name: str, type: pa.DataType, doc: str, lake: str = "") -> RowColumn:
    return RowColumn(name, type, doc, lake or name)


ROW_COLUMNS: tuple[RowColumn, ...] = (
    _column("example_id", _TEXT, "id of the example, stable over exports"),
    _column("source_project", _TEXT, "source video (project_id in the lake); the unit of the split", "project_id"),
    _column("trajectory_id", _TEXT, "run of the production toolchain"),
    _column("call_index", _INT, "position of the output in its run"),
    _column("role", _TEXT, "orchestrator, generator or critic"),
    _column("kind", _TEXT, "what the example teaches"),
    _column("provenance", _TEXT, "who authored the completion"),
    _column("license", _TEXT, "licence of the source video", "licence"),
    _column("attribution", _TEXT, "who must be named; null if nobody"),
    _column("verified", _BOOL, "accepted by the runtime in a run that delivered"),
    _column("snapshot_id", _TEXT, "restorable state the output was authored in"),
    _column("context_sha256", _TEXT, "digest of exactly what the policy saw"),
    _column("config_digest", _TEXT, "configuration of the run"),
    _column("prompt_tokens", _INT, "tokens of the rendered prompt (Qwen3); null if not counted"),
    _column("completion_tokens", _INT, "tokens of the completion; null if not counted"),
    _column("completion_json", _TEXT, "the completion with the arguments as exact text, for replay"),
)

COLUMN_DOCS: dict[str, str] = {
    "prompt": "system and user message, as the policy saw them",
    "completion": "one assistant message: text, or a tool call with its arguments as an object; the loss lies here and nowhere else",
    "tools": "tool schemas the policy was given; null for generator and critic",
    "chat_template_kwargs": "template variables: thinking is off, because completions hold no reasoning",
    **{c.name: c.doc for c in ROW_COLUMNS},
    "escaped": "the prompt held control tokens; each got a zero-width space after its first character",
}

_VALUE = {_TEXT: "string", _INT: "int64", _BOOL: "bool"}


def _value(dtype: str) -> dict[str, str]:
    return {"dtype": dtype, "_type": "Value"}


def _list_of(feature: Any) -> dict[str, Any]:
    return {"feature": feature, "_type": "List"}


FEATURES: dict[str, Any] = {
    "prompt": _list_of({"role": _value("string"), "content": _value("string")}),
    "completion": _list_of({"role": _value("string"), "content": _value("string"), "tool_calls": _list_of({"_type": "Json"})}),
    "tools": _list_of({"_type": "Json"}),
    "chat_template_kwargs": {"enable_thinking": _value("bool")},
    **{c.name: _value(_VALUE[c.type]) for c in ROW_COLUMNS},
    "escaped": _value("bool"),
}
"""Features in the form in which ``datasets`` keeps them in a Parquet file's metadata."""

SCHEMA = pa.schema(
    [
        ("prompt", pa.list_(_MESSAGE)),
        ("completion", pa.list_(_ANSWER)),
        ("tools", pa.list_(_JSON)),
        ("chat_template_kwargs", _KWARGS),
        *((c.name, c.type) for c in ROW_COLUMNS),
        ("escaped", _BOOL),
    ],
    metadata={b"huggingface": orjson.dumps({"info": {"features": FEATURES}})},
)
"""Arrow schema of a shard."""

_SMALL = ["source_project", "trajectory_id", "role", "kind", "provenance", "license", "attribution", "config_digest", "tools.list.element"]
"""Columns of few distinct values: dictionary-encoded."""


def record_batch(items: Sequence[Conversation]) -> pa.RecordBatch:
    """Conversations as one Arrow batch of :data:`SCHEMA`."""
    thinking = pa.array([THINKING_OFF["enable_thinking"]] * len(items), _BOOL)
    columns = [
        messages([i.prompt for i in items]),
        answers(items),
        tool_lists([i.tools for i in items]),
        pa.StructArray.from_arrays([thinking], fields=list(_KWARGS)),
        *(pa.array([c.of(i.row) for i in items], c.type) for c in ROW_COLUMNS),
        pa.array([i.escaped for i in items], _BOOL),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def messages(prompts: Sequence[Sequence[tuple[str, str]]]) -> pa.ListArray:
    """Prompts as lists of messages."""
    roles: list[str] = []
    contents: list[str] = []
    ends = [0]
    for prompt in prompts:
        for role, content in prompt:
            roles.append(role)
            contents.append(content)
        ends.append(len(roles))
    said = pa.StructArray.from_arrays([pa.array(roles, _TEXT), pa.array(contents, _TEXT)], fields=list(_MESSAGE))
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), said, type=SCHEMA.field("prompt").type)


def tool_lists(tools: Sequence[Sequence[str]]) -> pa.ListArray:
    """Tool schemas of rows, each as exact text; null for none."""
    texts: list[str] = []
    ends = [0]
    for row in tools:
        texts.extend(row)
        ends.append(len(texts))
    return _json_lists(texts, ends)


def answers(items: Sequence[Conversation]) -> pa.ListArray:
    """The assistant messages of conversations, each a list of one."""
    calls: list[str] = []
    ends = [0]
    for item in items:
        calls.extend(c.as_json() for c in item.calls)
        ends.append(len(calls))
    said = pa.StructArray.from_arrays(
        [pa.array(["assistant"] * len(items), _TEXT), pa.array([i.content for i in items], _TEXT), _json_lists(calls, ends)],
        fields=list(_ANSWER),
    )
    return pa.ListArray.from_arrays(pa.array(range(len(items) + 1), pa.int32()), said, type=SCHEMA.field("completion").type)


def _json_lists(texts: list[str], ends: list[int]) -> pa.ListArray:
    """Lists of JSON texts; an empty list becomes null, so that a template sees no tool block and no call."""
    values = pa.ExtensionArray.from_storage(_JSON, pa.array(texts, _TEXT))
    empty = [ends[i] == ends[i + 1] for i in range(len(ends) - 1)]
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), values, type=pa.list_(_JSON), mask=pa.array(empty, _BOOL))


def open_writer(path: Any) -> pq.ParquetWriter:
    """A writer for one shard. Equal batches give equal bytes."""
    return pq.ParquetWriter(
        path,
        SCHEMA,
        compression="zstd",
        compression_level=3,
        use_dictionary=_SMALL,
        write_page_index=True,
        write_page_checksum=True,
    )


def features_yaml() -> list[dict[str, Any]]:
    """The features in the form of a dataset card's ``dataset_info``."""
    return [_yaml_of(name, feature) for name, feature in FEATURES.items()]


def _yaml_of(name: str, feature: Any) -> dict[str, Any]:
    if "_type" not in feature:
        return {"name": name, "struct": [_yaml_of(k, v) for k, v in feature.items()]}
    if feature["_type"] == "Value":
        return {"name": name, "dtype": feature["dtype"]}
    inner = feature["feature"]
    if inner.get("_type") == "Json":
        return {"name": name, "list": "json"}
    return {"name": name, "list": [_yaml_of(k, v) for k, v in inner.items()]}
