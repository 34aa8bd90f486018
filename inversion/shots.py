"""Shots of a film: one pass over small frames, in constant memory, every time taken from presentation times.

Owns the pass: it feeds :class:`inversion.reel.Reel` and asks :mod:`inversion.cuts` and :mod:`inversion.gradual` about a stretch at a
time, with enough of a margin on both sides that where stretches meet makes no difference. Must not open the file itself.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from inversion.config import InversionConfig
from inversion.cuts import Rules, find_cuts
from inversion.figures import Figures
from inversion.gradual import Gradual, find_dissolves, find_fades
from inversion.reel import Reel
from inversion.slides import find_slides
from media.command import Sandbox
from media.frames import stream_frames
from schemas.media import MediaInfo
from schemas.storyboard import Transition

_BATCH = 64
_CORE = 800
"""Frames decided at a time."""
_MARGIN = 200
"""Frames seen before and after them, at 25 frames a second or fewer; more in proportion at higher rates."""


@dataclass(frozen=True, slots=True)
class DetectedShot:
    """One shot: frames ``[start_frame, end_frame)``, times ``[start_us, end_us)``.

    ``transition_start_us`` and ``transition_end_us`` bound the mixed frames of a gradual transition into this shot (None for cuts); the
    shot starts in their middle. ``confidence``: 0.5 just so, 1 beyond doubt. ``motion``: mean absolute luma change between frames over
    255. ``stills_us``: times of frames that stand still, show something and lie in no transition, best first. ``strip_changes``: how
    often the lowest part of the frame changed while the rest did not, as burned-in captions do.
    """

    start_us: int
    end_us: int
    start_frame: int
    end_frame: int
    transition_in: Transition
    transition_start_us: int | None
    transition_end_us: int | None
    confidence: float
    motion: float
    stills_us: tuple[int, ...]
    strip_changes: int


@dataclass(frozen=True, slots=True)
class ShotTrack:
    """All shots of a film, in order, covering ``[0, end_us)`` without gap or overlap.

    ``judging_us`` is the time spent on deciding, ``wall_us`` that of the whole pass with its decoder: for benches only.
    """

    shots: tuple[DetectedShot, ...]
    frames: int
    end_us: int
    judging_us: int
    wall_us: int


@dataclass(frozen=True, slots=True)
class _Boundary:
    """Start of a new shot. For a gradual one the mixed frames are ``[start, end)``."""

    at: int
    start: int
    end: int
    kind: Transition
    margin: float


def detect_shots(path: Path, info: MediaInfo, sandbox: Sandbox, config: InversionConfig) -> ShotTrack:
    """Find the shots of a film.

    Args:
        path: the file; decoded once, in the sandbox, at ``config.shots.analysis_width``.
        info: its probe; gives the end of the picture.

    Raises:
        MediaRejected: no picture stream, or nothing that decodes.
        ToolFailed, LimitExceeded, SandboxUnavailable: as :func:`media.frames.stream_frames`.
    """
    begun = time.monotonic_ns()
    width, height = analysis_size(config.shots.analysis_width)
    spotter = _Spotter(width, height, Rules.of(config.shots.sensitivity))
    waiting: list[NDArray[np.uint8]] = []
    for frame in stream_frames(path, info, sandbox, width=width, height=height):
        waiting.append(frame.array)
        spotter.times.append(frame.pts_us)
        if len(waiting) == _BATCH:
            spotter.add(np.stack(waiting))
            waiting.clear()
    if waiting:
        spotter.add(np.stack(waiting))
    boundaries = spotter.finish()
    end_us = _picture_end(info, spotter.times)
    shots = _shots(boundaries, spotter, end_us, config.shots.min_shot_us)
    wall = (time.monotonic_ns() - begun) // 1000
    return ShotTrack(shots, len(spotter.times), end_us, spotter.judging_ns // 1000, wall)


def analysis_size(wanted: int) -> tuple[int, int]:
    """Frame size for a wanted width: the nearest that the match grid divides, 64 x 36 at least. The aspect is always 16:9; other films are
    squeezed into it, which changes nothing for the comparison of frames with each other."""
    width = max(64, 32 * round(wanted / 32))
    return width, width * 9 // 16


class _Spotter:
    """The running state of the pass."""

    def __init__(self, width: int, height: int, rules: Rules) -> None:
        self.times = array("q")
        self.figures = Figures()
        self.judging_ns = 0
        self._reel = Reel(width, height)
        self._rules = rules
        self._decided = 0
        self._cuts: dict[int, float] = {}
        self._spent: set[int] = set()
        self._gradual: list[Gradual] = []

    def add(self, batch: NDArray[np.uint8]) -> None:
        begun = time.monotonic_ns()
        self._reel.add(batch)
        self.figures.add(self._reel, len(batch))
        pace = self._pace()
        margin = round(_MARGIN * max(1.0, pace))
        while self._reel.end - self._decided >= _CORE + margin:
            self._decide(self._decided + _CORE, pace, None)
            self._reel.drop_before(self._decided - margin)
        self.judging_ns += time.monotonic_ns() - begun

    def finish(self) -> list[_Boundary]:
        """Decide the rest; all boundaries in order."""
        begun = time.monotonic_ns()
        if self._reel.end > self._decided:
            self._decide(self._reel.end, self._pace(), self._reel.end)
        out = [_Boundary(f, f, f, Transition.CUT, m) for f, m in self._cuts.items() if f not in self._spent]
        out += [_Boundary(g.at, g.start, g.end, g.kind, g.margin) for g in self._gradual]
        self.judging_ns += time.monotonic_ns() - begun
        return sorted(out, key=lambda b: b.at)

    def _pace(self) -> float:
        """Frames in 40 ms, from the times of the last stretch."""
        gaps = np.diff(np.array(self.times[-(_CORE + _MARGIN) :], np.int64))
        gaps = gaps[gaps > 0]
        return 40_000 / float(np.median(gaps)) if len(gaps) else 1.0

    def _decide(self, until: int, pace: float, film_end: int | None) -> None:
        reel, times = self._reel, np.array(self.times, np.int64)
        found = find_cuts(reel, self._decided, reel.end, times, pace, self._rules)
        known = {f: m for f, m in self._cuts.items() if f >= reel.first} | {c.frame: c.margin for c in found}
        fades = find_fades(reel, times, pace, sorted(known), film_end, self._rules)
        known = {f: m for f, m in known.items() if f not in fades.spent}
        walls = sorted([*known, *(edge for stretch in fades.taken for edge in stretch)])
        slides = find_slides(reel, self._decided, until, pace, walls, self._rules)
        dissolves = find_dissolves(reel, self._decided, until, pace, walls, self._rules)
        taken = [*fades.taken, *((s.start, s.end) for s in slides)]
        free = [d for d in dissolves if not any(start < d.end and d.start < end for start, end in taken)]
        free += [s for s in slides if not any(start < s.end and s.start < end for start, end in fades.taken)]
        self._spent |= fades.spent
        self._cuts |= {f: m for f, m in known.items() if self._decided <= f < until}
        self._gradual += [g for g in fades.fades if self._decided <= g.at < until] + free
        self._decided = until


def _picture_end(info: MediaInfo, times: Sequence[int]) -> int:
    told = info.video.duration_us if info.video is not None else 0
    return max(told, (times[-1] if times else 0) + 1)


def _shots(boundaries: list[_Boundary], spotter: _Spotter, end_us: int, least_us: int) -> tuple[DetectedShot, ...]:
    """Shots between the boundaries that leave every shot some time, and ``least_us`` of it where that is asked for."""
    times = spotter.times
    kept = [_Boundary(0, 0, 0, Transition.START, 1.0)]
    for b in boundaries:
        long_enough = times[b.at] - times[kept[-1].at] >= max(least_us, 1) if b.at < len(times) else False
        if long_enough and end_us - times[b.at] >= max(least_us, 1):
            kept.append(b)
    out: list[DetectedShot] = []
    for k, b in enumerate(kept):
        after = kept[k + 1] if k + 1 < len(kept) else None
        start_us, last_us = (times[b.at] if k else 0), (times[after.at] if after else end_us)
        clear = (max(b.end, b.at), after.start if after else len(times))
        mixed = b.kind not in (Transition.START, Transition.CUT)
        out.append(
            DetectedShot(
                start_us=start_us,
                end_us=last_us,
                start_frame=b.at,
                end_frame=after.at if after else len(times),
                transition_in=b.kind,
                transition_start_us=times[b.start] if mixed else None,
                transition_end_us=(times[b.end] if b.end < len(times) else end_us) if mixed else None,
                confidence=round(0.5 + 0.5 * b.margin, 3),
                motion=spotter.figures.motion(*clear),
                stills_us=tuple(times[f] for f in spotter.figures.stills(*clear, fallback=b.at)),
                strip_changes=spotter.figures.strip_changes(*clear),
            )
        )
    return tuple(out)
