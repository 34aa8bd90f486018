"""Which tokens of an example are trained: the rendered text, token by token, under a chat template.

Owns the rule, which is that of prompt-and-completion rows: a token is trained when it lies behind the rendered prompt with its generation
prompt. Reads tokenizers; writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import orjson
from jinja2 import Environment, select_autoescape

from materialize.tokens import TokenCounter
from schemas.errors import ConfigInvalid, EngineMissing

TEMPLATES = {"qwen3": "qwen3-tokenizer"}
"""Names of chat templates, and the assets with their tokenizers."""


@dataclass(frozen=True, slots=True)
class Token:
    """One token as text, and whether the loss lies on it. Tokens that are parts of one character come together."""

    text: str
    trained: bool
    count: int = 1


@dataclass(frozen=True, slots=True)
class Masked:
    """A rendered example."""

    template: str
    tokens: tuple[Token, ...]

    @property
    def trained(self) -> int:
        """Number of trained tokens."""
        return sum(t.count for t in self.tokens if t.trained)

    @property
    def total(self) -> int:
        """Number of all tokens."""
        return sum(t.count for t in self.tokens)

    @property
    def trained_text(self) -> str:
        """What the model learns to write, byte for byte."""
        return "".join(t.text for t in self.tokens if t.trained)

    def spans(self) -> list[tuple[bool, list[Token]]]:
        """Runs of equal treatment: trained or not, and their tokens."""
        return [(trained, list(run)) for trained, run in groupby(self.tokens, key=lambda t: t.trained)]

    def as_json(self) -> dict[str, Any]:
        """Stable form of ``workprint masks --json``."""
        return {
            "template": self.template,
            "tokens": self.total,
            "trained_tokens": self.trained,
            "trained_text": self.trained_text,
            "spans": [
                {"trained": trained, "tokens": sum(t.count for t in run), "text": "".join(t.text for t in run)}
                for trained, run in self.spans()
            ],
        }


def tokenizer_folder(template: str) -> Path:
    """Folder of a template's tokenizer: a name of :data:`TEMPLATES`, or a folder itself.

    Raises:
        ConfigInvalid: neither.
        EngineMissing: the tokenizer is not installed.
    """
    if template in TEMPLATES:
        from media.assets import asset

        return asset(TEMPLATES[template])
    folder = Path(template)
    if not (folder / "tokenizer.json").is_file():
        raise ConfigInvalid(
            "unknown_template",
            f"there is no template {template!r}",
            f"use {', '.join(TEMPLATES)}, or a folder with tokenizer.json and a chat template",
        )
    return folder


def chat_template(folder: Path) -> str:
    """Text of the chat template in a tokenizer's folder.

    Raises:
        EngineMissing: the folder holds none.
    """
    own = folder / "chat_template.jinja"
    if own.is_file():
        return own.read_text("utf-8")
    config = folder / "tokenizer_config.json"
    found = orjson.loads(config.read_bytes()).get("chat_template") if config.is_file() else None
    if not isinstance(found, str):
        raise EngineMissing("tokenizer_template", f"the tokenizer in {folder} has no chat template", "use a chat model's tokenizer")
    return found


def mask(
    prompt: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]], completion: Mapping[str, Any], template: str = "qwen3"
) -> Masked:
    """Render an example and mark its trained tokens.

    Args:
        prompt: chat messages.
        tools: function schemas; empty for none.
        completion: the assistant message.

    Raises:
        ConfigInvalid, EngineMissing: as :func:`tokenizer_folder`; or the template renders the prompt otherwise when an answer follows, so
            that no border between the two exists (code ``template_moves_prompt``).
    """
    counter = TokenCounter(tokenizer_folder(template))
    head = counter.render(prompt, tools)
    whole = counter.render(prompt, tools, completion)
    if not whole.startswith(head):
        raise ConfigInvalid(
            "template_moves_prompt",
            f"the template of {template!r} renders the prompt otherwise when an answer follows",
            "use another template",
        )
    return Masked(template, (*_tokens(counter, head, False), *_tokens(counter, whole[len(head) :], True)))


def _tokens(counter: TokenCounter, text: str, trained: bool) -> list[Token]:
    """Tokens of a text by their offsets; those that share a character (parts of one) come as one."""
    out: list[Token] = []
    at = 0
    for _, end in counter.offsets(text):
        if end <= at and out:
            out[-1] = replace(out[-1], count=out[-1].count + 1)
            continue
        out.append(Token(text[at:end], trained))
        at = end
    return out


_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{{ title }}</title>
<style>
body { font: 14px/1.6 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #1c1c1c; background: #fff }
pre { font: 13px/1.7 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere }
span { border-radius: 2px }
.no span:nth-child(even) { background: #f1f1f1 } .no span:nth-child(odd) { background: #e6e6e6 } .no { color: #555 }
.yes span:nth-child(even) { background: #bfe8c5 } .yes span:nth-child(odd) { background: #9fd9a9 }
</style>
<h1>{{ title }}</h1>
<p>{{ masked.total }} tokens under the template of {{ masked.template }}. The {{ masked.trained }} green ones are trained,
the grey ones are not.</p>
<pre>{% for trained, run in masked.spans() %}<b class="{{ 'yes' if trained else 'no' }}" style="font-weight:normal">
{%- for token in run %}<span>{{ token.text }}</span>{% endfor %}</b>{% endfor %}</pre>
</html>
"""


def page(title: str, masked: Masked) -> str:
    """The example as one HTML page without scripts or outside parts."""
    return Environment(autoescape=select_autoescape(default=True)).from_string(_PAGE).render(title=title, masked=masked)


def parsed(row: Mapping[str, Any]) -> tuple[list[Any], list[Any], dict[str, Any]]:
    """Prompt, tools and completion of a row of the examples table."""
    return orjson.loads(row["prompt_json"]), orjson.loads(row["tools_json"]), orjson.loads(row["completion_json"])
