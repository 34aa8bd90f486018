"""Checks of the stitched film: sound present, picture and sound of one length, loudness."""

from __future__ import annotations

from collections.abc import Iterator

from repair.findings import FILM, Finding, found
from repair.limits import LIMITS, InspectionLimits
from repair.measurements import Measurements
from replay import lineage
from replay.tool import ToolEnv
from schemas.state import ProductionState
from schemas.verdict import DefectCode


def delivery_findings(state: ProductionState, env: ToolEnv, measured: Measurements, limits: InspectionLimits = LIMITS) -> Iterator[Finding]:
    """Findings on the film, if there is one of the present state."""
    delivery, timeline = state.film.delivery, state.film.timeline
    if delivery is None or timeline is None or delivery.inputs_digest != lineage.delivery_inputs(state):
        return
    artifact = delivery.video.sha256
    picture = measured.video(delivery.video, env)
    sound = measured.audio(delivery.video, env)
    apart = abs(picture.duration_us - sound.duration_us)
    if picture.frames != timeline.total_frames:
        words = f"{picture.frames} frames, timeline has {timeline.total_frames}"
        yield found(DefectCode.DELIVERY_DRIFT, FILM, words, picture.frames, timeline.total_frames, artifact=artifact)
    elif apart > limits.drift_us:
        words = (
            f"picture {picture.duration_us // 1000} ms, sound {sound.duration_us // 1000} ms; allowed {limits.drift_us // 1000} ms apart"
        )
        yield found(DefectCode.DELIVERY_DRIFT, FILM, words, apart / 1e6, limits.drift_us / 1e6, artifact=artifact)
    if sound.silent_share >= limits.silent_share or sound.loudness_lufs is None or sound.loudness_lufs < limits.silent_lufs:
        words = f"{sound.silent_share:.0%} of the sound is silence; limit {limits.silent_share:.0%}"
        yield found(DefectCode.DELIVERY_SILENT, FILM, words, sound.silent_share, limits.silent_share, artifact=artifact)
        return
    wanted = env.config.mix.narration_lufs
    away = abs(sound.loudness_lufs - wanted)
    if away > limits.delivery_lu:
        words = f"{sound.loudness_lufs:.1f} LUFS, wanted {wanted:g} within {limits.delivery_lu:g} LU"
        yield found(DefectCode.DELIVERY_LOUDNESS, FILM, words, away, limits.delivery_lu, artifact=artifact)
