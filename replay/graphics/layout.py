"""How large a text may be set: estimated widths, line breaking, and the largest size that fits a box.

Owns the figures behind "this text fits this template". Sizes are in units of a hundredth of the canvas' short side. The widths
are estimates on the safe side (Inter's advance widths rounded up, Han characters one em), so that a policy's text is judged
before anything is rendered. Must not know templates or files.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Shape = Literal["wide", "tall", "square"]

_STEP = 0.1
_BOLD = 1.04
_WIDTHS: dict[str, float] = {}
for _chars, _em in (
    ("ijlI", 0.28),
    (" ", 0.27),
    (".,:;!'|", 0.35),
    ("ft()[]{}/\\`", 0.40),
    ("r1", 0.44),
    ('-*^_"', 0.52),
    ("sz?", 0.57),
    ("acekvxyFJL7", 0.61),
    ("bdghnopquE", 0.64),
    ("0235689TZBPRSK#$&+<=>~", 0.70),
    ("4AXYVU", 0.75),
    ("CDHGNOQ", 0.79),
    ("w", 0.86),
    ("mM", 0.94),
    ("W@%", 1.04),
):
    for _c in _chars:
        _WIDTHS[_c] = _em


def is_han(char: str) -> bool:
    """A character that is one em wide and may be broken after: Han, kana, full-width forms and punctuation."""
    return unicodedata.east_asian_width(char) in ("W", "F")


def has_han(text: str) -> bool:
    """At least one such character."""
    return any(is_han(c) for c in text)


def width_em(text: str, *, bold: bool) -> float:
    """Estimated width of a line in em, a little too wide rather than too narrow."""
    total = 0.0
    for c in text:
        if unicodedata.combining(c):
            continue
        if is_han(c):
            total += 1.0
        elif c in _WIDTHS:
            total += _WIDTHS[c]
        else:
            base = unicodedata.normalize("NFD", c)[0]
            total += _WIDTHS.get(base, 0.75)
    return total * (_BOLD if bold else 1.0)


def _pieces(text: str) -> list[str]:
    """Unbreakable pieces: words with their trailing space, single Han characters with the closing punctuation after them."""
    out: list[str] = []
    word = ""
    for c in text:
        if is_han(c):
            if word:
                out.append(word)
                word = ""
            if out and unicodedata.category(c) in ("Po", "Pe", "Pf"):
                out[-1] += c
            else:
                out.append(c)
        elif c == " ":
            out.append(word + c)
            word = ""
        else:
            word += c
    if word:
        out.append(word)
    return out


def line_count(text: str, width: float, *, bold: bool) -> int:
    """Lines that greedy breaking needs.

    Args:
        width: room for one line, in em.
    """
    lines = 1
    used = 0.0
    for piece in _pieces(text):
        bare = width_em(piece.rstrip(" "), bold=bold)
        full = width_em(piece, bold=bold)
        if used > 0 and used + bare > width:
            lines += 1
            used = 0.0
        if bare > width:
            whole = int(bare // width)
            lines += whole
            used = bare - whole * width
        else:
            used += full
    return lines


@dataclass(frozen=True, slots=True)
class FitGroup:
    """Texts of one size that share a box.

    ``size`` is (largest, smallest) in units; ``box`` maps a shape to (width, height) as shares of the canvas; ``line`` is the line
    height in em, ``gap`` the space between texts in em. With ``each`` every text has its own box of that size.
    """

    name: str
    slots: tuple[str, ...]
    weight: int
    size: tuple[float, float]
    box: dict[Shape, tuple[float, float]]
    line: float
    gap: float = 0.0
    each: bool = False

    def fit(self, texts: Sequence[str], shape: Shape, canvas: tuple[float, float]) -> float | None:
        """Largest size in units at which the texts fit, None if the smallest is too large. A size at which no word has to be broken is
        preferred to a larger one.

        Args:
            canvas: width and height of the canvas in units.
        """
        width = self.box[shape][0] * canvas[0]
        height = self.box[shape][1] * canvas[1]
        han = any(has_han(t) for t in texts)
        line = self.line * (1.1 if han else 1.0)
        bold = self.weight >= 600
        longest = max((width_em(piece.rstrip(" "), bold=bold) for t in texts for piece in _pieces(t)), default=0.0)
        largest = None
        steps = round((self.size[0] - self.size[1]) / _STEP)
        for i in range(steps + 1):
            size = round(self.size[0] - i * _STEP, 2)
            lines = [line_count(t, width / size, bold=bold) for t in texts]
            if self.each:
                tallest = max(lines, default=0) * line * size
            else:
                tallest = (sum(lines) * line + max(0, len(texts) - 1) * self.gap) * size
            if tallest <= height:
                largest = largest or size
                if longest * size <= width:
                    return size
        return largest


def shape_of(width: int, height: int) -> Shape:
    """Layout family of a canvas: wider than 6:5, taller than 5:6, or square."""
    if width * 5 >= height * 6:
        return "wide"
    if height * 5 >= width * 6:
        return "tall"
    return "square"
