"""Measurements of artifacts, remembered by digest: an artifact that did not change is not measured again.

Owns the memory only; what is measured is decided by media.measure, media.frames and the configured text reader. Measures of sound and
picture are noted in the store too (replay.measured), so that a tool's own check and an inspection share one decode. A measurement is a
pure function of the bytes, so remembering one never changes a result. The memory is bounded; the oldest entries go first.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from media.audio import read_wav
from media.frames import grab_frames
from media.measure import AudioMeasure, VideoMeasure
from media.probe import probe
from replay.measured import measured_audio, measured_video
from replay.tool import ToolEnv
from schemas.artifact import ArtifactRef
from schemas.media import MediaInfo
from schemas.storyboard import TextBox

T = TypeVar("T")

MOTION_SIDE = 160
"""Longest side of pictures that are compared for motion, pixels."""

_LUMA = np.array([0.299, 0.587, 0.114], dtype=np.float32)

KEPT = 4096
"""Remembered measurements; frames are not kept, only what was read in them."""


@dataclass(frozen=True, slots=True)
class Still:
    """One frame of an artifact and the lines read in it."""

    image: NDArray[np.uint8]
    boxes: tuple[TextBox, ...]
    reader: str


@dataclass(frozen=True, slots=True)
class TrackEnd:
    """How a sound ends."""

    level_db: float
    """RMS of the last 40 ms against the RMS of the whole track, decibels; very low for a track that fades out."""


@dataclass(frozen=True, slots=True)
class Area:
    """A part of a picture, pixels of its own size."""

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Likeness:
    """How far an area of one picture shows another picture."""

    correlation: float
    """Of the luma of both, -1 to 1; 0 where one of them is flat."""
    apart: float
    """Mean absolute difference of luma, 0 to 255."""
    detail: float
    """Standard deviation of the other picture's luma, 0 to 255: without detail its correlation says nothing."""


class Measurements:
    """What is known of artifacts by their digests. Safe for threads; ``taken`` counts what the memory did not hold, by kind."""

    def __init__(self, kept: int = KEPT) -> None:
        self._known: OrderedDict[tuple[str, ...], Any] = OrderedDict()
        self._kept = kept
        self._lock = Lock()
        self.taken: Counter[str] = Counter()

    def video(self, ref: ArtifactRef, env: ToolEnv) -> VideoMeasure:
        """Frames, size, black and still shares of a picture artifact."""
        return self._once(("video", ref.sha256), lambda: measured_video(ref, env.store, env.sandbox))

    def audio(self, ref: ArtifactRef, env: ToolEnv) -> AudioMeasure:
        """Length, loudness, silent and clipped shares of a sound artifact."""
        return self._once(("audio", ref.sha256), lambda: measured_audio(ref, env.store, env.sandbox))

    def info(self, ref: ArtifactRef, env: ToolEnv) -> MediaInfo:
        """What a probe says of an artifact."""
        return self._once(("info", ref.sha256), lambda: probe(env.store.path(ref.sha256), env.sandbox))

    def track_end(self, ref: ArtifactRef, env: ToolEnv) -> TrackEnd:
        """How a WAV artifact of ours ends."""
        return self._once(("end", ref.sha256), lambda: _track_end(env.store.read(ref.sha256)))

    def still(self, ref: ArtifactRef, at_us: int, max_side: int, env: ToolEnv) -> Still:
        """The frame of a picture artifact at a time, and the text that the configured reader finds in it."""
        reader = env.engines.reader

        def take() -> Still:
            image = grab_frames(env.store.path(ref.sha256), self.info(ref, env), env.sandbox, [at_us], max_side)[0]
            return Still(image, reader.read(image), reader.name)

        return self._once(("still", ref.sha256, str(at_us), str(max_side), reader.name), take)

    def motion(self, ref: ArtifactRef, times_us: tuple[int, ...], env: ToolEnv) -> tuple[float, ...]:
        """Mean absolute luma change (0 to 255) between the pictures at successive times; one value less than times."""

        def take() -> tuple[float, ...]:
            pictures = grab_frames(env.store.path(ref.sha256), self.info(ref, env), env.sandbox, times_us, MOTION_SIDE)
            luma = [p.astype(np.float32) @ _LUMA for p in pictures]
            return tuple(float(np.abs(b - a).mean()) for a, b in pairwise(luma))

        return self._once(("motion", ref.sha256, *map(str, times_us)), take)

    def likeness(self, ref: ArtifactRef, at_us: int, other: ArtifactRef, other_us: int, area: Area, env: ToolEnv) -> Likeness:
        """How far ``area`` of one picture artifact, at a time, shows another picture artifact at a time of its own."""

        def take() -> Likeness:
            seen, wanted = self._luma(ref, at_us, env), self._luma(other, other_us, env)
            return _likeness(seen[area.y : area.y + area.height, area.x : area.x + area.width], wanted)

        key = ("likeness", ref.sha256, str(at_us), other.sha256, str(other_us), f"{area.x},{area.y},{area.width},{area.height}")
        return self._once(key, take)

    def _luma(self, ref: ArtifactRef, at_us: int, env: ToolEnv) -> NDArray[np.float32]:
        info = self.info(ref, env)
        side = max(info.video.display_width, info.video.display_height) if info.video is not None else 1
        return np.asarray(grab_frames(env.store.path(ref.sha256), info, env.sandbox, [at_us], side)[0].astype(np.float32) @ _LUMA)

    def _once(self, key: tuple[str, ...], take: Callable[[], T]) -> T:
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                value: T = self._known[key]
                return value
        value = take()
        with self._lock:
            self.taken[key[0]] += 1
            self._known[key] = value
            while len(self._known) > self._kept:
                self._known.popitem(last=False)
        return value


def _track_end(data: bytes) -> TrackEnd:
    samples, rate = read_wav(data)
    whole = _rms(samples)
    return TrackEnd(_db(_rms(samples[-max(1, rate * 40 // 1000) :]) / whole) if whole > 0 else -120.0)


def _likeness(seen: NDArray[np.float32], wanted: NDArray[np.float32]) -> Likeness:
    if 0 in seen.shape:
        return Likeness(0.0, 255.0, float(wanted.std()))
    rows, columns = (min(a, b) for a, b in zip(seen.shape, wanted.shape, strict=True))
    a, b = (_sampled(picture, rows, columns) for picture in (seen, wanted))
    spread = float(a.std() * b.std())
    correlation = float(((a - a.mean()) * (b - b.mean())).mean()) / spread if spread > 1e-6 else 0.0
    return Likeness(correlation, float(np.abs(a - b).mean()), float(b.std()))


def _sampled(picture: NDArray[np.float32], rows: int, columns: int) -> NDArray[np.float64]:
    """The picture at evenly spaced places, so that pictures of different size can be compared."""
    place = (np.linspace(0, n - 1, m).round().astype(int) for n, m in zip(picture.shape, (rows, columns), strict=True))
    return np.asarray(picture[np.ix_(*place)], dtype=np.float64)


def _rms(samples: NDArray[np.float32]) -> float:
    return float(np.sqrt(np.mean(np.square(samples, dtype=np.float64)))) if samples.size else 0.0


def _db(ratio: float) -> float:
    return float(20 * np.log10(ratio)) if ratio > 1e-6 else -120.0


MEASURED = Measurements()
"""The memory of this process."""
