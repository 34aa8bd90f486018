"""Finds out what a media file is, inside the sandbox, and places its streams on one clock.

Owns the limits on what is accepted and the clock: 0 is the first presented video frame. Must not decide whether a film is worth
anything; that is admission's.

Three sandboxed looks, none of which decodes the film: stream headers with every packet's time stamps, then the first decoded picture
and the first decoded sound, because only a decoder knows what it drops before them.
"""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Generator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from pydantic import Field

from media.choosing import Candidate, Choice, choose
from media.command import Limits, Sandbox
from media.decoding import JUMPING, Piece, Source, first_stamps, pictures, samples
from media.ffmpeg import last_words
from media.listing import Listing, Ticks, list_streams
from media.sniff import sniff
from schemas.canonical import Frozen
from schemas.errors import LimitExceeded, MediaRejected
from schemas.media import AudioStream, MediaInfo, VideoStream
from schemas.stage import RejectCode
from schemas.time import US, Rate


class MediaLimits(Frozen):
    """Bounds of what is accepted. Beyond one the file is rejected with the code of that limit."""

    max_bytes: int = Field(default=64 * 1024**3, description="size of the file")
    max_pixels: int = Field(default=50_000_000, description="pixels of one picture, coded and displayed")
    max_streams: int = Field(default=64, description="streams of any kind")
    max_duration_us: int = Field(default=6 * 3600 * US, description="longest film, microseconds")
    max_packets: int = Field(default=12_000_000, description="packets of all streams together")


_FIRST_LOOK = Limits(wall_s=60.0, cpu_s=120, data_bytes=1536 * 1024**2, tree_bytes=1024**3, processes=64)
_JUMP_US = 10 * US
"""In a container whose clock may jump, a step of more than this is one."""
_FAR_US = 10**15
"""No time stamp is taken to lie further away: 31 years."""
_BLOCK = 1 << 16


_USUAL_RATES = tuple(Fraction(n * 1000, 1001) for n in (24, 30, 48, 60, 120)) + tuple(Fraction(n) for n in (24, 25, 30, 50, 60, 120))
"""Tried where a container's ticks are too coarse to tell, milliseconds for example."""


@dataclass(frozen=True, slots=True)
class Times:
    """Presentation of a stream's packets in order: starts and ends, microseconds from its first decoded piece. Arrays, because a long film
    has a million packets."""

    starts: Ticks
    ends: Ticks


def probe(path: Path, sandbox: Sandbox, limits: MediaLimits | None = None) -> MediaInfo:
    """What is in a file.

    Picture and sound may each be absent (None); whether that is acceptable is for the caller to say.

    Raises:
        MediaRejected: code is a value of ``RejectCode``: not_found, not_a_file, empty_file, manifest_refused, not_media, unreadable,
            codec_refused, no_video (neither picture nor sound), limit_bytes, limit_pixels, limit_streams, limit_duration.
        LimitExceeded: opening the file took longer than a file of its size may.
        ToolFailed, SandboxUnavailable: ours to handle.
    """
    bounds = limits or MediaLimits()
    size, container, listing, choice = look_into(path, sandbox, bounds)
    digest = _sha256(path)
    both = _both_starts(path, container, choice, sandbox)
    video = _video(path, container, choice.pictures[0], listing, sandbox, bounds, both[0] if both else None) if choice.pictures else None
    audio, unheard = _audio(path, container, choice, listing, sandbox, video, both[1] if both else None)
    duration_us = max(video.duration_us if video else 0, audio.start_us + audio.duration_us if audio else 0)
    if duration_us > bounds.max_duration_us:
        raise _too_long(duration_us, bounds)
    return MediaInfo(
        sha256=digest,
        size_bytes=size,
        container=container,
        video=video,
        audio=audio,
        audio_choice="; ".join((choice.explanation, *unheard, *([f"stream {audio.index} is the next"] if audio and unheard else []))),
        ignored_streams=tuple(text for text in choice.ignored if audio is None or not text.startswith(f"stream {audio.index} ")),
        duration_us=duration_us,
    )


def look_into(path: Path, sandbox: Sandbox, bounds: MediaLimits) -> tuple[int, str, Listing, Choice]:
    """Size, container, streams with packets, and the choice among them: all that can be known without decoding.

    Raises: as :func:`probe`.
    """
    size = _size(path, bounds)
    container = sniff(path)
    listing = _list(path, container, sandbox, bounds)
    choice = choose(listing)
    if not choice.pictures and not choice.sounds:
        if choice.refused:
            raise _rejected(RejectCode.CODEC_REFUSED, f"none of its codecs is accepted: {', '.join(sorted(set(choice.refused)))}")
        if listing.packets:
            raise _rejected(RejectCode.NO_VIDEO, f"there is neither picture nor sound in it ({'; '.join(choice.ignored)})")
        raise _rejected(RejectCode.UNREADABLE, "the container holds no readable stream")
    _check_declared(listing, bounds, container)
    return size, container, listing, choice


def _size(path: Path, bounds: MediaLimits) -> int:
    try:
        info = path.stat()
    except FileNotFoundError:
        raise _rejected(RejectCode.NOT_FOUND, "there is no such file") from None
    except OSError as error:
        raise _rejected(RejectCode.NOT_FOUND, f"the file cannot be reached: {error.strerror}") from error
    if not stat.S_ISREG(info.st_mode):
        raise _rejected(RejectCode.NOT_A_FILE, f"expected a file, found {stat.filemode(info.st_mode)[0]} ({_kind(info.st_mode)})")
    if info.st_size == 0:
        raise _rejected(RejectCode.EMPTY_FILE, "the file is empty; expected a film")
    if info.st_size > bounds.max_bytes:
        raise _rejected(RejectCode.LIMIT_BYTES, f"the file has {info.st_size} bytes; at most {bounds.max_bytes} are accepted")
    return info.st_size


def _kind(mode: int) -> str:
    return "folder" if stat.S_ISDIR(mode) else "device, pipe or socket"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _list(path: Path, container: str, sandbox: Sandbox, bounds: MediaLimits) -> Listing:
    try:
        listing, done = list_streams(
            path, container, sandbox, max_pixels=bounds.max_pixels, max_streams=bounds.max_streams, max_packets=bounds.max_packets
        )
    except LimitExceeded as error:
        if error.code == "wall_clock":
            raise
        raise _rejected(RejectCode.UNREADABLE, f"opening it takes more than a file of its size may: {error.message}") from error
    if "max_streams" in done.stderr or int(listing.form.get("nb_streams", "0") or 0) > bounds.max_streams:
        raise _rejected(RejectCode.LIMIT_STREAMS, f"it has more than {bounds.max_streams} streams")
    if not listing.form and "max pixel count" in done.stderr:
        raise _rejected(RejectCode.LIMIT_PIXELS, f"a picture has more than {bounds.max_pixels} pixels")
    if listing.over:
        raise _rejected(RejectCode.LIMIT_DURATION, f"it has more than {bounds.max_packets} packets")
    if not listing.form:
        raise _rejected(RejectCode.UNREADABLE, f"the container cannot be read: {last_words(done.stderr)}")
    return listing


def _check_declared(listing: Listing, bounds: MediaLimits, container: str) -> None:
    """Refuse by what the headers say, before anything is decoded. Where clocks jump, the difference of two times is no length."""
    declared = 0 if container in JUMPING else _us(listing.form.get("duration"))
    if declared > bounds.max_duration_us:
        raise _too_long(declared, bounds)
    for values in listing.streams:
        one = Candidate(int(values["index"]), values.get("codec_name", ""), values)
        pixels = one.number("width") * one.number("height")
        if pixels > bounds.max_pixels:
            raise _rejected(RejectCode.LIMIT_PIXELS, f"a picture has {pixels} pixels; at most {bounds.max_pixels} are accepted")


def _both_starts(path: Path, container: str, choice: Choice, sandbox: Sandbox) -> tuple[int, int] | None:
    """First decoded picture and first decoded sound in one look, where that can be had."""
    if not choice.pictures or not choice.sounds:
        return None
    source = Source(path, container, choice.pictures[0].index, raw_clock=True)
    sound = choice.sounds[0]
    return first_stamps(source, sound.index, sandbox, _fine_rate(sound), _FIRST_LOOK)


def _fine_rate(one: Candidate) -> int:
    return max(8000, min(one.number("sample_rate"), 192_000))


def _video(
    path: Path, container: str, one: Candidate, listing: Listing, sandbox: Sandbox, bounds: MediaLimits, start_us: int | None
) -> VideoStream:
    if start_us is None:
        source = Source(path, container, one.index, raw_clock=True)
        start_us = _first(pictures(source, sandbox, chain="scale=16:16,format=gray", frame_bytes=256, limits=_FIRST_LOOK))
    return describe_video(one, container, listing, start_us, bounds)


def describe_video(one: Candidate, container: str, listing: Listing, start_us: int, bounds: MediaLimits) -> VideoStream:
    """The picture stream in our terms.

    Args:
        start_us: container time of the first decoded picture.

    Raises:
        MediaRejected: limit_pixels.
    """
    times = _timeline(one, listing, start_us, jumps=container in JUMPING)
    coded = (int(one.values["width"]), int(one.values["height"]))
    sar = _sar(one.values.get("sample_aspect_ratio", "1:1"), coded)
    rotation = _rotation(one.values.get("rotation", "0"))
    width, height = max(1, round(coded[0] * sar)), coded[1]
    if width * height > bounds.max_pixels:
        raise _rejected(RejectCode.LIMIT_PIXELS, f"it is shown at {width}x{height}; at most {bounds.max_pixels} pixels are accepted")
    if rotation in (90, 270):
        width, height = height, width
    rate, is_vfr = _rate(times, one.values.get("r_frame_rate", "0/0"), _tick_us(one))
    return VideoStream(
        index=one.index,
        codec=one.codec,
        pix_fmt=one.values.get("pix_fmt", "unknown"),
        coded_width=coded[0],
        coded_height=coded[1],
        rotation=rotation,
        sar_num=sar.numerator,
        sar_den=sar.denominator,
        display_width=width,
        display_height=height,
        rate=rate,
        is_vfr=is_vfr,
        start_us=start_us,
        duration_us=int(times.ends.max()),
        frames=len(times.starts),
        is_hdr=one.values.get("color_transfer") in ("smpte2084", "arib-std-b67"),
    )


def _audio(
    path: Path,
    container: str,
    choice: Choice,
    listing: Listing,
    sandbox: Sandbox,
    video: VideoStream | None,
    known_start_us: int | None,
) -> tuple[AudioStream | None, list[str]]:
    """The first sound track that can be decoded, and what was wrong with those before it."""
    unheard: list[str] = []
    for one in choice.sounds:
        source = Source(path, container, one.index, raw_clock=True)
        try:
            start_us = known_start_us
            if start_us is None:
                start_us = _first(samples(source, sandbox, _fine_rate(one), limits=_FIRST_LOOK))
        except MediaRejected:
            unheard.append(f"stream {one.index} ({one.codec}) could not be decoded")
            continue
        times = _timeline(one, listing, start_us, jumps=container in JUMPING)
        return AudioStream(
            index=one.index,
            codec=one.codec,
            sample_rate=max(1, one.number("sample_rate")),
            channels=max(1, one.number("channels")),
            start_us=start_us - video.start_us if video else 0,
            duration_us=max(0, int(times.ends.max())),
            language=one.values.get("tag:language", "")[:35] or None,
            title=one.values.get("tag:title", "")[:200] or None,
            is_default=one.flag("default"),
            is_comment=one.flag("comment"),
        ), unheard
    return None, unheard


def _first(pieces: Generator[Piece]) -> int:
    """Container time of the first decoded piece; the decoder is ended behind it.

    Raises:
        MediaRejected: there is none.
    """
    try:
        return next(pieces).pts_us
    except StopIteration:
        raise _rejected(RejectCode.UNREADABLE, "nothing could be decoded") from None
    finally:
        pieces.close()


def _timeline(one: Candidate, listing: Listing, start_us: int, *, jumps: bool) -> Times:
    """Every packet that is presented, from the first decoded piece on, in order of presentation.

    A packet without a duration lasts to the next one; the last one as long as packets usually do.
    """
    base = _time_base(one)
    packets = listing.packets[one.index]
    at, length = packets.times(_nearest(start_us * base[1], base[0] * US))
    starts, ends = _in_us(at, base), _in_us(at + length, base)
    if not packets.dated:  # decoding times begin before the first picture is shown
        starts, ends = np.maximum(starts, start_us), np.maximum(ends, start_us)
    if jumps:
        _straighten(starts, ends)
    starts, ends = starts - start_us, ends - start_us
    shown = (ends > 0) | (starts >= 0)
    if not shown.any():
        return Times(np.zeros(1, np.int64), np.zeros(1, np.int64))
    starts, ends = starts[shown], ends[shown]
    order = np.lexsort((ends, starts))
    starts, ends = starts[order], ends[order]
    steps = np.sort(np.diff(starts))
    steps = steps[steps > 0]
    usual = steps[len(steps) // 2] if len(steps) else 0
    following = np.append(starts[1:], starts[-1] + usual)
    return Times(starts, np.where(ends > starts, ends, following))


def _in_us(ticks: Ticks, base: tuple[int, int]) -> Ticks:
    """Ticks as the nearest microseconds, exactly, halves up; what lies more than :data:`_FAR_US` away stands there."""
    numerator, denominator = base
    most = _FAR_US * denominator // (numerator * US)
    if 2 * denominator * numerator * US >= 1 << 62 or most >= 1 << 62:
        return np.array([_nearest(min(max(t, -most), most) * numerator * US, denominator) for t in ticks.tolist()], np.int64)
    whole, rest = np.divmod(np.clip(ticks, -most, most), denominator)
    out: Ticks = whole * (numerator * US) + (2 * rest * (numerator * US) + denominator) // (2 * denominator)
    return out


def _straighten(starts: Ticks, ends: Ticks) -> None:
    """Undo jumps of the clock in place: the film goes on where it was."""
    shift, newest = 0, None
    for first in range(0, len(starts), _BLOCK):
        block = slice(first, first + _BLOCK)
        shifts = []
        for at, end in zip(starts[block].tolist(), ends[block].tolist(), strict=True):
            if newest is not None and abs(at + shift - newest) > _JUMP_US:
                shift = newest - at
            newest = end + shift if newest is None else max(newest, end + shift)
            shifts.append(shift)
        starts[block] += np.array(shifts, np.int64)
        ends[block] += np.array(shifts, np.int64)


def _rate(times: Times, declared: str, tick_us: int) -> tuple[Rate, bool]:
    """Mean rate, and whether pictures stand at unequal distances (beyond what the container's ticks explain)."""
    count, span = len(times.starts), int(times.starts[-1] - times.starts[0])
    num, den = _fraction(declared)
    if count < 2 or span <= 0:
        return (Rate(num=num, den=den) if 0 < num <= 1000 * den else Rate(num=25, den=1)), False
    mean = Fraction(count * US, int(times.ends[-1] - times.starts[0]))
    usual = Fraction(span, count - 1)
    allowed = 2 * tick_us + usual / 20
    steps = np.diff(times.starts)
    is_vfr = bool(max(int(steps.max()) - usual, usual - int(steps.min())) > allowed)
    told = [Fraction(num, den)] if num > 0 else []
    plain = [rate for rate in told if rate.denominator in (1, 2, 1001)]
    exact = next((rate for rate in (*plain, *_USUAL_RATES, *told) if abs(span * rate - (count - 1) * US) <= 2 * tick_us * rate), None)
    if exact is None:
        near = [rate for rate in told if abs(rate / mean - 1) < Fraction(1, 100)] + [mean.limit_denominator(100_000)]
        exact = near[0] if near[0] > 0 else mean
    return Rate(num=exact.numerator, den=exact.denominator), is_vfr


def _time_base(one: Candidate) -> tuple[int, int]:
    """Seconds of one tick; a thousandth where the file says nothing that makes sense."""
    pair = _fraction(one.values.get("time_base", ""))
    return pair if pair[0] > 0 else (1, 1000)


def _tick_us(one: Candidate) -> int:
    numerator, denominator = _time_base(one)
    return -(-numerator * US // denominator)


def _sar(text: str, coded: tuple[int, int]) -> Fraction:
    """Sample aspect ratio; 1 where it is unknown or absurd."""
    num, den = _fraction(text.replace(":", "/"))
    sar = Fraction(num, den) if num > 0 else Fraction(1)
    return sar if Fraction(1, 20) <= sar <= 20 and coded[0] * sar >= 1 else Fraction(1)


def _rotation(text: str) -> int:
    """Degrees clockwise, of ffprobe's counter-clockwise figure; angles between the quarters count as none."""
    try:
        turn = -round(float(text)) % 360
    except ValueError:
        return 0
    return turn if turn in (0, 90, 180, 270) else 0


def _nearest(numerator: int, denominator: int) -> int:
    return (2 * numerator + denominator) // (2 * denominator)


def _fraction(text: str) -> tuple[int, int]:
    """'30000/1001' as a pair; (0, 1) where it is none."""
    num, _, den = text.partition("/")
    try:
        pair = int(num), int(den or "1")
    except ValueError:
        return 0, 1
    return pair if pair[1] > 0 else (0, 1)


def _us(seconds: str | None) -> int:
    """Decimal seconds as microseconds; 0 where they are missing."""
    try:
        return round(Fraction(seconds) * US) if seconds else 0
    except ValueError:
        return 0


def _too_long(duration_us: int, bounds: MediaLimits) -> MediaRejected:
    return _rejected(RejectCode.LIMIT_DURATION, f"it lasts {duration_us // US} s; at most {bounds.max_duration_us // US} s are accepted")


def _rejected(code: RejectCode, message: str) -> MediaRejected:
    return MediaRejected(code, message, "")
