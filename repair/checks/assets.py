"""Checks of the chosen clips: in the pool, not repeated, near to their query, long enough for their slot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from repair.checks.plan import covered_us, slot_us
from repair.findings import Finding, found
from repair.limits import LIMITS, InspectionLimits
from repair.measurements import Measurements
from replay import lineage
from replay.ranking import Evidence, rank_clips
from replay.tool import ToolEnv
from replay.tools.retrieve_visuals import pictures
from schemas.artifact import ArtifactRef
from schemas.state import AssetChoice, PoolClip, ProductionState
from schemas.verdict import DefectCode


def asset_findings(
    state: ProductionState, shots: Iterable[str], env: ToolEnv, measured: Measurements, limits: InspectionLimits = LIMITS
) -> Iterator[Finding]:
    """Findings on the clips of the given shots."""
    task = state.film.task
    pool = {c.clip_id: c for c in task.pool}
    sight = env.engines.sight
    evidence = Evidence.of(task.pool, env.engines.embedder, None if sight is None else pictures(task.pool, sight, env))
    for sid in shots:
        asset = state.shots[sid].asset
        if asset is None:
            continue
        clip = pool.get(asset.clip_id)
        yield from _repeated(state, sid, limits)
        if is_damaged(state, sid) and clip is not None:
            length = measured.video(asset.ref, env).duration_us
            cut = tuple(_short(state, sid, asset.ref, length, limits, whole_us=clip.duration_us))
            if cut:
                yield from cut
                continue
        if clip is None or clip.ref.sha256 != asset.ref.sha256:
            words = f"clip {asset.clip_id} with these bytes is not in the source pool of {len(pool)} clips"
            yield found(
                DefectCode.ASSET_MISMATCH, sid, words, 0.0, 1.0, artifact=asset.ref.sha256, severity="error", hard=True,
                context={"clip": asset.clip_id},
            )  # fmt: skip
            continue
        yield from _mismatch(state, sid, evidence, env, limits)
        yield from _short(state, sid, clip.ref, clip.duration_us, limits)


def is_damaged(state: ProductionState, shot_id: str) -> bool:
    """The shot's clip is one of the pool by name, and its bytes are not the pool's: the pool still holds a sound copy."""
    asset = state.shots[shot_id].asset
    return asset is not None and any(c.clip_id == asset.clip_id and c.ref.sha256 != asset.ref.sha256 for c in state.film.task.pool)


def sound_copy(state: ProductionState, shot_id: str) -> AssetChoice | None:
    """The shot's clip with the bytes that the pool holds of it; None for a shot without one."""
    asset = state.shots[shot_id].asset
    own = next((c for c in state.film.task.pool if asset is not None and c.clip_id == asset.clip_id), None)
    return asset if asset is None or own is None else asset.model_copy(update={"ref": own.ref})


def free_clips(state: ProductionState, shot_id: str) -> list[PoolClip]:
    """Clips that no other shot uses and that were not excluded for this one."""
    taken = {s.asset.clip_id for sid, s in state.shots.items() if s.asset and sid != shot_id}
    excluded = set(state.shots[shot_id].excluded_clips)
    return [c for c in state.film.task.pool if c.clip_id not in taken and c.clip_id not in excluded]


def alternatives(state: ProductionState, shot_id: str, limits: InspectionLimits = LIMITS) -> list[PoolClip]:
    """Clips that could take the place of a shot's own: not excluded, and no shot nearby has them. Free ones are among them; so is the
    pool's copy of a damaged clip."""
    order = state.film.shot_order
    place = order.index(shot_id)
    nearby = order[max(0, place - limits.repeat_distance) : place + limits.repeat_distance + 1]
    held = {a.clip_id for sid in nearby if (a := state.shots[sid].asset) is not None and (sid != shot_id or not is_damaged(state, sid))}
    excluded = set(state.shots[shot_id].excluded_clips)
    return [c for c in state.film.task.pool if c.clip_id not in held and c.clip_id not in excluded]


def _repeated(state: ProductionState, sid: str, limits: InspectionLimits) -> Iterator[Finding]:
    asset = state.shots[sid].asset
    if asset is None:
        return
    order = state.film.shot_order
    place = order.index(sid)
    for distance in range(1, place + 1):
        other = state.shots[order[place - distance]].asset
        if other is not None and other.ref.sha256 == asset.ref.sha256:
            free = len([c for c in free_clips(state, sid) if c.clip_id != asset.clip_id])
            near = distance <= limits.repeat_distance
            others = len(alternatives(state, sid, limits)) if near else free
            words = f"clip {asset.clip_id} is also that of {order[place - distance]}, {distance} shot(s) before; {free} clips are free"
            yield found(
                DefectCode.ASSET_REPEATED, sid, words, distance, limits.repeat_distance, artifact=asset.ref.sha256,
                severity="error" if near else "warning",
                context={"clip": asset.clip_id, "same_as": order[place - distance], "free_clips": free, "others": others},
            )  # fmt: skip
            return


def _mismatch(state: ProductionState, sid: str, evidence: Evidence, env: ToolEnv, limits: InspectionLimits) -> Iterator[Finding]:
    """Rank the pool again as retrieval would now, and see how far behind the best clip the chosen one lies.

    That another shot has the same clip does not count here: repetition is a finding of its own.
    """
    shot = state.shots[sid]
    if shot.asset is None:
        return
    order = {other: n for n, other in enumerate(state.film.shot_order)}
    near: dict[str, int] = {}
    for other, record in state.shots.items():
        if record.asset is not None and other != sid and record.asset.clip_id != shot.asset.clip_id:
            distance = abs(order[other] - order[sid])
            near[record.asset.clip_id] = min(near.get(record.asset.clip_id, distance), distance)
    needed = slot_us(state, sid) or shot.planned.target_duration_us
    sight = env.engines.sight
    ranked = rank_clips(
        state.film.task.pool,
        evidence,
        shot.asset.query,
        needed,
        near=near,
        excluded=frozenset(shot.excluded_clips),
        sight=None if sight is None else sight.encode_texts([shot.asset.query])[0],
    )
    chosen = next((r for r in ranked if r.clip.clip_id == shot.asset.clip_id), None)
    if chosen is None:
        return
    best, own = ranked[0], chosen.score
    gap = best.score - own
    if gap > limits.rank_gap:
        words = f"ranks at {own:.2f} for its query, clip {best.clip.clip_id} at {best.score:.2f}; allowed gap {limits.rank_gap:g}"
        context = {
            "query": shot.asset.query[:160], "clip": chosen.clip.clip_id, "clip_text": chosen.clip.text[:160],
            "better": best.clip.clip_id, "better_text": best.clip.text[:160],
        }  # fmt: skip
        yield found(
            DefectCode.ASSET_MISMATCH, sid, words, gap, limits.rank_gap, artifact=shot.asset.ref.sha256,
            severity="error" if gap > 2 * limits.rank_gap else "warning", context=context,
        )  # fmt: skip


def _short(
    state: ProductionState, sid: str, ref: ArtifactRef, length_us: int, limits: InspectionLimits, whole_us: int = 0
) -> Iterator[Finding]:
    """``whole_us`` is the length of a sound copy of a damaged clip."""
    slot = slot_us(state, sid)
    if slot is None or not lineage.timeline_is_current(state):
        return
    seen = slot - covered_us(state, sid)
    hold = seen - length_us
    if hold > limits.hold_max_us:
        words = f"clip of {length_us // 1000} ms has to fill {seen // 1000} ms; it may stand still {limits.hold_max_us // 1000} ms"
        own = state.shots[sid].asset
        longest = max((c.duration_us for c in free_clips(state, sid) if own is None or c.clip_id != own.clip_id), default=0)
        helps = min(longest, seen) >= length_us + limits.hold_max_us
        context = {"clip_ms": length_us // 1000, "to_fill_ms": seen // 1000, "longest_free_ms": longest // 1000}
        if whole_us > length_us:
            words += f"; the pool's copy has {whole_us // 1000} ms"
        yield found(
            DefectCode.ASSET_TOO_SHORT, sid, words, hold / 1e6, limits.hold_max_us / 1e6, artifact=ref.sha256,
            severity="error" if whole_us > length_us or (hold > limits.hold_error_us and helps) else "warning", context=context,
        )  # fmt: skip
