"""Rows as tokens of one tokenizer: ``export {sft,rft} --to trl --tokenizer FOLDER``. ``labels`` are the tokens that bear the loss, or -100.

The rule is that of ``workprint masks``: what stands behind the rendered prompt is trained. Every row proves it: the template's text holds
all that was shown and authored, and the trained tokens decode to that text. A template for which this does not hold is refused as a whole,
because another row of it could train something else without a word; a row that the tokenizer changes is a bad row.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from materialize.export.conversation import Conversation
from materialize.export.options import LeftOut, TokenizerDigest
from materialize.export.records import Records
from materialize.export.verl_dataset import rendered
from materialize.masks import chat_template, tokenizer_folder
from materialize.tokens import THINKING_OFF, load_tokenizer
from schemas.canonical import sha256_bytes
from schemas.errors import ConfigInvalid

IGNORED = -100
"""The label of a token that bears no loss, as PyTorch and all trainers have it."""


@dataclass(frozen=True, slots=True)
class Tokenised:
    """One row as tokens."""

    input_ids: npt.NDArray[np.int32]
    labels: npt.NDArray[np.int32]
    row: dict[str, Any]
    """The lake row, with the counts of this tokenizer."""
    ident: str
    escaped: bool


def digest_of_tokenizer(name: str) -> TokenizerDigest:
    """Which tokenizer a name or folder is (:func:`materialize.masks.tokenizer_folder`).

    Raises:
        ConfigInvalid, EngineMissing: there is none, or it has no chat template.
    """
    folder = tokenizer_folder(name)
    own = name if folder != Path(name) else Path(name).resolve().name.encode(errors="replace").decode()
    config = folder / "tokenizer_config.json"
    return TokenizerDigest(
        name=own,
        tokenizer_sha256=sha256_bytes((folder / "tokenizer.json").read_bytes()),
        template_sha256=sha256_bytes(chat_template(folder).encode()),
        config_sha256=sha256_bytes(config.read_bytes()) if config.is_file() else None,
    )


def tokenised_records(records: Records[Any, Conversation], name: str) -> Records[Any, Tokenised]:
    """Conversations as tokens.

    Raises:
        ConfigInvalid: there is no such tokenizer; while reading: its template cannot say a row, or leaves parts of it out.
        EngineMissing: it has no chat template.
    """
    tokenizer = load_tokenizer(tokenizer_folder(name))

    def read(keys: list[Any]) -> Iterator[Tokenised | LeftOut]:
        for item in records.read(keys):
            yield item if isinstance(item, LeftOut) else tokenise(item, tokenizer)

    rows: Records[Any, Any] = records
    return replace(rows, read=read)


def tokenise(item: Conversation, tokenizer: Any) -> Tokenised | LeftOut:
    """One conversation as tokens; a bad row where the tokenizer makes another text of what is trained (of letters with loose accents, say).

    Raises:
        ConfigInvalid: the template cannot say it, or leaves parts of it out.
    """
    completion: dict[str, Any] = {"role": "assistant", "content": item.content, "tool_calls": [c.as_json() for c in item.calls]}
    row = {
        "prompt": [{"role": role, "content": content} for role, content in item.prompt],
        "completion": [completion],
        "tools": item.tools,
        "chat_template_kwargs": THINKING_OFF,
    }
    try:
        head, trained = rendered(row, tokenizer)
    except Exception as error:  # a template is a program of somebody else, and raises what it likes
        raise _refused(item.ident, f"the chat template fails ({type(error).__name__}: {error})") from error
    if not trained:
        raise _refused(item.ident, "nothing stands behind the prompt, so nothing would be trained")
    if lost := _lost(item, head, trained):
        raise _refused(item.ident, f"the chat template leaves out {lost}")
    first = tokenizer(head, add_special_tokens=False)["input_ids"]
    then = tokenizer(trained, add_special_tokens=False)["input_ids"]
    if (said := tokenizer.decode(then, skip_special_tokens=False, clean_up_tokenization_spaces=False)) != trained:
        return LeftOut(example_id=item.ident, reason=f"changed_text: the trained tokens say {said[:80]!r} and not {trained[:80]!r}")
    counts = {"prompt_tokens": len(first), "completion_tokens": len(then)}
    ids, labels = np.array([*first, *then], np.int32), np.array([IGNORED] * len(first) + then, np.int32)
    return Tokenised(ids, labels, item.row | counts, item.ident, item.escaped)


def _lost(item: Conversation, head: str, trained: str) -> str:
    """What of a conversation stands neither in the rendered prompt nor in the trained text; empty when all is there."""
    said: Sequence[tuple[str, str, str]] = (
        *(("a message of the prompt", content.strip(), head) for _, content in item.prompt),
        ("the answer's text", item.content.strip(), trained),
        *(("a tool call", call.name, trained) for call in item.calls),
    )
    if lost := next((what for what, text, where in said if text not in where), ""):
        return lost
    around, end = head, len(head)
    for _, content in reversed(item.prompt):  # messages speak of tools too, and show none
        at = head.rfind(content.strip(), 0, end)
        if at >= 0:
            around, end = around[:at] + around[at + len(content.strip()) :], at
    if lost := _untold(around, tuple(item.tools)):
        return lost
    values = (leaf for call in item.calls for leaf in _leaves(orjson.loads(call.arguments)))
    return next((f"{leaf!r} in the arguments of a call" for leaf in values if not any(f in trained for f in _forms(leaf))), "")


def _leaves(value: Any) -> Iterator[Any]:
    """Keys and plain values of a JSON value."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield from _leaves(part)
    elif isinstance(value, list):
        for part in value:
            yield from _leaves(part)
    else:
        yield value


def _forms(leaf: Any) -> tuple[str, ...]:
    """How templates write a plain value: as it is or inside quotes, as JSON or as Python."""
    plain, ascii_only = json.dumps(leaf, ensure_ascii=False), json.dumps(leaf)
    return (leaf.strip(), plain[1:-1], ascii_only[1:-1]) if isinstance(leaf, str) else (plain, str(leaf))


@lru_cache(maxsize=64)
def _untold(around: str, tools: tuple[str, ...]) -> str:
    """What of the tool schemas is not in a rendered prompt without its messages: a name, a description, a parameter; empty when all is."""
    for tool in tools:
        function = orjson.loads(tool)["function"]
        told = (function["name"], *_descriptions(function))
        if lost := next((text for text in told if not any(form in around for form in _forms(text))), ""):
            return f"a tool: {lost[:80]!r} of {function['name']} is not shown"
    return ""


def _descriptions(schema: Any) -> Iterator[str]:
    """The descriptions in a JSON Schema, and the names of its properties."""
    if isinstance(schema, dict):
        if isinstance(described := schema.get("description"), str):
            yield described
        if isinstance(properties := schema.get("properties"), dict):
            yield from properties
            for part in properties.values():
                yield from _descriptions(part)
        yield from (text for key, part in schema.items() if key not in ("description", "properties") for text in _descriptions(part))
    elif isinstance(schema, list):
        for part in schema:
            yield from _descriptions(part)


def _refused(ident: str, why: str) -> ConfigInvalid:
    return ConfigInvalid(
        "tokenizer_unproved",
        f"what this tokenizer would train cannot be proved: {ident}: {why}",
        "leave --tokenizer out and let the trainer render the rows, or take another tokenizer",
    )
