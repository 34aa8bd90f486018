"""One sentence on what is seen in a shot, composed from measurements. It claims nothing that was not measured.

A description by a vision model is another source of the same field; this one is always labelled ``composed``.
"""

from __future__ import annotations

from inversion.pictures import Look
from schemas.storyboard import TextBox

_TEXT_CHARS = 120


def compose(look: Look, motion: float, text: tuple[TextBox, ...]) -> str:
    """For example: ``Dark still card, mostly black; on screen: "Chapter one".``"""
    light = "dark" if look.luma < 0.2 else "bright" if look.luma > 0.7 else ""
    pace = "still" if motion < 0.003 else "calm" if motion < 0.015 else "moving" if motion < 0.05 else "fast-moving"
    if look.plain < 16:
        what = "plain frame"
    elif look.flatness > 0.6 and text:
        what = "card or screen with text"
    elif look.flatness > 0.6:
        what = "graphic"
    else:
        what = "picture"
    head = " ".join(word for word in (light, pace, what) if word)
    colours = [name for name, _ in look.palette]
    mostly = f", mostly {' and '.join(colours[:2])}" if colours else ""
    said = f'; on screen: "{_shown(text)}"' if text else ""
    return f"{head[0].upper()}{head[1:]}{mostly}{said}."


def _shown(text: tuple[TextBox, ...]) -> str:
    """The lines, largest first as far as they fit, in reading order."""
    room = _TEXT_CHARS
    chosen: set[int] = set()
    for k in sorted(range(len(text)), key=lambda k: (-text[k].height, k)):
        if len(text[k].text) <= room:
            chosen.add(k)
            room -= len(text[k].text) + 3
    if not chosen and text:
        return text[0].text[:_TEXT_CHARS]
    return " / ".join(text[k].text for k in sorted(chosen))
