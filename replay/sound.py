"""Arithmetic on sound: gain, limiting, trimming, resampling, looping, ducking. Arrays in, arrays out.

Owns every sample-level decision of the film's sound. Uses only operations that give the same bits on every processor (multiplication,
addition, comparison, square root; filter taps are rounded), so that a mix can be compared by digest. Must not read or write files.

Shapes: mono ``[n]``, film sound ``[n, 2]``; float32 in -1..1 unless said otherwise; positions are sample indices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gcd

import numpy as np
from numpy.typing import NDArray

Mono = NDArray[np.float32]
Stereo = NDArray[np.float32]
Wide = NDArray[np.float64]

CENTRE = 0.707107
"""A mono voice goes into both channels at -3 dB each, so that its loudness stays what it was."""
_TAPS = 32
_CHUNK = 1 << 20


def amplitude(db: float) -> float:
    """Factor of a level in decibels, rounded to six places."""
    return float(round(10.0 ** (db / 20.0), 6))


def trim_silence(samples: Mono, rate: int, *, below_db: float = -45.0, keep_before_s: float = 0.04, keep_after_s: float = 0.1) -> Mono:
    """Cut silence off both ends, judged in blocks of 10 ms against the loudest sample. Silent input comes back empty."""
    peak = float(np.max(np.abs(samples), initial=0.0))
    if peak < 1e-4:
        return samples[:0]
    step = max(1, rate // 100)
    blocks = -(-len(samples) // step)
    padded = np.zeros(blocks * step, np.float32)
    padded[: len(samples)] = np.abs(samples)
    loud = np.flatnonzero(padded.reshape(blocks, step).max(axis=1) > peak * amplitude(below_db))
    start = max(0, int(loud[0]) * step - round(keep_before_s * rate))
    end = min(len(samples), (int(loud[-1]) + 1) * step + round(keep_after_s * rate))
    return samples[start:end]


def fade_edges(samples: Mono, rate: int, seconds: float = 0.005) -> Mono:
    """Linear fade in and out against clicks."""
    n = min(len(samples) // 2, round(seconds * rate))
    if n == 0:
        return samples
    out = samples.copy()
    ramp = (np.arange(n, dtype=np.float32) + np.float32(0.5)) / np.float32(n)
    out[:n] *= ramp
    out[-n:] *= ramp[::-1]
    return out


def _sliding_min(values: Wide, half: int) -> Wide:
    """Minimum over ``[i - half, i + half]``, by doubling windows."""
    size = 2 * half + 1
    padded = np.concatenate([np.ones(half), values, np.ones(half)])
    width = 1
    while width * 2 <= size:
        padded = np.minimum(padded[:-width], padded[width:])
        width *= 2
    rest = size - width
    if rest:
        padded = np.minimum(padded[:-rest], padded[rest:])
    return padded[: len(values)]


def limit_peaks(samples: Mono, rate: int, ceiling: float, *, look_s: float = 0.004) -> Mono:
    """Keep every sample within ``ceiling`` by a smooth gain that begins before a peak and ends after it.

    Nothing changes where no peak is near.
    """
    level = np.abs(samples).astype(np.float64)
    if float(level.max(initial=0.0)) <= ceiling:
        return samples
    needed = np.ones(len(level))
    over = level > ceiling
    needed[over] = ceiling / level[over]
    half = max(1, round(look_s * rate))
    lowest = _sliding_min(needed, half)
    size = 2 * half + 1
    sums = np.cumsum(np.concatenate([np.zeros(1), np.ones(half), lowest, np.ones(half)]))
    gain = np.minimum((sums[size:] - sums[:-size]) / size, 1.0)
    limited: Mono = np.clip(samples * gain, -ceiling, ceiling).astype(np.float32)
    return limited


@lru_cache(maxsize=16)
def _taps(up: int, down: int) -> tuple[Wide, int]:
    """Polyphase table [up, taps] of a windowed sinc, and the taps before the centre."""
    stretch = max(1.0, down / up)
    half = int(_TAPS / 2 * stretch)
    phase = np.arange(up)[:, None] / up
    at = np.arange(-half + 1, half + 1)[None, :] - phase
    window = np.i0(9.0 * np.sqrt(np.maximum(0.0, 1 - (at / half) ** 2))) / np.i0(9.0)
    cutoff = 0.96 / stretch
    table = cutoff * np.sinc(cutoff * at) * window
    table /= table.sum(axis=1, keepdims=True)
    return np.round(table, 9), half - 1


def resample(samples: Mono, rate_in: int, rate_out: int) -> Mono:
    """Change the sample rate; sample 0 stays sample 0, the length becomes ``ceil(n * rate_out / rate_in)``."""
    if rate_in == rate_out or len(samples) == 0:
        return samples
    common = gcd(rate_in, rate_out)
    up, down = rate_out // common, rate_in // common
    table, before = _taps(up, down)
    taps = table.shape[1]
    length = -(-len(samples) * up // down)
    source = np.concatenate([np.zeros(before), samples.astype(np.float64), np.zeros(taps)])
    out = np.zeros(length)
    if down == 1:
        for phase in range(up):
            part = out[phase::up]
            for k in range(taps):
                part += table[phase, k] * source[k : k + len(part)]
        return out.astype(np.float32)
    for start in range(0, length, _CHUNK):
        at = np.arange(start, min(length, start + _CHUNK), dtype=np.int64) * down
        base, phases = at // up, at % up
        total = np.zeros(len(at))
        for k in range(taps):
            total += table[phases, k] * source[base + k]
        out[start : start + len(at)] = total
    return out.astype(np.float32)


@dataclass(frozen=True, slots=True)
class Voice:
    """One narration piece on the film's sound track."""

    start: int
    samples: Mono

    @property
    def end(self) -> int:
        """First sample after it."""
        return self.start + len(self.samples)


@dataclass(frozen=True, slots=True)
class Ducking:
    """Levels of the music as factors, and how fast they change, in samples."""

    open: float
    ducked: float
    attack: int
    release: int

    def points(self, spans: Sequence[tuple[int, int]], length: int) -> tuple[list[int], list[float]]:
        """Break points (positions, factors) of the gain over ``[0, length)``: low over each span, high between spans far enough apart."""
        merged: list[list[int]] = []
        for start, end in sorted(spans):
            if merged and start - merged[-1][1] <= self.attack + self.release:
                merged[-1][1] = max(merged[-1][1], end)
            else:
                merged.append([start, end])
        at: list[int] = [-1]
        gain: list[float] = [self.ducked if merged and merged[0][0] <= self.attack else self.open]
        for start, end in merged:
            if start > self.attack:
                at.append(start - self.attack)
                gain.append(self.open)
            at += [max(0, start), end]
            gain += [self.ducked, self.ducked]
            if end + self.release < length:
                at.append(end + self.release)
                gain.append(self.open)
        at.append(max(length, at[-1]) + 1)
        gain.append(gain[-1])
        return at, gain


@dataclass(frozen=True, slots=True)
class FilmSound:
    """The whole sound of a film, read block by block: narration in the middle, music under it, looped and ducked."""

    length: int
    rate: int
    voices: tuple[Voice, ...]
    music: Stereo | None
    ducking: Ducking
    fade_in: int
    fade_out: int
    loop_overlap: int

    def block(self, start: int, end: int) -> Stereo:
        """Samples ``[start, end)``, shape [end - start, 2]."""
        out = np.zeros((end - start, 2), np.float64)
        for voice in self.voices:
            lo, hi = max(start, voice.start), min(end, voice.end)
            if lo < hi:
                out[lo - start : hi - start] += CENTRE * voice.samples[lo - voice.start : hi - voice.start, None].astype(np.float64)
        if self.music is not None and len(self.music):
            position = np.arange(start, end, dtype=np.int64)
            at, gain = self.ducking.points([(v.start, v.end) for v in self.voices], self.length)
            level = np.interp(position, at, gain)
            if self.fade_in:
                level = level * np.clip((position + 1) / self.fade_in, 0.0, 1.0)
            if self.fade_out:
                level = level * np.clip((self.length - position) / self.fade_out, 0.0, 1.0)
            out += self._looped(self.music, position) * level[:, None]
        return np.clip(out, -1.0, 1.0).astype(np.float32)

    def _looped(self, music: Stereo, position: NDArray[np.int64]) -> Wide:
        if len(music) >= self.length:
            return music[position].astype(np.float64)
        overlap = min(self.loop_overlap, len(music) // 4)
        period = len(music) - overlap
        turn, rest = position // period, position % period
        out = music[rest].astype(np.float64)
        cross = (turn > 0) & (rest < overlap)
        if overlap and bool(cross.any()):
            share = (rest[cross] + 0.5) / overlap
            out[cross] = out[cross] * np.sqrt(share)[:, None] + music[rest[cross] + period] * np.sqrt(1 - share)[:, None]
        return out


def pcm16(samples: NDArray[np.float32]) -> bytes:
    """Little-endian 16 bit integers, channels interleaved."""
    scaled = np.clip(np.rint(samples.astype(np.float64) * 32767.0), -32768, 32767)
    return scaled.astype("<i2").tobytes()
