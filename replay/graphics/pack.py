"""The template pack: loads it, judges fills, and lays them out. A policy fills text slots; it never writes markup.

Owns what a valid fill is (names, lengths, characters, room in the layout). Must not render or read anything but the pack's files.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from replay.engines import Slot, Template
from replay.graphics.layout import FitGroup, Shape, shape_of
from schemas.blocker import Blocker, BlockerCode
from schemas.canonical import digest_of, sha256_bytes
from schemas.storyboard import SpotlightKind

PACK = Path(__file__).resolve().parent.parent / "templates"
SHARED = ("page.html", "style.css")
PARTS = ("template.json", "body.html", "style.css")

_SCALES = {
    "k": 1e3, "thousand": 1e3, "m": 1e6, "mn": 1e6, "million": 1e6, "bn": 1e9, "b": 1e9, "billion": 1e9, "trillion": 1e12,
    "千": 1e3, "万": 1e4, "萬": 1e4, "亿": 1e8, "億": 1e8,
}  # fmt: skip
_FIGURE = re.compile(r"(-?\d[\d,\u00a0 ]*(?:\.\d+)?)\s*([A-Za-z]+|[千万萬亿億])?")

_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*(?:%|％|percent|per cent)|百分之\s*(\d+(?:\.\d+)?)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PackTemplate:
    """A template with its layout rules."""

    template: Template
    groups: tuple[FitGroup, ...]
    band: dict[Shape, tuple[float, float]] | None
    """Size of a template that is no full frame: share of the canvas width, and height in units of a hundredth of its short side."""
    bars: int
    count: tuple[str, ...]
    """Slots of which there are as many as the fill has entries; the layout depends on how many."""
    share: str | None
    """Slot whose percentage is drawn."""

    def size(self, width: int, height: int) -> tuple[int, int]:
        """Pixels of the rendered graphic on a canvas of ``width`` x ``height``; both even."""
        if self.band is None:
            return width, height
        share, units = self.band[shape_of(width, height)]
        return int(width * share) // 2 * 2, int(min(width, height) * units / 100) // 2 * 2


@lru_cache(maxsize=1)
def load_pack() -> dict[str, PackTemplate]:
    """All templates of the pack by name, in name order."""
    out: dict[str, PackTemplate] = {}
    for folder in sorted(p for p in PACK.iterdir() if (p / "template.json").is_file()):
        files = {f"{folder.name}/{p}": (folder / p).read_bytes() for p in PARTS} | {p: (PACK / p).read_bytes() for p in SHARED}
        spec: dict[str, Any] = json.loads(files[f"{folder.name}/template.json"])
        template = Template(
            name=folder.name,
            version=spec["version"],
            kind=SpotlightKind(spec["kind"]),
            placement=spec["placement"],
            slots=tuple(Slot(**slot) for slot in spec["slots"]),
            duration_us=spec["duration_us"],
            digest=digest_of({name: sha256_bytes(data) for name, data in files.items()}),
            about=spec["about"],
        )
        groups = tuple(
            FitGroup(
                name=g["name"],
                slots=tuple(g["slots"]),
                weight=g["weight"],
                size=(g["size"][0], g["size"][1]),
                box={cast(Shape, shape): (box[0], box[1]) for shape, box in g["box"].items()},
                line=g["line"],
                gap=g.get("gap", 0.0),
                each=g.get("each", False),
            )
            for g in spec["fit"]
        )
        band = spec.get("canvas")
        out[folder.name] = PackTemplate(
            template=template,
            groups=groups,
            band=None if band is None else {cast(Shape, s): (b[0], b[1]) for s, b in band.items()},
            bars=spec.get("bars", 0),
            count=tuple(spec.get("count", ())),
            share=spec.get("share"),
        )
    return out


def load_templates() -> dict[str, Template]:
    """The pack as the engines carry it."""
    return {name: entry.template for name, entry in load_pack().items()}


def clean(slots: Mapping[str, str]) -> dict[str, str]:
    """Slot texts as they are shown: NFC, outer white space gone, inner runs of white space one space, empty slots left out."""
    out: dict[str, str] = {}
    for name, text in slots.items():
        tidy = " ".join(unicodedata.normalize("NFC", text).split())
        if tidy:
            out[name] = tidy
    return out


def figure(text: str) -> float | None:
    """The number a chart value stands for (``12,5`` no, ``12,500`` yes, ``3.4 million``, ``45%``, ``三`` no); None if there is none."""
    match = _FIGURE.search(text)
    if match is None:
        return None
    number = float(re.sub(r"[,\u00a0 ]", "", match.group(1)))
    return number * _SCALES.get((match.group(2) or "").lower(), 1.0)


def percent(text: str) -> float | None:
    """The share that a percentage from 0 to 100 names (``45%``, ``12.5 per cent``, ``百分之30``); None for any other text."""
    match = _PERCENT.fullmatch(text.strip())
    if match is None:
        return None
    value = float(match.group(1) or match.group(2))
    return value if 0 <= value <= 100 else None


def _broken(subject: str, message: str) -> Blocker:
    return Blocker(code=BlockerCode.CONTENT_CONTRACT_BROKEN, subject=subject, message=message)


def check_fill(
    name: str, slots: Mapping[str, str], *, kind: SpotlightKind, width: int, height: int, where: str = "content"
) -> tuple[Blocker, ...]:
    """Everything that is wrong with a fill; empty if it can be rendered on this canvas. Pure.

    Args:
        kind: kind of graphic the plan asked for.
        where: prefix of the blockers' subjects.
    """
    entry = load_pack().get(name)
    if entry is None:
        known = ", ".join(sorted(load_pack()))
        return (
            Blocker(
                code=BlockerCode.UNRESOLVED_REFERENCE,
                subject=f"{where}.template",
                message=f"there is no template '{name[:40]}'; the pack has {known}",
            ),
        )
    template = entry.template
    out: list[Blocker] = []
    if template.kind is not kind:
        out.append(_broken(f"{where}.template", f"template {name} shows a {template.kind.value}, the plan asks for a {kind.value}"))
    declared = {slot.name: slot for slot in template.slots}
    for slot_name, text in slots.items():
        subject = f"{where}.slots.{slot_name[:40]}"
        slot = declared.get(slot_name)
        if slot is None:
            out.append(_broken(subject, f"template {name} has no such slot; it has {', '.join(declared)}"))
            continue
        if any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn") and c not in "\n\t" for c in text):
            out.append(_broken(subject, "the text holds control, invisible or unassigned characters"))
        tidy = clean({slot_name: text}).get(slot_name, "")
        if tidy and slot.form == "percent" and percent(tidy) is None:
            out.append(_broken(subject, f"'{tidy[:40]}' is no percentage from 0% to 100%"))
        if len(tidy) > slot.max_chars:
            out.append(_broken(subject, f"{len(tidy)} characters, at most {slot.max_chars}"))
    tidy_slots = clean(slots)
    for slot in template.slots:
        if slot.required and slot.name not in tidy_slots:
            out.append(_broken(f"{where}.slots.{slot.name}", f"template {name} needs this text: {slot.description}"))
    for i in range(1, entry.bars + 1):
        label, value = f"label{i}", f"value{i}"
        if (label in tidy_slots) != (value in tidy_slots):
            out.append(_broken(f"{where}.slots.{value}", f"{label} and {value} go together"))
        if value in tidy_slots and (figure(tidy_slots[value]) is None or (figure(tidy_slots[value]) or 0.0) < 0):
            out.append(_broken(f"{where}.slots.{value}", f"'{tidy_slots[value]}' holds no number from 0 up to draw a bar for"))
    if not out:
        for group, size in _sizes(entry, tidy_slots, width, height):
            if size is None:
                used = [s for s in group.slots if s in tidy_slots]
                out.append(_broken(f"{where}.slots.{used[0]}", f"the text of {', '.join(used)} does not fit the layout; make it shorter"))
    return tuple(out)


def _sizes(entry: PackTemplate, slots: Mapping[str, str], width: int, height: int) -> list[tuple[FitGroup, float | None]]:
    shape = shape_of(width, height)
    short = min(width, height)
    w, h = entry.size(width, height)
    canvas = (w * 100 / short, h * 100 / short)
    out: list[tuple[FitGroup, float | None]] = []
    for group in entry.groups:
        texts = [slots[s] for s in group.slots if s in slots]
        if texts:
            out.append((group, group.fit(texts, shape, canvas)))
    return out


def room(entry: PackTemplate, slot: Slot, width: int, height: int, *, han: bool) -> int:
    """Characters of a slot that an ordinary text may have on this canvas: its limit, or less where the layout is narrow.

    Args:
        han: the text is written in Han characters.
    """
    return _room(entry.template.name, slot.name, width, height, han)


@lru_cache(maxsize=8192)
def _room(name: str, slot_name: str, width: int, height: int, han: bool) -> int:
    entry = load_pack()[name]
    slot = next(s for s in entry.template.slots if s.name == slot_name)
    group = next((g for g in entry.groups if slot.name in g.slots), None)
    if group is None:
        return slot.max_chars
    share = 1 if group.each else len(group.slots)
    shape, short = shape_of(width, height), min(width, height)
    w, h = entry.size(width, height)
    canvas = (w * 100 / short, h * 100 / short)
    low, high = 1, slot.max_chars
    while low < high:
        n = (low + high + 1) // 2
        text = "山" * n if han else ("mountain " * (n // 9 + 1))[:n]
        if group.fit([text] * share, shape, canvas) is None:
            high = n - 1
        else:
            low = n
    return low


def fitted(entry: PackTemplate, slots: Mapping[str, str], width: int, height: int) -> dict[str, float]:
    """Text size of each group in units of a hundredth of the short side. Call :func:`check_fill` first."""
    return {group.name: size if size is not None else group.size[1] for group, size in _sizes(entry, slots, width, height)}


def bar_shares(entry: PackTemplate, slots: Mapping[str, str]) -> dict[int, float]:
    """Length of each bar of a chart in percent of the longest; of a dial, the share itself as number 1."""
    if entry.share is not None:
        return {1: percent(slots[entry.share]) or 0.0}
    values = {i: figure(slots[f"value{i}"]) or 0.0 for i in range(1, entry.bars + 1) if f"value{i}" in slots}
    top = max(values.values(), default=0.0)
    return {i: round(100 * v / top, 2) if top > 0 else 0.0 for i, v in values.items()}
