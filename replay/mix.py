"""The sound of the film: narration at exact offsets, music under it, one PCM track, encoded once by whoever stitches.

Owns levels and positions. The track is written block by block, so that an hour of film needs no hour of memory beyond its own parts.
"""

from __future__ import annotations

import math
import wave
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from media.audio import read_wav
from media.command import MIB, Limits
from media.ffmpeg import SAMPLE_RATE, run_ffmpeg
from media.measure import AudioMeasure
from replay.sound import Ducking, FilmSound, Voice, amplitude, fade_edges, pcm16, resample
from replay.tool import ToolEnv
from schemas.artifact import ArtifactRef
from schemas.canonical import Sha256
from schemas.state import ProductionState
from schemas.time import US, Rate

OPEN_DB = 8.0
"""The music rises so far above its level under speech where nobody speaks for a while."""
ATTACK_S, RELEASE_S = 0.35, 0.7
FADE_IN_S, FADE_OUT_S = 0.6, 1.8
LOOP_OVERLAP_S = 2.0
MUSIC_PEAK_DB = -9.0
"""The music never peaks above this, however it was mastered."""
DUCKED_PEAK_DB = -11.0
"""Nor above this under speech: narration peaks at -2 dBFS (replay.narrate), at -5 in each channel, and both together at -1.5."""
_BLOCK = SAMPLE_RATE * 10


@dataclass(frozen=True, slots=True)
class Spoken:
    """Where one narration lies in the film."""

    shot_id: str
    start_us: int
    end_us: int
    text: str
    sha256: Sha256


def sample_at(frame: int, rate: Rate) -> int:
    """Sample of a frame border, nearest."""
    return (2 * frame * SAMPLE_RATE * rate.den + rate.num) // (2 * rate.num)


def spoken(state: ProductionState) -> tuple[Spoken, ...]:
    """All narrations of the timeline in film order."""
    timeline, rate = state.film.timeline, state.film.task.frame_rate
    out: list[Spoken] = []
    for item in timeline.items if timeline is not None else ():
        shot = state.shots[item.shot_id]
        if shot.narration is not None and shot.planned.text.strip():
            start = rate.us_at(item.start_frame) + item.narration_offset_us
            out.append(
                Spoken(
                    item.shot_id, start, start + shot.narration.duration_us, " ".join(shot.planned.text.split()), shot.narration.ref.sha256
                )
            )
    return tuple(out)


def film_sound(state: ProductionState, music: AudioMeasure | None, env: ToolEnv) -> FilmSound:
    """The sound of the present timeline.

    Args:
        music: measures of the chosen track; None for a film without music.
    """
    timeline, rate = state.film.timeline, state.film.task.frame_rate
    total = sample_at(timeline.total_frames if timeline is not None else 0, rate)
    voices: list[Voice] = []
    for piece in spoken(state):
        samples, source_rate = read_wav(env.store.read(piece.sha256))
        voices.append(
            Voice((piece.start_us * SAMPLE_RATE + US // 2) // US, fade_edges(resample(samples, source_rate, SAMPLE_RATE), SAMPLE_RATE))
        )
    ducked, opened = music_levels(env.config.mix.narration_lufs, env.config.mix.music_below_db, music)
    under = decode_stereo(state.film.music.ref, env) if music is not None and state.film.music is not None else None
    return FilmSound(
        length=total,
        rate=SAMPLE_RATE,
        voices=tuple(voices),
        music=under,
        ducking=Ducking(opened, ducked, round(ATTACK_S * SAMPLE_RATE), round(RELEASE_S * SAMPLE_RATE)),
        fade_in=round(FADE_IN_S * SAMPLE_RATE),
        fade_out=round(FADE_OUT_S * SAMPLE_RATE),
        loop_overlap=round(LOOP_OVERLAP_S * SAMPLE_RATE),
    )


def music_levels(narration_lufs: float, below_db: float, music: AudioMeasure | None) -> tuple[float, float]:
    """Factors for the music under speech and without speech, from its measured loudness and peak."""
    if music is None or music.loudness_lufs is None or not math.isfinite(music.loudness_lufs):
        return 0.0, 0.0
    gain = round(narration_lufs - below_db - music.loudness_lufs, 1)
    return (
        amplitude(min(gain, round(DUCKED_PEAK_DB - music.true_peak_dbtp, 1))),
        amplitude(min(gain + OPEN_DB, round(MUSIC_PEAK_DB - music.true_peak_dbtp, 1))),
    )


def decode_stereo(ref: ArtifactRef, env: ToolEnv) -> NDArray[np.float32]:
    """A track of the library as stereo samples at the film's rate, decoded in the sandbox; shape [n, 2]."""
    argv = ("-i", "/in/track", "-map", "0:a:0", "-ac", "2", "-ar", str(SAMPLE_RATE), "-f", "s16le", "pipe:1")
    limits = Limits(wall_s=120, cpu_s=240, data_bytes=1024 * MIB, stdout_bytes=1024 * MIB)
    done = run_ffmpeg(argv, inputs={"track": env.store.path(ref.sha256)}, sandbox=env.sandbox, workdir=env.workdir, limits=limits)
    raw = np.frombuffer(done.stdout, "<i2")
    return (raw[: len(raw) // 2 * 2].reshape(-1, 2) / np.float32(32768.0)).astype(np.float32)


def write_track(sound: FilmSound, path: Path) -> None:
    """Write the whole sound as 16 bit stereo WAV."""
    with wave.open(str(path), "wb") as out:
        out.setnchannels(2)
        out.setsampwidth(2)
        out.setframerate(sound.rate)
        for start in range(0, sound.length, _BLOCK):
            out.writeframesraw(pcm16(sound.block(start, min(sound.length, start + _BLOCK))))
