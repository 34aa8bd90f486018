"""How each execution-level fault is made: real bytes, spoiled in the sandbox, recorded as if the tool had made them so.

Every spoiler takes the state in which the healthy product is already committed, and returns the value that takes its place; None when the
fault cannot be made there (no other clip, no graphic). Decides nothing about when.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from media.ffmpeg import house_audio, house_video, run_ffmpeg
from repair.checks.assets import alternatives, free_clips
from repair.checks.plan import covered_us, slot_us
from repair.findings import FILM
from repair.limits import LIMITS
from repair.measurements import MEASURED
from repair.mending import borrowed_tools
from replay.interchange import to_otio
from replay.picture import Canvas, shot_argv
from replay.timing import Layout, Slot
from replay.tool import Refusal, ToolEnv
from schemas.artifact import ArtifactKind, ArtifactRef
from schemas.state import AssetChoice, Decoration, MusicChoice, Narration, ProductionState, Render, TimelineItem
from schemas.time import Rate

_PHRASE = {
    "zh": "花园工具与季度预算的简短说明以及其他毫不相干的内容",
    "en": "garden tools and a quarterly budget overview with other unrelated matters",
}


@dataclass(frozen=True, slots=True)
class Spoiled:
    """The faulty value, what was done, and the new bytes."""

    value: dict[str, Any]
    detail: str
    artifacts: tuple[ArtifactRef, ...] = ()


Spoiler = Callable[[ProductionState, str, ToolEnv], Spoiled | None]


def _picture(ref: ArtifactRef, filters: str, env: ToolEnv, frames: int | None = None) -> ArtifactRef:
    """Filter a picture artifact into a new one of the same kind, house profile."""
    length = ("-frames:v", str(frames)) if frames is not None else ()
    coder = house_video(env.config.render.crf, env.config.render.preset)
    argv = ("-threads", "1", "-i", "/in/a", "-an", "-vf", f"{filters},format=yuv420p", *length, *coder, "/out/out.mp4")
    return _run(argv, ref, "out.mp4", "video/mp4", env)


def _sound(ref: ArtifactRef, filters: str, env: ToolEnv) -> ArtifactRef:
    """Filter a sound artifact into a PCM WAV of the same kind."""
    argv = ("-threads", "1", "-i", "/in/a", "-vn", "-af", filters, "-c:a", "pcm_s16le", "-bitexact", "-map_metadata", "-1", "/out/out.wav")
    return _run(argv, ref, "out.wav", "audio/wav", env)


def _run(argv: tuple[str, ...], ref: ArtifactRef, name: str, media_type: str, env: ToolEnv) -> ArtifactRef:
    folder = Path(env.workdir) / f"spoil-{len(list(Path(env.workdir).iterdir()))}"
    folder.mkdir()
    done = run_ffmpeg(argv, inputs={"a": env.store.path(ref.sha256)}, outputs=(name,), sandbox=env.sandbox, workdir=folder)
    return env.store.put_file(done.outputs[name], ref.kind, media_type)


def spoiled_voice(filters: Callable[[Narration], str], detail: str) -> Spoiler:
    """A spoiler that puts a filter chain over a spoken track."""

    def spoil(state: ProductionState, subject: str, env: ToolEnv) -> Spoiled | None:
        track = state.shots[subject].narration
        if track is None:
            return None
        ref = _sound(track.ref, filters(track), env)
        length = MEASURED.audio(ref, env).duration_us
        value = track.model_copy(update={"ref": ref, "duration_us": length})
        return Spoiled(value.model_dump(mode="json"), detail, (ref,))

    return spoil


MOVING_US = 2_000_000
"""A render whose clip moves for less than this cannot be frozen in a way that anybody would call a fault."""


def _render(filters: Callable[[Render], str], share: float, detail: str, *, moving: bool = False) -> Spoiler:
    def spoil(state: ProductionState, subject: str, env: ToolEnv) -> Spoiled | None:
        render = state.shots[subject].render
        if render is None:
            return None
        if moving and _moving_us(state, subject, render, env) < MOVING_US:
            return None
        frames = max(1, int(render.frames * share))
        ref = _picture(render.ref, filters(render), env, frames)
        return Spoiled(render.model_copy(update={"ref": ref}).model_dump(mode="json"), detail, (ref,))

    return spoil


def _moving_us(state: ProductionState, subject: str, render: Render, env: ToolEnv) -> float:
    """How long render and clip move; what only a graphic over the clip moves does not count."""
    asset = state.shots[subject].asset
    if asset is None:
        return 0.0
    seen = (MEASURED.video(ref, env) for ref in (render.ref, asset.ref))
    return min((1 - m.frozen_share) * m.duration_us for m in seen)


def _graphic(filters: Callable[[Decoration], str], detail: str) -> Spoiler:
    def spoil(state: ProductionState, subject: str, env: ToolEnv) -> Spoiled | None:
        graphic = state.shots[subject].decoration
        if graphic is None:
            return None
        ref = _picture(graphic.ref, filters(graphic), env)
        return Spoiled(graphic.model_copy(update={"ref": ref}).model_dump(mode="json"), detail, (ref,))

    return spoil


SPILL = 1.35
"""Enlarged so far, a line of text is this many times as wide as the picture."""


def _overflow(state: ProductionState, subject: str, env: ToolEnv) -> Spoiled | None:
    """Enlarge the graphic around its widest line until that leaves the picture on both sides."""
    graphic = state.shots[subject].decoration
    if graphic is None:
        return None
    length = MEASURED.video(graphic.ref, env).duration_us
    at = max(0, min(graphic.duration_us, length) - 150_000)
    boxes = MEASURED.still(graphic.ref, at, max(graphic.width, graphic.height), env).boxes
    if not boxes:
        return None
    widest = max(boxes, key=lambda b: b.width)
    times = min(8.0, max(1.7, SPILL * graphic.width / max(1, widest.width)))
    wide, high = (round(side * times / 2) * 2 for side in (graphic.width, graphic.height))
    left = round((widest.x + widest.width / 2) * times - graphic.width / 2)
    top = round((widest.y + widest.height / 2) * times - graphic.height / 2)
    left, top = min(max(0, left), wide - graphic.width), min(max(0, top), high - graphic.height)
    ref = _picture(graphic.ref, f"scale={wide}:{high},crop={graphic.width}:{graphic.height}:{left}:{top}", env)
    return Spoiled(graphic.model_copy(update={"ref": ref}).model_dump(mode="json"), f"enlarged {times:.1f} times", (ref,))


def _wrong_text(state: ProductionState, subject: str, env: ToolEnv) -> Spoiled | None:
    """Have the template engine render other words and figures, and record them under the slots that were asked for."""
    graphic = state.shots[subject].decoration
    if graphic is None:
        return None
    slots = {name: other_text(text) for name, text in graphic.slots.items()}
    fill = {"fills": [{"shot_id": subject, "template": graphic.template, "slots": slots}]}
    folder = Path(env.workdir) / "spoil-graphic"
    folder.mkdir(exist_ok=True)
    made = borrowed_tools()["decorate_spotlights"].execute(state, {"shots": subject}, (fill,), replace(env, workdir=folder))
    if isinstance(made, Refusal):
        return None
    value = next(c.value for c in made.changes if c.subject == subject and c.field == "decoration")
    if value["ref"]["sha256"] == graphic.ref.sha256:
        return None
    ref = ArtifactRef.model_validate(value["ref"])
    shown = "; ".join(f"{name}: {text}" for name, text in sorted(slots.items()))
    return Spoiled(graphic.model_copy(update={"ref": ref}).model_dump(mode="json"), f"rendered with {shown}"[:300], (ref,))


def other_text(text: str) -> str:
    """Other words of about the same length; in a text with figures only the digits change, each to another one."""
    if any(c.isdigit() for c in text):
        return "".join(str((int(c) + 4) % 10) if c.isascii() and c.isdigit() else c for c in text)
    phrase = _PHRASE["zh" if any("\u4e00" <= c <= "\u9fff" for c in text) else "en"]
    return (phrase * (len(text) // len(phrase) + 1))[: len(text)].strip() or phrase[:1]


def _repeat(state: ProductionState, subject: str, env: ToolEnv) -> Spoiled | None:
    order = state.film.shot_order
    place = order.index(subject)
    own = state.shots[subject].asset
    for neighbour in (order[place - 1], *order[place + 1 : place + 2]):
        other = state.shots[neighbour].asset
        if own is not None and other is not None and other.ref.sha256 != own.ref.sha256:
            value = own.model_copy(update={"clip_id": other.clip_id, "ref": other.ref})
            return Spoiled(value.model_dump(mode="json"), f"clip of {neighbour}")
    return None


def _mismatch(state: ProductionState, subject: str, env: ToolEnv) -> Spoiled | None:
    own = state.shots[subject].asset
    if own is None:
        return None
    taken = {s.asset.clip_id for s in state.shots.values() if s.asset is not None}
    free = [c for c in state.film.task.pool if c.clip_id not in taken]
    if not free:
        return None
    query = env.engines.embedder.encode([own.query], is_query=True)[0]
    likeness = env.engines.embedder.encode([c.text for c in free], is_query=False) @ query
    worst = free[int(likeness.argmin())]
    value = AssetChoice(clip_id=worst.clip_id, ref=worst.ref, query=own.query, score=own.score, ranked=own.ranked)
    return Spoiled(value.model_dump(mode="json"), f"clip {worst.clip_id}, least like the query")


CUT_FRAMES = 3
"""Frames that are left of a clip that is cut: a fifth of a second of the usual films."""


SURE_US = 500_000
"""A length that is not on the timeline yet may turn out shorter by this."""


def _may_cover(graphic: Decoration | None) -> bool:
    return graphic is None or graphic.placement == "full_frame"


def _cut(state: ProductionState, subject: str, env: ToolEnv) -> Spoiled | None:
    """The shot's clip cut to its beginning, where the picture then stands still for too long; the pool keeps its own copy."""
    shot = state.shots[subject]
    own, slot = shot.asset, slot_us(state, subject)
    if own is None or (slot is None and shot.planned.spotlight is not None and _may_cover(shot.decoration)):
        return None
    ref = _picture(own.ref, "null", env, CUT_FRAMES)
    shown = (slot or shot.planned.target_duration_us) - covered_us(state, subject)
    if shown - MEASURED.video(ref, env).duration_us <= LIMITS.hold_max_us + SURE_US:
        return None
    return Spoiled(own.model_copy(update={"ref": ref}).model_dump(mode="json"), f"first {CUT_FRAMES} frames", (ref,))


def _query_of_neighbour(state: ProductionState, subject: str, env: ToolEnv) -> Spoiled | None:
    """The free clip that the query of the shot before finds, recorded with that query."""
    order, own = state.film.shot_order, state.shots[subject].asset
    before = state.shots[order[order.index(subject) - 1]]
    query = before.asset.query if before.asset is not None else before.planned.visual_query
    free = [c for c in free_clips(state, subject) if own is not None and c.clip_id != own.clip_id] or alternatives(state, subject)
    planned = state.shots[subject].planned.visual_query
    if own is None or not free or " ".join(query.casefold().split()) == " ".join(planned.casefold().split()):
        return None
    likeness = env.engines.embedder.encode([c.text for c in free], is_query=False) @ env.engines.embedder.encode([query], is_query=True)[0]
    found = free[int(likeness.argmax())]
    value = AssetChoice(clip_id=found.clip_id, ref=found.ref, query=query, score=own.score, ranked=own.ranked)
    return Spoiled(value.model_dump(mode="json"), f"searched for with {query[:80]!r}")


def _bare(state: ProductionState, subject: str, env: ToolEnv) -> Spoiled | None:
    """The shot rendered as the tool does it, without its graphic."""
    shot, task = state.shots[subject], state.film.task
    if shot.render is None or shot.asset is None or shot.decoration is None or shot.planned.spotlight is None:
        return None
    clip = MEASURED.video(shot.asset.ref, env)
    canvas = Canvas(task.width, task.height, task.frame_rate, env.config.render.crf, env.config.render.preset)
    folder = Path(env.workdir) / f"bare-{subject}"
    folder.mkdir()
    argv = shot_argv((clip.width, clip.height), shot.render.frames, canvas, None)
    inputs = {"clip": env.store.path(shot.asset.ref.sha256)}
    done = run_ffmpeg(argv, inputs=inputs, outputs=("shot.mp4",), sandbox=env.sandbox, workdir=folder)
    ref = env.store.put_file(done.outputs["shot.mp4"], shot.render.ref.kind, "video/mp4")
    return Spoiled(shot.render.model_copy(update={"ref": ref}).model_dump(mode="json"), f"without {shot.decoration.template}", (ref,))


def _graphics_gone(state: ProductionState, subject: str, env: ToolEnv) -> Spoiled | None:
    """The film with one grey over every shot that has a graphic."""
    timeline = state.film.timeline
    shots = [i for i in (timeline.items if timeline is not None else ()) if state.shots[i.shot_id].decoration is not None]
    if not shots:
        return None
    when = "+".join(f"between(n,{i.start_frame},{i.start_frame + i.frames - 1})" for i in shots)
    grey = f"drawbox=c=0x808080:t=fill:enable='{when}',format=yuv420p"
    return _film(("-vf", grey, "-c:a", "copy", *house_video(20, "ultrafast")), f"grey over {len(shots)} shots")(state, subject, env)


def _music(filters: str, detail: str) -> Spoiler:
    def spoil(state: ProductionState, subject: str, env: ToolEnv) -> Spoiled | None:
        music: MusicChoice | None = state.film.music
        if music is None or subject != FILM:
            return None
        ref = _sound(music.ref, filters, env)
        return Spoiled(music.model_copy(update={"ref": ref}).model_dump(mode="json"), detail, (ref,))

    return spoil


def _film(options: tuple[str, ...], detail: str) -> Spoiler:
    """A spoiler that makes the delivered file again with other sound or picture; its manifest stays that of the healthy film."""

    def spoil(state: ProductionState, subject: str, env: ToolEnv) -> Spoiled | None:
        delivery = state.film.delivery
        if delivery is None or subject != FILM:
            return None
        argv = ("-threads", "1", "-i", "/in/a", "-map", "0:v:0", "-map", "0:a:0", *options, "/out/out.mp4")
        ref = _run(argv, delivery.video, "out.mp4", "video/mp4", env)
        return Spoiled(delivery.model_copy(update={"video": ref}).model_dump(mode="json"), detail, (ref,))

    return spoil


def _film_sound(filters: Callable[[int], str], detail: str) -> Spoiler:
    def spoil(state: ProductionState, subject: str, env: ToolEnv) -> Spoiled | None:
        length = state.film.delivery.duration_us if state.film.delivery is not None else 0
        return _film(("-c:v", "copy", "-af", filters(length), *house_audio()), detail)(state, subject, env)

    return spoil


def _half_text(state: ProductionState, subject: str, env: ToolEnv) -> Spoiled | None:
    """The shot's record with the first half of its text, cut between words."""
    shot = state.shots[subject]
    text = shot.planned.text
    keep = text[: len(text) // 2]
    keep = (keep[: keep.rindex(" ")] if " " in keep else keep).rstrip()
    if not keep:
        return None
    end = shot.planned.script_start + len(keep)
    planned = shot.planned.model_copy(update={"text": keep, "script_end": end})
    return Spoiled(shot.model_copy(update={"planned": planned}).model_dump(mode="json"), f"{len(text) - len(keep)} characters are lost")


def _slot(frames: Callable[[int, int, Rate], int], detail: str) -> Spoiler:
    """A spoiler that gives a shot another slot, moves the later ones, and writes the interchange file accordingly."""

    def spoil(state: ProductionState, subject: str, env: ToolEnv) -> Spoiled | None:
        timeline, rate = state.film.timeline, state.film.task.frame_rate
        track = state.shots[subject].narration
        if timeline is None or track is None:
            return None
        slots: list[Slot] = []
        at = 0
        for item in timeline.items:
            length = frames(item.frames, track.duration_us, rate) if item.shot_id == subject else item.frames
            slots.append(Slot(item.shot_id, at, length, item.narration_offset_us))
            at += length
        data = to_otio(state, Layout(tuple(slots), at, True))
        ref = env.store.put_bytes(data, ArtifactKind.TIMELINE, "application/vnd.opentimelineio+json")
        items = tuple(
            TimelineItem(shot_id=s.shot_id, start_frame=s.start_frame, frames=s.frames, narration_offset_us=s.narration_offset_us)
            for s in slots
        )
        value = timeline.model_copy(update={"ref": ref, "items": items, "total_frames": at})
        return Spoiled(value.model_dump(mode="json"), detail, (ref,))

    return spoil


def _half(_: Render) -> str:
    return "scale=trunc(iw/4)*2:trunc(ih/4)*2"


SPOILERS: dict[str, Spoiler] = {
    "narration_silent": spoiled_voice(lambda _: "volume=0", "volume 0"),
    "narration_truncated": spoiled_voice(lambda n: f"atrim=end={round(n.duration_us * 0.45) / 1e6:.6f}", "cut at 45 % of its length"),
    "narration_clipped": spoiled_voice(lambda _: "volume=30dB", "30 dB over full scale"),
    "narration_quiet": spoiled_voice(lambda _: "volume=-14dB", "14 dB quieter"),
    "asset_repeated": _repeat,
    "asset_mismatch": _mismatch,
    "asset_cut": _cut,
    "query_repeated": _query_of_neighbour,
    "decoration_wrong_text": _wrong_text,
    "decoration_low_contrast": _graphic(
        lambda _: "lutyuv=y=24+(val-16)*0.06:u=128+(val-128)*0.06:v=128+(val-128)*0.06", "6 % of its contrast"
    ),
    "decoration_overflow": _overflow,
    "decoration_blank": _graphic(lambda _: "drawbox=c=0x141c32:t=fill", "one colour"),
    "music_silent": _music("volume=0", "volume 0"),
    "music_clipped": _music("volume=30dB", "30 dB over full scale"),
    "render_black": _render(lambda _: "drawbox=c=black:t=fill", 1.0, "black in all frames"),
    "render_frozen": _render(
        lambda r: f"select='eq(n,0)',loop=loop={r.frames}:size=1:start=0,setpts=N/FRAME_RATE/TB", 1.0, "first frame only", moving=True
    ),
    "render_wrong_size": _render(_half, 1.0, "half width and height"),
    "render_wrong_length": _render(lambda _: "null", 0.6, "60 % of its frames"),
    "render_no_graphic": _bare,
    "plan_text_lost": _half_text,
    "timeline_slot_short": _slot(lambda _, spoken_us, rate: max(1, rate.frame_at(spoken_us) // 2), "half of its narration"),
    "timeline_slot_long": _slot(lambda frames, _, rate: 5 * frames + 4 * rate.frame_at(1_000_000), "5 times its length and 4 s"),
    "delivery_silent": _film_sound(lambda _: "volume=0", "volume 0"),
    "delivery_quiet": _film_sound(lambda _: "volume=-12dB", "12 dB quieter"),
    "delivery_clipped": _film_sound(lambda _: "volume=24dB", "24 dB over full scale"),
    "delivery_cut_sound": _film_sound(lambda us: f"atrim=end={us * 7 // 10 / 1e6:.6f}", "sound cut at 70 % of its length"),
    "delivery_shifted": _film_sound(lambda us: f"adelay=150:all=1,atrim=end={us / 1e6:.6f}", "sound 150 ms late"),
    "delivery_no_graphic": _graphics_gone,
    "delivery_black": _film(("-vf", "drawbox=c=black:t=fill,format=yuv420p", "-c:a", "copy", *house_video(20, "ultrafast")), "all frames"),
}
"""One way of making it for every execution-level kind."""
