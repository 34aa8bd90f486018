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
from replay.speech_text import is_speakable
from replay.tool import ToolEnv
from schemas.artifact import ArtifactKind, ArtifactRef
from schemas.canonical import digest_of

PROFILE = "narration.1"
"""Version of levelling and format; part of every track's key."""
CEILING_DB = -2.0
"""No sample lies above this; leaves room for the music and for the encoder."""
NOTHING_S = 0.24
"""Length of the track of a text with nothing to say, such as a dash."""
MAX_SILENT = 0.9
SHORTEST_US = 60_000


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
    if ref is None:
        samples, rate = engine.speak(text, language, engine.voice_for(language, voice), config.speech.speed)
        data = (
            write_wav(level(samples, rate, env), rate) if len(samples) else write_wav(np.zeros(round(NOTHING_S * rate), np.float32), rate)
        )
        ref = env.store.put_bytes(data, ArtifactKind.NARRATION, "audio/wav")
        env.store.remember(key, ref)
    return judge(ref, text, env)


def level(samples: Samples, rate: int, env: ToolEnv) -> Samples:
    """Bring a track to the configured loudness: measure, gain, limit; once more if the limiter took too much away."""
    wanted = env.config.mix.narration_lufs
    out = samples
    for _ in range(2):
        found = _loudness(out, rate, env)
        if found is None or abs(wanted - found) < 0.2:
            break
        out = limit_peaks(out * np.float32(amplitude(round(wanted - found, 1))), rate, amplitude(CEILING_DB))
    return out


def _loudness(samples: Samples, rate: int, env: ToolEnv) -> float | None:
    """Integrated loudness in LUFS; of very short tracks, which the standard does not define, by their mean square."""
    if len(samples) >= rate * 0.8:
        with tempfile.TemporaryDirectory(dir=env.workdir) as folder:
            file = Path(folder) / "track.wav"
            file.write_bytes(write_wav(samples, rate))
            found = check_audio(file, env.sandbox).loudness_lufs
        if found is not None and math.isfinite(found) and found > -69:
            return round(found, 1)
    power = float(np.mean(np.square(samples, dtype=np.float64))) if len(samples) else 0.0
    return round(10 * math.log10(power) - 0.7, 1) if power > 1e-9 else None


def judge(ref: ArtifactRef, text: str, env: ToolEnv) -> Track:
    """Measure a stored track and say what is wrong with it."""
    m = measured_audio(ref, env.store, env.sandbox)
    loudness = m.loudness_lufs if m.loudness_lufs is not None and math.isfinite(m.loudness_lufs) else -70.0
    problem: str | None = None
    if m.duration_us < SHORTEST_US:
        problem = f"it lasts {m.duration_us // 1000} ms"
    elif is_speakable(text) and m.silent_share >= MAX_SILENT:
        problem = f"{m.silent_share:.0%} of it is silence"
    return Track(ref, m.duration_us, m.sample_rate, round(loudness, 1), problem)
