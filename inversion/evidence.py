"""What can be seen in each shot: key frames, on-screen text, light, colour, motion, and the most similar other shot.

Owns the order of the work: stills are fetched a few shots at a time, stored, measured, and read by threads while the next ones are
fetched, so that memory stays flat. Must not decide where shots are.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from inversion.captions import Read, split_captions
from inversion.config import InversionConfig
from inversion.describe import compose
from inversion.pictures import Look, kinship, look_at, same_still
from inversion.shots import DetectedShot
from inversion.vision import describer
from media.command import Sandbox
from media.crew import Crew, result
from media.frames import grab_frames
from media.images import jpeg_bytes
from schemas.artifact import ArtifactKind
from schemas.media import MediaInfo
from schemas.storyboard import Evidence, KeyFrame, TextBox
from storage.artifacts import ArtifactStore

_GROUP = 6
"""Shots whose stills are held in memory at a time."""
_PLAIN = 14.0
"""A still whose lightest and darkest pixels are this close has nothing on it to read, levels."""


class TextReader(Protocol):
    """Optical character recognition (structural; media.ocr has one)."""

    @property
    def name(self) -> str:
        """Engine and version."""
        ...

    def read(self, image: NDArray[np.uint8]) -> tuple[TextBox, ...]:
        """Text lines of a picture, top to bottom."""
        ...


@dataclass(frozen=True, slots=True)
class Spent:
    """Where the time went, microseconds: ``grab_us`` in the decoder, ``read_us`` summed over reading threads, ``wall_us`` altogether.

    ``reads`` stills were read; ``spared`` were plain or the same picture as an earlier one.
    """

    grab_us: int
    read_us: int
    wall_us: int
    reads: int
    spared: int


@dataclass(frozen=True, slots=True)
class _Still:
    key_frames: tuple[KeyFrame, ...]
    look: Look
    width: int
    height: int
    lines: Future[tuple[TextBox, ...]] | tuple[TextBox, ...]
    caption: Future[str | None] | None


def gather_evidence(
    path: Path,
    info: MediaInfo,
    sandbox: Sandbox,
    shots: Sequence[DetectedShot],
    reader: TextReader | None,
    store: ArtifactStore,
    config: InversionConfig,
) -> list[Evidence]:
    """Look at every shot.

    Text boxes are in pixels of the shot's first key frame, which is the one that was read.

    Args:
        shots: as found by :func:`inversion.shots.detect_shots`.
        reader: reads text; None leaves the text empty.
        store: key frames are stored here as JPEG.

    Raises:
        MediaRejected, ToolFailed, LimitExceeded, SandboxUnavailable: from the decoder.
        EndpointFailed: a caption server that is configured gave no answer.
        StorageFault: a key frame could not be stored.
    """
    return gather(path, info, sandbox, shots, reader, store, config)[0]


def gather(
    path: Path,
    info: MediaInfo,
    sandbox: Sandbox,
    shots: Sequence[DetectedShot],
    reader: TextReader | None,
    store: ArtifactStore,
    config: InversionConfig,
) -> tuple[list[Evidence], Spent]:
    """:func:`gather_evidence`, and where its time went."""
    begun = time.monotonic_ns()
    settings = config.evidence
    clock = _Clock()
    stills: list[_Still] = []
    eye = describer(settings)
    with (
        Crew(max_workers=settings.ocr_threads, thread_name_prefix="read") as pool,
        Crew(max_workers=settings.caption_requests, thread_name_prefix="describe") as describing,
    ):
        desk = _Desk(reader if settings.ocr else None, pool, clock, most_waiting=2 * settings.ocr_threads)
        for images, times in _fetched(path, info, sandbox, shots, settings.key_frames_per_shot, settings.max_side, clock):
            looks = [look_at(image) for image in images]
            front = _front(looks)
            order = [front, *(k for k in range(len(images)) if k != front)]
            files = [jpeg_bytes(images[k]) for k in order]
            frames = tuple(_stored(data, images[k], times[k], store) for data, k in zip(files, order, strict=True))
            image, look = images[front], looks[front]
            asked = describing.submit(eye.describe, files[0]) if eye is not None else None
            stills.append(_Still(frames, look, image.shape[1], image.shape[0], desk.hand_in(image, look), asked))
        reads = [
            Read(result(s.lines) if isinstance(s.lines, Future) else s.lines, s.width, s.height, shot.strip_changes)
            for s, shot in zip(stills, shots, strict=True)
        ]
        told = [result(s.caption) if s.caption is not None else None for s in stills]
    kin = kinship([s.look for s in stills])
    out: list[Evidence] = []
    rows = zip(stills, shots, split_captions(reads), kin, told, strict=True)
    for still, shot, (lines, captions), (nearest, similarity), caption in rows:
        out.append(
            Evidence(
                key_frames=still.key_frames,
                text=lines,
                burned_captions=captions,
                motion=shot.motion,
                luma=still.look.luma,
                colour=still.look.colour,
                nearest_shot=nearest,
                nearest_similarity=similarity,
                caption=caption or compose(still.look, shot.motion, lines),
                caption_source="endpoint" if caption else "composed",
            )
        )
    spent = Spent(clock.grab_ns // 1000, clock.read_ns // 1000, (time.monotonic_ns() - begun) // 1000, desk.reads, desk.spared)
    return out, spent


@dataclass(slots=True)
class _Clock:
    grab_ns: int = 0
    read_ns: int = 0


def _fetched(
    path: Path,
    info: MediaInfo,
    sandbox: Sandbox,
    shots: Sequence[DetectedShot],
    each: int,
    max_side: int,
    clock: _Clock,
) -> Iterator[tuple[list[NDArray[np.uint8]], tuple[int, ...]]]:
    """For each shot its stills and their times, in order."""
    for first in range(0, len(shots), _GROUP):
        group = shots[first : first + _GROUP]
        times = [shot.stills_us[:each] or (shot.start_us,) for shot in group]
        begun = time.monotonic_ns()
        images = grab_frames(path, info, sandbox, [at for t in times for at in t], max_side)
        clock.grab_ns += time.monotonic_ns() - begun
        at = 0
        for t in times:
            yield images[at : at + len(t)], t
            at += len(t)


def _front(looks: list[Look]) -> int:
    """The best still of a shot: the first offered, unless it is plain or clearly less sharp than another."""
    best = 0
    for k, look in enumerate(looks):
        plain, better = looks[best].plain < _PLAIN <= look.plain, look.sharpness > 1.5 * looks[best].sharpness + 1
        if plain or (better and look.plain >= _PLAIN):
            best = k
    return best


def _stored(data: bytes, image: NDArray[np.uint8], at_us: int, store: ArtifactStore) -> KeyFrame:
    ref = store.put_bytes(data, ArtifactKind.KEY_FRAME, "image/jpeg")
    return KeyFrame(at_us=at_us, sha256=ref.sha256, width=image.shape[1], height=image.shape[0])


class _Desk:
    """Hands stills to the readers, a bounded number at a time, and spares those that need no reading."""

    def __init__(self, reader: TextReader | None, pool: Crew, clock: _Clock, most_waiting: int) -> None:
        self._read = _timed(reader, clock) if reader is not None else None
        self._pool = pool
        self._most = most_waiting
        self._waiting: deque[Future[tuple[TextBox, ...]]] = deque()
        self._recent: deque[tuple[NDArray[np.uint8], Look, Future[tuple[TextBox, ...]]]] = deque(maxlen=3)
        self.reads = 0
        self.spared = 0

    def hand_in(self, image: NDArray[np.uint8], look: Look) -> Future[tuple[TextBox, ...]] | tuple[TextBox, ...]:
        if self._read is None:
            return ()
        if look.plain < _PLAIN:
            self.spared += 1
            return ()
        for earlier, seen, lines in self._recent:
            if same_still(seen, look, earlier, image):
                self.spared += 1
                return lines
        while len(self._waiting) >= self._most:
            result(self._waiting.popleft())
        future = self._pool.submit(self._read, image)
        self._waiting.append(future)
        self._recent.append((image, look, future))
        self.reads += 1
        return future


def _timed(reader: TextReader, clock: _Clock) -> Callable[[NDArray[np.uint8]], tuple[TextBox, ...]]:
    def read(image: NDArray[np.uint8]) -> tuple[TextBox, ...]:
        begun = time.monotonic_ns()
        try:
            return reader.read(image)
        finally:
            clock.read_ns += time.monotonic_ns() - begun

    return read
