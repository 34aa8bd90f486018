"""Still pictures to make films from: drawn by a seed, or real ones from a folder.

Owns picture material only. Must not know of time, cuts or files other than the folder it is given.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter, ImageFont

Picture = NDArray[np.uint8]
"""sRGB, shape [height, width, 3]."""

TEXT_FONT = "DejaVuSans.ttf"


def font(size: float, path: str | Path | None = None) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """A scalable font of about ``size`` pixels; Pillow's own when no path is given."""
    if path is not None:
        return ImageFont.truetype(str(path), size)
    return ImageFont.load_default(size)


def fractal(rng: np.random.Generator, width: int, height: int, roughness: float = 0.55) -> NDArray[np.float32]:
    """Natural-looking noise in 0..1 with a falling spectrum, shape [height, width]."""
    out = np.zeros((height, width), np.float32)
    weight, cells = 1.0, 3
    while cells < max(width, height):
        grid = rng.random((max(2, cells * height // width + 2), cells + 2)).astype(np.float32)
        layer = Image.fromarray(grid).resize((width, height), Image.Resampling.BICUBIC)
        out += weight * np.asarray(layer, np.float32)
        weight *= roughness
        cells *= 2
    low, high = out.min(), out.max()
    level: NDArray[np.float32] = (out - low) / max(float(high - low), 1e-6)
    return level


def _levels(picture: NDArray[np.float32]) -> Picture:
    out: Picture = np.clip(picture, 0, 255).astype(np.uint8)
    return out


def _colour(rng: np.random.Generator, low: int = 0, high: int = 256) -> tuple[int, int, int]:
    r, g, b = (int(v) for v in rng.integers(low, high, 3))
    return r, g, b


def _mix(a: tuple[int, int, int], b: tuple[int, int, int], share: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(a, np.float32) * (1 - share[..., None]) + np.asarray(b, np.float32) * share[..., None]


def landscape(rng: np.random.Generator, width: int, height: int) -> Picture:
    """Sky, ridges and ground."""
    picture = _mix(_colour(rng, 90), _colour(rng, 120), fractal(rng, width, height, 0.45))
    base = rng.uniform(0.3, 0.55) * height
    for layer in range(int(rng.integers(2, 5))):
        ridge = np.asarray(fractal(rng, width, 8, 0.5))[3]
        top = base + layer * height * 0.13 + (ridge - 0.5) * height * 0.3
        mask = np.arange(height)[:, None] > top[None, :]
        ground = _mix(_colour(rng, 0, 200), _colour(rng, 0, 200), fractal(rng, width, height, 0.7))
        picture[mask] = ground[mask]
    return _levels(picture)


def still_life(rng: np.random.Generator, width: int, height: int) -> Picture:
    """Overlapping shaded shapes on a soft ground."""
    ground = np.clip(_mix(_colour(rng), _colour(rng), fractal(rng, width, height, 0.4)), 0, 255).astype(np.uint8)
    image = Image.fromarray(ground)
    draw = ImageDraw.Draw(image)
    for _ in range(int(rng.integers(6, 30))):
        x, y = int(rng.integers(0, width)), int(rng.integers(0, height))
        w, h = (int(v) for v in rng.integers(max(6, width // 30), max(12, width // 4), 2))
        box = (x - w // 2, y - h // 2, x + w // 2, y + h // 2)
        if rng.random() < 0.5:
            draw.ellipse(box, fill=_colour(rng))
        else:
            draw.rectangle(box, fill=_colour(rng))
    image = image.filter(ImageFilter.GaussianBlur(float(rng.uniform(0.3, 1.6))))
    grain = fractal(rng, width, height, 0.9)[..., None] * 40 - 20
    return _levels(np.asarray(image, np.float32) + grain)


def figure(rng: np.random.Generator, width: int, height: int) -> Picture:
    """A head and shoulders before a room: the frame of an interview."""
    picture = np.clip(_mix(_colour(rng), _colour(rng), fractal(rng, width, height, 0.6)), 0, 255).astype(np.uint8)
    image = Image.fromarray(picture)
    draw = ImageDraw.Draw(image)
    cx = width * rng.uniform(0.3, 0.7)
    unit = height * rng.uniform(0.14, 0.24)
    skin = _colour(rng, 60, 230)
    draw.ellipse((cx - 2.1 * unit, height - 2.2 * unit, cx + 2.1 * unit, height + 3 * unit), fill=_colour(rng))
    draw.ellipse((cx - 0.8 * unit, height - 4.2 * unit, cx + 0.8 * unit, height - 2.0 * unit), fill=skin)
    for side in (-0.3, 0.3):
        draw.ellipse((cx + side * unit - 4, height - 3.3 * unit - 3, cx + side * unit + 4, height - 3.3 * unit + 3), fill=(20, 20, 20))
    grain = fractal(rng, width, height, 0.9)[..., None] * 30 - 15
    return _levels(np.asarray(image.filter(ImageFilter.GaussianBlur(1.0)), np.float32) + grain)


def drawn(rng: np.random.Generator, width: int, height: int) -> Picture:
    """One of the drawn kinds."""
    return (landscape, still_life, figure)[int(rng.integers(0, 3))](rng, width, height)


def darkened(picture: Picture, gain: float, lift: float = 0.0) -> Picture:
    """The same picture under another exposure: ``value * gain + lift``."""
    return _levels(picture.astype(np.float32) * gain + lift)


def from_folder(folder: Path, width: int, height: int) -> list[Picture]:
    """Every picture of our own folder, scaled to cover ``width`` x ``height`` (never used on files of strangers)."""
    out: list[Picture] = []
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() not in {".png", ".jpg", ".jpeg"}:
            continue
        with Image.open(path) as image:
            rgb = image.convert("RGB")
        scale = max(width / rgb.width, height / rgb.height)
        rgb = rgb.resize((max(width, round(rgb.width * scale)), max(height, round(rgb.height * scale))), Image.Resampling.LANCZOS)
        left, top = (rgb.width - width) // 2, (rgb.height - height) // 2
        out.append(np.asarray(rgb.crop((left, top, left + width, top + height))).copy())
    return out
