"""Which template of a kind carries the recovered texts: a seeded choice among those that show all of them whole.

Owns the rules of suiting. Sees only what the generator's request offers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

_PERCENT = re.compile(r"\s*(?:100|\d{1,2}(?:\.\d+)?)\s*(?:%|％|percent|per cent)\s*", re.IGNORECASE)
_TIME = re.compile(
    r"\d{4}|\d+\s*(?:年|月|日|st|nd|rd|th)|\d{1,2}[:/.]\d{2}|Q[1-4]\b|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)", re.IGNORECASE
)


def choose(templates: Sequence[dict[str, Any]], kind: str, meant: Mapping[str, str], seed: int, shot_id: str) -> dict[str, Any]:
    """The template for a shot: any that suits, else the plain one of the kind (named like it), else the first offered.

    Args:
        templates: offers of the request, at least one.
        meant: the recovered texts by slot; empty when nothing was recovered.
    """
    of_kind = [t for t in templates if t["kind"] == kind]
    plain = next((t for t in of_kind if t["template"] == kind), of_kind[0] if of_kind else templates[0])
    suiting = [t for t in of_kind if meant and suits(t, meant)]
    return Random(f"template:{seed}:{shot_id}").choice(suiting) if suiting else plain  # noqa: S311 - seeded choice, no secret


def suits(template: Mapping[str, Any], meant: Mapping[str, str]) -> bool:
    """All texts have a slot, fit its length and form, and no needed slot stays empty."""
    slots = {s["name"]: s for s in template["slots"] if "name" in s}
    texts = {name: text.strip() for name, text in meant.items() if text.strip()}
    if not set(texts) <= set(slots):
        return False
    if any(s.get("required", True) and name not in texts for name, s in slots.items()):
        return False
    return all(
        len(text) <= int(slots[name]["max_chars"]) and _formed(text, slots[name].get("form", "text")) for name, text in texts.items()
    )


def _formed(text: str, form: str) -> bool:
    if form == "percent":
        return _PERCENT.fullmatch(text) is not None
    if form == "question":
        return text.endswith(("?", "？"))
    if form == "time":
        return _TIME.search(text) is not None
    if form == "sentence":
        return len(text.split()) >= 4 or sum(1 for c in text if "\u4e00" <= c <= "\u9fff") >= 8
    return True
