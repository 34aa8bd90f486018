"""One spoken track: text to samples to a levelled WAV artifact, made once for each text, voice and level.

Owns how a track is levelled and what its record says. Loudness is measured (ITU-R BS.1770 through media.measure), never guessed; the gain
that follows is rounded, applied, and limited, so that equal input gives equal bytes.
"""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from media.audio import write_wav
from media.measure import check_audio
from replay.engines import Samples
from replay.measured import measured_audio
from replay.sound import amplitude, limit_peaks
from replay.speech_text import is_speakable, spoken_length
from replay.tool import ToolEnv
from schemas.artifact import ArtifactKind, ArtifactRef
from schemas.canonical import digest_of

PROFILE = "narration.2"
"""Version of levelling and format; part of every track's key."""
CEILING_DB = -2.0
"""No sample lies above this; leaves room for the music and for the encoder."""
NOTHING_S = 0.24
"""Length of the track of a text with nothing to say, such as a dash."""
MAX_SILENT = 0.9
SHORTEST_US = 60_000
LEVEL_SLACK_LU = 0.15
"""A track this near to the wanted loudness is left there."""
FASTEST, SLOWEST = 60.0, 1.0
"""Units of text (speech_text.spoken_length) a second that no voice reaches: the track was cut, or is of something else."""
SLOW_FROM = 40
"""Texts of at least so many units are judged by :data:`SLOWEST`; around shorter ones a voice may leave a pause."""


@dataclass(frozen=True, slots=True)
class Track:
    """A verified track. ``problem`` says what is wrong with its bytes, None if nothing is."""

    ref: ArtifactRef
    duration_us: int
    sample_rate: int
    loudness_lufs: float
    problem: str | None


def speak(text: str, language: str, voice: str, env: ToolEnv) -> Track:
    """The track of a text; out of the store when it was made before.

    Raises:
        ToolFailed, EndpointFailed, EngineMissing: the engine gave nothing.
    """
    engine, config = env.engines.speech, env.config
    key = digest_of(
        [
            "narration", PROFILE, engine.name, engine.version, language, engine.voice_for(language, voice),
            f"{config.speech.speed:.3f}", f"{config.mix.narration_lufs:.2f}", text,
        ]
    )  # fmt: skip
    ref = env.store.recall(key)
    if ref is not None:
        return judge(ref, text, env)
    samples, rate = engine.speak(text, language, engine.voice_for(language, voice), config.speech.speed)
    sound = level(samples, rate, env) if len(samples) else np.zeros(round(NOTHING_S * rate), np.float32)
    track = judge(env.store.put_bytes(write_wav(sound, rate), ArtifactKind.NARRATION, "audio/wav"), text, env)
    if track.problem is None:  # an engine that was wrong once is asked again
        env.store.remember(key, track.ref)
    return track


def level(samples: Samples, rate: int, env: ToolEnv) -> Samples:
    """Bring a track to the configured loudness: measure, gain, limit, and again while the limiter takes too much away."""
    wanted = env.config.mix.narration_lufs
    ceiling = amplitude(CEILING_DB)
    gain_db = 0.0
    out = limit_peaks(samples, rate, ceiling)
    for _ in range(4):
        found = _loudness(out, rate, env)
        if found is None or abs(wanted - found) < LEVEL_SLACK_LU:
            break
        gain_db = round(gain_db + wanted - found, 1)
        out = limit_peaks(samples * np.float32(amplitude(gain_db)), rate, ceiling)
    return out


def _loudness(samples: Samples, rate: int, env: ToolEnv) -> float | None:
    """Integrated loudness in LUFS; of tracks shorter than the standard's block of 400 ms, that of their repetition. None for silence."""
    if len(samples) == 0:
        return None
    with tempfile.TemporaryDirectory(dir=env.workdir) as folder:
        file = Path(folder) / "track.wav"
        file.write_bytes(write_wav(np.tile(samples, max(1, -(-rate // (2 * len(samples))))), rate))
        found = check_audio(file, env.sandbox).loudness_lufs
    return round(found, 1) if found is not None and math.isfinite(found) and found > -69 else None


def judge(ref: ArtifactRef, text: str, env: ToolEnv) -> Track:
    """Measure a stored track and say what is wrong with it."""
    m = measured_audio(ref, env.store, env.sandbox)
    loudness = m.loudness_lufs if m.loudness_lufs is not None and math.isfinite(m.loudness_lufs) else -70.0
    problem: str | None = None
    if m.duration_us < SHORTEST_US:
        problem = f"it lasts {m.duration_us // 1000} ms"
    elif is_speakable(text) and m.silent_share >= MAX_SILENT:
        problem = f"{m.silent_share:.0%} of it is silence"
    elif is_speakable(text):
        pace = spoken_length(text) * 1e6 / m.duration_us / env.config.speech.speed
        if pace > FASTEST or (pace < SLOWEST and spoken_length(text) >= SLOW_FROM):
            problem = f"it lasts {m.duration_us // 1000} ms, which no voice takes for {len(text)} characters"
    return Track(ref, m.duration_us, m.sample_rate, round(loudness, 1), problem)
