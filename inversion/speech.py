"""Voice activity: where somebody speaks.

Owns the Silero network (its weights come with faster-whisper) and the cutting of sound into windows at silences. Works in blocks, so
memory does not grow with the length of the film. Must not recognise words.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import util
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from schemas.errors import EngineMissing
from schemas.time import US, Span

RATE = 16_000
"""Samples per second of all sound in this package."""
HOP = 512
"""Samples per decision of the network (32 ms)."""
_CONTEXT = 64
_BLOCK = 4_096
_RELEASE = 0.15
"""Speech ends where the probability falls this far below the threshold that started it (hysteresis)."""

Samples = NDArray[np.float32]
"""Sound in -1..1: what engines take."""
Sound = NDArray[np.int16] | NDArray[np.float32]
"""The whole sound of a film, in 16 bits where it comes from a file, so that two hours take 230 MB; or in -1..1."""


def samples_of(sound: Sound) -> Samples:
    """A stretch of sound in -1..1."""
    return sound.astype(np.float32) * np.float32(1 / 32768) if sound.dtype == np.int16 else sound.astype(np.float32, copy=False)


@dataclass(frozen=True, slots=True)
class Window:
    """Sound that is recognised in one go: stretches of the film's sound, in order, laid end to end. Long silences are left out."""

    parts: tuple[Span, ...]

    @property
    def span(self) -> Span:
        """From the first sound to the last, on the project's clock."""
        return Span(start_us=self.parts[0].start_us, end_us=self.parts[-1].end_us)

    @property
    def duration_us(self) -> int:
        """Length of the sound laid end to end."""
        return sum(p.duration_us for p in self.parts)

    def sound(self, audio: Sound) -> Samples:
        """The window's samples out of the film's."""
        pieces = [samples_of(audio[samples_at(p.start_us) : samples_at(p.end_us)]) for p in self.parts]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def on_film(self, start_us: int, end_us: int) -> tuple[int, int]:
        """A stretch of the window on the project's clock. It lies in the one part that holds its middle."""
        middle = (start_us + end_us) // 2
        offset = 0
        for k, part in enumerate(self.parts):
            if middle < offset + part.duration_us or k == len(self.parts) - 1:
                shift = part.start_us - offset
                inside = (min(max(t + shift, part.start_us), part.end_us) for t in (start_us, end_us))
                return (next(inside), next(inside))
            offset += part.duration_us
        raise AssertionError("unreachable")

    def off_film(self, us: int) -> int | None:
        """Where a time of the film lies in the window; None if its sound is not in it."""
        offset = 0
        for part in self.parts:
            if part.start_us <= us < part.end_us:
                return offset + us - part.start_us
            offset += part.duration_us
        return None


def samples_at(us: int) -> int:
    """Sample index of a time, rounded down."""
    return us * RATE // US


def us_at(sample: int) -> int:
    """Time of a sample in microseconds."""
    return sample * US // RATE


@lru_cache(maxsize=1)
def _session() -> Any:
    found = util.find_spec("faster_whisper")
    if found is None or found.origin is None:
        raise EngineMissing("faster_whisper_missing", "voice activity needs the package faster-whisper", "pip install faster-whisper")
    weights = Path(found.origin).parent / "assets" / "silero_vad_v6.onnx"
    if not weights.is_file():
        raise EngineMissing(
            "vad_weights_missing", f"no {weights.name} in the package faster-whisper", "pip install 'faster-whisper>=1.2.1,<2'"
        )
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.inter_op_num_threads = 1
    options.intra_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(weights), providers=["CPUExecutionProvider"], sess_options=options)


def speech_probabilities(audio: Sound) -> NDArray[np.float32]:
    """Probability of speech for each :data:`HOP` samples of 16 kHz sound; shape [ceil(n / HOP)]."""
    count = -(-len(audio) // HOP)
    out = np.zeros(count, dtype=np.float32)
    hidden = np.zeros((1, 1, 128), dtype=np.float32)
    cell = np.zeros((1, 1, 128), dtype=np.float32)
    before = np.zeros(_CONTEXT, dtype=np.float32)
    session = _session()
    for first in range(0, count, _BLOCK):
        frames = min(_BLOCK, count - first)
        block = np.zeros(frames * HOP, dtype=np.float32)
        part = samples_of(audio[first * HOP : (first + frames) * HOP])
        block[: len(part)] = part
        rows = block.reshape(frames, HOP)
        context = np.vstack([before[None, :], rows[:-1, -_CONTEXT:]])
        result, hidden, cell = session.run(None, {"input": np.hstack([context, rows]), "h": hidden, "c": cell})
        out[first : first + frames] = np.asarray(result, dtype=np.float32).reshape(-1)
        before = rows[-1, -_CONTEXT:]
    return out


def speech_spans(
    probabilities: NDArray[np.float32], length: int, *, threshold: float = 0.5, min_silence_us: int = 500_000
) -> tuple[Span, ...]:
    """Spans of speech, in order and apart by at least ``min_silence_us``; no padding is added.

    Args:
        probabilities: from :func:`speech_probabilities`.
        length: number of samples of the sound.
        threshold: speech starts at this probability and ends :data:`_RELEASE` below it.
        min_silence_us: shorter silences stay inside a span.
    """
    release = max(threshold - _RELEASE, 0.01)
    raw: list[list[int]] = []
    start: int | None = None
    for index, value in enumerate(probabilities.tolist()):
        if start is None:
            if value >= threshold:
                start = index
        elif value < release:
            raw.append([start, index])
            start = None
    if start is not None:
        raw.append([start, len(probabilities)])
    joined: list[list[int]] = []
    for first, end in raw:
        if joined and us_at((first - joined[-1][1]) * HOP) < min_silence_us:
            joined[-1][1] = end
        else:
            joined.append([first, end])
    return tuple(Span(start_us=us_at(a * HOP), end_us=us_at(min(b * HOP, length))) for a, b in joined)


def split_long(spans: Sequence[Span], probabilities: NDArray[np.float32], longest_us: int) -> tuple[Span, ...]:
    """Cut spans over ``longest_us`` where speech is least likely, so that no span is longer."""
    out: list[Span] = []
    todo = list(reversed(spans))
    while todo:
        span = todo.pop()
        if span.duration_us <= longest_us:
            out.append(span)
            continue
        low = samples_at(span.start_us + longest_us // 3) // HOP
        high = max(low + 1, samples_at(span.start_us + longest_us) // HOP)
        cut = us_at((low + int(np.argmin(probabilities[low:high]))) * HOP)
        out.append(Span(start_us=span.start_us, end_us=cut))
        todo.append(Span(start_us=cut, end_us=span.end_us))
    return tuple(out)


def loud_frames(audio: Sound) -> NDArray[np.bool_]:
    """For each 10 ms whether anything audible sounds: a peak over -54 dB of the film's loud frames, and over -80 dBFS. The rest is digital
    silence or the faint ringing of a codec before its first sound."""
    step = RATE // 100
    count = -(-len(audio) // step)
    peaks = np.zeros(count, dtype=np.float32)
    for first in range(0, count, _BLOCK):
        part = samples_of(audio[first * step : (first + _BLOCK) * step])
        padded = np.zeros(-(-len(part) // step) * step, dtype=np.float32)
        padded[: len(part)] = np.abs(part)
        peaks[first : first + _BLOCK] = padded.reshape(-1, step).max(axis=1)
    audible = 0.002 * float(np.percentile(peaks, 99)) if count else 0.0
    out: NDArray[np.bool_] = peaks > max(1e-4, audible)
    return out


def cut_windows(speech: Sequence[Span], duration_us: int, *, longest_us: int, keep_us: int, pad_us: int) -> tuple[Window, ...]:
    """Pack speech into as few windows as sensible, cut at long pauses rather than short ones.

    The optimum of: one for each window plus a price of at most one for each cut, the higher the shorter the pause it falls into.

    Args:
        speech: spans in order, each at most ``longest_us - 2 * pad_us`` long.
        duration_us: length of the sound; padding stays inside it.
        longest_us: longest window, silences shortened.
        keep_us: at most this much of a silence is kept between two spans of one window, half of it on either side.
        pad_us: silence kept before the first and after the last span of a window, at most half of what there is.
    """
    count = len(speech)
    gap = [speech[k + 1].start_us - speech[k].end_us for k in range(count - 1)]
    room = longest_us - 2 * pad_us
    best = [0.0] + [float("inf")] * count
    came = [0] * (count + 1)
    for first in range(count):
        length = 0
        for last in range(first, count):
            length += speech[last].duration_us + (min(gap[last - 1], keep_us) if last > first else 0)
            if length > room and last > first:
                break
            price = _cut_price(gap[last]) if last < count - 1 else 0.0
            total = best[first] + 1.0 + price
            if total < best[last + 1]:
                best[last + 1], came[last + 1] = total, first
    edges = [count]
    while edges[-1] > 0:
        edges.append(came[edges[-1]])
    edges.reverse()
    windows: list[Window] = []
    for first, end in itertools.pairwise(edges):
        left = speech[first].start_us - (speech[first - 1].end_us if first else 0)
        right = (speech[end].start_us if end < count else duration_us) - speech[end - 1].end_us
        start = speech[first].start_us - min(pad_us, left // 2 if first else left)
        parts: list[Span] = []
        for k in range(first, end - 1):
            if gap[k] > keep_us:
                parts.append(Span(start_us=start, end_us=speech[k].end_us + keep_us // 2))
                start = speech[k + 1].start_us - keep_us // 2
        parts.append(Span(start_us=start, end_us=speech[end - 1].end_us + min(pad_us, right // 2 if end < count else right)))
        windows.append(Window(tuple(parts)))
    return tuple(windows)


def _cut_price(pause_us: int) -> float:
    """Price of ending a window in a pause: 1 for none, 0 from 0.8 s."""
    return max(0.0, 1.0 - pause_us / 800_000)


def covered_us(spans: Sequence[Span], by: Sequence[Span]) -> int:
    """Microseconds of ``spans`` that lie inside ``by``. Both in order and without overlap among themselves."""
    return sum(min(span.end_us, own.end_us) - max(span.start_us, own.start_us) for span in spans for own in touching(span, by))


def touching(span: Span, among: Sequence[Span]) -> Sequence[Span]:
    """Those of ``among`` (in order, without overlap) that share time with ``span``; found by bisection."""
    first = bisect_right(among, span.start_us, key=lambda s: s.end_us)
    return among[first : bisect_left(among, span.end_us, lo=first, key=lambda s: s.start_us)]


def merge_spans(spans: Iterable[Span], join_us: int = 0) -> tuple[Span, ...]:
    """Spans in order, those at most ``join_us`` apart made one."""
    out: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start_us, s.end_us)):
        if out and span.start_us - out[-1].end_us <= join_us:
            out[-1] = Span(start_us=out[-1].start_us, end_us=max(out[-1].end_us, span.end_us))
        else:
            out.append(span)
    return tuple(out)


def without(spans: Sequence[Span], holes: Sequence[Span]) -> tuple[Span, ...]:
    """What is left of ``spans`` outside ``holes``; both in order and without overlap among themselves."""
    out: list[Span] = []
    for span in spans:
        at = span.start_us
        for hole in touching(span, holes):
            if hole.start_us > at:
                out.append(Span(start_us=at, end_us=hole.start_us))
            at = max(at, hole.end_us)
        if at < span.end_us:
            out.append(Span(start_us=at, end_us=span.end_us))
    return tuple(out)
