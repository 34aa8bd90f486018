"""Which shots present a graphic, of which kind, with which texts.

From the screen: the layout of the lines that were read off a shot (cards, lists, figures, names). From the narration: a few salient
figures, quotations, enumerations and definitions, at most one in thirty seconds, where nothing is on the screen already.
Owns the decision; reads no pixels and no sound.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from inversion.salient import salient
from inversion.transcript import is_wide
from schemas.storyboard import Evidence, Spotlight, SpotlightKind, TextBox

NARRATED_EVERY_US = 30_000_000
"""One graphic from the narration in this much film."""
SHORTEST_US = 2_000_000
"""Shorter shots get no graphic from the narration: nobody could read it."""
SURE = 0.8
"""Lines recognised with less confidence are not taken for card text."""
CARD_LINE = 0.05
"""A line at least this share of the frame's height is written to be read from afar."""
HUGE_LINE = 0.11
UPRIGHT = 0.8
"""Type in upright films is set by the width: this many times the width counts as the frame's height there."""
MOST_LINES = 14
"""More lines than this are a document or a terminal, not a card."""

_FIGURE = re.compile(r"^[^\w]{0,3}[$€£¥]?\s?\d[\d,.:]*\s?(?:%|x|k|m|bn|million|billion|万|亿|倍|°|[a-zA-Z]{0,4})$", re.IGNORECASE)
_BULLET = re.compile(r"^\s*(?:[•·●○▪■◦*–-]|\d{1,2}[.)、]|[a-eA-E][.)])\s*")
_OPEN_QUOTE = ("“", '"', "「", "『", "«")
_VERSUS = re.compile(r"^(?:vs\.?|versus|对比|还是)$", re.IGNORECASE)


class Stretch(Protocol):
    """A shot's place in the film."""

    @property
    def start_us(self) -> int:
        """Start, microseconds."""
        ...

    @property
    def end_us(self) -> int:
        """End, exclusive."""
        ...


@dataclass(frozen=True, slots=True)
class _Page:
    """The sure lines of a shot, top to bottom, with the frame they stand in."""

    lines: tuple[TextBox, ...]
    width: int
    height: int

    def share(self, line: TextBox) -> float:
        """Height of a line against the frame: its height, in upright films what a wide film of that width would have for one."""
        return line.height / min(self.height, UPRIGHT * self.width)

    def type_size(self, line: TextBox) -> float:
        """How large the type of a line is, in shares of the frame: from its height, which descenders change, and from its width a letter,
        which they do not."""
        wide = sum(2 if is_wide(c) else 1 for c in line.text)
        return math.sqrt(self.share(line) * 2 * line.width / max(1, wide) / min(self.height, UPRIGHT * self.width))

    def centre(self, line: TextBox) -> tuple[float, float]:
        return (line.x + line.width / 2) / self.width, (line.y + line.height / 2) / self.height


def find_spotlights(
    evidence: Sequence[Evidence], narrations: Sequence[str], shots: Sequence[Stretch], language: str, *, title: str | None = None
) -> list[Spotlight | None]:
    """The spotlight of every shot, or None.

    Args:
        evidence, narrations, shots: one of each for every shot, in film order.
        language: of the narration, ISO 639-1.
        title: the film's title, if the user gave one; it opens the first narrated shot that is free.
    """
    out: list[Spotlight | None] = [on_screen(e) for e in evidence]
    if title:
        for i, shot in enumerate(shots):
            if narrations[i].strip() and shot.end_us - shot.start_us >= SHORTEST_US:
                if out[i] is None:
                    out[i] = Spotlight(kind=SpotlightKind.LOWER_THIRD, slots={"title": title.strip()[:48]}, origin="narration")
                break
    return _with_narrated(out, narrations, shots, language)


def on_screen(evidence: Evidence) -> Spotlight | None:
    """What the lines on the screen present, if they are a graphic at all."""
    if not evidence.key_frames:
        return None
    frame = evidence.key_frames[0]
    lines = tuple(t for t in evidence.text if t.confidence >= SURE and _wordy(t.text))
    if not lines or len(lines) > MOST_LINES:
        return None
    page = _Page(tuple(sorted(lines, key=lambda t: (t.y, t.x))), frame.width, frame.height)
    found = _lower_third(page)
    if found is None and max(page.share(t) for t in page.lines) >= CARD_LINE:
        for reader in (_quote, _comparison, _chart, _number, _list, _title):
            found = reader(page)
            if found is not None:
                break
    return found


def _screen(kind: SpotlightKind, slots: dict[str, str]) -> Spotlight:
    return Spotlight(kind=kind, slots={k: v for k, v in slots.items() if v}, origin="screen")


def _lower_third(page: _Page) -> Spotlight | None:
    """One or two lines low on the left, beside nothing else."""
    low = [t for t in page.lines if page.centre(t)[1] > 0.66]
    if len(low) != len(page.lines) or not 1 <= len(low) <= 2:
        return None
    if min(t.x for t in low) > 0.3 * page.width or all(page.centre(t)[0] > 0.42 for t in low):
        return None
    return _screen(SpotlightKind.LOWER_THIRD, {"title": low[0].text, "subtitle": low[1].text if len(low) > 1 else ""})


def _quote(page: _Page) -> Spotlight | None:
    first = page.lines[0].text.strip()
    if not first.startswith(_OPEN_QUOTE):
        return None
    joined = " ".join(t.text.strip() for t in page.lines)
    body, author = joined, ""
    last = page.lines[-1].text.strip()
    if len(page.lines) > 1 and last[:1] in "-–—~":
        body, author = " ".join(t.text.strip() for t in page.lines[:-1]), last.lstrip("-–—~ ")
    return _screen(SpotlightKind.QUOTE, {"quote": body.strip('“”"「」『』«» '), "author": author})


def _comparison(page: _Page) -> Spotlight | None:
    """Two columns with a heading each, or two sides of a 'vs'."""
    body = [t for t in page.lines if not _VERSUS.match(t.text.strip())]
    versus = len(body) < len(page.lines)
    left = [t for t in body if t.x + t.width <= 0.52 * page.width]
    right = [t for t in body if t.x >= 0.48 * page.width]
    heading = [t for t in body if t not in left and t not in right]
    if len(heading) > 1 or not left or not right or abs(len(left) - len(right)) > 1:
        return None
    if len(left) < 2 and not versus:
        return None
    if abs(left[0].y - right[0].y) > 0.08 * page.height or any(_is_figure(t.text) for t in body):
        return None
    slots: dict[str, str] = {}
    for side, lines in (("left", left), ("right", right)):
        head = [lines[0]]
        while len(head) < len(lines) - 1 and page.type_size(lines[len(head)]) >= 0.78 * page.type_size(lines[0]):
            head.append(lines[len(head)])
        title = " ".join(t.text for t in head)
        slots[f"{side}_title"], slots[f"{side}_text"] = title, " ".join(t.text for t in lines[len(head) :]) or title
    return _screen(SpotlightKind.COMPARISON, slots)


def _chart(page: _Page) -> Spotlight | None:
    """At least three figures, each with a name in its row or its column; or rows of two figures, as of years and amounts."""
    figures = [t for t in page.lines if _is_figure(t.text)]
    names = [t for t in page.lines if not _is_figure(t.text)]
    if len(figures) < 3:
        return None
    pairs: list[tuple[TextBox, TextBox]] = []
    free = list(names)
    if len(names) <= 1 and len(figures) % 2 == 0:
        pairs = _rows_of_two(page, figures) or _columns_of_two(page, figures)
    elif len(names) >= len(figures):
        for figure in figures[:4]:
            best = min(free, key=lambda n: _off(page, n, figure))
            if _off(page, best, figure) > 0.06:
                return None
            free.remove(best)
            pairs.append((best, figure))
    if len(pairs) < 3:
        return None
    if all(abs(page.centre(n)[1] - page.centre(pairs[0][0])[1]) < 0.06 for n, _ in pairs):
        pairs.sort(key=lambda pair: pair[0].x)
    heading = next((t.text for t in free if t.y <= min(f.y for f in figures)), "")
    slots = {"heading": heading or pairs[0][0].text}
    for n, (label, value) in enumerate(pairs[:4], start=1):
        slots[f"label{n}"], slots[f"value{n}"] = label.text, value.text
    return _screen(SpotlightKind.CHART, slots)


def _rows_of_two(page: _Page, figures: Sequence[TextBox]) -> list[tuple[TextBox, TextBox]]:
    """Figures that stand in rows of two, the left ones under each other: (left, right) of each row; nothing where they do not."""
    rows: list[list[TextBox]] = []
    for box in sorted(figures, key=lambda t: (page.centre(t)[1], t.x)):
        if rows and abs(page.centre(rows[-1][0])[1] - page.centre(box)[1]) < 0.03:
            rows[-1].append(box)
        else:
            rows.append([box])
    if any(len(row) != 2 for row in rows):
        return []
    pairs = [(min(row, key=lambda t: t.x), max(row, key=lambda t: t.x)) for row in rows]
    edges = [left.x for left, _ in pairs]
    return pairs if max(edges) - min(edges) < 0.05 * page.width else []


def _columns_of_two(page: _Page, figures: Sequence[TextBox]) -> list[tuple[TextBox, TextBox]]:
    """Figures over the figures of one bottom row: (lower, upper) of each column; nothing where they do not stand like that."""
    bottom = max(page.centre(t)[1] for t in figures)
    lower = [t for t in figures if bottom - page.centre(t)[1] < 0.03]
    upper = [t for t in figures if t not in lower]
    if len(lower) != len(upper):
        return []
    pairs = [(low, min(upper, key=lambda t: abs(page.centre(t)[0] - page.centre(low)[0]))) for low in lower]
    apart = max(abs(page.centre(a)[0] - page.centre(b)[0]) for a, b in pairs)
    return pairs if apart < 0.05 and len({id(b) for _, b in pairs}) == len(pairs) else []


def _number(page: _Page) -> Spotlight | None:
    """One figure much larger than everything else."""
    figures = [t for t in page.lines if _is_figure(t.text) and page.share(t) >= HUGE_LINE]
    if len(figures) != 1 or len(page.lines) > 5:
        return None
    rest = " ".join(t.text for t in page.lines if t is not figures[0])
    return _screen(SpotlightKind.NUMBER, {"value": figures[0].text, "label": rest}) if rest else None


def _list(page: _Page) -> Spotlight | None:
    """Three lines or more under each other from one left edge, or with bullets; a larger line above is the heading."""
    marked = [t for t in page.lines if _BULLET.match(t.text)]
    if len(marked) >= 2:
        items = marked
    else:
        edges = sorted(t.x for t in page.lines)
        edge = edges[len(edges) // 2]
        items = [t for t in page.lines if abs(t.x - edge) <= 0.02 * page.width]
        top = max(page.lines, key=page.type_size)
        if top in items and top is page.lines[0] and len(items) > 3:
            items = items[1:]
        tall = [page.share(t) for t in items]
        if len(items) < 3 or max(tall) > 1.5 * min(tall):
            return None
    if len(items) > 7:
        return None
    above = [t for t in page.lines if t not in items and t.y < items[0].y]
    heading = above[0].text if above else ""
    if not heading and len(marked) < 2:
        return None
    texts = [_BULLET.sub("", t.text).strip() for t in items][:5]
    return _screen(SpotlightKind.LIST, {"heading": heading or texts[0], **{f"item{n + 1}": t for n, t in enumerate(texts)}})


def _title(page: _Page) -> Spotlight | None:
    """A few large lines about the middle of the frame."""
    large = [t for t in page.lines if page.share(t) >= CARD_LINE]
    if len(page.lines) > 4 or not large or sum(len(t.text.split()) for t in large) > 14:
        return None
    if not any(0.15 <= page.centre(t)[1] <= 0.8 and 0.2 <= page.centre(t)[0] <= 0.8 for t in large):
        return None
    if sum(c.isalpha() for t in large for c in t.text) < 2:
        return None  # a number painted on a thing
    largest = max(page.type_size(t) for t in large)
    main = [t for t in large if page.type_size(t) >= 0.75 * largest]
    small = [t.text for t in page.lines if t not in main]
    return _screen(SpotlightKind.TITLE, {"title": " ".join(t.text for t in main), "subtitle": " ".join(small)})


def _with_narrated(
    found: list[Spotlight | None], narrations: Sequence[str], shots: Sequence[Stretch], language: str
) -> list[Spotlight | None]:
    out = list(found)
    taken = [s.start_us for s, spot in zip(shots, out, strict=True) if spot is not None]
    candidates = []
    for i, shot in enumerate(shots):
        if out[i] is None and shot.end_us - shot.start_us >= SHORTEST_US:
            candidates += [(s.weight, i, s) for s in salient(narrations[i], language)[:1]]
    for _, i, best in sorted(candidates, key=lambda c: (-c[0], c[1])):
        if all(abs(shots[i].start_us - other) >= NARRATED_EVERY_US for other in taken):
            out[i] = Spotlight(kind=best.kind, slots=best.slots, origin="narration")
            taken.append(shots[i].start_us)
    return out


def _off(page: _Page, name: TextBox, figure: TextBox) -> float:
    """How far a name is from standing in one row or one column with a figure, as a share of the frame."""
    (nx, ny), (fx, fy) = page.centre(name), page.centre(figure)
    return min(abs(ny - fy), abs(nx - fx))


def _is_figure(text: str) -> bool:
    return bool(_FIGURE.match(text.strip()))


def _wordy(text: str) -> bool:
    """More letters and digits than signs: scratches on a board are often read as signs."""
    kept = sum(c.isalnum() for c in text)
    return kept >= 1 and kept * 2 >= len(text.replace(" ", ""))
