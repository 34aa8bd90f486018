"""Sound of a film as samples on the project's clock, and our own WAV files.

Owns the placing of decoded sound: gaps become silence, what lies before clock 0 is cut, a rate that changes midway comes out constant.
Only the chosen track is read; tracks are never mixed.
"""

from __future__ import annotations

import io
import wave
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from media.command import Sandbox
from media.decoding import Source, samples
from schemas.errors import MediaRejected, ToolFailed
from schemas.media import AudioStream, MediaInfo
from schemas.stage import RejectCode
from schemas.time import US

JITTER_US = 30_000
"""Sound that comes this much early or late by its time stamp is taken as continuous; beyond it, silence is put in or sound left out."""

_SLACK_S = 10
_FAINT = 0.01
"""Level below which a mix of several channels is suspected of being what is left of opposite phases; -40 dB of full scale."""
_SILENT = 0.0005


def read_audio(path: Path, info: MediaInfo, sandbox: Sandbox, rate: int = 16_000) -> NDArray[np.float32]:
    """:func:`read_pcm` in -1..1, for films so short that twice the memory does not matter."""
    return read_pcm(path, info, sandbox, rate).astype(np.float32) * np.float32(1 / 32768)


def read_pcm(path: Path, info: MediaInfo, sandbox: Sandbox, rate: int = 16_000) -> NDArray[np.int16]:
    """The chosen sound track, mono, 16 bits; sample ``n`` is heard at ``n / rate`` seconds of the project's clock.

    Its channels are mixed; where the mix is all but silent and the first channel is not, they are in opposite phase and the first is
    taken alone. The array ends where the sound ends, before or behind the picture's end. Two hours at 16 kHz are 230 MB.

    Args:
        rate: samples per second of the result.

    Raises:
        MediaRejected: no_audio, or unreadable when nothing can be decoded.
        ToolFailed, LimitExceeded, SandboxUnavailable: ours to handle.
    """
    if info.audio is None:
        raise MediaRejected(
            RejectCode.NO_AUDIO, f"the file has no sound that can be read ({info.audio_choice})", "give a film with narration"
        )
    mixed = _read(path, info, info.audio, sandbox, rate, None)
    if info.audio.channels < 2 or (level := _level(mixed)) > _FAINT:
        return mixed
    first = _read(path, info, info.audio, sandbox, rate, 0)
    return first if _level(first) > max(4 * level, _SILENT) else mixed


def _level(sound: NDArray[np.int16]) -> float:
    """Root mean square that a twentieth of the sound exceeds, in blocks of 64,000 samples, 0 to 1."""
    power = [np.mean(np.square(b, dtype=np.float32)) for b in np.array_split(sound, max(1, len(sound) // 64_000)) if len(b)]
    return float(np.sqrt(np.quantile(power, 0.95)) / 32768) if power else 0.0


def _read(path: Path, info: MediaInfo, track: AudioStream, sandbox: Sandbox, rate: int, channel: int | None) -> NDArray[np.int16]:
    source = Source(path, info.container, track.index)
    video = info.video
    expected = max(0, track.start_us + track.duration_us) * rate // US
    out = np.zeros(expected + _SLACK_S * rate, np.int16)
    tolerance = JITTER_US * rate // US
    origin: int | None = video.start_us if video is not None and not source.jumps else None
    cursor: int | None = None
    end = 0
    for piece in samples(source, sandbox, rate, channel=channel):
        if origin is None:  # the clock jumps, or there is no picture: the track's own beginning is what is known
            origin = piece.pts_us - track.start_us
        sound = np.frombuffer(piece.data, "<i2")
        at = ((piece.pts_us - origin) * rate + US // 2) // US
        if cursor is not None and abs(at - cursor) <= tolerance:
            at = cursor
        elif cursor is not None and at < cursor:
            sound = sound[cursor - at :]  # told twice: what is there already stays
            at = cursor
        cursor = at + len(sound)
        if at < 0:
            sound, at = sound[-at:], 0
        sound = sound[: max(0, len(out) - at)]
        out[at : at + len(sound)] = sound
        end = max(end, at + len(sound))
    return out[:end]


def write_wav(sound: NDArray[np.float32], rate: int) -> bytes:
    """A mono 16-bit PCM WAV file. Values beyond -1..1 are clipped; equal samples give equal bytes.

    Args:
        sound: shape [n].
        rate: samples per second.
    """
    pcm = np.clip(np.rint(np.asarray(sound, np.float64) * 32768), -32768, 32767).astype("<i2")
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(pcm.tobytes())
    return buffer.getvalue()


def read_wav(data: bytes) -> tuple[NDArray[np.float32], int]:
    """Samples and rate of a WAV file that :func:`write_wav` made. Not for files from outside.

    Raises:
        ToolFailed: the bytes are no mono 16-bit PCM WAV.
    """
    try:
        with wave.open(io.BytesIO(data), "rb") as file:
            form = (file.getnchannels(), file.getsampwidth())
            rate, frames = file.getframerate(), file.readframes(file.getnframes())
    except (wave.Error, EOFError) as error:
        raise ToolFailed("wav", f"expected a WAV file of our own: {error}", "make the artifact again") from error
    if form != (1, 2):
        raise ToolFailed("wav", f"expected mono 16-bit sound, found {form[0]} channels of {form[1]} bytes", "make the artifact again")
    return np.frombuffer(frames, "<i2").astype(np.float32) / np.float32(32768), rate
