"""What a camera, a slide projector or a screen shows: scenes that draw their own frame for any moment.

A scene is a pure function of the frame number, so that dissolves can look past its ends. Owns drawing only; where one scene
stops and another starts is the edit's business (evaluation.studio.edit).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from evaluation.studio.lettering import Layer
from evaluation.studio.pictures import Picture, font

Size = tuple[int, int]
"""Width and height in pixels."""


class Scene(Protocol):
    """Draws itself."""

    def frame(self, at: int, size: Size) -> Picture:
        """Frame number ``at`` (0 is the first of its shot, may be negative or past the end), exactly ``size``."""
        ...


@dataclass(frozen=True)
class Camera:
    """A view that moves over a larger picture.

    ``path`` maps the frame number to (centre x, centre y, height of the view), all in shares of the picture's height and width;
    ``blur`` samples that many moments between two frames, as a shutter does.
    """

    picture: Picture
    path: Callable[[float], tuple[float, float, float]]
    blur: int = 1

    def frame(self, at: int, size: Size) -> Picture:
        if self.blur == 1:
            return self._sample(at, size)
        parts = [self._sample(at + k / (2 * self.blur), size).astype(np.float32) for k in range(self.blur)]
        out: Picture = np.clip(np.mean(parts, axis=0) + 0.5, 0, 255).astype(np.uint8)
        return out

    def _sample(self, at: float, size: Size) -> Picture:
        width, height = size
        tall, wide = self.picture.shape[:2]
        cx, cy, zoom = self.path(at)
        scale = zoom * tall / height
        left, top = cx * wide - scale * width / 2, cy * tall - scale * height / 2
        left = min(max(left, 0.0), max(wide - scale * width, 0.0))
        top = min(max(top, 0.0), max(tall - scale * height, 0.0))
        image = Image.fromarray(self.picture)
        moved = image.transform(size, Image.Transform.AFFINE, (scale, 0, left, 0, scale, top), Image.Resampling.BILINEAR)
        return np.asarray(moved)


def hold(cx: float = 0.5, cy: float = 0.5, zoom: float = 0.85) -> Callable[[float], tuple[float, float, float]]:
    """A camera on a tripod."""
    return lambda at: (cx, cy, zoom)


def glide(start: tuple[float, float, float], end: tuple[float, float, float], frames: int) -> Callable[[float], tuple[float, float, float]]:
    """Even motion from one view to another over ``frames`` (zoom, pan, tilt), going on past the ends."""

    def path(at: float) -> tuple[float, float, float]:
        share = at / max(frames, 1)
        x, y, z = (a + (b - a) * share for a, b in zip(start, end, strict=True))
        return x, y, max(z, 0.05)

    return path


def whip(start: float, end: float, begin: int, frames: int, zoom: float = 0.85) -> Callable[[float], tuple[float, float, float]]:
    """A fast pan: still, then over to ``end`` within ``frames``, then still."""

    def path(at: float) -> tuple[float, float, float]:
        share = min(max((at - begin) / max(frames, 1), 0.0), 1.0)
        eased = share * share * (3 - 2 * share)
        return start + (end - start) * eased, 0.5, zoom

    return path


def shaken(
    path: Callable[[float], tuple[float, float, float]], rng: np.random.Generator, strength: float, frames: int = 2000
) -> Callable[[float], tuple[float, float, float]]:
    """The same view from an unsteady hand; ``strength`` in shares of the picture."""
    kicks = rng.normal(0, strength, (frames, 2))
    slow = np.cumsum(kicks, axis=0) * 0.3
    slow -= np.linspace(0, 1, frames)[:, None] * slow[-1]
    wander = kicks * 0.5 + np.clip(slow, -3 * strength, 3 * strength)

    def moved(at: float) -> tuple[float, float, float]:
        x, y, z = path(at)
        low = int(np.floor(at)) % frames
        share = at - np.floor(at)
        dx, dy = wander[low] * (1 - share) + wander[(low + 1) % frames] * share
        return x + float(dx), y + float(dy), z

    return moved


@dataclass(frozen=True)
class Sprite:
    """Something that crosses the picture: a cut-out, its position and speed in shares of the frame."""

    picture: Picture
    x: float
    y: float
    dx: float
    dy: float
    size: float


@dataclass(frozen=True)
class Moving:
    """Objects moving before another scene."""

    behind: Scene
    sprites: tuple[Sprite, ...]

    def frame(self, at: int, size: Size) -> Picture:
        image = Image.fromarray(self.behind.frame(at, size))
        for s in self.sprites:
            edge = max(4, round(s.size * size[1]))
            patch = Image.fromarray(s.picture).resize((edge, edge))
            mask = Image.new("L", (edge, edge), 0)
            ImageDraw.Draw(mask).ellipse((0, 0, edge - 1, edge - 1), fill=255)
            x, y = (s.x + s.dx * at) % 1.4 - 0.2, (s.y + s.dy * at) % 1.4 - 0.2
            image.paste(patch, (round(x * size[0]) - edge // 2, round(y * size[1]) - edge // 2), mask)
        return np.asarray(image)


@dataclass(frozen=True)
class TextLine:
    """One line on a slide: position and height in shares of the frame; it appears at frame ``since``."""

    text: str
    x: float
    y: float
    height: float
    colour: tuple[int, int, int] = (235, 235, 235)
    since: int = -(10**6)


@dataclass(frozen=True)
class Slide:
    """Text and bars on one colour."""

    ground: tuple[int, int, int]
    lines: tuple[TextLine, ...] = ()
    bars: tuple[tuple[float, float, float, float, tuple[int, int, int]], ...] = ()
    font_path: str | None = None

    def frame(self, at: int, size: Size) -> Picture:
        image = Image.new("RGB", size, self.ground)
        draw = ImageDraw.Draw(image)
        for x, y, w, h, colour in self.bars:
            draw.rectangle((x * size[0], y * size[1], (x + w) * size[0], (y + h) * size[1]), fill=colour)
        for line in self.lines:
            if at >= line.since:
                draw.text(
                    (line.x * size[0], line.y * size[1]), line.text, fill=line.colour, font=font(line.height * size[1], self.font_path)
                )
        return np.asarray(image)


@dataclass(frozen=True)
class Terminal:
    """A terminal recording: typed characters, then output lines that appear at once, scrolling when full."""

    events: tuple[tuple[int, str], ...]
    """(frame, text): text that is added at that frame; '\\n' starts a line."""
    ground: tuple[int, int, int] = (14, 14, 18)
    ink: tuple[int, int, int] = (220, 225, 220)
    rows: int = 24
    bar: tuple[int, int, int] | None = (80, 160, 0)

    def frame(self, at: int, size: Size) -> Picture:
        text = "".join(t for since, t in self.events if since <= at)
        shown = text.split("\n")[-self.rows :]
        image = Image.new("RGB", size, self.ground)
        draw = ImageDraw.Draw(image)
        step = size[1] / (self.rows + 2)
        face = font(step * 0.85)
        for row, line in enumerate(shown):
            draw.text((4, row * step), line, fill=self.ink, font=face)
        last = shown[-1] if shown else ""
        if (at // 12) % 2 == 0:
            x = 5 + draw.textlength(last, font=face)
            y = (len(shown) - 1) * step
            draw.rectangle((x, y + 2, x + step * 0.4, y + step), fill=self.ink)
        if self.bar is not None:
            draw.rectangle((0, size[1] - step, size[0], size[1]), fill=self.bar)
        return np.asarray(image)


@dataclass(frozen=True)
class Lit:
    """Another scene under changing light: ``gain`` maps the frame number to (factor, lift)."""

    scene: Scene
    gain: Callable[[int], tuple[float, float]]

    def frame(self, at: int, size: Size) -> Picture:
        factor, lift = self.gain(at)
        out: Picture = np.clip(self.scene.frame(at, size).astype(np.float32) * factor + lift, 0, 255).astype(np.uint8)
        return out


@dataclass(frozen=True)
class Grainy:
    """Another scene with film grain of ``sigma`` levels."""

    scene: Scene
    sigma: float
    seed: int

    def frame(self, at: int, size: Size) -> Picture:
        rng = np.random.default_rng([self.seed, at % (2**31)])
        noise = rng.normal(0, self.sigma, (size[1], size[0], 1))
        out: Picture = np.clip(self.scene.frame(at, size).astype(np.float32) + noise, 0, 255).astype(np.uint8)
        return out


@dataclass(frozen=True)
class Flash:
    """Frames [at, at + frames) replaced by one colour, or lightened where ``share`` is under 1."""

    at: int
    frames: int
    colour: tuple[int, int, int] = (255, 255, 255)
    share: float = 1.0


@dataclass(frozen=True)
class Flashing:
    """Another scene with flashes in it."""

    scene: Scene
    flashes: tuple[Flash, ...]

    def frame(self, at: int, size: Size) -> Picture:
        picture: NDArray[np.uint8] = self.scene.frame(at, size)
        for f in self.flashes:
            if f.at <= at < f.at + f.frames:
                mixed = picture.astype(np.float32) * (1 - f.share) + np.asarray(f.colour, np.float32) * f.share
                lit: Picture = np.clip(mixed, 0, 255).astype(np.uint8)
                return lit
        return picture


@dataclass(frozen=True)
class Boxed:
    """Another scene inside a frame: letterbox, pillarbox or picture in picture, on a still ground."""

    scene: Scene
    ground: Picture
    left: float
    top: float
    width: float
    height: float

    def frame(self, at: int, size: Size) -> Picture:
        out = np.asarray(Image.fromarray(self.ground).resize(size)).copy()
        x, y = round(self.left * size[0]), round(self.top * size[1])
        w, h = max(2, round(self.width * size[0])), max(2, round(self.height * size[1]))
        w, h = min(w, size[0] - x), min(h, size[1] - y)
        out[y : y + h, x : x + w] = self.scene.frame(at, (w, h))
        return out


@dataclass(frozen=True)
class Captioned:
    """Another scene with burned-in lines: (first frame, end frame, text)."""

    scene: Scene
    lines: Sequence[tuple[int, int, str]] = field(default_factory=tuple)
    height: float = 0.06
    boxed: bool = False
    font_path: str | None = None

    def frame(self, at: int, size: Size) -> Picture:
        image = Image.fromarray(self.scene.frame(at, size))
        draw = ImageDraw.Draw(image)
        face = font(self.height * size[1], self.font_path)
        for since, until, text in self.lines:
            if since <= at < until:
                width = draw.textlength(text, font=face)
                x, y = (size[0] - width) / 2, size[1] * 0.88
                if self.boxed:
                    draw.rectangle((x - 4, y - 2, x + width + 4, y + self.height * size[1] * 1.2), fill=(60, 60, 60))
                draw.text((x, y), text, fill=(255, 255, 255), font=face, stroke_width=1, stroke_fill=(0, 0, 0))
        return np.asarray(image)


@dataclass(frozen=True)
class Painted:
    """A finished picture that stands still."""

    picture: Picture

    def frame(self, at: int, size: Size) -> Picture:
        if self.picture.shape[1::-1] == size:
            return self.picture
        return np.asarray(Image.fromarray(self.picture).resize(size))


@dataclass(frozen=True)
class Overlaid:
    """Another scene with a layer of lettering on it."""

    scene: Scene
    layer: Layer

    def frame(self, at: int, size: Size) -> Picture:
        return self.layer.over(self.scene.frame(at, size))
