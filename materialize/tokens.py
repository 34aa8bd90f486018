"""Token counts of examples with a real tokenizer and its chat template. Needs no torch and no network.

Owns how a prompt and its completion are rendered for counting. Rendered text is cut where tokens of Qwen's tokenizer can never join
and the count of each piece is kept, because the contexts of one run repeat most of their words. A test compares the counts with the
tokenizer's own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson

from materialize.config import MaterializeConfig
from schemas.contract import shown_schema
from schemas.errors import EngineMissing

THINKING_OFF: dict[str, Any] = {"enable_thinking": False}
"""Template variables of every example: completions hold no reasoning, so a template's thinking block is closed in the prompt."""

TOKENIZERS = {"qwen3": "qwen3-tokenizer"}
"""Names of tokenizers with their chat templates, and the assets that hold them."""

_BORDERS = re.compile(r'(?<=\S)(?= )|(?<=\n)(?=\S)|(?<=[0-9A-Za-z])(?=")')
"""Before a blank that follows a visible character, before a visible character that opens a line, and between a word and a quote."""
_CACHED_PIECES = 262_144
_CACHED_CHARS = 200
_CACHED_BLOCKS = 256
"""Texts between two added tokens that are kept whole: system prompts with their tool schemas."""


@dataclass(frozen=True, slots=True)
class TokenCount:
    """Tokens of one example: ``prompt`` up to and with the generation prompt, ``completion`` from there to the end of the turn."""

    prompt: int
    completion: int


class TokenCounter:
    """Counts with one tokenizer folder (``tokenizer.json`` and ``tokenizer_config.json`` with a chat template).

    Not for use from several threads at once.

    Raises:
        EngineMissing: the folder holds no tokenizer, or one without a chat template.
    """

    def __init__(self, folder: Path) -> None:
        self._tokenizer = load_tokenizer(folder)
        backend = self._tokenizer.backend_tokenizer
        added = sorted((t.content for t in self._tokenizer.added_tokens_decoder.values()), key=len, reverse=True)
        self._added = re.compile("|".join(re.escape(t) for t in added) or "(?!)")

        @lru_cache(maxsize=_CACHED_PIECES)
        def short(piece: str) -> int:
            return len(backend.encode(piece, add_special_tokens=False))

        def count(piece: str) -> int:
            return short(piece) if len(piece) <= _CACHED_CHARS else len(backend.encode(piece, add_special_tokens=False))

        @lru_cache(maxsize=_CACHED_BLOCKS)
        def block(text: str) -> int:
            return sum(map(count, _BORDERS.split(text))) if text else 0

        self._block = block

    def count_text(self, text: str) -> int:
        """Tokens of a text; added tokens such as ``<|im_end|>`` count as one."""
        total = 0
        last = 0
        for match in self._added.finditer(text):
            total += self._block(text[last : match.start()]) + 1
            last = match.end()
        return total + self._block(text[last:])

    def is_added(self, text: str) -> bool:
        """Whether a text is one of the tokenizer's added tokens, such as ``<|im_end|>``."""
        return self._added.fullmatch(text) is not None

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Start and end character of every token of a text, in order. Parts of one character share it."""
        return list(self._tokenizer.backend_tokenizer.encode(text, add_special_tokens=False).offsets)

    def render(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]], completion: Mapping[str, Any] | None = None
    ) -> str:
        """The text a model is given: prompt with the generation prompt, or prompt and completion when one is given.

        Args:
            messages: the prompt.
            tools: OpenAI function schemas; empty for none.
            completion: assistant message; tool-call arguments may be JSON text or objects.
        """
        chat = [dict(m) for m in messages]
        if completion is not None:
            chat.append(_with_objects(completion))
        text = self._tokenizer.apply_chat_template(
            chat, tools=[shown_schema(t) for t in tools] or None, tokenize=False, add_generation_prompt=completion is None, **THINKING_OFF
        )
        return str(text)

    def count(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]], completion: Mapping[str, Any]) -> TokenCount:
        """Tokens of the rendered prompt and of the completion, as a trainer sees them (arguments rendered from objects)."""
        prompt = self.render(messages, tools)
        whole = self.render(messages, tools, completion)
        prompt_tokens = self.count_text(prompt)
        if whole.startswith(prompt):
            return TokenCount(prompt_tokens, self.count_text(whole[len(prompt) :]))
        return TokenCount(prompt_tokens, max(0, self.count_text(whole) - prompt_tokens))


def open_counter(config: MaterializeConfig) -> TokenCounter | None:
    """The configured counter; None when ``tokenizer`` is ``none``.

    Raises:
        EngineMissing: the tokenizer's files are not installed; says what brings them.
    """
    if config.tokenizer == "none":
        return None
    from media.assets import asset

    return TokenCounter(asset(TOKENIZERS[config.tokenizer]))


def _with_objects(completion: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(completion)
    calls = out.get("tool_calls")
    if calls:
        out["tool_calls"] = [{**c, "function": {**c["function"], "arguments": _object(c["function"]["arguments"])}} for c in calls]
    return out


def _object(arguments: Any) -> Any:
    return orjson.loads(arguments) if isinstance(arguments, str) else arguments


def load_tokenizer(folder: Path) -> Any:
    """The tokenizer of a folder, with its chat template; it cuts and pads nothing, and no code of the folder is run.

    Raises:
        EngineMissing: the folder holds no tokenizer, one that cannot be read, or one without a chat template.
    """
    if not (folder / "tokenizer.json").is_file():
        raise EngineMissing(
            "tokenizer_missing", f"{folder} holds no tokenizer.json", "run 'npm ci', or set materialize.tokenizer to 'none'"
        )
    quiet = "TRANSFORMERS_NO_ADVISORY_WARNINGS"
    before = os.environ.get(quiet)
    os.environ[quiet] = "1"
    try:
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
    except Exception as error:  # of any kind, from several libraries; none of them is about this project's own files
        raise EngineMissing(
            "tokenizer_unreadable",
            f"the tokenizer in {folder} cannot be read ({type(error).__name__}: {error})",
            "name a folder as a model on the Hub has it: tokenizer.json, tokenizer_config.json and a chat template",
        ) from error
    finally:
        if before is None:
            del os.environ[quiet]
        else:
            os.environ[quiet] = before
    if not tokenizer.chat_template:
        raise EngineMissing("tokenizer_template", f"the tokenizer in {folder} has no chat template", "use a chat model's tokenizer")
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    return tokenizer
