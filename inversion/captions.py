"""Burned-in captions told apart from cards.

Captions are lines low in the frame, about the middle, of one height all through a film, whose text changes while their place does not.
A line on a card or a name in a lower third lacks one of these. Owns that decision on lines that have been read already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from schemas.storyboard import TextBox

_LOW = 0.68
"""Captions have their middle below this share of the height."""
_TALL = 0.13
_CENTRED = 0.16
_SAME_PLACE = 0.035


@dataclass(frozen=True, slots=True)
class Read:
    """Lines read off the still of one shot of ``width`` x ``height`` pixels; how often its caption strip changed on its own."""

    lines: tuple[TextBox, ...]
    width: int
    height: int
    strip_changes: int


def split_captions(reads: Sequence[Read]) -> list[tuple[tuple[TextBox, ...], tuple[str, ...]]]:
    """For each shot, the lines that are no captions, and the captions' text."""
    groups = [_caption_like(r) for r in reads]
    places = [(_middle(g, r), _text(g)) for g, r in zip(groups, reads, strict=True)]
    out: list[tuple[tuple[TextBox, ...], tuple[str, ...]]] = []
    for k, (group, read) in enumerate(zip(groups, reads, strict=True)):
        if not group or not _recurs(k, places, read):
            out.append((read.lines, ()))
            continue
        kept = tuple(line for line in read.lines if line not in group)
        out.append((kept, tuple(line.text for line in group)))
    return out


def _recurs(index: int, places: list[tuple[float | None, str]], read: Read) -> bool:
    """The strip changed inside the shot, or the same place holds another text in another shot."""
    place, text = places[index]
    others = sum(p is not None and place is not None and abs(p - place) < _SAME_PLACE and t != text for p, t in places)
    return read.strip_changes > 0 or others > 0


def _caption_like(read: Read) -> tuple[TextBox, ...]:
    """The lowest run of one to three lines that stand like a caption."""
    height, width = read.height, read.width
    low = [
        b
        for b in read.lines
        if (b.y + b.height / 2) / height > _LOW
        and 0.015 < b.height / height < _TALL
        and abs((b.x + b.width / 2) / width - 0.5) < _CENTRED
        and b.width / width > 0.06
    ]
    low.sort(key=lambda b: b.y, reverse=True)
    run: list[TextBox] = []
    for box in low:
        if run and (run[-1].y - box.y > 2.2 * run[-1].height or abs(run[-1].height - box.height) > 0.5 * run[-1].height):
            break
        run.append(box)
        if len(run) == 3:
            break
    if any(0.55 < b.height / max(r.height, 1) < 1.8 for r in run for b in _level_with(read, r)):
        return ()
    return tuple(reversed(run))


def _level_with(read: Read, line: TextBox) -> list[TextBox]:
    """Other lines of the same row: a table or a menu, not a caption."""
    middle = line.y + line.height / 2
    return [b for b in read.lines if b != line and b.y < middle < b.y + b.height]


def _middle(group: tuple[TextBox, ...], read: Read) -> float | None:
    """Where the last line of the group stands, in shares of the height."""
    return (group[-1].y + group[-1].height / 2) / read.height if group else None


def _text(group: tuple[TextBox, ...]) -> str:
    return " ".join(b.text for b in group)
