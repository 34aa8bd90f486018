"""Which font files a text needs: local subsets of Inter and Noto Sans SC, chosen by the characters that occur.

Owns the reading of the font packages' style sheets. Must not fetch anything and must not fall back on a system font: a character
that neither family has is named, so that the fill is refused instead of showing an empty box.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

FAMILIES = ("Inter", "Noto Sans SC")
"""In the order of preference; the names the templates use."""
WEIGHTS = (500, 700)

_FACE = re.compile(r"@font-face\s*\{(.*?)\}", re.DOTALL)
_FILE = re.compile(r"url\(\./files/([A-Za-z0-9_.-]+\.woff2)\)")
_RANGE = re.compile(r"unicode-range:\s*([^;]+);")


@dataclass(frozen=True, slots=True)
class FontFile:
    """One subset: its file and the code points it is meant for (inclusive ranges)."""

    family: str
    weight: int
    path: Path
    ranges: tuple[tuple[int, int], ...]

    def covers(self, char: str) -> bool:
        """The subset is meant for this character."""
        return any(lo <= ord(char) <= hi for lo, hi in self.ranges)

    def face(self, url: str) -> str:
        """The ``@font-face`` rule for a copy of the file at ``url``."""
        spans = ",".join(f"U+{lo:X}" if lo == hi else f"U+{lo:X}-{hi:X}" for lo, hi in self.ranges)
        return (
            f"@font-face {{ font-family: '{self.family}'; font-style: normal; font-weight: {self.weight}; font-display: block; "
            f"src: url('{url}') format('woff2'); unicode-range: {spans}; }}"
        )


@lru_cache(maxsize=16)
def _subsets(folder: Path, family: str, weight: int) -> tuple[FontFile, ...]:
    sheet = (folder / f"{weight}.css").read_text(encoding="utf-8")
    out: list[FontFile] = []
    for rule in _FACE.findall(sheet):
        file, spans = _FILE.search(rule), _RANGE.search(rule)
        if file is None or spans is None:
            continue
        ranges: list[tuple[int, int]] = []
        for part in spans.group(1).split(","):
            lo, _, hi = part.strip()[2:].partition("-")
            ranges.append((int(lo, 16), int(hi or lo, 16)))
        out.append(FontFile(family, weight, folder / "files" / file.group(1), tuple(ranges)))
    return tuple(out)


def choose_fonts(text: Iterable[str], folders: Mapping[str, Path]) -> tuple[tuple[FontFile, ...], tuple[str, ...]]:
    """Subsets that cover the characters of ``text`` in both weights, and the characters nobody has.

    Args:
        text: any texts; all their characters count.
        folders: family name to the folder of its font package.
    """
    chars = sorted({c for t in text for c in t} | set("0123456789"))
    chosen: list[FontFile] = []
    left = set(chars)
    for family in FAMILIES:
        for weight in WEIGHTS:
            chosen.extend(f for f in _subsets(folders[family], family, weight) if any(f.covers(c) for c in left))
        left = {c for c in left if not any(f.covers(c) for f in chosen if f.family == family)}
    return tuple(chosen), tuple(sorted(left))
