"""Cards: stills with lettering of each spotlight kind, and what is written where on them.

Owns layout. Slots are named as in the templates of the same kinds; the texts come from evaluation.studio.texts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from PIL import Image, ImageDraw

from evaluation.studio.lettering import Box, Colour, Layer, Lettering, fitted, layer_of, wrapped
from evaluation.studio.pictures import Picture, darkened, fractal
from evaluation.studio.scenes import Size
from evaluation.studio.texts import Topic
from schemas.storyboard import SpotlightKind

Rng = np.random.Generator


@dataclass(frozen=True)
class Card:
    """A finished card (or a layer for a lower third), its lines with their boxes, its kind and slots."""

    kind: SpotlightKind
    slots: dict[str, str]
    lines: tuple[tuple[str, Box], ...]
    picture: Picture | None = None
    layer: Layer | None = None


@dataclass
class _Sheet:
    """A card being drawn."""

    image: Image.Image
    ink: Colour
    accent: Colour
    centred: bool
    lines: list[tuple[str, Box]] = field(default_factory=list)

    @property
    def width(self) -> int:
        return self.image.width

    @property
    def height(self) -> int:
        return self.image.height

    @property
    def unit(self) -> float:
        """What type sizes are measured by: the height, in upright films the width."""
        return min(self.image.height, self.image.width * 0.8)

    def put(self, line: Lettering, x: int, y: int, colour: Colour | None = None) -> None:
        self.lines.append((line.text, line.draw(self.image, x, y, colour or self.ink)))

    def flow(self, lines: list[Lettering], y: float, colour: Colour | None = None, left: float = 0.08) -> float:
        """Lines under each other from ``y`` (pixels); returns where the next may begin."""
        for line in lines:
            x = (self.width - line.width) // 2 if self.centred else round(left * self.width)
            self.put(line, x, round(y), colour)
            y += 1.28 * line.size
        return y


def make_card(kind: SpotlightKind, topic: Topic, rng: Rng, size: Size, behind: Picture | None = None) -> Card:
    """One card.

    Args:
        behind: a picture that may serve as a darkened ground.
    """
    if kind is SpotlightKind.LOWER_THIRD:
        return _lower_third(topic, rng, size)
    sheet = _ground(rng, size, behind)
    slots = _LAYOUTS[kind](sheet, topic, rng)
    return Card(kind, slots, tuple(sheet.lines), picture=np.asarray(sheet.image))


def _ground(rng: Rng, size: Size, behind: Picture | None) -> _Sheet:
    accents: tuple[Colour, ...] = ((240, 180, 60), (90, 200, 250), (120, 220, 140), (250, 130, 110))
    accent = accents[int(rng.integers(0, len(accents)))]
    mode = int(rng.integers(0, 4))
    centred = bool(rng.random() < 0.4)
    if mode == 0:
        shade = (int(rng.integers(232, 252)),) * 3
        dark_accents: tuple[Colour, ...] = ((150, 60, 20), (20, 80, 150), (20, 110, 60))
        return _Sheet(Image.new("RGB", size, shade), (24, 26, 32), dark_accents[int(rng.integers(0, 3))], centred)
    if mode == 1 and behind is not None:
        dimmed = darkened(np.asarray(Image.fromarray(behind).resize(size)), 0.22)
        return _Sheet(Image.fromarray(dimmed), (245, 245, 245), accent, centred)
    base = np.array([rng.integers(8, 40), rng.integers(10, 46), rng.integers(16, 70)], np.float32)
    if mode == 2:
        slope = 1.3 - 0.6 * np.linspace(0, 1, size[1], dtype=np.float32)[:, None, None]
        soft = base * slope * (0.94 + 0.12 * fractal(rng, *size, 0.3)[..., None])
        return _Sheet(Image.fromarray(np.clip(soft, 0, 255).astype(np.uint8)), (240, 240, 240), accent, centred)
    return _Sheet(Image.new("RGB", size, (int(base[0]), int(base[1]), int(base[2]))), (240, 240, 240), accent, centred)


def _title(sheet: _Sheet, topic: Topic, rng: Rng) -> dict[str, str]:
    room = round(0.84 * sheet.width)
    main = wrapped(topic.title, round(0.135 * sheet.unit), room)
    sub = wrapped(topic.subtitle, round(0.07 * sheet.unit), room, 500)
    y = sheet.flow(main, 0.32 * sheet.height)
    if rng.random() < 0.5:
        pen = ImageDraw.Draw(sheet.image)
        pen.rectangle((0.08 * sheet.width, y + 2, 0.2 * sheet.width, y + 5), fill=sheet.accent)
    sheet.flow(sub, y + 0.05 * sheet.unit, sheet.accent)
    return {"title": topic.title, "subtitle": topic.subtitle}


def _list(sheet: _Sheet, topic: Topic, rng: Rng) -> dict[str, str]:
    sheet.centred = False
    room = round(0.84 * sheet.width)
    count = int(rng.integers(3, len(topic.items) + 1))
    style = int(rng.integers(0, 3))
    y = sheet.flow([fitted(topic.heading, round(0.1 * sheet.unit), room)], 0.12 * sheet.height, sheet.accent)
    y += 0.04 * sheet.height
    for n, item in enumerate(topic.items[:count], start=1):
        mark = ("", f"{n}. ", "• ")[style]
        line = fitted(f"{mark}{item}", round(0.075 * sheet.unit), room, 500)
        sheet.put(line, round(0.1 * sheet.width), round(y))
        y += max(1.5 * line.size, 0.62 * sheet.height / 4.4)
    return {"heading": topic.heading, **{f"item{n}": t for n, t in enumerate(topic.items[:count], start=1)}}


def _number(sheet: _Sheet, topic: Topic, rng: Rng) -> dict[str, str]:
    room = round(0.84 * sheet.width)
    value = fitted(topic.figure[0], round(float(rng.uniform(0.26, 0.36)) * sheet.unit), room)
    label = wrapped(topic.figure[1], round(0.08 * sheet.unit), room, 500)
    y = sheet.flow([value], 0.22 * sheet.height, sheet.accent)
    sheet.flow(label, y + 0.03 * sheet.unit)
    return {"value": topic.figure[0], "label": topic.figure[1]}


def _quote(sheet: _Sheet, topic: Topic, rng: Rng) -> dict[str, str]:
    room = round(0.8 * sheet.width)
    lines = wrapped(f"“{topic.quote[0]}”", round(0.09 * sheet.unit), room)
    y = sheet.flow(lines, 0.24 * sheet.height)
    sheet.flow(wrapped(f"— {topic.quote[1]}", round(0.065 * sheet.unit), room, 500), y + 0.06 * sheet.unit, sheet.accent)
    return {"quote": topic.quote[0], "author": topic.quote[1]}


def _comparison(sheet: _Sheet, topic: Topic, rng: Rng) -> dict[str, str]:
    half = round(0.4 * sheet.width)
    pen = ImageDraw.Draw(sheet.image)
    boxed = rng.random() < 0.5
    for k, (heading, text) in enumerate(topic.sides):
        left = round((0.06 + 0.48 * k) * sheet.width)
        if boxed:
            shade = (0, 0, 0) if sheet.ink[0] > 128 else (255, 255, 255)
            pen.rectangle(
                (left - 0.02 * sheet.width, 0.22 * sheet.height, left + half + 0.01 * sheet.width, 0.8 * sheet.height), fill=shade
            )
        y = 0.28 * sheet.height
        for line, colour in (
            *((one, sheet.accent) for one in wrapped(heading, round(0.1 * sheet.unit), half)),
            *((one, sheet.ink) for one in wrapped(text, round(0.07 * sheet.unit), half, 500)),
        ):
            sheet.put(line, left, round(y), colour)
            y += 1.4 * line.size
    if not boxed:
        x = sheet.width // 2
        pen.line((x, round(0.22 * sheet.height), x, round(0.8 * sheet.height)), fill=sheet.accent, width=2)
    (a, b), (c, d) = topic.sides
    return {"left_title": a, "left_text": b, "right_title": c, "right_text": d}


def _chart(sheet: _Sheet, topic: Topic, rng: Rng) -> dict[str, str]:
    sheet.centred = False
    upright = bool(rng.random() < 0.4) and sheet.width > sheet.height
    sheet.flow([fitted(topic.chart, round(0.09 * sheet.unit), round(0.84 * sheet.width))], 0.09 * sheet.height, sheet.ink)
    (_columns if upright else _rows)(sheet, topic)
    slots = {"heading": topic.chart}
    for n, (label, value) in enumerate(topic.pairs, start=1):
        slots[f"label{n}"], slots[f"value{n}"] = label, value
    return slots


def _rows(sheet: _Sheet, topic: Topic) -> None:
    pen = ImageDraw.Draw(sheet.image)
    most = max(float(v) for _, v in topic.pairs)
    step = 0.62 * sheet.height / len(topic.pairs)
    for k, (label, value) in enumerate(topic.pairs):
        y = 0.3 * sheet.height + k * step
        size = round(0.075 * sheet.unit)
        sheet.put(fitted(label, size, round(0.24 * sheet.width), 500), round(0.08 * sheet.width), round(y))
        length = 0.42 * sheet.width * float(value) / most
        pen.rectangle((0.34 * sheet.width, y + 0.1 * size, 0.34 * sheet.width + length, y + 1.2 * size), fill=sheet.accent)
        sheet.put(Lettering(value, size), round(0.36 * sheet.width + length), round(y))


def _columns(sheet: _Sheet, topic: Topic) -> None:
    pen = ImageDraw.Draw(sheet.image)
    most = max(float(v) for _, v in topic.pairs)
    step = 0.84 * sheet.width / len(topic.pairs)
    size = round(0.07 * sheet.unit)
    for k, (label, value) in enumerate(topic.pairs):
        x = 0.08 * sheet.width + k * step
        top = 0.8 * sheet.height - 0.38 * sheet.height * float(value) / most
        pen.rectangle((x + 0.15 * step, top, x + 0.7 * step, 0.8 * sheet.height), fill=sheet.accent)
        name, figure = fitted(label, size, round(0.9 * step), 500), Lettering(value, size)
        middle = x + 0.425 * step
        sheet.put(figure, round(middle - figure.width / 2), round(top - 1.35 * size))
        sheet.put(name, round(middle - name.width / 2), round(0.82 * sheet.height))


def _lower_third(topic: Topic, rng: Rng, size: Size) -> Card:
    width, height = size
    unit = min(height, width * 0.8)
    canvas = Image.new("RGBA", size, (0, 0, 0, 0))
    name = fitted(topic.name[0], round(0.075 * unit), round(0.6 * width))
    work = fitted(topic.name[1], round(0.055 * unit), round(0.6 * width), 500)
    x, y = round(float(rng.uniform(0.05, 0.09)) * width), round(float(rng.uniform(0.72, 0.78)) * height)
    pen = ImageDraw.Draw(canvas)
    bottom = y + round(1.25 * name.size + 1.35 * work.size)
    right = x + max(name.width, work.width) + round(0.02 * width)
    style = int(rng.integers(0, 3))
    if style == 0:
        pen.rectangle((x - round(0.02 * width), y - 4, right, bottom + 2), fill=(16, 20, 30, 255))
    elif style == 1:
        pen.rectangle((x - round(0.02 * width), y - 4, right, bottom + 2), fill=(245, 245, 245, 255))
    ink: Colour = (20, 20, 24) if style == 1 else (250, 250, 250)
    outline = 1 if style == 2 else 0
    lines = [
        (name.text, name.draw(canvas, x, y, ink, outline)),
        (work.text, work.draw(canvas, x, y + round(1.25 * name.size), ink, outline)),
    ]
    return Card(SpotlightKind.LOWER_THIRD, {"title": topic.name[0], "subtitle": topic.name[1]}, tuple(lines), layer=layer_of(canvas))


_LAYOUTS: dict[SpotlightKind, Callable[[_Sheet, Topic, Rng], dict[str, str]]] = {
    SpotlightKind.TITLE: _title,
    SpotlightKind.LIST: _list,
    SpotlightKind.NUMBER: _number,
    SpotlightKind.QUOTE: _quote,
    SpotlightKind.COMPARISON: _comparison,
    SpotlightKind.CHART: _chart,
}


def caption_layer(text: str, size: Size, *, boxed: bool) -> tuple[Layer, tuple[tuple[str, Box], ...]]:
    """One or two lines of a burned-in caption, low and centred."""
    width, height = size
    canvas = Image.new("RGBA", size, (0, 0, 0, 0))
    type_size = max(12, round(0.062 * min(height, 0.75 * width)))
    lines = wrapped(text, type_size, round(0.86 * width), 500)[:3]
    y = round(0.93 * height) - round(1.25 * type_size * len(lines))
    boxes: list[tuple[str, Box]] = []
    pen = ImageDraw.Draw(canvas)
    for line in lines:
        x = (width - line.width) // 2
        if boxed:
            pen.rectangle((x - 5, y - 1, x + line.width + 5, y + round(1.25 * type_size)), fill=(0, 0, 0, 190))
        boxes.append((line.text, line.draw(canvas, x, y, (255, 255, 255), 0 if boxed else 1)))
        y += round(1.28 * type_size)
    return layer_of(canvas), tuple(boxes)
