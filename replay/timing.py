"""How long each shot lasts, in exact frames. Pure.

A narrated shot needs its narration, a moment before and a pause after; a silent one its planned length. Planned lengths above that are
followed a little way (a picture may breathe), and the film is brought into the task's bounds where narration leaves room.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from schemas.time import Rate

LEAD_US = 80_000
"""From the cut to the first sound of a shot's narration."""
BREATH_US = 700_000
"""A narrated shot follows its planned length so far beyond its need, unless the film must be longer."""
SHORTEST_US = 800_000
"""A silent shot is never made shorter to fit the film's bounds; planned shorter, it stays as planned."""
FLOOR_US = 200_000
"""No shot is shorter."""
STRETCH = 3
"""A shot is held at most so many times its length to reach the film's lower bound."""


@dataclass(frozen=True, slots=True)
class Wish:
    """One shot: its planned length, and its narration's length (None for a silent shot)."""

    shot_id: str
    target_us: int
    narration_us: int | None


@dataclass(frozen=True, slots=True)
class Slot:
    """One shot on the timeline, in frames."""

    shot_id: str
    start_frame: int
    frames: int
    narration_offset_us: int


@dataclass(frozen=True, slots=True)
class Layout:
    """All slots, back to back from frame 0. ``is_feasible``: the film lies within the bounds; if not, it is as near as it gets."""

    slots: tuple[Slot, ...]
    total_frames: int
    is_feasible: bool


def lay_out(wishes: Sequence[Wish], rate: Rate, *, gap_us: int, min_us: int, max_us: int) -> Layout:
    """Place shots by cumulative rounding: frame borders are the nearest frames to the running sum of lengths, so nothing drifts.

    Args:
        gap_us: silence after each narration.
        min_us: shortest film allowed.
        max_us: longest film allowed.
    """
    need = [_need(w, gap_us) for w in wishes]
    wanted = [max(n, min(w.target_us, n + BREATH_US)) if w.narration_us is not None else n for w, n in zip(wishes, need, strict=True)]
    floor = [n if w.narration_us is not None else min(n, SHORTEST_US) for w, n in zip(wishes, need, strict=True)]
    if sum(wanted) > max_us:
        lengths = _shift(wanted, floor, max_us)
    elif sum(wanted) < min_us:
        planned = [max(v, w.target_us) for v, w in zip(wanted, wishes, strict=True)]
        lengths = _shift(wanted, planned, min_us)
        if sum(lengths) < min_us:
            lengths = _shift(lengths, [v * STRETCH for v in lengths], min_us)
    else:
        lengths = wanted
    slots: list[Slot] = []
    at = 0
    frame = 0
    for wish, length in zip(wishes, lengths, strict=True):
        at += length
        end = max(frame + 1, rate.frame_at(at))
        offset = LEAD_US if wish.narration_us is not None else 0
        slots.append(Slot(wish.shot_id, frame, end - frame, offset))
        frame = end
    half_frame = rate.us_at(1) // 2 + 1
    total = rate.us_at(frame)
    return Layout(tuple(slots), frame, min_us - half_frame <= total <= max_us + half_frame)


def _need(wish: Wish, gap_us: int) -> int:
    if wish.narration_us is None:
        return max(FLOOR_US, wish.target_us)
    return max(FLOOR_US, LEAD_US + wish.narration_us + gap_us)


def _shift(lengths: Sequence[int], limits: Sequence[int], goal: int) -> list[int]:
    """Move every length towards its limit by the same share of the way, so that the sum comes as near to ``goal`` as the limits allow."""
    room = [b - a for a, b in zip(lengths, limits, strict=True)]
    total, away = sum(room), goal - sum(lengths)
    if total == 0 or (total > 0) != (away > 0):
        return list(lengths)
    if abs(away) >= abs(total):
        return list(limits)
    return [a + r * away // total for a, r in zip(lengths, room, strict=True)]
