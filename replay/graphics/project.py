"""From a fill to a HyperFrames project: one page, its fonts, and the slot texts in a file of their own.

Owns the assembly. Slot texts never enter the page: they travel as composition variables and are bound as text nodes.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from replay.graphics.fonts import choose_fonts
from replay.graphics.layout import has_han, shape_of
from replay.graphics.pack import PACK, PackTemplate, bar_shares, clean, fitted
from replay.graphics.theme import DEFAULT, Theme

_TOKEN = re.compile(r"@@([A-Z]+)@@")
_SLOT = re.compile(r"[ \t]*<!--slot:(\w+)-->(.*?)<!--end:\1-->\n?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class CardProject:
    """A renderable project. ``texts`` are files by name, ``fonts`` host files by name, both flat; the page is ``index.html``."""

    texts: dict[str, bytes]
    fonts: dict[str, Path]
    width: int
    height: int
    missing: tuple[str, ...]
    """Characters that no font has; not empty means: do not render."""


def build_project(
    entry: PackTemplate,
    slots: Mapping[str, str],
    *,
    width: int,
    height: int,
    language: str,
    font_folders: Mapping[str, Path],
    theme: Theme = DEFAULT,
    as_defaults: bool = False,
) -> CardProject:
    """Assemble the project of one fill. Call ``check_fill`` first.

    Args:
        width: canvas width in pixels (of the film, not of the graphic).
        height: canvas height in pixels.
        language: language tag of the film; decides the page's ``lang``.
        font_folders: family name to the folder of its font package.
        theme: colours of the film.
        as_defaults: write the texts into the page's declared defaults too; only for tools that look at defaults
            (:mod:`replay.graphics.conformance`).
    """
    template = entry.template
    texts = clean(slots)
    card_width, card_height = entry.size(width, height)
    body = (PACK / template.name / "body.html").read_text(encoding="utf-8")
    body = _SLOT.sub(lambda m: m.group(2) if m.group(1) in texts else "", body)
    used = [slot.name for slot in template.slots if slot.name in texts]
    variables = [{"id": name, "type": "string", "label": name, "default": texts[name] if as_defaults else ""} for name in used]
    fonts, missing = choose_fonts([*texts.values()], font_folders)
    families = list(dict.fromkeys(f"'{font.family}'" for font in fonts))
    names = {font.path.name: font.path for font in fonts}
    sizes = [f"--fit-{name}: {size};" for name, size in sorted(fitted(entry, texts, width, height).items())]
    sizes += [f"--bar-{i}: {share};" for i, share in sorted(bar_shares(entry, texts).items())]
    style = (PACK / "style.css").read_text(encoding="utf-8") + (PACK / template.name / "style.css").read_text(encoding="utf-8")
    values = {
        "LANG": "zh-Hans" if language.startswith("zh") else "en",
        "VARIABLES": html.escape(json.dumps(variables, ensure_ascii=False), quote=True),
        "NAME": template.name,
        "FONTS": "\n".join(font.face(font.path.name) for font in fonts),
        "UNIT": f"{min(width, height) / 100:g}",
        "THEME": theme.css(),
        "COUNT": str(sum(1 for name in entry.count if name in texts)),
        "SIZES": " ".join(sizes),
        "STYLE": style.replace("@@FAMILIES@@", ", ".join(families)),
        "SHAPE": shape_of(width, height),
        "SCRIPT": "han" if any(has_han(t) for t in texts.values()) else "latin",
        "WIDTH": str(card_width),
        "HEIGHT": str(card_height),
        "FPS": "30",
        "SECONDS": f"{template.duration_us / 1_000_000:g}",
    }
    values["BODY"] = body.replace("@@SECONDS@@", values["SECONDS"])
    page = _TOKEN.sub(lambda m: values[m.group(1)], (PACK / "page.html").read_text(encoding="utf-8"))
    return CardProject(
        texts={"index.html": page.encode(), "slots.json": json.dumps({name: texts[name] for name in used}, ensure_ascii=False).encode()},
        fonts=names,
        width=card_width,
        height=card_height,
        missing=missing,
    )
