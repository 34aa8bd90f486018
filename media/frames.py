"""Pictures of a film as arrays, each with its presentation time on the project's clock.

Owns how a picture is turned, scaled and coloured. Rotation and sample aspect ratio are applied, HDR is mapped to 8-bit BT.709. A film is
decoded once, as a stream, in constant memory; no time ever comes from a frame number and a rate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from media.command import Sandbox
from media.decoding import Piece, Source, pictures, stamp
from schemas.errors import MediaRejected
from schemas.media import MediaInfo, VideoStream
from schemas.stage import RejectCode
from schemas.time import US

NEAR_US = 8_000_000
"""Wanted times closer than this are fetched in one go instead of seeking again."""

MOST_PER_RUN = 200
"""Wanted times in one run of the decoder."""

COARSE_FROM = 8
"""A film made smaller by this factor at least is decoded without the finish that nobody could see at that size."""

_TONE_MAP = "zscale=t=linear:npl=100,format=gbrpf32le,zscale=p=bt709,tonemap=hable:desat=0,zscale=t=bt709:m=bt709:r=tv"
"""PQ and HLG come with the primaries and matrix of BT.2100; many files leave them out."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One picture. ``array`` is uint8, H x W x 3 sRGB or H x W luma (full range), read-only."""

    index: int
    """Position among the pictures yielded, from 0: the frame number of the film where it is read from its start."""
    pts_us: int
    """Presentation time on the project's clock; never decreases, may repeat."""
    array: NDArray[np.uint8]


def stream_frames(
    path: Path,
    info: MediaInfo,
    sandbox: Sandbox,
    *,
    width: int,
    height: int,
    gray: bool = False,
    start_us: int | None = None,
    end_us: int | None = None,
) -> Iterator[Frame]:
    """Every picture presented in ``[start_us, end_us)``, in order, scaled to ``width`` x ``height``.

    The decoder runs beside the caller and is ended when the caller stops asking.

    Args:
        width, height: pixels of the yielded arrays; keep to the display aspect of ``info.video``, or the picture is squeezed.
        gray: luma only.
        start_us, end_us: project's clock; None for the beginning and the end.

    Raises:
        MediaRejected: no_video, or unreadable when nothing can be decoded.
        ToolFailed, LimitExceeded, SandboxUnavailable: ours to handle.
    """
    video = _video(info)
    frame_bytes = width * height * (1 if gray else 3)
    chain = _chain(video, width, height, gray=gray)
    shape = (height, width) if gray else (height, width, 3)
    index = 0
    coarse = video.display_width >= COARSE_FROM * width and video.display_height >= COARSE_FROM * height
    for piece in _from(_source(path, info, video), video, sandbox, chain, frame_bytes, start_us, coarse=coarse):
        if end_us is not None and piece.pts_us >= end_us:
            return
        if start_us is None or piece.pts_us >= start_us:
            yield Frame(index, piece.pts_us, np.frombuffer(piece.data, np.uint8).reshape(shape))
            index += 1


def grab_frames(path: Path, info: MediaInfo, sandbox: Sandbox, times_us: Sequence[int], max_side: int) -> list[NDArray[np.uint8]]:
    """The picture that is on screen at each of the times, in the order asked for.

    On screen at ``t`` is the last picture presented at or before ``t`` (the first one for earlier times, the last one for later).

    Args:
        times_us: project's clock, any order, repeats allowed.
        max_side: longer side of the arrays, pixels; smaller films are not enlarged.

    Returns:
        uint8 sRGB arrays, H x W x 3, in display aspect.

    Raises: as :func:`stream_frames`.
    """
    video = _video(info)
    size = fitted(video.display_width, video.display_height, max_side)
    last = max(0, video.duration_us - 1)
    found: dict[int, NDArray[np.uint8]] = {}
    wanted = sorted({min(max(at, 0), last) for at in times_us})
    source = _source(path, info, video)
    for group in _groups(wanted, seekable=not source.jumps):
        found |= _grab_selected(source, video, sandbox, group, size)
    for group in _groups([at for at in wanted if at not in found], seekable=not source.jumps):
        found |= _grab_all(source, video, sandbox, group, size)
    return [found[min(max(at, 0), last)] for at in times_us]


def fitted(width: int, height: int, max_side: int) -> tuple[int, int]:
    """Size with the longer side at most ``max_side``, aspect kept, never enlarged, at least 1 x 1."""
    longer = max(width, height)
    if longer <= max_side:
        return width, height
    return max(1, round(width * max_side / longer)), max(1, round(height * max_side / longer))


def _video(info: MediaInfo) -> VideoStream:
    if info.video is None:
        raise MediaRejected(RejectCode.NO_VIDEO, "the file has no picture stream", "give a film")
    return info.video


def _chain(video: VideoStream, width: int, height: int, *, gray: bool) -> str:
    """Scale, map colours, and end in the wanted format. The decoder has turned the picture already."""
    shrinks = video.display_width >= 2 * width
    flags = ("area" if shrinks else "bicubic") + "+accurate_rnd+full_chroma_int+bitexact"
    matrix = "" if video.pix_fmt.startswith(("gbr", "rgb", "bgr")) else ":colorspace=bt2020nc"
    colour = f",setparams=color_primaries=bt2020{matrix},{_TONE_MAP}" if video.is_hdr else ""
    return f"scale={width}:{height}:flags={flags}{colour},format={'gray' if gray else 'rgb24'}"


def _source(path: Path, info: MediaInfo, video: VideoStream) -> Source:
    return Source(path, info.container, video.index)


def _origin_us(source: Source, video: VideoStream) -> int:
    """What a decoder's stamp says at clock 0."""
    return 0 if source.jumps else video.start_us


def _from(
    source: Source, video: VideoStream, sandbox: Sandbox, chain: str, frame_bytes: int, start_us: int | None, *, coarse: bool = False
) -> Iterator[Piece]:
    """Decoded pictures on the project's clock, from some picture at or before ``start_us``."""
    origin = _origin_us(source, video)
    if start_us is not None and start_us > 0 and not source.jumps:
        pieces = pictures(source, sandbox, chain=chain, frame_bytes=frame_bytes, seek_us=origin + start_us, coarse=coarse)
        try:
            first = next(pieces, None)
        except MediaRejected:
            first = None  # nothing behind the place sought: the whole film decides
        if first is not None and first.pts_us - origin <= start_us:
            yield Piece(first.pts_us - origin, first.data)
            for piece in pieces:
                yield Piece(piece.pts_us - origin, piece.data)
            return
        pieces.close()  # the container has no index that leads there: read it from its beginning
    for piece in pictures(source, sandbox, chain=chain, frame_bytes=frame_bytes, coarse=coarse):
        yield Piece(piece.pts_us - origin, piece.data)


def _groups(times: Sequence[int], *, seekable: bool) -> Iterator[list[int]]:
    """Times that one run of the decoder fetches."""
    group: list[int] = []
    for at in times:
        if group and (len(group) >= MOST_PER_RUN or (seekable and at - group[-1] > NEAR_US)):
            yield group
            group = []
        group.append(at)
    if group:
        yield group


def _grab_selected(
    source: Source, video: VideoStream, sandbox: Sandbox, times: Sequence[int], size: tuple[int, int]
) -> dict[int, NDArray[np.uint8]]:
    """Pictures on screen at sorted times, where one is presented shortly before; only those are scaled and handed over.

    Times in a long still stretch are left out.
    """
    origin = _origin_us(source, video)
    reach = max(100_000, 5 * US * video.rate.den // (2 * video.rate.num))
    windows = "+".join(f"between(pts,{stamp(origin + at - reach)},{stamp(origin + at + 1) - 1})" for at in times)
    windows += f"+gte(pts,{stamp(origin + times[-1] + 1)})"  # one picture too many tells that decoding can end
    chain = _chain(video, *size, gray=False)
    seek = None if source.jumps or times[0] <= reach else origin + times[0]
    found: dict[int, NDArray[np.uint8]] = {}
    pieces = pictures(source, sandbox, chain=chain, frame_bytes=size[0] * size[1] * 3, seek_us=seek, select=windows)
    try:
        for piece in pieces:
            at_us = piece.pts_us - origin
            for at in times:
                if at - reach <= at_us <= at:
                    found[at] = _array(piece.data, *size)
            if at_us > times[-1]:
                break
    except MediaRejected:
        pass  # none of the times has a picture near
    finally:
        pieces.close()
    return found


def _grab_all(
    source: Source, video: VideoStream, sandbox: Sandbox, times: Sequence[int], size: tuple[int, int]
) -> dict[int, NDArray[np.uint8]]:
    """Pictures on screen at sorted times, however long they have been there."""
    frames = _from(source, video, sandbox, _chain(video, *size, gray=False), size[0] * size[1] * 3, times[0])
    found: dict[int, NDArray[np.uint8]] = {}
    shown: bytes | None = None
    waiting = list(times)
    for piece in frames:
        while waiting and piece.pts_us > waiting[0]:
            found[waiting.pop(0)] = _array(shown or piece.data, *size)
        if not waiting:
            break
        shown = piece.data
    if shown is not None:
        found |= {at: _array(shown, *size) for at in waiting}
    return found


def _array(data: bytes, width: int, height: int) -> NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8).reshape(height, width, 3)
