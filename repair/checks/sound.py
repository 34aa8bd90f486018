"""Checks of spoken tracks and music: silence, clipping, cut-off ends, loudness. Measures the bytes; trusts no record."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from statistics import median

from repair.findings import FILM, Finding, found
from repair.limits import LIMITS, InspectionLimits
from repair.measurements import Measurements
from replay import lineage
from replay.tool import ToolEnv
from schemas.state import ProductionState
from schemas.verdict import DefectCode

_MIN_SPOKEN_US = 100_000


def speech_units(text: str) -> int:
    """How much there is to speak, in units of about one Latin letter: Han characters count 3, kana and Hangul 2, digits 4.

    A digit is spoken as a word (``1998`` takes as long as sixteen letters), a Han character as a syllable. The weights are rough on
    purpose: rates are compared inside one film and one voice.
    """
    total = 0
    for char in unicodedata.normalize("NFKC", text):
        if char.isdigit():
            total += 4
        elif "\u4e00" <= char <= "\u9fff":
            total += 3
        elif "\u3040" <= char <= "\u30ff" or "\uac00" <= char <= "\ud7af":
            total += 2
        elif char.isalpha():
            total += 1
    return total


def narration_findings(
    state: ProductionState, shots: Iterable[str], env: ToolEnv, measured: Measurements, limits: InspectionLimits = LIMITS
) -> Iterator[Finding]:
    """Findings on the spoken tracks of the given shots. The tracks of all shots are measured: rates are compared with the film's median."""
    rates = _rates(state, env, measured, limits)
    for sid in shots:
        if state.shots[sid].planned.text.strip() and lineage.narration_is_current(state, sid):
            yield from _narration(state, sid, env, measured, limits, rates)


def music_findings(state: ProductionState, env: ToolEnv, measured: Measurements, limits: InspectionLimits = LIMITS) -> Iterator[Finding]:
    """Findings on the background track."""
    music = state.film.music
    if music is None:
        return
    m = measured.audio(music.ref, env)
    if m.silent_share >= limits.silent_share or m.loudness_lufs is None or m.loudness_lufs < limits.silent_lufs:
        level = "no loudness" if m.loudness_lufs is None else f"{m.loudness_lufs:.1f} LUFS"
        words = f"{m.silent_share:.0%} silent at {level}; limits {limits.silent_share:.0%} and {limits.silent_lufs:g} LUFS"
        context = {"track": music.track_id, "title": music.title, "query": music.query}
        yield found(DefectCode.MUSIC_SILENT, FILM, words, m.silent_share, limits.silent_share, artifact=music.ref.sha256, context=context)
    elif m.clipped_share >= limits.music_clipped_share:
        words = f"{m.clipped_share:.1%} of the samples at full scale; limit {limits.music_clipped_share:.0%}"
        context = {"track": music.track_id, "title": music.title, "query": music.query}
        yield found(
            DefectCode.MUSIC_CLIPPED, FILM, words, m.clipped_share, limits.music_clipped_share, artifact=music.ref.sha256, context=context
        )


def speech_rate(state: ProductionState, shot_id: str, env: ToolEnv, measured: Measurements) -> float | None:
    """Speech units a second of sound that is not silence; None for a track without sound or a shot without text."""
    shot = state.shots[shot_id]
    if shot.narration is None or not shot.planned.text.strip():
        return None
    m = measured.audio(shot.narration.ref, env)
    spoken = m.duration_us * (1 - m.silent_share)
    return speech_units(shot.planned.text) * 1e6 / spoken if spoken >= _MIN_SPOKEN_US else None


def _rates(state: ProductionState, env: ToolEnv, measured: Measurements, limits: InspectionLimits) -> dict[str, float]:
    out: dict[str, float] = {}
    for sid in state.film.shot_order:
        if lineage.narration_is_current(state, sid) and speech_units(state.shots[sid].planned.text) >= limits.rate_min_units:
            rate = speech_rate(state, sid, env, measured)
            if rate is not None:
                out[sid] = rate
    return out


def _narration(
    state: ProductionState, sid: str, env: ToolEnv, measured: Measurements, limits: InspectionLimits, rates: dict[str, float]
) -> Iterator[Finding]:
    shot = state.shots[sid]
    track = shot.narration
    if track is None:
        return
    artifact = track.ref.sha256
    m = measured.audio(track.ref, env)
    text = shot.planned.text
    context = {"text": text[:200], "length_ms": m.duration_us // 1000}
    if m.silent_share >= limits.silent_share or (m.loudness_lufs is not None and m.loudness_lufs < limits.silent_lufs):
        level = "no loudness" if m.loudness_lufs is None else f"{m.loudness_lufs:.1f} LUFS"
        words = f"{m.silent_share:.0%} silent at {level}; limits {limits.silent_share:.0%} and {limits.silent_lufs:g} LUFS"
        yield found(DefectCode.NARRATION_SILENT, sid, words, m.silent_share, limits.silent_share, artifact=artifact, context=context)
        return
    if m.clipped_share >= limits.clipped_share:
        words = f"{m.clipped_share:.2%} of the samples at full scale, peak {m.peak_dbfs:.1f} dBFS; limit {limits.clipped_share:.2%}"
        yield found(DefectCode.NARRATION_CLIPPED, sid, words, m.clipped_share, limits.clipped_share, artifact=artifact, context=context)
    missing = track.duration_us - m.duration_us
    if missing > limits.duration_tolerance_us:
        words = f"{m.duration_us // 1000} ms long, recorded as {track.duration_us // 1000} ms"
        yield found(
            DefectCode.NARRATION_TRUNCATED, sid, words, missing / 1e6, limits.duration_tolerance_us / 1e6,
            artifact=artifact, hard=True, context=context,
        )  # fmt: skip
    else:
        yield from _cut_off(state, sid, env, measured, limits, rates, context)
    wanted = env.config.mix.narration_lufs
    if m.loudness_lufs is not None and m.duration_us >= limits.loudness_min_us:
        away = abs(m.loudness_lufs - wanted)
        if away > limits.loudness_tolerance_lu:
            words = f"{m.loudness_lufs:.1f} LUFS, wanted {wanted:g} within {limits.loudness_tolerance_lu:g} LU"
            yield found(
                DefectCode.NARRATION_LOUDNESS, sid, words, away, limits.loudness_tolerance_lu, artifact=artifact,
                severity="error" if away > 2 * limits.loudness_tolerance_lu else "warning", context=context,
            )  # fmt: skip


def _cut_off(
    state: ProductionState,
    sid: str,
    env: ToolEnv,
    measured: Measurements,
    limits: InspectionLimits,
    rates: dict[str, float],
    context: dict[str, object],
) -> Iterator[Finding]:
    """Two signs of a missing end: the text goes by too fast, or the sound breaks off while it is loud."""
    track = state.shots[sid].narration
    if track is None:
        return
    units = speech_units(state.shots[sid].planned.text)
    rate, factor = rates.get(sid), limits.rate_factor
    if rate is None and units >= limits.rate_least_units:
        rate, factor = speech_rate(state, sid, env, measured), limits.rate_short_factor
    peers = [r for other, r in rates.items() if other != sid]
    usual = median(peers) if len(peers) >= limits.rate_peers else None
    most = limits.rate_max * factor / limits.rate_factor
    limit = min(most, usual * factor) if usual else most
    end = round(measured.track_end(track.ref, env).level_db, 1)
    more = {
        **context,
        "units": units,
        "rate": None if rate is None else round(rate, 1),
        "usual_rate": None if usual is None else round(usual, 1),
        "end_level_db": end,
        "sign": "rate" if rate is not None and rate > limit else "end",
    }
    if rate is not None and rate > limit:
        against = f"the film's median is {usual:.1f}" if usual else "no other tracks to compare with"
        words = f"text spoken at {rate:.1f} units a second, limit {limit:.1f}; {against}; ends at {end:g} dB"
        yield found(DefectCode.NARRATION_TRUNCATED, sid, words, rate, limit, artifact=track.ref.sha256, context=more)
    elif end > limits.end_level_db:
        words = f"breaks off at {end:g} dB of its own level, a spoken text fades below {limits.end_level_db:g} dB"
        yield found(DefectCode.NARRATION_TRUNCATED, sid, words, end, limits.end_level_db, artifact=track.ref.sha256, context=more)
