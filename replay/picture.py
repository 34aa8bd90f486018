"""The picture of one shot as one ffmpeg command: clip fitted to the canvas, last frame held, graphic laid over it.

Owns the geometry and the times inside a shot. Pure: builds arguments, starts nothing. Only filters whose results do not depend on the
processor are used (no zoompan, no xfade); the number of frames is exact by ``-frames:v``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from media.ffmpeg import TIMESCALE, house_video
from replay.graphics.layout import is_han
from schemas.state import Decoration
from schemas.time import Rate

CROPPED = 0.10
"""A clip loses at most this share of its picture to fill the canvas; else it is shown whole before a blurred copy of itself."""
SCALE = "out_color_matrix=bt709:out_range=tv:flags=bicubic+accurate_rnd+full_chroma_int+bitexact"
"""Options of every scaling step: the house colours are reached where the picture is scaled anyway, not by a pass of their own."""
BLUR_DIVISOR = 8
"""The backdrop is blurred at this fraction of the canvas."""
CROSS_US = 400_000
"""A full-frame graphic gives way to the clip over this long."""
REST_US = 1_600_000
"""A clip is not shown after a graphic for less than this; the graphic stays instead."""
HOLD_US = 1_200_000
"""A graphic stands at least so long after its animation."""
LONGEST_CARD_US = 12_000_000
BAND_AFTER_US = 350_000
BAND_FADE_US = 300_000
BAND_STAYS_US = 5_000_000


@dataclass(frozen=True, slots=True)
class Canvas:
    """The film's picture."""

    width: int
    height: int
    rate: Rate
    crf: int
    preset: Literal["ultrafast", "veryfast", "fast", "medium"]


def timescale(rate: Rate) -> int:
    """Ticks per second of the picture track, so that every frame lasts a whole number of them."""
    if (TIMESCALE * rate.den) % rate.num == 0:
        return TIMESCALE
    return rate.num if rate.den != 1 else rate.num * 512


def reading_us(slots: dict[str, str]) -> int:
    """Time a viewer needs to read a graphic: two seconds, and more for every character."""
    text = "".join(slots.values())
    return 2_000_000 + sum(170_000 if is_han(c) else 55_000 for c in text)


def card_frames(decoration: Decoration, frames: int, rate: Rate) -> int:
    """Frames that a full-frame graphic is seen in a shot of ``frames``; all of them when too little would be left for the clip."""
    wanted = max(decoration.duration_us + HOLD_US, min(reading_us(decoration.slots), LONGEST_CARD_US))
    seen = rate.frame_at(wanted)
    return frames if frames - seen < rate.frame_at(REST_US) else seen


@dataclass(frozen=True, slots=True)
class Stand:
    """A moment at which a graphic stands whole in its shot, and where."""

    frame: int
    """Frame of the shot, from 0."""
    graphic_frame: int
    """Frame of the graphic's own clip that is seen then; the last one when it is held."""
    x: int
    y: int
    """Its upper left corner on the canvas, pixels."""


def stand_of(decoration: Decoration, frames: int, canvas: Canvas) -> Stand:
    """The last moment before a graphic leaves its shot of ``frames``: its texts have come in, and nothing of it has faded yet."""
    rate = canvas.rate
    own = max(1, rate.frame_at(decoration.duration_us))
    if decoration.placement == "full_frame":
        seen = card_frames(decoration, frames, rate)
        frame = max(0, (frames if seen == frames else seen - _cross(rate)) - 1)
        return Stand(frame, min(frame, own - 1), 0, 0)
    band = _band_place(decoration, frames, canvas)
    inside = max(0, band.stays - band.fade - 1)
    return Stand(min(frames - 1, band.after + inside), min(inside, own - 1), band.x, band.y)


def shot_argv(clip_size: tuple[int, int], frames: int, canvas: Canvas, decoration: Decoration | None) -> tuple[str, ...]:
    """Arguments for ffmpeg: reads ``/in/clip`` (and ``/in/card``), writes ``/out/shot.mp4`` with exactly ``frames`` frames.

    Args:
        clip_size: width and height of the clip in square pixels.
    """
    rate = canvas.rate
    inputs: tuple[str, ...] = ("-threads", "1", "-i", "/in/clip")
    start = 0
    if decoration is not None:
        inputs += ("-threads", "1", "-i", "/in/card")
        if decoration.placement == "full_frame":
            seen = card_frames(decoration, frames, rate)
            start = 0 if seen == frames else seen - _cross(rate)
    graph = [_fitted(clip_size, canvas, start)]
    if decoration is None:
        graph.append("[fit]null[out]")
    elif decoration.placement == "full_frame":
        graph += _full_frame(decoration, frames, canvas)
    else:
        graph += _band(decoration, frames, canvas)
    return (
        *inputs, "-filter_threads", "1", "-filter_complex_threads", "1", "-filter_complex", ";".join(graph), "-map", "[out]",
        "-frames:v", str(frames), "-an", *house_video(canvas.crf, canvas.preset), "-video_track_timescale", str(timescale(rate)),
        "/out/shot.mp4",
    )  # fmt: skip


def _cross(rate: Rate) -> int:
    return max(1, rate.frame_at(CROSS_US))


def _fitted(clip: tuple[int, int], canvas: Canvas, start_frames: int) -> str:
    """From ``[0:v]`` to ``[fit]``: constant rate, canvas size, first frame held for ``start_frames``, last frame held for ever.

    A clip that fits already is not scaled: clips of the pool have the house's colours.
    """
    w, h = canvas.width, canvas.height
    rate = f"{canvas.rate.num}/{canvas.rate.den}"
    head = f"[0:v:0]setpts=PTS-STARTPTS,fps={rate}:round=near"
    begin = f":start_mode=clone:start={start_frames}" if start_frames else ""
    tail = f"tpad=stop_mode=clone:stop=-1{begin}"
    wide, high = clip[0] * h, clip[1] * w
    lost = 1 - min(wide, high) / max(wide, high)
    if lost <= CROPPED:
        cover = "" if clip == (w, h) else f"scale={w}:{h}:force_original_aspect_ratio=increase:{SCALE},crop={w}:{h},"
        return f"{head},{cover}format=yuv420p,setsar=1,{tail}[fit]"
    small_w, small_h = _even(w // BLUR_DIVISOR), _even(h // BLUR_DIVISOR)
    radius = max(1, min(6, min(small_w, small_h) // 4))
    behind = (
        f"scale={small_w}:{small_h}:force_original_aspect_ratio=increase:{SCALE},crop={small_w}:{small_h},format=yuv420p,"
        f"boxblur={radius}:2:{radius // 2}:2,lutyuv=y='(val-16)*0.55+16':u='(val-128)*0.6+128':v='(val-128)*0.6+128',"
        f"scale={w}:{h}:{SCALE},setsar=1"
    )
    fits = (clip[0] == w and clip[1] <= h) or (clip[1] == h and clip[0] <= w)
    front = "" if fits else f"scale={w}:{h}:force_original_aspect_ratio=decrease:force_divisible_by=2:{SCALE},"
    layers = f"split=2[a][b];[a]{behind}[back];[b]{front}format=yuv420p,setsar=1[front]"
    return f"{head},{layers};[back][front]overlay=(W-w)/2:(H-h)/2:format=yuv420,{tail}[fit]"


def _full_frame(decoration: Decoration, frames: int, canvas: Canvas) -> list[str]:
    rate = f"{canvas.rate.num}/{canvas.rate.den}"
    seen = card_frames(decoration, frames, canvas.rate)
    card = f"[1:v:0]setpts=PTS-STARTPTS,fps={rate}:round=near,scale={canvas.width}:{canvas.height}:{SCALE},format=yuv420p,setsar=1"
    if seen == frames:
        return [f"{card},tpad=stop_mode=clone:stop=-1[out]", "[fit]nullsink"]
    cross = _cross(canvas.rate)
    hold = max(0, seen - canvas.rate.frame_at(decoration.duration_us))
    fade = f"tpad=stop_mode=clone:stop={hold},format=yuva420p,fade=t=out:start_frame={seen - cross}:nb_frames={cross}:alpha=1"
    return [f"{card},{fade}[card]", "[fit][card]overlay=0:0:format=yuv420:eof_action=pass:repeatlast=0[out]"]


@dataclass(frozen=True, slots=True)
class _Band:
    """Place and times of a band: pixels, and frames of its shot."""

    x: int
    y: int
    after: int
    fade: int
    stays: int


def _band_place(decoration: Decoration, frames: int, canvas: Canvas) -> _Band:
    """A band comes in shortly after the cut, stays a while, and goes before the shot ends if the shot is long enough."""
    rate = canvas.rate
    short = min(canvas.width, canvas.height)
    wide = canvas.width * 5 >= canvas.height * 6
    x = _even(canvas.width * 6 // 100) if wide else _even((canvas.width - decoration.width) // 2)
    y = _even(canvas.height - decoration.height - short * 9 // 100)
    after = min(rate.frame_at(BAND_AFTER_US), max(0, frames // 8))
    fade = max(1, min(rate.frame_at(BAND_FADE_US), frames // 6))
    stays = min(rate.frame_at(BAND_STAYS_US), max(2 * fade, frames - after - fade))
    return _Band(x, y, after, fade, stays)


def _band(decoration: Decoration, frames: int, canvas: Canvas) -> list[str]:
    rate, place = canvas.rate, _band_place(decoration, frames, canvas)
    hold = max(0, place.stays - rate.frame_at(decoration.duration_us))
    band = (
        f"[1:v:0]setpts=PTS-STARTPTS,fps={rate.num}/{rate.den}:round=near,tpad=stop_mode=clone:stop={hold},trim=end_frame={place.stays},"
        f"format=yuva420p,fade=t=in:start_frame=0:nb_frames={place.fade}:alpha=1,"
        f"fade=t=out:start_frame={place.stays - place.fade}:nb_frames={place.fade}:alpha=1,"
        f"setpts=PTS+{place.after * rate.den}/{rate.num}/TB[band]"
    )
    return [band, f"[fit][band]overlay={place.x}:{place.y}:format=yuv420:eof_action=pass:repeatlast=0[out]"]


def _even(n: int) -> int:
    return max(2, n // 2 * 2)
