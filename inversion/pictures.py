"""What can be said of a still without reading or recognising anything: light, colours, flatness, sharpness, kinship to others.

Owns arithmetic on arrays, uint8 sRGB [height, width, 3]. Must not decode or store.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.uint8]

_GRID = 8
_KIN_COLOUR = 0.55
"""Weight of colours against structure in kinship."""


@dataclass(frozen=True, slots=True)
class Look:
    """One still in numbers.

    ``luma`` 0 to 1. ``colour``: mean sRGB. ``sharpness``: mean absolute second difference of luma, levels. ``flatness``: share of pixels in
    the most common of 64 colour cells (high on cards, slides and screens). ``plain``: brightest less darkest of all, levels.
    ``palette``: names of the main colours with their shares, largest first. ``layout`` [8 x 8 x 3] and ``edges`` [8 x 8, +-1] for kinship.
    """

    luma: float
    colour: tuple[int, int, int]
    sharpness: float
    flatness: float
    plain: float
    palette: tuple[tuple[str, float], ...]
    layout: NDArray[np.float32]
    edges: NDArray[np.float32]


def look_at(image: Image) -> Look:
    """Measure one still. Works on a copy of at most about 300 x 300 pixels, but sharpness is taken at full size."""
    step = max(1, max(image.shape[:2]) // 300)
    small = image[step // 2 :: step, step // 2 :: step].astype(np.float32)
    luma = small @ np.array([0.299, 0.587, 0.114], np.float32)
    mean = small.reshape(-1, 3).mean(axis=0)
    cells = (small.astype(np.uint8) >> 6).astype(np.int64)
    counts = np.bincount((cells[..., 0] * 16 + cells[..., 1] * 4 + cells[..., 2]).ravel(), minlength=64)
    layout = pooled(small, _GRID, _GRID)
    wide = pooled(luma[..., None], _GRID, _GRID + 1)[..., 0]
    return Look(
        luma=round(float(luma.mean()) / 255, 4),
        colour=(round(float(mean[0])), round(float(mean[1])), round(float(mean[2]))),
        sharpness=_sharpness(image),
        flatness=float(counts.max()) / max(1, int(counts.sum())),
        plain=float(luma.max() - luma.min()),
        palette=_palette(small),
        layout=layout,
        edges=np.sign(wide[:, 1:] - wide[:, :-1] + 0.5).astype(np.float32),
    )


def pooled(values: NDArray[np.float32], rows: int, columns: int) -> NDArray[np.float32]:
    """Means over a grid of cells, shape [rows, columns, channels]."""
    height, width = values.shape[:2]
    y = np.linspace(0, height, rows + 1).astype(int)
    x = np.linspace(0, width, columns + 1).astype(int)
    out = np.empty((rows, columns, values.shape[2]), np.float32)
    for i in range(rows):
        for j in range(columns):
            out[i, j] = values[y[i] : max(y[i + 1], y[i] + 1), x[j] : max(x[j + 1], x[j] + 1)].mean(axis=(0, 1))
    return out


def _sharpness(image: Image) -> float:
    luma = image[..., 1].astype(np.int16)
    across = np.abs(2 * luma[:, 1:-1] - luma[:, :-2] - luma[:, 2:]).mean() if luma.shape[1] > 2 else 0.0
    down = np.abs(2 * luma[1:-1] - luma[:-2] - luma[2:]).mean() if luma.shape[0] > 2 else 0.0
    return round(float(across + down) / 2, 3)


_NAMES = ("red", "orange", "yellow", "green", "cyan", "blue", "purple", "pink")
_HUES = (15, 42, 70, 165, 200, 260, 300, 345)
"""Upper ends of the hues, degrees."""


def _palette(small: NDArray[np.float32]) -> tuple[tuple[str, float], ...]:
    pixels = small.reshape(-1, 3) / 255
    top, low = pixels.max(axis=1), pixels.min(axis=1)
    chroma = top - low
    safe = np.maximum(chroma, 1e-6)
    r, g, b = pixels.T
    hue = np.where(top == r, (g - b) / safe % 6, np.where(top == g, (b - r) / safe + 2, (r - g) / safe + 4)) * 60
    names = np.searchsorted(np.array(_HUES), hue) % len(_NAMES)
    grey = (chroma < 0.12) | (top < 0.12)
    brown = ~grey & (names <= 1) & (top < 0.55)
    shares: dict[str, float] = {}
    total = len(pixels)
    for k, name in enumerate(_NAMES):
        shares[name] = float((~grey & ~brown & (names == k)).sum()) / total
    shares["brown"] = float(brown.sum()) / total
    shares["black"] = float((grey & (top < 0.2)).sum()) / total
    shares["white"] = float((grey & (top > 0.85)).sum()) / total
    shares["grey"] = float(grey.sum()) / total - shares["black"] - shares["white"]
    main = sorted(((n, round(s, 3)) for n, s in shares.items() if s >= 0.12), key=lambda item: (-item[1], item[0]))
    return tuple(main[:3])


def kinship(looks: list[Look]) -> list[tuple[int | None, float | None]]:
    """For each still the most similar other one and their similarity, 0 to 1 (1: the same picture)."""
    if len(looks) < 2:
        return [(None, None)] * len(looks)
    layouts = np.stack([k.layout.ravel() for k in looks])
    edges = np.stack([k.edges.ravel() for k in looks])
    out: list[tuple[int | None, float | None]] = []
    for i in range(len(looks)):
        apart = np.abs(layouts - layouts[i]).mean(axis=1)
        alike = (edges @ edges[i]) / edges.shape[1]
        score = _KIN_COLOUR * np.clip(1 - apart / 80, 0, 1) + (1 - _KIN_COLOUR) * np.clip((alike + 1) / 2, 0, 1)
        score[i] = -1
        best = int(score.argmax())
        out.append((best, round(float(score[best]), 4)))
    return out


def same_still(a: Look, b: Look, first: Image, second: Image) -> bool:
    """Whether two stills are the same picture, so that what is written on one is written on the other."""
    if first.shape != second.shape or abs(a.luma - b.luma) > 0.004 or float(np.abs(a.layout - b.layout).max()) > 3:
        return False
    step = max(1, max(first.shape[:2]) // 640)
    change = np.abs(first[::step, ::step].astype(np.int16) - second[::step, ::step]).max(axis=2)
    return float((change > 24).mean()) < 2e-4
