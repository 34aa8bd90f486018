"""What verl's SFT trainer loads in place of its own reader: ``data.custom_cls.path=pkg://materialize.export.verl_dataset``.

verl renders a chat message by message, which trains nulls in tool calls, refuses templates that want the system message first, or trains
nothing at all, depending on the model. Here the whole chat is rendered once by the tokenizer's own template, and the loss lies on what
stands behind the rendered prompt. Reads the Parquet files of ``export {sft,rft} --to {verl,hf,trl}``.

Runs in verl's environment, so it imports nothing else of this project; torch only when rows are asked for.
"""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_COLUMNS = ["prompt", "completion", "tools", "chat_template_kwargs"]


def rendered(row: dict[str, Any], tokenizer: Any, template: dict[str, Any] | None = None) -> tuple[str, str]:
    """A row's prompt with the generation prompt, and what stands behind it, which is trained. Arguments as :func:`encode`.

    Raises:
        ValueError: the template renders the prompt otherwise when an answer follows.
    """
    variables = {**(row.get("chat_template_kwargs") or {}), **(template or {})}
    tools = [_object(t) for t in row["tools"] or ()] or None
    prompt = row["prompt"]
    completion = [_message(m) for m in row["completion"]]
    head = tokenizer.apply_chat_template(prompt, tools=tools, tokenize=False, add_generation_prompt=True, **variables)
    whole = tokenizer.apply_chat_template([*prompt, *completion], tools=tools, tokenize=False, **variables)
    if not whole.startswith(head):
        raise ValueError("the chat template renders the prompt otherwise when an answer follows; use another template")
    return head, whole[len(head) :]


def encode(row: dict[str, Any], tokenizer: Any, template: dict[str, Any] | None = None) -> tuple[list[int], list[int]]:
    """Tokens of a row, and 1 where the loss lies on them.

    Args:
        row: ``prompt``, ``completion``, ``tools`` and ``chat_template_kwargs``, with JSON as text or as objects.
        tokenizer: with a chat template.
        template: further template variables.

    Raises:
        ValueError: the template renders the prompt otherwise when an answer follows, or nothing would be trained.
    """
    head, trained = rendered(row, tokenizer, template)
    first = tokenizer(head, add_special_tokens=False)["input_ids"]
    then = tokenizer(trained, add_special_tokens=False)["input_ids"]
    if not then:
        raise ValueError("nothing of this row would be trained")
    return [*first, *then], [0] * len(first) + [1] * len(then)


def read_rows(files: list[str]) -> list[dict[str, Any]]:
    """Rows of Parquet files, with tool calls and tool schemas as exact JSON text."""
    table = pa.concat_tables([_plain(pq.read_table(f, columns=_COLUMNS)) for f in files])
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


class WorkprintSFTDataset:
    """Rows for ``verl.trainer.sft_trainer``: input ids, position ids and loss mask, padded on the right when ``pad_mode`` asks for it.

    Args:
        parquet_files: a path or several.
        tokenizer: with a chat template.
        config: verl's ``data`` section: ``pad_mode, truncation, max_length, apply_chat_template_kwargs, shuffle, seed``.
        processor: not used; rows hold no pictures.
        max_samples: at most so many rows; -1 for all.
    """

    def __init__(self, parquet_files: Any, tokenizer: Any, config: Any = None, processor: Any = None, max_samples: int = -1) -> None:
        config = config or {}
        self.tokenizer = tokenizer
        self.pad_mode = str(getattr(config.get("pad_mode", "right"), "value", config.get("pad_mode", "right")))
        self.truncation = config.get("truncation", "error")
        self.max_length = int(config.get("max_length", 1024))
        self.template = dict(config.get("apply_chat_template_kwargs", None) or {})
        files = [parquet_files] if isinstance(parquet_files, str) else list(parquet_files)
        self.rows = read_rows(files)
        if 0 < max_samples < len(self.rows):
            chosen = list(range(len(self.rows)))
            if config.get("shuffle", False):
                chosen = random.Random(config.get("seed", 0)).sample(chosen, max_samples)  # noqa: S311 - no secret
            self.rows = [self.rows[i] for i in chosen[:max_samples]]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        import torch  # type: ignore[import-not-found]  # in verl's environment only

        ids, mask = self._cut(*encode(self.rows[index], self.tokenizer, self.template), index)
        padding = self.max_length - len(ids) if self.pad_mode == "right" else 0
        pad = self.tokenizer.pad_token_id or 0
        out = {
            "input_ids": torch.tensor(ids + [pad] * padding, dtype=torch.long),
            "position_ids": torch.tensor([*range(len(ids)), *[0] * padding], dtype=torch.long),
            "loss_mask": torch.tensor(mask + [0] * padding, dtype=torch.long),
        }
        if self.pad_mode == "right":
            out["attention_mask"] = torch.tensor([1] * len(ids) + [0] * padding, dtype=torch.long)
        return out

    def _cut(self, ids: list[int], mask: list[int], index: int) -> tuple[list[int], list[int]]:
        if len(ids) <= self.max_length:
            return ids, mask
        if self.truncation == "error":
            raise ValueError(f"row {index} has {len(ids)} tokens, data.max_length is {self.max_length}")
        part = slice(-self.max_length, None) if self.truncation == "left" else slice(None, self.max_length)
        if not any(mask[part]):
            raise ValueError(f"row {index} has {len(ids)} tokens; cut to {self.max_length} nothing of it would be trained")
        return ids[part], mask[part]


def _plain(table: pa.Table) -> pa.Table:
    """Columns of JSON as columns of text."""
    columns = [pa.chunked_array([_text(chunk) for chunk in column.chunks], type=_text_type(column.type)) for column in table.columns]
    return pa.table(columns, names=table.column_names)


def _text_type(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.BaseExtensionType):
        return kind.storage_type
    if pa.types.is_list(kind):
        return pa.list_(_text_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(f.name, _text_type(f.type)) for f in kind])
    return kind


def _text(array: pa.Array) -> pa.Array:
    if isinstance(array.type, pa.BaseExtensionType):
        return array.storage
    if pa.types.is_list(array.type):
        return pa.ListArray.from_arrays(array.offsets, _text(array.values), mask=array.is_null())
    if pa.types.is_struct(array.type):
        names = [f.name for f in array.type]
        return pa.StructArray.from_arrays([_text(array.field(n)) for n in names], names=names, mask=array.is_null())
    return array


def _object(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


def _message(message: dict[str, Any]) -> dict[str, Any]:
    out = {"role": message["role"], "content": message["content"]}
    calls = [_object(c) for c in message.get("tool_calls") or ()]
    return out | ({"tool_calls": calls} if calls else {})
