"""Texts that a trainer would read wrongly: found here, escaped in prompts, refused in what is trained.

A chat template turns ``<|im_end|>`` inside a text into the real control token. In a prompt such text is data (narration, text on
screen): a zero-width space after its first character makes it harmless and keeps it legible. In a completion it would be trained,
and escaping it would train something nobody authored: such a row is bad.
"""

from __future__ import annotations

import json
import re
from typing import Any

ESCAPE = "\u200b"
"""Zero-width space, put after the first character of a control token."""

CONTROL = re.compile(
    r"<\|[^|<>\s]{1,60}\|>|<｜[^｜<>\s]{1,60}｜>|</?(?:tool_call|tool_response|think|tools)>|<(?:start|end)_of_turn>|\[/?INST\]|</?s>"
)
"""Control tokens and template marks of the chat templates in use (Qwen, Llama, Mistral, Gemma, DeepSeek, Phi)."""

_INT_MIN = -(2**63)
_INT_MAX = 2**64 - 1


class BadText(ValueError):
    """A row cannot be exported; ``reason`` is a stable code, ``detail`` says what was seen."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


def check_text(text: str, where: str) -> None:
    """Refuse what Parquet or a tokenizer cannot hold.

    Raises:
        BadText: a lone surrogate or a NUL.
    """
    if "\x00" in text:
        raise BadText("nul_character", f"{where} holds a NUL at character {text.index(chr(0))}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadText("lone_surrogate", f"{where} holds half a surrogate pair at character {error.start}") from None


def escape_control(text: str) -> str:
    """The text with every control token made harmless; the same object when there is none."""
    if "<" not in text and "[" not in text:
        return text
    return CONTROL.sub(lambda m: m.group()[0] + ESCAPE + m.group()[1:], text)


def refuse_control(text: str, where: str) -> None:
    """Refuse a trained text with a control token.

    Raises:
        BadText: there is one.
    """
    found = CONTROL.search(text)
    if found:
        raise BadText("control_token", f"{where} holds {found.group()!r}, which a chat template would turn into a control token")


def read_json(text: str, where: str) -> Any:
    """Parse JSON so strictly that every later reader sees the same value.

    Raises:
        BadText: no JSON, a repeated key, NaN or infinity, a number outside 64 bits or floating point, a lone surrogate, a NUL.
    """
    try:
        value = json.loads(text, object_pairs_hook=_no_repeats, parse_constant=_no_constant, parse_int=_bounded_int, parse_float=_finite)
    except BadText as bad:
        raise BadText(bad.reason, f"{where}: {bad.detail}") from None
    except (ValueError, RecursionError) as error:
        raise BadText("not_json", f"{where} is not JSON: {error}") from None
    _check_strings(value, where)
    return value


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        names = [k for k, _ in pairs]
        repeated = next(n for n in names if names.count(n) > 1)
        raise BadText("repeated_key", f"key {repeated!r} stands twice")
    return out


def _no_constant(name: str) -> Any:
    raise BadText("not_a_number", f"{name} is no JSON number")


def _bounded_int(digits: str) -> int:
    value = int(digits) if len(digits) <= 24 else _INT_MAX + 1
    if not _INT_MIN <= value <= _INT_MAX:
        raise BadText("number_too_big", f"{digits[:30]} does not fit 64 bits")
    return value


def _finite(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise BadText("number_too_big", f"{digits[:30]} is beyond floating point")
    return value


def _check_strings(value: Any, where: str) -> None:
    if isinstance(value, str):
        check_text(value, where)
    elif isinstance(value, dict):
        for key, item in value.items():
            check_text(key, where)
            _check_strings(item, where)
    elif isinstance(value, list):
        for item in value:
            _check_strings(item, where)
