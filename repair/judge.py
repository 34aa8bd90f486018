"""The embedded judge over spotlight renders: text recognition against the slots, contrast, overflow, blank share.

Owns what can be said of one still picture and the texts it should show. It knows nothing of states, files or tools, and its rubric is
frozen: a change of any figure here is a new ``JUDGE_VERSION``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import numpy as np
from numpy.typing import NDArray

from repair.limits import LIMITS, InspectionLimits
from schemas.storyboard import TextBox

JUDGE_VERSION = "embedded.2"

Image = NDArray[np.uint8]

_WEIGHTS = {"text": 0.55, "contrast": 0.25, "edge": 0.10, "blank": 0.10}
"""Parts of the judge's score. Ours: the paper's audit rubric is not published."""

_WRONG_FIGURE = 0.5
"""Highest similarity of a text whose figure reads otherwise: one wrong digit is a wrong statement, however many letters agree."""

_FIGURE = re.compile(r"[0-9]+")

_GOOD_CONTRAST = 4.5
"""WCAG 2 AA for body text: full marks from here on."""


@dataclass(frozen=True, slots=True)
class SlotReading:
    """How one slot was read back."""

    name: str
    expected: str
    read: str
    similarity: float
    """0 to 1; 1 means every letter and digit was read in order."""
    beginning: float
    """Share of the slot, from its start, that was read: with a low similarity it means the rest was cut off."""


@dataclass(frozen=True, slots=True)
class Judgment:
    """What the judge saw in one picture."""

    slots: tuple[SlotReading, ...]
    contrast: float | None
    """Lowest WCAG contrast over the lines that belong to a slot; where none does, the highest over the lines read; where none was read,
    that of the whole picture; None without text."""
    edge_px: int | None
    """Smallest distance of a line from the border, pixels; None without text."""
    edge_limit_px: int
    blank_share: float
    """Share of pixels of the most frequent colour."""
    lines: int
    """Lines that were read."""
    score: float
    """0 to 1."""

    @property
    def text(self) -> float:
        """Lowest similarity over the slots; 1 without slots."""
        return min((s.similarity for s in self.slots), default=1.0)

    def context(self) -> dict[str, Any]:
        """The judgment as evidence for a critic."""
        return {
            "judge": JUDGE_VERSION,
            "slots": [
                {"name": s.name, "expected": s.expected[:120], "read": s.read[:120], "similarity": round(s.similarity, 3)}
                for s in self.slots
            ],
            "contrast": None if self.contrast is None else round(self.contrast, 2),
            "edge_px": self.edge_px,
            "blank_share": round(self.blank_share, 4),
            "score": self.score,
        }


def judge(image: Image, boxes: Sequence[TextBox], slots: Mapping[str, str], limits: InspectionLimits = LIMITS) -> Judgment:
    """Judge one picture.

    Args:
        image: sRGB, shape [height, width, 3].
        boxes: recognised lines, boxes in pixels of ``image``, top to bottom.
        slots: the texts that should be readable, by slot name.
    """
    height, width = image.shape[:2]
    lines = [b.text for b in boxes]
    readings = tuple(_reading(name, text, lines) for name, text in sorted(slots.items()) if _plain(text))
    own = [b for b in boxes if _belongs(b.text, slots)]
    contrast = _contrast(image, own, boxes, bool(readings))
    edges = [min(b.x, b.y, width - b.x - b.width, height - b.y - b.height) for b in own]
    edge = max(0, min(edges)) if edges else None
    edge_limit = max(1, round(limits.edge_share * min(width, height)))
    blank = blank_share(image)
    text = sum(r.similarity for r in readings) / len(readings) if readings else 1.0
    parts = {
        "text": text,
        "contrast": 1.0 if contrast is None else min(1.0, max(0.0, (contrast - 1.0) / (_GOOD_CONTRAST - 1.0))),
        "edge": 0.0 if edge is not None and edge < edge_limit else 1.0,
        "blank": 0.0 if blank >= limits.blank_share else 1.0,
    }
    total = sum(_WEIGHTS[name] * value for name, value in parts.items())
    return Judgment(readings, contrast, edge, edge_limit, blank, len(lines), round(total, 4))


def _contrast(image: Image, own: Sequence[TextBox], boxes: Sequence[TextBox], has_text: bool) -> float | None:
    if own:
        return min(contrast_ratio(_crop(image, b)) for b in own)
    if not has_text:
        return None
    return max((contrast_ratio(_crop(image, b)) for b in boxes), default=contrast_ratio(image))


def similarity(expected: str, lines: Sequence[str]) -> float:
    """How well a text was read back, 0 to 1, whatever the line breaks; case, spaces and punctuation do not count.

    The best of: the text inside the joined lines, the ratio of matching characters with any run of lines, the share of its words that were
    read anywhere (for texts set in columns). A figure must be read exactly: a text whose digits were not read gets at most 0.5.
    """
    return _match(expected, lines)[0]


def contrast_ratio(region: Image) -> float:
    """WCAG 2 contrast between the two tones of a region (split by Otsu's threshold, medians of both sides); 1 for a flat one."""
    luminance = _luminance(region).ravel()
    counts, edges = np.histogram(luminance, bins=64, range=(0.0, 1.0))
    middle = (edges[:-1] + edges[1:]) / 2
    weight = np.cumsum(counts)
    mass = np.cumsum(counts * middle)
    rest = weight[-1] - weight
    valid = (weight > 0) & (rest > 0)
    if not valid.any():
        return 1.0
    low = mass[valid] / weight[valid]
    high = (mass[-1] - mass[valid]) / rest[valid]
    between = weight[valid] * rest[valid] * (high - low) ** 2
    threshold = edges[1:][valid][int(between.argmax())]
    dark = float(np.median(luminance[luminance < threshold]))
    light = float(np.median(luminance[luminance >= threshold]))
    return (light + 0.05) / (dark + 0.05)


def blank_share(image: Image) -> float:
    """Share of pixels that have the most frequent colour, colours rounded to 16 steps a channel."""
    coarse = (image >> 4).astype(np.uint32)
    codes = (coarse[..., 0] << 8) | (coarse[..., 1] << 4) | coarse[..., 2]
    return float(np.bincount(codes.ravel()).max() / codes.size)


def _plain(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKC", text).casefold() if c.isalnum())


def _reading(name: str, expected: str, lines: Sequence[str]) -> SlotReading:
    value, read = _match(expected, lines)
    return SlotReading(name, expected, read, value, _beginning(expected, lines))


def _match(expected: str, lines: Sequence[str]) -> tuple[float, str]:
    want = _plain(expected)
    if not want:
        return 1.0, ""
    if want in _plain("".join(lines)):
        return 1.0, expected
    best, read = 0.0, ""
    for first in range(len(lines)):
        for last in range(first + 1, min(len(lines), first + 8) + 1):
            seen = _plain("".join(lines[first:last]))
            if not seen:
                continue
            ratio = SequenceMatcher(None, want, seen, autojunk=False).ratio()
            if ratio > best:
                best, read = ratio, " ".join(lines[first:last])
    words = _words_read(expected, lines)
    if words > best:
        best, read = words, " ".join(lines)
    if any(figure not in _plain(" ".join(lines)) for figure in _FIGURE.findall(want)):
        best = min(best, _WRONG_FIGURE)
    return best, read


def _words_read(expected: str, lines: Sequence[str]) -> float:
    wanted = [w for w in (_plain(w) for w in expected.split()) if w]
    if len(wanted) < 2:
        return 0.0
    seen = [w for w in (_plain(w) for line in lines for w in line.split()) if w]
    got = sum(len(w) for w in wanted if any(w == s or SequenceMatcher(None, w, s, autojunk=False).ratio() >= 0.8 for s in seen))
    return got / sum(len(w) for w in wanted)


def _beginning(expected: str, lines: Sequence[str]) -> float:
    want, seen = _plain(expected), _plain("".join(lines))
    length = 0
    while length < len(want) and want[: length + 1] in seen:
        length += 1
    return length / len(want) if want else 1.0


def _belongs(line: str, slots: Mapping[str, str]) -> bool:
    seen = _plain(line)
    if len(seen) < 2:
        return any(seen and seen == _plain(text) for text in slots.values())
    for text in slots.values():
        want = _plain(text)
        if seen in want or want in seen:
            return bool(want)
        block = SequenceMatcher(None, want, seen, autojunk=False).find_longest_match()
        if block.size >= max(3, round(0.5 * len(seen))):
            return True
    return False


def _crop(image: Image, box: TextBox) -> Image:
    height, width = image.shape[:2]
    top, left = max(0, box.y), max(0, box.x)
    return image[top : min(height, box.y + box.height), left : min(width, box.x + box.width)]


def _luminance(region: Image) -> NDArray[np.float64]:
    value = region.astype(np.float64) / 255.0
    linear = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
    return np.asarray(linear @ np.array([0.2126, 0.7152, 0.0722]), dtype=np.float64)
