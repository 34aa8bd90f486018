"""Measures a product's bytes: is there a moving, visible picture of the right size, is there sound of the right loudness.

Owns the figures, not the judgement: what is too dark, too still or too loud is decided by those who ask.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from media.command import Command, Sandbox
from media.decoding import Source, pictures
from media.ffmpeg import DECODE_LIMITS, input_options, last_words, tool
from media.frames import fitted
from media.probe import MediaLimits, describe_video, look_into
from schemas.errors import MediaRejected
from schemas.stage import RejectCode
from schemas.time import US, Rate

BLACK_LUMA = 25
"""A pixel of at most this luma (0..255) is black."""
BLACK_PIXELS = 0.98
"""A picture with at least this share of black pixels is black."""
STILL_DIFFERENCE = 0.255
"""Mean absolute luma difference (0..255) below which two pictures are the same: -60 dB."""
STILL_US = 500_000
"""Sameness shorter than this is not stillness: repeated pictures of a slower source are none."""
SILENT_DBFS = -50.0
"""RMS below which a window of 50 ms is silent."""
CLIPPED = 0.9999
"""Samples of at least this size are at full scale."""
LOWEST_DBFS = -120.0

_LOOK_SIDE = 160


@dataclass(frozen=True, slots=True)
class VideoMeasure:
    """Figures of a picture track, from decoding all of it."""

    frames: int
    width: int
    height: int
    """Display size, pixels."""
    rate: str
    """Frames per second as a fraction: '30/1', '30000/1001'."""
    duration_us: int
    black_share: float
    """Share of the pictures that are black."""
    frozen_share: float
    """Share of the length in which the picture stands still for at least :data:`STILL_US`."""
    mean_luma: float
    """0 to 1."""

    @property
    def frame_rate(self) -> Rate:
        """:attr:`rate` as a value."""
        num, _, den = self.rate.partition("/")
        return Rate(num=int(num), den=int(den))


@dataclass(frozen=True, slots=True)
class AudioMeasure:
    """Figures of a sound track, from decoding all of it."""

    duration_us: int
    """From the decoded samples, not from a header."""
    sample_rate: int
    channels: int
    loudness_lufs: float | None
    """Integrated loudness (EBU R 128); None where nothing is loud or long enough to count."""
    peak_dbfs: float
    """Highest sample; :data:`LOWEST_DBFS` for digital silence."""
    silent_share: float
    """Share of windows of 50 ms below :data:`SILENT_DBFS`."""
    clipped_share: float
    """Share of samples at full scale."""
    true_peak_dbtp: float
    """Highest level between the samples too (ITU-R BS.1770, four times oversampled); :data:`LOWEST_DBFS` for digital silence."""


def check_video(path: Path, sandbox: Sandbox) -> VideoMeasure:
    """Decode a picture track once, small, and measure it.

    Raises:
        MediaRejected: the file is no media, has no picture, or cannot be decoded.
        ToolFailed, LimitExceeded, SandboxUnavailable: ours to handle.
    """
    bounds = MediaLimits()
    _, container, listing, choice = look_into(path, sandbox, bounds)
    if not choice.pictures:
        raise MediaRejected(RejectCode.NO_VIDEO, "the file has no picture stream", "")
    one = choice.pictures[0]
    shape = describe_video(one, container, listing, 0, bounds)
    width, height = fitted(shape.display_width, shape.display_height, _LOOK_SIDE)
    stills = _Stills()
    frames, black, luma, start_us = 0, 0, 0.0, 0
    source = Source(path, container, one.index, raw_clock=True)
    for piece in pictures(source, sandbox, chain=f"scale={width}:{height}:flags=area,format=gray", frame_bytes=width * height):
        picture = np.frombuffer(piece.data, np.uint8)
        if frames == 0:
            start_us = piece.pts_us
        frames += 1
        luma += float(picture.mean())
        black += bool(np.count_nonzero(picture <= BLACK_LUMA) >= BLACK_PIXELS * picture.size)
        stills.see(piece.pts_us - start_us, picture)
    video = describe_video(one, container, listing, start_us, bounds)
    return VideoMeasure(
        frames=frames,
        width=video.display_width,
        height=video.display_height,
        rate=f"{video.rate.num}/{video.rate.den}",
        duration_us=video.duration_us,
        black_share=black / frames,
        frozen_share=stills.total_us(video.duration_us) / video.duration_us if video.duration_us else 0.0,
        mean_luma=luma / frames / 255,
    )


class _Stills:
    """Adds up the stretches in which the picture does not change."""

    def __init__(self) -> None:
        self._held: NDArray[np.int16] | None = None
        self._since_us = 0
        self._total_us = 0

    def see(self, at_us: int, picture: NDArray[np.uint8]) -> None:
        now = picture.astype(np.int16)
        if self._held is not None and float(np.abs(now - self._held).mean()) < STILL_DIFFERENCE:
            return
        self._close(at_us)
        self._held, self._since_us = now, at_us

    def total_us(self, end_us: int) -> int:
        self._close(end_us)
        self._since_us = end_us
        return self._total_us

    def _close(self, at_us: int) -> None:
        if self._held is not None and at_us - self._since_us >= STILL_US:
            self._total_us += at_us - self._since_us


def check_audio(path: Path, sandbox: Sandbox) -> AudioMeasure:
    """Decode a sound track once and measure it.

    Raises:
        MediaRejected: the file is no media, has no sound, or cannot be decoded.
        ToolFailed, LimitExceeded, SandboxUnavailable: ours to handle.
    """
    _, container, _, choice = look_into(path, sandbox, MediaLimits())
    if not choice.sounds:
        raise MediaRejected(RejectCode.NO_AUDIO, "the file has no sound track", "")
    one = choice.sounds[0]
    rate, channels = int(one.values["sample_rate"]), int(one.values["channels"])
    program, folders = tool("ffmpeg")
    meter = _Meter(rate, channels)
    command = Command(
        argv=(
            *(program, "-nostdin", "-hide_banner", "-nostats", "-v", "info", *input_options(container), "-i", "/in/source"),
            *("-map", f"0:{one.index}", "-af", f"ebur128=framelog=verbose:peak=true,aformat=sample_fmts=flt:sample_rates={rate}"),
            *("-ac", str(channels), "-c:a", "pcm_f32le", "-f", "f32le", "pipe:1"),
        ),
        inputs={"source": path},
        folders=folders,
        limits=DECODE_LIMITS,
    )
    done = sandbox.stream(command, meter.read)
    if done.returncode != 0 or meter.frames == 0:
        raise MediaRejected(RejectCode.UNREADABLE, f"its sound cannot be decoded (status {done.returncode}): {last_words(done.stderr)}", "")
    return meter.measure(_integrated(done.stderr), _true_peak(done.stderr))


class _Meter:
    """Adds up samples as they come."""

    def __init__(self, rate: int, channels: int) -> None:
        self._rate, self._channels = rate, channels
        self._window = max(1, rate // 20)
        self.frames = 0
        self._peak = 0.0
        self._clipped = 0
        self._windows = 0
        self._silent = 0

    def read(self, pipe: IO[bytes]) -> None:
        floor = 10 ** (SILENT_DBFS / 10)
        width = 4 * self._channels
        while data := pipe.read(self._window * width * 20):
            block = np.frombuffer(data[: len(data) // width * width], "<f4").reshape(-1, self._channels)
            self.frames += len(block)
            size = np.abs(block)
            self._peak = max(self._peak, float(size.max(initial=0.0)))
            self._clipped += int(np.count_nonzero(size >= CLIPPED))
            for start in range(0, len(block), self._window):
                power = np.square(block[start : start + self._window], dtype=np.float64).mean(axis=0).max()
                self._windows += 1
                self._silent += bool(power < floor)

    def measure(self, loudness: float | None, true_peak: float) -> AudioMeasure:
        return AudioMeasure(
            duration_us=round(self.frames * US / self._rate),
            sample_rate=self._rate,
            channels=self._channels,
            loudness_lufs=loudness,
            peak_dbfs=round(20 * math.log10(self._peak), 3) if self._peak > 0 else LOWEST_DBFS,
            silent_share=self._silent / max(1, self._windows),
            clipped_share=self._clipped / max(1, self.frames * self._channels),
            true_peak_dbtp=true_peak,
        )


def _integrated(log: str) -> float | None:
    """Integrated loudness out of the meter's closing summary; its floor of -70 means that nothing counted."""
    found = re.findall(r"^\s*I:\s*(-?\d+\.\d+) LUFS\s*$", log, re.MULTILINE)
    return float(found[-1]) if found and float(found[-1]) > -70.0 else None


def _true_peak(log: str) -> float:
    """True peak out of the meter's closing summary, to a tenth of a decibel."""
    found = re.findall(r"^\s*Peak:\s*(-?\d+\.\d+) dBFS\s*$", log, re.MULTILINE)
    return max(float(found[-1]), LOWEST_DBFS) if found else LOWEST_DBFS
