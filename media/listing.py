"""Asks ffprobe, in the sandbox, for streams, their properties and the time stamp of every packet.

Owns the question and the parsing of its answer. Decodes nothing and judges nothing.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from media.command import MIB, Command, Completed, Limits, Sandbox
from media.ffmpeg import input_options, tool

_ENTRIES = ":".join(
    (
        "packet=stream_index,pts,dts,duration,flags",
        "stream=index,codec_name,codec_type,width,height,pix_fmt,sample_rate,channels,sample_aspect_ratio,time_base,r_frame_rate,avg_frame_rate,color_transfer",
        "stream_disposition=default,comment,attached_pic,timed_thumbnails,still_image,visual_impaired,hearing_impaired,karaoke",
        "stream_tags=language,title",
        "stream_side_data=rotation",
        "format=format_name,start_time,duration,nb_streams",
    )
)
_MISSING = -(1 << 62)
"""Stands for a time stamp that the container does not give."""
_MOST_LINE = 1 << 20

Ticks = NDArray[np.int64]


@dataclass(slots=True)
class Packets:
    """Packets of one stream in the order of the file; times in ticks of the stream, :data:`_MISSING` where there is none."""

    pts: array[int] = field(default_factory=lambda: array("q"))
    dts: array[int] = field(default_factory=lambda: array("q"))
    duration: array[int] = field(default_factory=lambda: array("q"))

    def __len__(self) -> int:
        return len(self.pts)

    @property
    def dated(self) -> bool:
        """At least one packet has a presentation time; else only the decoding order is dated, and its zero means nothing."""
        return bool((np.frombuffer(self.pts, np.int64) != _MISSING).any())

    def times(self, first: int) -> tuple[Ticks, Ticks]:
        """Presentation time and duration of each packet, in ticks, in the order of the file; arrays of equal length.

        Where a container dates only some packets (MPEG program streams, AVI) and all last equally long, the others fill the holes;
        otherwise a packet without a presentation time stands at its decoding time.

        Args:
            first: presentation time of the first decoded piece, in ticks.
        """
        pts, dts, length = (np.frombuffer(column, np.int64) for column in (self.pts, self.dts, self.duration))
        known = pts != _MISSING
        if known.any() and not known.all() and length[0] > 0 and (length == length[0]).all():
            place, rest = np.divmod(pts[known] - first, length[0])
            if not rest.any() and (0 <= place).all() and (place < len(pts)).all():
                return first + np.arange(len(pts), dtype=np.int64) * length[0], length
        at = np.where(known, pts, dts)
        dated = at != _MISSING
        return at[dated], np.where(length == _MISSING, 0, np.maximum(length, 0))[dated]


@dataclass(slots=True)
class Listing:
    """ffprobe's answer as text values."""

    streams: list[dict[str, str]] = field(default_factory=list)
    form: dict[str, str] = field(default_factory=dict)
    packets: dict[int, Packets] = field(default_factory=dict)
    count: int = 0
    over: bool = False
    """More packets than asked for; the rest was not read."""


def list_streams(
    path: Path, container: str, sandbox: Sandbox, *, max_pixels: int, max_streams: int, max_packets: int
) -> tuple[Listing, Completed]:
    """Streams and packets of a file.

    ffprobe gives up on a file as soon as one of its streams has a codec that is not on the list. Such a file is listed again without the
    list, so that it can be judged by its other streams; which of them may be decoded is decided by name afterwards.

    Args:
        container: a key of ``media.ffmpeg.DEMUXERS``.
        max_pixels, max_streams: bounds that ffprobe itself enforces while it opens the file.
        max_packets: reading stops beyond it.

    Raises:
        LimitExceeded: it took more memory or time than a file of this size may.
    """
    listing, done = _ask(path, container, sandbox, max_pixels, max_streams, max_packets, any_codec=False)
    if not listing.form and "not on whitelist" in done.stderr:
        return _ask(path, container, sandbox, max_pixels, max_streams, max_packets, any_codec=True)
    return listing, done


def _ask(
    path: Path, container: str, sandbox: Sandbox, max_pixels: int, max_streams: int, max_packets: int, *, any_codec: bool
) -> tuple[Listing, Completed]:
    program, folders = tool("ffprobe")
    listing = Listing()
    command = Command(
        argv=(
            *(program, "-v", "error", "-hide_banner", "-max_pixels", str(max_pixels), "-max_streams", str(max_streams)),
            *("-probesize", "50M", "-analyzeduration", "30M"),
            *input_options(container, any_codec=any_codec),
            *("-show_packets", "-show_streams", "-show_format", "-show_entries", _ENTRIES, "-print_format", "compact", "-i", "/in/source"),
        ),
        inputs={"source": path},
        folders=folders,
        limits=Limits(wall_s=15.0 + path.stat().st_size / (20 * MIB), cpu_s=3600, data_bytes=512 * MIB, tree_bytes=512 * MIB, processes=64),
    )

    def consume(pipe: IO[bytes]) -> None:
        while line := pipe.readline(_MOST_LINE):
            _take(listing, line)
            if listing.count > max_packets:
                listing.over = True
                return

    return listing, sandbox.stream(command, consume)


def _take(listing: Listing, line: bytes) -> None:
    if line.startswith(b"packet|"):
        listing.count += 1
        fields = dict(part.split(b"=", 1) for part in line.rstrip(b"\n").split(b"|") if b"=" in part)
        if b"D" in fields.get(b"flags", b""):
            return  # outside the edit list: never presented
        packets = listing.packets.setdefault(int(fields[b"stream_index"]), Packets())
        packets.pts.append(_ticks(fields.get(b"pts")))
        packets.dts.append(_ticks(fields.get(b"dts")))
        packets.duration.append(_ticks(fields.get(b"duration")))
        return
    kind, _, rest = line.decode("utf-8", "replace").rstrip("\n").partition("|")
    values = dict(part.split("=", 1) for part in _split(rest) if "=" in part)
    if kind == "stream" and "index" in values and all(values["index"] != known["index"] for known in listing.streams):
        listing.streams.append(values)
    elif kind == "format":
        listing.form = values


def _split(rest: str) -> list[str]:
    """Fields of a compact line; a bar inside a value is written ``\\|``."""
    out, current, quoted = [], "", False
    for char in rest:
        if quoted:
            current += {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}.get(char, char)
            quoted = False
        elif char == "\\":
            quoted = True
        elif char == "|":
            out.append(current)
            current = ""
        else:
            current += char
    return [*out, current]


def _ticks(value: bytes | None) -> int:
    return int(value) if value is not None and value != b"N/A" else _MISSING
