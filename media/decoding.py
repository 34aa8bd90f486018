"""Runs ffmpeg as a decoder in the sandbox and hands over what it decodes, each piece with its exact time stamp.

Owns the decoder's command lines and the way a pipe becomes an iterator. Times leave here in microseconds of the container's clock;
:mod:`media.frames` and :mod:`media.audio` place them on the project's clock. Every stream is decoded once, at the size that is wanted.

Time stamps travel inside the stream: pictures as nanoseconds, of which the whole microseconds are the presentation time and the rest
only keeps equal times apart, because a muxer refuses two equal ones in a row.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import IO

from media.command import Command, Completed, Limits, Sandbox
from media.ffmpeg import DECODE_LIMITS, input_options, last_words, tool
from media.nut import NutReader
from schemas.errors import MediaRejected, ToolFailed
from schemas.stage import RejectCode
from schemas.time import US

OFFSET_S = 100_000
"""Added to every time stamp on its way, because the stream cannot hold negative ones: more than the longest transport-stream clock."""

DECODER_THREADS = 2
"""Decoding gives equal pictures for any number. Filters get one thread: slicing pictures that small costs more than it gains."""

_BATCH_BYTES = 1 << 21
_BATCH_ITEMS = 64
_BATCHES = 4
JUMPING = frozenset({"mpegts", "mpeg"})
"""Containers whose clock may jump (joined broadcasts); for these ffmpeg straightens the stamps and all times are taken from the first."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One decoded picture or run of samples: container time in microseconds, raw bytes."""

    pts_us: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Source:
    """What a decoder needs to know of a file."""

    path: Path
    container: str
    """A key of ``media.ffmpeg.DEMUXERS``."""
    stream: int
    raw_clock: bool = False
    """Give time stamps as they are in the file, jumps and all."""

    @property
    def jumps(self) -> bool:
        """Time stamps are given relative to the first decoded one."""
        return self.container in JUMPING and not self.raw_clock


def pictures(
    source: Source,
    sandbox: Sandbox,
    *,
    chain: str,
    frame_bytes: int,
    seek_us: int | None = None,
    select: str | None = None,
    coarse: bool = False,
    limits: Limits = DECODE_LIMITS,
) -> Generator[Piece]:
    """Decoded pictures in presentation order.

    Args:
        chain: filters that end in the wanted size and pixel format.
        frame_bytes: size of one picture in that format.
        seek_us: container time to start at; decoding begins at a key picture before it. Not for containers whose clock jumps.
        select: expression over ``pts`` (nanoseconds, with the offset; see :func:`stamp`) that says which pictures are wanted.
        coarse: leave block edges in bidirectional pictures as they are. Other pictures do not change; these change by hundredths of a
            grey level when they are made small, and decoding costs a tenth less.

    Raises:
        MediaRejected: code unreadable, when nothing at all could be decoded.
        ToolFailed: the decoder crashed.
    """
    filters = ",".join(part for part in (_stamping(source), f"select='{select}'" if select else "", chain) if part)
    argv = (
        *_opening(source, seek_us, coarse=coarse),
        *("-map", f"0:{source.stream}", "-vf", filters, "-fps_mode", "passthrough", "-enc_time_base", "1:1000000000"),
        *("-c:v", "rawvideo", *_TO_PIPE),
    )
    for _, pts, _, data in _packets(sandbox, _command(source, argv, limits), frame_bytes):
        if len(data) != frame_bytes:
            raise ToolFailed(
                "decoder_stream", f"a picture of {len(data)} bytes where {frame_bytes} were expected", "report this with the file's digest"
            )
        yield Piece(pts // 1000 - OFFSET_S * US, data)


def first_stamps(picture: Source, sound: int, sandbox: Sandbox, rate: int, limits: Limits = DECODE_LIMITS) -> tuple[int, int] | None:
    """Container time of the first decoded picture and of the first decoded sound of stream ``sound``, in one look.

    Returns:
        None where they do not both come within the first pictures; look for each alone then.
    """
    argv = (
        *_opening(picture, None),
        *("-map", f"0:{picture.stream}", "-map", f"0:{sound}", "-vf", f"{_stamping(picture)},scale=16:16,format=gray"),
        *("-fps_mode", "passthrough", "-enc_time_base:v", "1:1000000000", "-af", _sound_chain(rate)),
        *("-c:v", "rawvideo", "-c:a", "pcm_s16le", "-muxing_queue_data_threshold", "1", *_TO_PIPE),
    )
    found: dict[int, int] = {}
    packets = _packets(sandbox, _command(picture, argv, limits), 1 << 24, small=True)
    try:
        for stream, pts, base, _ in packets:
            found.setdefault(stream, pts // 1000 if stream == 0 else round(pts * base * US))
            if len(found) == 2:
                return found[0] - OFFSET_S * US, found[1] - OFFSET_S * US
    except (MediaRejected, ToolFailed):
        pass
    finally:
        packets.close()
    return None


def _stamping(source: Source) -> str:
    """Filters that carry a picture's time out: nanoseconds, strictly growing, equal times told apart by single nanoseconds."""
    first = _STAMP.format(missing="0")
    following = _STAMP.format(missing=f"PREV_OUTPTS/1000-{OFFSET_S}*1000000+40000")
    stamps = f"settb=1/1000000000,setpts='if(eq(N,0),{first},max({following},PREV_OUTPTS+1))'"
    return f"setpts=PTS-STARTPTS,{stamps}" if source.jumps else stamps


def _sound_chain(rate: int, channel: int | None = None) -> str:
    alone = "" if channel is None else f"pan=mono|c0=c{channel},"
    return f"{alone}aformat=sample_fmts=s16:sample_rates={rate}:channel_layouts=mono,asettb=1/{rate},asetpts=PTS+{OFFSET_S * rate}"


_STAMP = f"(if(isnan(PTS),{{missing}},round(PTS/1000))+{OFFSET_S}*1000000)*1000"
"""A picture's stamp on its way out; one without a time follows the last by 40 ms."""


def stamp(pts_us: int) -> int:
    """The value of ``pts`` in a select expression for a container time."""
    return (pts_us + OFFSET_S * US) * 1000


def samples(source: Source, sandbox: Sandbox, rate: int, limits: Limits = DECODE_LIMITS, *, channel: int | None = None) -> Generator[Piece]:
    """Decoded sound as little-endian 16-bit mono at a constant rate, whatever the stream's own rate does midway.

    Args:
        channel: the one that is heard; None mixes all.

    Raises: as :func:`pictures`.
    """
    chain = _sound_chain(rate, channel)
    argv = (*_opening(source, None), "-map", f"0:{source.stream}", "-af", chain, "-c:a", "pcm_s16le", *_TO_PIPE)
    for _, pts, base, data in _packets(sandbox, _command(source, argv, limits), 1 << 24):
        yield Piece(round(pts * base * US) - OFFSET_S * US, data)


def _opening(source: Source, seek_us: int | None, *, coarse: bool = False) -> tuple[str, ...]:
    """The command up to its input."""
    program, _ = tool("ffmpeg")
    seek: tuple[str, ...] = ()
    if seek_us is not None:
        seek = ("-noaccurate_seek", "-seek_timestamp", "1", "-ss", f"{seek_us}us")
    return (
        *(program, "-nostdin", "-hide_banner", "-v", "error", "-filter_threads", "1"),
        *(() if source.jumps else ("-copyts",)),
        *(*seek, "-threads", str(DECODER_THREADS)),
        *(("-skip_loop_filter", "bidir") if coarse else ()),
        *(*input_options(source.container), "-i", "/in/source"),
    )


def _command(source: Source, argv: tuple[str, ...], limits: Limits) -> Command:
    return Command(argv=argv, inputs={"source": source.path}, folders=tool("ffmpeg")[1], limits=limits)


@dataclass(frozen=True, slots=True)
class _End:
    """How the decoder ended."""

    done: Completed | None
    packets: int
    fault: BaseException | None


_TO_PIPE = ("-map_metadata", "-1", "-f", "nut", "-write_index", "0", "pipe:1")
"""Titles and tags stay behind: they may be long, and nobody reads them there."""

_Packet = tuple[int, int, Fraction, bytes]


def _packets(sandbox: Sandbox, command: Command, most_bytes: int, *, small: bool = False) -> Generator[_Packet]:
    """Stream, time stamp in ticks, seconds of a tick, payload. Ends the decoder when the caller stops asking.

    Packets cross from the decoder's thread in batches, because they may come by the ten thousand; ``small`` hands over each at once.
    """
    waiting: queue.Queue[list[_Packet] | _End] = queue.Queue(_BATCHES)
    stop = threading.Event()

    def hand_over(item: list[_Packet] | _End) -> None:
        while not stop.is_set():
            try:
                waiting.put(item, timeout=0.1)
                return
            except queue.Full:
                continue

    def work() -> None:
        count = 0

        def consume(pipe: IO[bytes]) -> None:
            nonlocal count
            reader = NutReader(pipe, most_bytes)
            batch: list[_Packet] = []
            held = 0
            for stream, pts, data in reader.packets():
                batch.append((stream, pts, reader.time_base(stream), data))
                held += len(data)
                count += 1
                if count == 1 or small or held >= _BATCH_BYTES or len(batch) >= _BATCH_ITEMS:
                    hand_over(batch)
                    batch, held = [], 0
                    if stop.is_set():
                        return
            if batch:
                hand_over(batch)

        try:
            done = sandbox.stream(command, consume)
            hand_over(_End(done, count, None))
        except BaseException as fault:
            hand_over(_End(None, count, fault))

    thread = threading.Thread(target=work, name="workprint-decode", daemon=True)
    thread.start()
    try:
        while not isinstance(item := waiting.get(), _End):
            yield from item
        _judge(item)
    finally:
        stop.set()
        thread.join()


_OUR_MISTAKES = ("Error parsing options", "Unrecognized option", "Option not found", "No such filter")


def _judge(end: _End) -> None:
    """Raise if the decoder failed. A damaged film that gave something counts as what it gave."""
    if end.fault is not None:
        raise end.fault
    assert end.done is not None  # noqa: S101
    code = end.done.returncode
    if code >= 128:
        raise ToolFailed(
            "decoder_crashed",
            f"the decoder ended by signal {code - 128}: {last_words(end.done.stderr)}",
            "report this with the file's digest",
        )
    if any(words in end.done.stderr for words in _OUR_MISTAKES):
        raise ToolFailed(
            "ffmpeg_options", f"this ffmpeg does not know our options: {last_words(end.done.stderr)}", "install ffmpeg 5.1 or newer"
        )
    if end.packets == 0:
        raise MediaRejected(
            RejectCode.UNREADABLE,
            f"nothing could be decoded (status {code}): {last_words(end.done.stderr)}",
            "check the file with another player",
        )
