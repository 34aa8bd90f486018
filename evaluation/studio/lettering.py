"""Lettering on films: Latin and Chinese text drawn with the same local fonts the templates use, and the exact box of its ink.

Owns fonts and boxes. Must not know what a card is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from media.assets import asset
from replay.graphics.fonts import FontFile, choose_fonts
from schemas.errors import EngineMissing

Colour = tuple[int, int, int]
Box = tuple[int, int, int, int]
"""x, y, width, height in pixels."""


@lru_cache(maxsize=512)
def _face(path: Path, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(path), size)


@lru_cache(maxsize=256)
def _chosen(text: str, weight: int) -> tuple[tuple[str, Path], ...]:
    """The font file of each character. Raises EngineMissing where no font has it."""
    folders = {"Inter": asset("fonts-inter").parent, "Noto Sans SC": asset("fonts-noto-sc").parent}
    files, missing = choose_fonts((text,), folders)
    if missing:
        raise EngineMissing("no_glyph", f"no font holds {''.join(missing)!r}", "run 'workprint fetch hyperframes'")
    return tuple((c, _file_of(c, files, weight).path) for c in text)


def _file_of(char: str, files: Iterable[FontFile], weight: int) -> FontFile:
    return next(f for f in files if f.weight == weight and f.covers(char))


@dataclass(frozen=True, slots=True)
class Lettering:
    """One line of text in one size.

    Args:
        size: font size in pixels.
        weight: 500 or 700.
    """

    text: str
    size: int
    weight: int = 700

    @property
    def width(self) -> int:
        """Advance width, pixels."""
        return round(sum(face.getlength(run) for run, face in self._runs()))

    def draw(self, image: Image.Image, x: int, y: int, colour: Colour, outline: int = 0) -> Box:
        """Draw with the top of the font's ascent at ``y``; the box of the ink."""
        pen = ImageDraw.Draw(image)
        base = y + round(0.95 * self.size)
        at = float(x)
        boxes: list[tuple[float, float, float, float]] = []
        for run, face in self._runs():
            pen.text((at, base), run, fill=colour, font=face, anchor="ls", stroke_width=outline, stroke_fill=(0, 0, 0))
            boxes.append(pen.textbbox((at, base), run, font=face, anchor="ls", stroke_width=outline))
            at += face.getlength(run)
        left, top = min(b[0] for b in boxes), min(b[1] for b in boxes)
        right, bottom = max(b[2] for b in boxes), max(b[3] for b in boxes)
        return round(left), round(top), round(right - left), round(bottom - top)

    def _runs(self) -> list[tuple[str, ImageFont.FreeTypeFont]]:
        out: list[tuple[str, Path]] = []
        for char, path in _chosen(self.text, self.weight):
            if out and out[-1][1] == path:
                out[-1] = (out[-1][0] + char, path)
            else:
                out.append((char, path))
        return [(run, _face(path, self.size)) for run, path in out]


def fitted(text: str, size: int, width: int, weight: int = 700, least: int = 11) -> Lettering:
    """The line in the largest size up to ``size`` that is at most ``width`` wide, never under ``least``."""
    line = Lettering(text, size, weight)
    while line.width > width and line.size > least:
        line = Lettering(text, max(least, min(line.size - 1, line.size * width // max(1, line.width))), weight)
    return line


def wrapped(text: str, size: int, width: int, weight: int = 700) -> list[Lettering]:
    """The text in lines of at most ``width``: broken at spaces, in Chinese after any character but before no punctuation."""
    pieces = text.split(" ") if " " in text else _chinese_pieces(text)
    glue = " " if " " in text else ""
    lines: list[str] = []
    for piece in pieces:
        longer = f"{lines[-1]}{glue}{piece}" if lines else piece
        if lines and Lettering(longer, size, weight).width <= width:
            lines[-1] = longer
        else:
            lines.append(piece)
    return [fitted(line, size, width, weight) for line in lines]


def _chinese_pieces(text: str) -> list[str]:
    out: list[str] = []
    for char in text:
        if out and (char in "，。、；：！？”」" or (char.isascii() and out[-1].isascii())):
            out[-1] += char
        else:
            out.append(char)
    return out


@dataclass(frozen=True, slots=True)
class Layer:
    """Something laid over a picture: colours and opacity, shape [height, width, 4], with its upper left corner in the frame."""

    pixels: NDArray[np.uint8]
    x: int
    y: int

    def over(self, picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The picture with the layer on it."""
        out = picture.copy()
        height, width = self.pixels.shape[:2]
        part = out[self.y : self.y + height, self.x : self.x + width].astype(np.float32)
        mine = self.pixels[: part.shape[0], : part.shape[1]].astype(np.float32)
        share = mine[..., 3:] / 255
        out[self.y : self.y + height, self.x : self.x + width] = (part * (1 - share) + mine[..., :3] * share + 0.5).astype(np.uint8)
        return out


def layer_of(canvas: Image.Image) -> Layer:
    """The part of an RGBA canvas of the frame's size that is not empty."""
    box = canvas.getchannel("A").getbbox() or (0, 0, 1, 1)
    return Layer(np.asarray(canvas.crop(box)), box[0], box[1])
