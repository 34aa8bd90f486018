"""Colours of a film's graphics: one of six hand-made themes, chosen by what the film's own footage looks like.

Owns the colours and the choice. Every pair that carries text has a contrast of at least 4.5 (WCAG 2.2, 1.4.3); a test computes it and
another measures it on drawn pixels. Pure: must not open pictures.
"""

from __future__ import annotations

import colorsys
from collections.abc import Iterable
from dataclasses import dataclass, fields

from schemas.state import PoolClip

Colour = tuple[int, int, int]

GREY_BELOW = 0.10
"""Footage whose mean colour is less saturated than this has no hue of its own."""
BRIGHT_FROM = 0.62
"""Grey footage whose mean is at least this bright gets the light theme."""


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours as ``#rrggbb``. ``ground`` to ``glow`` is the background's gradient; ``panel`` and ``line`` are surfaces and hairlines on it;
    ``ink``, ``soft`` (secondary) and ``accent`` are set on ground and panel, ``on_accent`` on accent, ``second`` is a second accent."""

    name: str
    ground: str
    glow: str
    panel: str
    line: str
    ink: str
    soft: str
    accent: str
    second: str
    on_accent: str

    def css(self) -> str:
        """Custom properties of these colours."""
        return " ".join(f"--{f.name.replace('_', '-')}: {getattr(self, f.name)};" for f in fields(self) if f.name != "name")


THEMES = {
    t.name: t
    for t in (
        Theme("night", "#161e36", "#2c3f74", "#202b4a", "#43527c", "#f5f7fc", "#b4bfd6", "#ffb84d", "#5cc8ff", "#1d1503"),
        Theme("lagoon", "#0e2a33", "#175061", "#173b47", "#3a6672", "#f3fbfa", "#a9c8cc", "#ff9e7a", "#6fe0cf", "#2b0f04"),
        Theme("forest", "#16281f", "#2c5140", "#203a2d", "#48695a", "#f6faf3", "#b3c8b8", "#f0c75e", "#8fdca6", "#231a02"),
        Theme("ember", "#2b1a17", "#5a332a", "#3c2721", "#70524a", "#fdf6f0", "#d6bfb2", "#ffad5c", "#ff8f80", "#2a1402"),
        Theme("plum", "#251a33", "#4b3068", "#352647", "#62507c", "#faf6fd", "#c9bbd9", "#ffb3c1", "#a9b6ff", "#30101a"),
        Theme("paper", "#f4f1ea", "#fffdf8", "#e8e3d7", "#c4bcab", "#1c222b", "#525b66", "#a8371f", "#1c5d8c", "#fff7f2"),
    )
}
DEFAULT = THEMES["night"]


def theme_of(pool: Iterable[PoolClip]) -> Theme:
    """The theme of a film: by hue of its footage's mean colour, weighted by length; grey footage is dark or bright.

    The user's own clips, whose colour nobody measured, do not count.
    """
    clips = [c for c in pool if c.origin == "source"]
    length = sum(c.duration_us for c in clips)
    if length == 0:
        return DEFAULT
    r, g, b = (sum(c.colour[i] * c.duration_us for c in clips) / length / 255 for i in range(3))
    hue, saturation, value = colorsys.rgb_to_hsv(r, g, b)
    if saturation < GREY_BELOW:
        return THEMES["paper"] if value >= BRIGHT_FROM else DEFAULT
    degrees = hue * 360
    for below, name in ((75, "ember"), (160, "forest"), (205, "lagoon"), (260, "night"), (335, "plum")):
        if degrees < below:
            return THEMES[name]
    return THEMES["ember"]


def luminance(colour: Colour) -> float:
    """Relative luminance of an sRGB colour, 0 to 1 (WCAG 2.2)."""
    parts = [c / 255 for c in colour]
    r, g, b = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(one: Colour, two: Colour) -> float:
    """Contrast ratio of two colours, 1 to 21 (WCAG 2.2)."""
    high, low = sorted((luminance(one), luminance(two)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def rgb(text: str) -> Colour:
    """The colour of ``#rrggbb``."""
    return (int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16))
