"""A film built by hand: three narrated shots, one with a graphic, from artifacts that a test supplies or invents."""

from __future__ import annotations

from typing import Any

from replay import lineage
from schemas.artifact import ArtifactKind, ArtifactRef
from schemas.canonical import sha256_bytes
from schemas.state import (
    AssetChoice,
    Decoration,
    GlobalRecord,
    MusicChoice,
    Narration,
    PlannedShot,
    PoolClip,
    ProductionState,
    Render,
    Segment,
    ShotRecord,
    SpotlightPlan,
    Task,
    Timeline,
    TimelineItem,
)
from schemas.storyboard import SpotlightKind
from schemas.time import Rate

TEXTS = (
    "A pendulum swings with the same period whatever its mass.",
    "Let it go from the chin and it never comes back higher.",
    "Energy is conserved, and the teacher keeps his teeth.",
)
QUERIES = ("pendulum in a lecture hall", "steel ball at the chin", "teacher smiling at the board")
SCRIPT = " ".join(TEXTS)
RATE = Rate(num=15, den=1)
SIZE = (320, 180)


def invented(name: str, kind: ArtifactKind = ArtifactKind.OTHER) -> ArtifactRef:
    """A reference without bytes, for checks that read records only."""
    return ArtifactRef(sha256=sha256_bytes(name.encode()), kind=kind, media_type="application/octet-stream", size_bytes=1)


def clip(ref: ArtifactRef, text: str, duration_us: int = 4_000_000) -> PoolClip:
    """A pool clip with the id that the pool would give it."""
    return PoolClip(
        clip_id=f"clip_{ref.sha256[:12]}",
        ref=ref,
        text=text,
        duration_us=duration_us,
        width=SIZE[0],
        height=SIZE[1],
        rate=RATE,
        licence="CC0-1.0",
        origin="source",
    )


def task(pool: tuple[PoolClip, ...] = (), **update: Any) -> Task:
    """The task of the film."""
    fields: dict[str, Any] = {
        "project_id": "prj_repair",
        "title": "Pendulum",
        "language": "en",
        "script": SCRIPT,
        "aspect_ratio": "16:9",
        "width": SIZE[0],
        "height": SIZE[1],
        "frame_rate": RATE,
        "duration_min_us": 3_000_000,
        "duration_max_us": 60_000_000,
        "pool": pool,
        "music_library": "test 1",
        "voice": "test",
        "tools_digest": "0" * 64,
        "licence": "CC0-1.0",
    }
    return Task(**{**fields, **update})


def planned(index: int, **update: Any) -> PlannedShot:
    """The plan of one shot."""
    start = sum(len(t) + 1 for t in TEXTS[:index])
    fields: dict[str, Any] = {
        "segment": 0,
        "script_start": start,
        "script_end": start + len(TEXTS[index]),
        "text": TEXTS[index],
        "visual_query": QUERIES[index],
        "target_duration_us": 4_000_000,
    }
    return PlannedShot(**{**fields, **update})


def narration(ref: ArtifactRef, index: int, duration_us: int, lufs: float = -16.0) -> Narration:
    """A spoken track of a shot's text."""
    return Narration(
        ref=ref,
        duration_us=duration_us,
        sample_rate=24_000,
        voice="test",
        loudness_lufs=lufs,
        text_sha256=lineage.text_digest(TEXTS[index]),
    )


def asset(pool_clip: PoolClip, index: int, score: float = 0.9) -> AssetChoice:
    """A chosen clip."""
    return AssetChoice(clip_id=pool_clip.clip_id, ref=pool_clip.ref, query=QUERIES[index], score=score, ranked=(pool_clip.clip_id,))


def decoration(ref: ArtifactRef, slots: dict[str, str], **update: Any) -> Decoration:
    """A rendered graphic."""
    fields: dict[str, Any] = {
        "ref": ref,
        "template": "title",
        "template_digest": "1" * 64,
        "slots": slots,
        "placement": "full_frame",
        "duration_us": 2_000_000,
        "width": SIZE[0],
        "height": SIZE[1],
    }
    return Decoration(**{**fields, **update})


def music(ref: ArtifactRef) -> MusicChoice:
    """A background track."""
    return MusicChoice(track_id="t1", ref=ref, title="Calm", licence="CC0-1.0", query="calm", duration_us=3_000_000)


def film(frames: tuple[int, int, int] = (60, 60, 60), spotlight: int | None = None, **parts: Any) -> ProductionState:
    """A film with a timeline and renders that are current.

    Args:
        frames: length of each slot.
        spotlight: index of the shot with a planned graphic.
        parts: ``assets``, ``narrations``, ``renders`` (refs by position), ``decoration``, ``music``, ``plans``, ``task``.
    """
    clips = parts.get("clips") or tuple(clip(invented(f"clip{i}", ArtifactKind.CLIP), QUERIES[i]) for i in range(3))
    the_task = parts.get("task") or task(clips)
    plans = parts.get("plans") or [planned(i) for i in range(3)]
    if spotlight is not None:
        plan = SpotlightPlan(kind=SpotlightKind.TITLE, brief="say it")
        plans = [p.model_copy(update={"spotlight": plan}) if i == spotlight else p for i, p in enumerate(plans)]
    narrations = parts.get("narrations") or [narration(invented(f"voice{i}", ArtifactKind.NARRATION), i, 3_700_000) for i in range(3)]
    assets = parts.get("assets") or [asset(c, i) for i, c in enumerate(clips[:3])]
    shots = {
        f"s{i + 1:03d}": ShotRecord(
            shot_id=f"s{i + 1:03d}",
            planned=plans[i],
            asset=assets[i],
            narration=narrations[i],
            decoration=parts.get("decoration") if spotlight == i else None,
        )
        for i in range(3)
    }
    record = GlobalRecord(
        task=the_task,
        segments=(Segment(index=0, title="All", script_start=0, script_end=len(the_task.script)),),
        shot_order=tuple(shots),
        music=parts.get("music"),
    )
    state = ProductionState(film=record, shots=shots)
    items = tuple(
        TimelineItem(shot_id=sid, start_frame=sum(frames[:i]), frames=frames[i], narration_offset_us=0) for i, sid in enumerate(shots)
    )
    timeline = Timeline(
        ref=invented("timeline", ArtifactKind.TIMELINE), items=items, total_frames=sum(frames), inputs_digest=lineage.timeline_inputs(state)
    )
    state = state.model_copy(update={"film": record.model_copy(update={"timeline": timeline})})
    renders = parts.get("renders") or [invented(f"render{i}", ArtifactKind.RENDER) for i in range(3)]
    done = {
        sid: shot.model_copy(
            update={"render": Render(ref=renders[i], frames=frames[i], inputs_digest=lineage.render_inputs(state, sid) or "missing")}
        )
        for i, (sid, shot) in enumerate(shots.items())
    }
    return state.model_copy(update={"shots": done})
