"""Real moving pictures for made films: clips of the demo lecture, from stretches that hold no cut.

Owns where those stretches are. The film is opened in the sandbox like any other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image

from evaluation.studio.pictures import Picture
from evaluation.studio.scenes import Size
from evaluation.studio.truth import Credit
from media.assets import asset
from media.command import Sandbox
from media.frames import stream_frames
from media.probe import probe
from schemas.time import US

STRETCHES_S = ((22.0, 31.0), (36.0, 57.0), (76.0, 84.5), (88.5, 109.0), (119.0, 130.0), (145.0, 180.0))
"""Seconds of the demo film without a cut and without the fast pans its cameraman makes, seen by eye."""
CREDIT = Credit(
    what="clips of Physicsworks, MIT OpenCourseWare 8.01, lecture 11", author="Walter Lewin, MIT OpenCourseWare", licence="CC BY 3.0"
)
_SIZE = (320, 240)


@dataclass(frozen=True)
class Clip:
    """Decoded frames shown at the film's own pace."""

    frames: tuple[Picture, ...]
    times_us: tuple[int, ...]
    rate: int

    def frame(self, at: int, size: Size) -> Picture:
        """The picture on screen ``at`` frames after the start, scaled to cover ``size``."""
        moment = min(max(at * US // self.rate + self.times_us[0], self.times_us[0]), self.times_us[-1])
        picture = self.frames[max(0, int(np.searchsorted(self.times_us, moment, side="right")) - 1)]
        scale = max(size[0] / picture.shape[1], size[1] / picture.shape[0])
        grown = Image.fromarray(picture).resize(
            (max(size[0], round(picture.shape[1] * scale)), max(size[1], round(picture.shape[0] * scale))), Image.Resampling.BICUBIC
        )
        left, top = (grown.width - size[0]) // 2, (grown.height - size[1]) // 2
        return np.asarray(grown.crop((left, top, left + size[0], top + size[1])))


class Footage:
    """Hands out clips for one film, never two in a row from one stretch. Nothing is opened before the first one."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._last: tuple[float, float] | None = None

    def clip(self, rng: np.random.Generator, frames: int, rate: int) -> Clip:
        """A clip of ``frames`` frames at ``rate``, with a second more at either end for transitions where there is room.

        Raises:
            EngineMissing: the demo film is not on this machine.
        """
        need = frames / rate + 1.0
        fitting = [s for s in STRETCHES_S if s[1] - s[0] >= need] or [max(STRETCHES_S, key=lambda s: s[1] - s[0])]
        fitting = [s for s in fitting if s != self._last] or [s for s in STRETCHES_S if s != self._last]
        self._last = low, high = fitting[int(rng.integers(0, len(fitting)))]
        start = float(rng.uniform(low, max(low + 0.01, high - need)))
        path = asset("demo-video")
        info = probe(path, self._sandbox)
        taken = list(
            stream_frames(
                path,
                info,
                self._sandbox,
                width=_SIZE[0],
                height=_SIZE[1],
                start_us=round(start * US),
                end_us=round(min(high, start + need) * US),
            )
        )
        return Clip(tuple(f.array for f in taken), tuple(f.pts_us for f in taken), rate)
