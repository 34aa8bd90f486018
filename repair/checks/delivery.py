"""Checks of the stitched film: picture and sound present, of one length, each sound in its place, levelled.

The film's own manifest holds what was measured of its bytes when they were made. While it names these very bytes they are not measured
again; a film of other bytes is. Whether its graphics are on screen is looked at in any case.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from media.audio import read_audio
from media.ffmpeg import SAMPLE_RATE
from repair.checks.standing import lost_graphics
from repair.findings import FILM, Finding, found
from repair.limits import LIMITS, InspectionLimits
from repair.measurements import Measurements
from replay import lineage
from replay.drift import drift_us
from replay.manifest import Manifest
from replay.mix import film_sound
from replay.tool import ToolEnv
from schemas.canonical import Sha256
from schemas.state import Delivery, ProductionState
from schemas.verdict import DefectCode


@dataclass(frozen=True, slots=True)
class FilmSeen:
    """Figures of a film's bytes."""

    frames: int
    picture_us: int
    sound_us: int
    black_share: float
    silent_share: float
    loudness_lufs: float | None
    true_peak_dbtp: float
    shift_us: int
    """Largest distance of a sound from where it was put."""


def delivery_findings(state: ProductionState, env: ToolEnv, measured: Measurements, limits: InspectionLimits = LIMITS) -> Iterator[Finding]:
    """Findings on the film, if there is one of the present state."""
    delivery, timeline = state.film.delivery, state.film.timeline
    if delivery is None or timeline is None or delivery.inputs_digest != lineage.delivery_inputs(state):
        return
    artifact = delivery.video.sha256
    seen = look(state, delivery, env, measured)
    explained = _black_of_renders(state, env, measured)
    if seen.black_share - explained > limits.black_excess:
        words = f"{seen.black_share:.0%} of the frames black, its renders explain {explained:.0%}; allowed excess {limits.black_excess:.0%}"
        yield found(DefectCode.DELIVERY_BLACK, FILM, words, seen.black_share, explained + limits.black_excess, artifact=artifact)
    else:
        yield from _graphics(state, delivery, seen, timeline.total_frames, env, measured, limits)
    silent = seen.silent_share >= limits.silent_share or seen.loudness_lufs is None or seen.loudness_lufs < limits.silent_lufs
    yield from _drift(seen, timeline.total_frames, silent, artifact, limits)
    if silent:
        words = f"{seen.silent_share:.0%} of the sound is silence; limit {limits.silent_share:.0%}"
        yield found(DefectCode.DELIVERY_SILENT, FILM, words, seen.silent_share, limits.silent_share, artifact=artifact)
        return
    if seen.true_peak_dbtp > limits.delivery_peak_dbtp:
        words = f"true peak {seen.true_peak_dbtp:.1f} dBTP, at most {limits.delivery_peak_dbtp:g}"
        yield found(DefectCode.DELIVERY_CLIPPED, FILM, words, seen.true_peak_dbtp, limits.delivery_peak_dbtp, artifact=artifact)
    wanted = env.config.mix.narration_lufs
    away = abs((seen.loudness_lufs or 0.0) - wanted)
    if away > limits.delivery_lu:
        words = f"{seen.loudness_lufs:.1f} LUFS, wanted {wanted:g} within {limits.delivery_lu:g} LU"
        yield found(
            DefectCode.DELIVERY_LOUDNESS, FILM, words, away, limits.delivery_lu, artifact=artifact,
            severity="error" if away > 2 * limits.delivery_lu else "warning",
        )  # fmt: skip


def _graphics(
    state: ProductionState, delivery: Delivery, seen: FilmSeen, frames: int, env: ToolEnv, measured: Measurements, limits: InspectionLimits
) -> Iterator[Finding]:
    """The moments of its graphics are looked at in the very film, whatever its manifest says; not in one of another length."""
    lost = lost_graphics(state, delivery.video, env, measured, limits) if seen.frames == frames else ()
    if lost:
        names = ", ".join(f"{s.shot_id} at {s.at_us // 1000} ms" for s in lost[:6])
        words = f"{len(lost)} graphics of the renders are not on screen: {names}; allowed 0"
        yield found(DefectCode.DELIVERY_GRAPHIC_MISSING, FILM, words, len(lost), 0.0, artifact=delivery.video.sha256)


def look(state: ProductionState, delivery: Delivery, env: ToolEnv, measured: Measurements) -> FilmSeen:
    """The film's figures: from its manifest while that names these bytes, else measured.

    Raises:
        ToolFailed, LimitExceeded, SandboxUnavailable, StorageFault, MediaRejected: the film could not be measured.
    """
    manifest = Manifest.model_validate(env.store.read_json(delivery.manifest.sha256))
    if manifest.video.sha256 == delivery.video.sha256:
        p, s = manifest.picture, manifest.sound
        return FilmSeen(
            p.frames, p.duration_us, s.duration_us, p.black_share, s.silent_share, s.loudness_lufs, s.true_peak_dbtp, s.drift_us
        )
    video, audio = measured.video(delivery.video, env), measured.audio(delivery.video, env)
    return FilmSeen(
        video.frames,
        video.duration_us,
        audio.duration_us,
        video.black_share,
        audio.silent_share,
        audio.loudness_lufs,
        audio.true_peak_dbtp,
        _shift_us(state, delivery, env, measured),
    )


def _shift_us(state: ProductionState, delivery: Delivery, env: ToolEnv, measured: Measurements) -> int:
    music = measured.audio(state.film.music.ref, env) if state.film.music is not None else None
    heard = read_audio(env.store.path(delivery.video.sha256), measured.info(delivery.video, env), env.sandbox, rate=SAMPLE_RATE)
    return drift_us(heard, film_sound(state, music, env))


def _drift(seen: FilmSeen, frames: int, silent: bool, artifact: Sha256, limits: InspectionLimits) -> Iterator[Finding]:
    apart = abs(seen.picture_us - seen.sound_us)
    ms = 1000
    if seen.frames != frames:
        words = f"{seen.frames} frames, timeline has {frames}"
        yield found(DefectCode.DELIVERY_DRIFT, FILM, words, seen.frames, frames, artifact=artifact)
    elif apart > limits.drift_us:
        words = f"picture {seen.picture_us // ms} ms, sound {seen.sound_us // ms} ms; allowed {limits.drift_us // ms} ms apart"
        yield found(DefectCode.DELIVERY_DRIFT, FILM, words, apart / 1e6, limits.drift_us / 1e6, artifact=artifact)
    elif seen.shift_us > limits.shift_us and not silent:
        words = f"a sound is heard {seen.shift_us // ms} ms away from its place; allowed {limits.shift_us // ms} ms"
        yield found(DefectCode.DELIVERY_DRIFT, FILM, words, seen.shift_us / 1e6, limits.shift_us / 1e6, artifact=artifact)


def _black_of_renders(state: ProductionState, env: ToolEnv, measured: Measurements) -> float:
    """Share of the film's frames that are black in its renders."""
    black = total = 0.0
    for shot in state.shots.values():
        if shot.render is not None:
            m = measured.video(shot.render.ref, env)
            black, total = black + m.black_share * m.frames, total + m.frames
    return black / total if total else 0.0
