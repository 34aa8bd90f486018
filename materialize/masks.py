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

from materialize.export.conversation import conversation
from materialize.export.texts import BadText, escape_control
from materialize.tokens import TOKENIZERS, TokenCounter
from schemas.errors import ConfigInvalid, EngineMissing


@dataclass(frozen=True, slots=True)
class Token:
    """One token as text, and whether the loss lies on it. Tokens that are parts of one character come together."""

    text: str
    trained: bool
    count: int = 1
    control: bool = False
    """One of the tokenizer's own marks, such as ``<|im_end|>``; the same letters as text are none."""


@dataclass(frozen=True, slots=True)
class Masked:
    """A rendered example."""

    template: str
    tokens: tuple[Token, ...]
    notes: tuple[str, ...] = ()
    """What becomes of the example in an export, where that needs telling."""

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
            "notes": list(self.notes),
            "spans": [
                {"trained": trained, "tokens": sum(t.count for t in run), "text": "".join(t.text for t in run)}
                for trained, run in self.spans()
            ],
        }


def tokenizer_folder(template: str) -> Path:
    """Folder of a template's tokenizer: a name of :data:`materialize.tokens.TOKENIZERS`, or a folder itself.

    Raises:
        ConfigInvalid: neither.
        EngineMissing: the tokenizer is not installed.
    """
    if template in TOKENIZERS:
        from media.assets import asset

        return asset(TOKENIZERS[template])
    folder = Path(template)
    if not (folder / "tokenizer.json").is_file():
        raise ConfigInvalid(
            "unknown_template",
            f"there is no template {template!r}",
            f"use {', '.join(TOKENIZERS)}, or a folder with tokenizer.json and a chat template",
        )
    return folder


def chat_template(folder: Path) -> str:
    """Text of the chat template in a tokenizer's folder.

    Raises:
        EngineMissing: the folder holds none, or its files cannot be read.
    """
    own, config = folder / "chat_template.jinja", folder / "tokenizer_config.json"
    try:
        if own.is_file():
            return own.read_text("utf-8")
        found = orjson.loads(config.read_bytes()).get("chat_template") if config.is_file() else None
    except (ValueError, AttributeError, OSError) as error:
        raise EngineMissing(
            "tokenizer_unreadable", f"the chat template in {folder} cannot be read: {error}", "name a folder as a model on the Hub has it"
        ) from error
    if isinstance(found, list):  # several, by name
        found = next((t.get("template") for t in found if isinstance(t, dict) and t.get("name") == "default"), None)
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
        ConfigInvalid, EngineMissing: as :func:`tokenizer_folder`; or the template fails (``template_fails``), or renders the prompt
            otherwise when an answer follows, so that no border between the two exists (``template_moves_prompt``).
    """
    counter = TokenCounter(tokenizer_folder(template))
    try:
        head = counter.render(prompt, tools)
        whole = counter.render(prompt, tools, completion)
    except Exception as error:  # a template is a program of somebody else, and raises what it likes
        why = f"the chat template of {template!r} fails ({type(error).__name__}: {error})"
        raise ConfigInvalid("template_fails", why, "use another template") from error
    if not whole.startswith(head):
        raise ConfigInvalid(
            "template_moves_prompt",
            f"the template of {template!r} renders the prompt otherwise when an answer follows",
            "use another template",
        )
    return Masked(template, (*_tokens(counter, head, False), *_tokens(counter, whole[len(head) :], True)))


def mask_of_row(row: Mapping[str, Any], template: str = "qwen3") -> Masked:
    """The mask of a row of the examples table as exports write it: control tokens in the prompt made harmless, what is refused said.

    Raises:
        ConfigInvalid: as :func:`mask`; or the row is such that nothing can render it (``not_readable``).
    """
    notes = []
    try:
        conversation(dict(row))
    except BadText as bad:
        notes.append(f"Exports refuse this example: {bad}.")
    try:
        prompt, tools, completion = parsed(row)
        safe = [{**message, "content": escape_control(message["content"])} for message in prompt]
        for call in completion.get("tool_calls") or ():
            orjson.loads(call["function"]["arguments"])
        if not prompt or "content" not in completion:
            raise ValueError("its prompt or its completion is no message")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigInvalid("not_readable", f"this example cannot be rendered: {error}", "look at it with 'workprint query'") from error
    if safe != prompt:
        notes.append("The prompt holds control tokens as text; a zero-width space behind their first character makes them harmless.")
    return replace(mask(safe, tools, completion, template), notes=tuple(notes))


def _tokens(counter: TokenCounter, text: str, trained: bool) -> list[Token]:
    """Tokens of a text by their offsets; those that share a character (parts of one) come as one."""
    out: list[Token] = []
    at = 0
    for _, end in counter.offsets(text):
        if end <= at and out:
            out[-1] = replace(out[-1], count=out[-1].count + 1)
            continue
        out.append(Token(text[at:end], trained, control=counter.is_added(text[at:end])))
        at = end
    return out


_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{{ title }}</title>
<style>
:root { color-scheme: light dark; --page: #fff; --ink: #1c1c1c; --dim: #5a5a5a; --grey: #f3f3f3; --grey2: #e4e4e4;
  --green: #c9efcf; --green2: #a6dfb1; --line: #8a8a8a }
@media (prefers-color-scheme: dark) { :root { --page: #161616; --ink: #ececec; --dim: #a8a8a8; --grey: #202020; --grey2: #2c2c2c;
  --green: #14532d; --green2: #1b6e3b; --line: #777 } }
body { font: 14px/1.6 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem;
  color: var(--ink); background: var(--page) }
h1 { font-size: 1.3rem; overflow-wrap: anywhere } a { color: inherit }
pre { font: 13px/1.7 ui-monospace, "Noto Sans Mono", monospace; white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: plaintext;
  text-align: start; tab-size: 4 }
s, i { text-decoration: none; font-style: normal; padding: 1px 0 }
.no { color: var(--dim) } .no s { background: var(--grey) } .no i { background: var(--grey2) }
.yes { color: var(--ink) } .yes s { background: var(--green) } .yes i { background: var(--green2) }
.c { outline: 1px solid var(--line); outline-offset: -1px; border-radius: 3px }
.n::before { content: "\\21b5"; opacity: .55 }
.key > span { white-space: nowrap; margin-right: 1.5em } .key b { font-weight: normal; padding: 0 .2em }
</style>
<h1>{{ title }}</h1>
<p>{{ masked.total }} tokens under the chat template of {{ masked.template }};
<a href="#trained">{{ masked.trained }} of them are trained</a>, at the end of the page.</p>
{% for note in masked.notes %}<p><strong>{{ note }}</strong></p>
{% endfor -%}
<p class="key"><span><b class="yes"><s>trai</s><i>ned</i></b> bears the loss</span>
<span><b class="no"><s>sho</s><i>wn</i></b> bears none; two shades tell token from token</span>
<span><b class="no"><s class="c">&lt;|mark|&gt;</s></b> a control token</span>
<span><b class="no"><s class="n"></s></b> a token that breaks the line</span></p>
<pre lang="">{% for trained, run in masked.spans() %}<span class="{{ 'yes' if trained else 'no' }}"{% if trained %} id="trained"{% endif %}>
{%- for token in run %}{% set tag = loop.cycle('s', 'i') %}<{{ tag }}
{%- if token.control or token.text.strip(' ') in ends %} class="{{ 'c' if token.control else 'n' }}"{% endif -%}
>{{ token.text | shown }}</{{ tag }}>{% endfor %}</span>{% endfor %}</pre>
</html>
"""
_ENDS = frozenset("\n" * n for n in range(1, 9))
"""Tokens that are nothing but ends of lines."""
_UNSEEN = {c: 0x2400 + c for c in range(32) if chr(c) not in "\n\t"} | {0x7F: 0x2421} | {c: 0xFFFD for c in range(0x80, 0xA0)}
"""Control characters, and the signs that are shown for them."""


def visible(text: str) -> str:
    """A text whose control characters are shown as signs, for a terminal or a page: none of them may act there."""
    return text.translate(_UNSEEN)


def page(title: str, masked: Masked) -> str:
    """The example as one HTML page without scripts or outside parts."""
    pages = Environment(autoescape=select_autoescape(default=True))
    pages.filters["shown"] = visible
    return pages.from_string(_PAGE).render(title=title, masked=masked, ends=_ENDS)


def parsed(row: Mapping[str, Any]) -> tuple[list[Any], list[Any], dict[str, Any]]:
    """Prompt, tools and completion of a row of the examples table."""
    return orjson.loads(row["prompt_json"]), orjson.loads(row["tools_json"]), orjson.loads(row["completion_json"])
