"""Rows as Parquet that ``datasets`` reads with its own types: a table is a list of columns, each of which knows how to fill itself.

Tool calls and tool schemas are ``Json()``, written as exact text, never as Arrow structs: structs would give every call the keys of all
other calls, filled with nulls, and these would be trained. Needs ``datasets`` 4.7 or later to be read as objects; pandas, polars and
DuckDB see text. Which tables there are is told in :mod:`materialize.export.tables`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

TEXT = pa.string()
INT = pa.int64()
BOOL = pa.bool_()
FLOAT = pa.float64()
JSON = pa.json_()
MESSAGE = pa.struct([("role", TEXT), ("content", TEXT)])
ANSWER = pa.struct([("role", TEXT), ("content", TEXT), ("tool_calls", pa.list_(JSON))])

_VALUE = {TEXT: "string", INT: "int64", BOOL: "bool", FLOAT: "float64"}


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column: name, Arrow type, feature of ``datasets``, meaning, and how it is filled from items."""

    name: str
    type: pa.DataType
    feature: Any
    doc: str
    fill: Callable[[Sequence[Any]], pa.Array]
    few_values: bool = False
    """Dictionary-encoded."""
    of: Callable[[Any], Any] | None = None
    """An item's value, of a column of plain values."""


def value(dtype: str) -> dict[str, str]:
    """Feature of a plain value."""
    return {"dtype": dtype, "_type": "Value"}


def list_of(feature: Any) -> dict[str, Any]:
    """Feature of a list."""
    return {"feature": feature, "_type": "List"}


MESSAGES_FEATURE = list_of({"role": value("string"), "content": value("string")})
ANSWER_FEATURE = list_of({"role": value("string"), "content": value("string"), "tool_calls": list_of({"_type": "Json"})})
TOOLS_FEATURE = list_of({"_type": "Json"})


def plain(name: str, type: pa.DataType, doc: str, of: Callable[[Any], Any], *, few_values: bool = False) -> TableColumn:
    """A column of plain values; ``of`` gives an item's."""
    return TableColumn(name, type, value(_VALUE[type]), doc, lambda items: pa.array([of(i) for i in items], type), few_values, of)


def integers(name: str, doc: str, of: Callable[[Any], Any]) -> TableColumn:
    """A column of lists of integers."""
    kind = pa.list_(INT)
    return TableColumn(name, kind, list_of(value("int64")), doc, lambda items: pa.array([of(i) for i in items], kind))


def struct(name: str, fields: dict[str, pa.DataType], doc: str, of: Callable[[Any], dict[str, Any]]) -> TableColumn:
    """A column of objects that all have the same fields."""
    kind = pa.struct(list(fields.items()))
    feature = {n: value(_VALUE[t]) for n, t in fields.items()}
    return TableColumn(name, kind, feature, doc, lambda items: pa.array([of(i) for i in items], kind))


def messages_column(name: str, doc: str, of: Callable[[Any], Sequence[tuple[str, str]]]) -> TableColumn:
    """A column of messages; ``of`` gives an item's as (role, content)."""
    return TableColumn(name, pa.list_(MESSAGE), MESSAGES_FEATURE, doc, lambda items: _messages([of(i) for i in items]))


def answer_column(name: str, doc: str, of: Callable[[Any], Any]) -> TableColumn:
    """A column of lists of one assistant message; ``of`` gives an object with ``content`` and ``calls``."""
    return TableColumn(name, pa.list_(ANSWER), ANSWER_FEATURE, doc, lambda items: _answers([of(i) for i in items]))


def tools_column(name: str, doc: str, of: Callable[[Any], Sequence[str]]) -> TableColumn:
    """A column of tool schemas; ``of`` gives the exact text of each."""
    return TableColumn(name, pa.list_(JSON), TOOLS_FEATURE, doc, lambda items: _tools([of(i) for i in items]), True)


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a kind, as columns."""

    name: str
    """Configuration on the Hub."""
    columns: tuple[TableColumn, ...]

    @property
    def docs(self) -> dict[str, str]:
        """Meaning of each column."""
        return {c.name: c.doc for c in self.columns}

    def origin(self, item: Any) -> dict[str, Any]:
        """An item's plain values but for its texts: where a line of another form comes from."""
        return {c.name: c.of(item) for c in self.columns if c.of is not None and not c.name.endswith("_json")}

    @property
    def features(self) -> dict[str, Any]:
        """In the form in which ``datasets`` keeps them in a Parquet file's metadata."""
        return {c.name: c.feature for c in self.columns}

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of a shard."""
        metadata = {b"huggingface": orjson.dumps({"info": {"features": self.features}})}
        return pa.schema([(c.name, c.type) for c in self.columns], metadata=metadata)

    def features_yaml(self) -> list[dict[str, Any]]:
        """The features in the form of a dataset card's ``dataset_info``."""
        return [_yaml_of(c.name, c.feature) for c in self.columns]

    def batch(self, items: Sequence[Any], schema: pa.Schema) -> pa.RecordBatch:
        """Items as one Arrow batch of :attr:`schema`."""
        return pa.RecordBatch.from_arrays([c.fill(items) for c in self.columns], schema=schema)

    def open_writer(self, path: Any, schema: pa.Schema) -> pq.ParquetWriter:
        """A writer for one shard. Equal batches give equal bytes."""
        few = [f"{c.name}.list.element" if c.feature == TOOLS_FEATURE else c.name for c in self.columns if c.few_values]
        return pq.ParquetWriter(
            path,
            schema,
            compression="zstd",
            compression_level=3,
            use_dictionary=few,
            write_page_index=True,
            write_page_checksum=True,
        )


def _messages(prompts: Sequence[Sequence[tuple[str, str]]]) -> pa.ListArray:
    roles: list[str] = []
    contents: list[str] = []
    ends = [0]
    for prompt in prompts:
        for role, content in prompt:
            roles.append(role)
            contents.append(content)
        ends.append(len(roles))
    said = pa.StructArray.from_arrays([pa.array(roles, TEXT), pa.array(contents, TEXT)], fields=list(MESSAGE))
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), said, type=pa.list_(MESSAGE))


def _tools(tools: Sequence[Sequence[str]]) -> pa.ListArray:
    texts: list[str] = []
    ends = [0]
    for row in tools:
        texts.extend(row)
        ends.append(len(texts))
    return _json_lists(texts, ends)


def _answers(answers: Sequence[Any]) -> pa.ListArray:
    calls: list[str] = []
    ends = [0]
    for answer in answers:
        calls.extend(c.as_json() for c in answer.calls)
        ends.append(len(calls))
    said = pa.StructArray.from_arrays(
        [pa.array(["assistant"] * len(answers), TEXT), pa.array([a.content for a in answers], TEXT), _json_lists(calls, ends)],
        fields=list(ANSWER),
    )
    return pa.ListArray.from_arrays(pa.array(range(len(answers) + 1), pa.int32()), said, type=pa.list_(ANSWER))


def _json_lists(texts: list[str], ends: list[int]) -> pa.ListArray:
    """Lists of JSON texts; an empty list becomes null, so that a template sees no tool block and no call."""
    values = pa.ExtensionArray.from_storage(JSON, pa.array(texts, TEXT))
    empty = [ends[i] == ends[i + 1] for i in range(len(ends) - 1)]
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), values, type=pa.list_(JSON), mask=pa.array(empty, BOOL))


def _yaml_of(name: str, feature: Any) -> dict[str, Any]:
    if "_type" not in feature:
        return {"name": name, "struct": [_yaml_of(k, v) for k, v in feature.items()]}
    if feature["_type"] == "Value":
        return {"name": name, "dtype": feature["dtype"]}
    inner = feature["feature"]
    if inner.get("_type") == "Json":
        return {"name": name, "list": "json"}
    if inner.get("_type") == "Value":
        return {"name": name, "list": inner["dtype"]}
    return {"name": name, "list": [_yaml_of(k, v) for k, v in inner.items()]}
