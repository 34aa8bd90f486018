"""Voice activity: where somebody speaks.

Owns the Silero network (its weights come with faster-whisper) and the cutting of sound into windows at silences. Works in blocks, so
memory does not grow with the length of the film. Must not recognise words.
"""

from __future__ import annotations

from collections.abc import Sequence
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


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of sound that is recognised in one go: ``span`` on the project's clock, with the speech inside it."""

    span: Span
    speech: tuple[Span, ...]


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
        raise EngineMissing("vad_weights_missing", f"no {weights.name} in the package faster-whisper", "pip install 'faster-whisper>=1.2.1,<2'")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.inter_op_num_threads = 1
    options.intra_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(weights), providers=["CPUExecutionProvider"], sess_options=options)


def speech_probabilities(audio: Samples) -> NDArray[np.float32]:
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
        part = audio[first * HOP : (first + frames) * HOP]
        block[: len(part)] = part
        rows = block.reshape(frames, HOP)
        context = np.vstack([before[None, :], rows[:-1, -_CONTEXT:]])
        result, hidden, cell = session.run(None, {"input": np.hstack([context, rows]), "h": hidden, "c": cell})
        out[first : first + frames] = np.asarray(result, dtype=np.float32).reshape(-1)
        before = rows[-1, -_CONTEXT:]
    return out


def speech_spans(probabilities: NDArray[np.float32], length: int, *, threshold: float = 0.5, min_silence_us: int = 500_000) -> tuple[Span, ...]:
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


def cut_windows(speech: Sequence[Span], duration_us: int, *, longest_us: int, join_us: int, pad_us: int) -> tuple[Window, ...]:
    """Group speech into windows to be recognised.

    A window never spans a silence of ``join_us`` or more and is at most ``longest_us`` long, padding included; a single span that is
    longer is cut into equal parts. Windows do not overlap.

    Args:
        speech: spans in order.
        duration_us: length of the sound; padding stays inside it.
        longest_us: longest window.
        join_us: spans closer than this may share a window.
        pad_us: sound added on both sides, at most half the silence there.
    """
    pieces: list[Span] = []
    room = longest_us - 2 * pad_us
    for span in speech:
        parts = max(1, -(-span.duration_us // room))
        for k in range(parts):
            a = span.start_us + span.duration_us * k // parts
            b = span.start_us + span.duration_us * (k + 1) // parts
            pieces.append(Span(start_us=a, end_us=b))
    groups: list[list[Span]] = []
    for piece in pieces:
        if groups and piece.start_us - groups[-1][-1].end_us < join_us and piece.end_us - groups[-1][0].start_us <= room:
            groups[-1].append(piece)
        else:
            groups.append([piece])
    windows: list[Window] = []
    for k, group in enumerate(groups):
        left = 0 if k == 0 else (groups[k - 1][-1].end_us + group[0].start_us) // 2
        right = duration_us if k == len(groups) - 1 else (group[-1].end_us + groups[k + 1][0].start_us) // 2
        span = Span(start_us=max(left, group[0].start_us - pad_us), end_us=min(right, group[-1].end_us + pad_us))
        windows.append(Window(span, tuple(group)))
    return tuple(windows)
