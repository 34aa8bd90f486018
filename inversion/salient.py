"""What is said that a graphic would carry: figures, quotations, enumerations, definitions. English and Mandarin; other languages give none.

Owns the patterns. Text is data: what is found becomes the text of a slot and nothing else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from schemas.storyboard import SpotlightKind


@dataclass(frozen=True, slots=True)
class Salient:
    """One candidate: kind, slot texts, and how much it would carry (higher is more)."""

    kind: SpotlightKind
    slots: dict[str, str]
    weight: float


_UNITS = (
    r"percent|per cent|degrees?|kilograms?|kilos?|grams?|tons?|tonnes?|pounds?|kilomet(?:er|re)s?|miles?|met(?:er|re)s?|"
    r"centimet(?:er|re)s?|feet|foot|inches|seconds?|minutes?|hours?|days?|weeks?|months?|years?|centuries|dollars?|euros?|people|times|"
    r"joules?|newtons?|watts?|volts?|hertz|lit(?:er|re)s?|square \w+"
)
_SCALE = "thousand|million|billion|trillion|hundred"
_DIGITS = r"\d[\d,]*(?:\.\d+)?"
_SPELLED = (
    "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|twenty|"
    "thirty|forty|fifty|sixty|seventy|eighty|ninety"
)
_COUNT = rf"(?:{_DIGITS}|(?:{_SPELLED})(?:[- ](?:{_SPELLED}|one))?)"
_EN_FIGURE = re.compile(
    rf"(?<![\w.])(?P<value>[$€£]\s?{_DIGITS}(?:\s(?:{_SCALE}))?|{_COUNT}(?:\s(?:{_SCALE}))?\s?(?:{_UNITS})\b|{_DIGITS}\s?%|{_DIGITS}\s(?:{_SCALE}))",
    re.IGNORECASE,
)
_ZH_FIGURE = re.compile(
    r"(?P<value>百分之[一二三四五六七八九十百零点\d]+|\d[\d,.]*\s?(?:%|万|亿|元|公里|米|公斤|千克|吨|度|年|天|小时|分钟|秒|人|倍|个)+)"
)
_QUOTE = re.compile(r"[“\"「『](?P<quote>[^”\"」』]{16,200})[”\"」』]")
_EN_DEFINED = re.compile(
    r"(?:\bis|\bare|'s|\bwe call (?:this|that|it))\s+(?:(?:what (?:is|we)\s+)?(?:called|known as|call)\s+)(?:the\s+|an?\s+)?"
    r"(?P<term>[A-Za-z][\w' -]{3,40}?)(?=[,.;:!?]|\s+(?:and|which|because|so|when|that)\b|$)",
    re.IGNORECASE,
)
_ZH_DEFINED = re.compile(r"(?:叫做|称为|就是所谓的|所谓的?)[“「]?(?P<term>[\u4e00-\u9fffA-Za-z]{2,12})")
_EN_ORDINALS = re.compile(r"\b(?:first|second|third|fourth|fifth|finally)(?:ly)?\b[,:]?\s+", re.IGNORECASE)
_ZH_ORDINALS = re.compile(r"第[一二三四五][,，、点个是]*")
_TRAILING = frozenset("of about is are was were at by to a an the only just nearly almost around over under than some from in for".split())
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s*")


def salient(text: str, language: str) -> list[Salient]:
    """Candidates in a stretch of narration, the weightiest first."""
    if language not in ("en", "zh"):
        return []
    found = [*_figures(text, language), *_quotes(text), *_lists(text, language), *_definitions(text, language)]
    return sorted(found, key=lambda s: -s.weight)


def _figures(text: str, language: str) -> list[Salient]:
    out = []
    for m in (_EN_FIGURE if language == "en" else _ZH_FIGURE).finditer(text):
        value = " ".join(m.group("value").split())
        label = _around(text, m.start(), m.end(), language)
        if len(value) <= 24 and len(label) >= 4:
            weight = 2.0 if any(c.isdigit() for c in value) else 1.2
            out.append(Salient(SpotlightKind.NUMBER, {"value": value, "label": label}, weight))
    return out


def _quotes(text: str) -> list[Salient]:
    return [Salient(SpotlightKind.QUOTE, {"quote": m.group("quote").strip()}, 1.5) for m in _QUOTE.finditer(text)]


def _lists(text: str, language: str) -> list[Salient]:
    pattern = _EN_ORDINALS if language == "en" else _ZH_ORDINALS
    marks = list(pattern.finditer(text))
    if len(marks) < 3:
        return []
    ends = [m.start() for m in marks[1:]] + [len(text)]
    items = [_clause(text[m.end() : end]) for m, end in zip(marks, ends, strict=True)][:5]
    if any(not 3 <= len(i) <= 70 for i in items):
        return []
    before = _clause(_SENTENCE.split(text[: marks[0].start()].strip(" ,.;:!?，。；：！？"))[-1]) or items[0]
    return [Salient(SpotlightKind.LIST, {"heading": before[:60], **{f"item{n + 1}": i for n, i in enumerate(items)}}, 2.5)]


def _definitions(text: str, language: str) -> list[Salient]:
    out = []
    for m in (_EN_DEFINED if language == "en" else _ZH_DEFINED).finditer(text):
        term = m.group("term").strip(" '-")
        if 2 <= len(term) <= 48:
            title = term[:1].upper() + term[1:]
            out.append(Salient(SpotlightKind.LOWER_THIRD, {"title": title}, 1.0))
    return out


def _around(text: str, start: int, end: int, language: str) -> str:
    """The clause a figure stands in, without the figure, at most 90 characters: what it counts."""
    left = max((text.rfind(c, 0, start) for c in ".!?;:。！？；，"), default=-1) + 1
    right = min((i for c in ".!?;:。！？；，" if (i := text.find(c, end)) >= 0), default=len(text))
    if language == "zh":
        return (text[left:start] + text[end:right]).strip(" ，、")[:40]
    before, after = text[left:start].split(), text[end:right].split()
    while before and before[-1].lower() in _TRAILING:
        before.pop()
    words = before[-7:] if len(before) >= 3 else (after if len(after) >= 2 else [*before, *after])
    label = ""
    for word in words[:12]:
        if len(label) + len(word) + 1 > 60:
            break
        label = f"{label} {word}".strip()
    return label.strip(" ,;-")


def _clause(text: str) -> str:
    return _SENTENCE.split(text.strip())[0].strip(" ,.;:，。；：、")
