"""Reads the NUT streams that ffmpeg writes to a pipe: raw pictures or samples, each with its exact time stamp.

Owns a reader for one-stream NUT version 3 without seeking, which is all that a pipe of ours carries. The bytes come from a decoder that
read hostile media, so every length is checked against a bound before anything is read. Format: the NUT specification.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import IO

from schemas.errors import ToolFailed

_MAGIC = b"nut/multimedia container\0"
_MAIN, _STREAM, _SYNC = b"NM\x7aV\x1f_\x04\xad", b"NS\x11@[\xf2\xf9\xdb", b"NK\xe4\xad\xee\xcaEi"

_CODED_PTS, _STREAM_ID, _SIZE_MSB, _CHECKSUM, _RESERVED = 8, 16, 32, 64, 128
_SIDE_DATA, _HEADER_IDX, _MATCH_TIME, _CODED, _INVALID = 256, 1024, 2048, 4096, 8192

_MOST_HEADER = 1 << 20


@dataclass(frozen=True, slots=True)
class _Code:
    """What one frame code byte stands for."""

    flags: int
    stream: int
    size_mul: int
    size_lsb: int
    pts_delta: int
    reserved: int
    header: int


class NutReader:
    """Packets of a NUT stream.

    Args:
        source: the pipe; must return as many bytes as asked for, or fewer only at its end.
        most_bytes: largest payload accepted.

    Raises:
        ToolFailed: the bytes are not NUT, or a packet is larger than ``most_bytes``.
    """

    def __init__(self, source: IO[bytes], most_bytes: int) -> None:
        self._source = source
        self._most = most_bytes
        self._codes: list[_Code] = []
        self._elided: list[bytes] = [b""]
        self._bases: list[Fraction] = []
        self._base_of: dict[int, Fraction] = {}
        self._shift_of: dict[int, int] = {}
        self._last: dict[int, int] = {}
        self._version = 0

    def time_base(self, stream: int = 0) -> Fraction:
        """Seconds of one tick; known after the first packet."""
        return self._base_of[stream]

    def packets(self) -> Iterator[tuple[int, int, bytes]]:
        """Stream number, presentation time in ticks, payload; in the order of the stream. Ends quietly where the bytes end."""
        magic = self._source.read(len(_MAGIC))
        if not magic:
            return
        if magic != _MAGIC:
            raise _broken("the stream does not begin as NUT")
        try:
            while first := self._source.read(1):
                if first == b"N":
                    self._read_header(first + self._exactly(7))
                else:
                    yield self._read_frame(first[0])
        except _CutShort:
            return  # the decoder was ended in the middle of something; its exit status says why
        except (IndexError, KeyError, ZeroDivisionError, OverflowError, ValueError) as error:
            raise _broken(f"a field that makes no sense ({type(error).__name__})") from error

    def _read_header(self, code: bytes) -> None:
        length = self._number()
        if length > 4096:
            self._exactly(4)
        if length > _MOST_HEADER:
            raise _broken(f"a header of {length} bytes")
        body = _Fields(self._exactly(length)[:-4])
        if code == _MAIN:
            self._main(body)
        elif code == _STREAM:
            self._stream(body)
        elif code == _SYNC:
            self._sync(body)

    def _main(self, body: _Fields) -> None:
        self._version = body.number()
        if self._version > 3:
            body.number()
        body.number()  # streams
        body.number()  # max_distance
        self._bases = [Fraction(body.number(), body.number()) for _ in range(body.number())]
        pts, mul, stream, header = 0, 1, 0, 0
        codes: list[_Code] = []
        while len(codes) < 256:
            flags, fields = body.number(), body.number()
            pts = body.signed() if fields > 0 else pts
            mul = body.number() if fields > 1 else mul
            stream = body.number() if fields > 2 else stream
            size = body.number() if fields > 3 else 0
            reserved = body.number() if fields > 4 else 0
            count = body.number() if fields > 5 else mul - size
            if fields > 6:
                body.signed()  # match time
            header = body.number() if fields > 7 else header
            for _ in range(8, fields):
                body.number()
            done = 0
            while done < count and len(codes) < 256:
                if len(codes) == ord("N"):
                    codes.append(_Code(_INVALID, 0, 0, 0, 0, 0, 0))
                    continue
                codes.append(_Code(flags, stream, mul, size + done, pts, reserved, header))
                done += 1
        self._codes = codes
        if not body.at_end:
            self._elided = [b"", *(body.text() for _ in range(body.number()))]

    def _stream(self, body: _Fields) -> None:
        stream = body.number()
        body.number()  # class
        body.text()  # fourcc
        self._base_of[stream] = self._bases[body.number()]
        self._shift_of[stream] = body.number()
        self._last[stream] = 0

    def _sync(self, body: _Fields) -> None:
        value = body.number()
        ticks, base = divmod(value, len(self._bases))
        seconds = ticks * self._bases[base]
        for stream, own in self._base_of.items():
            self._last[stream] = int(seconds / own)

    def _read_frame(self, code_byte: int) -> tuple[int, int, bytes]:
        if not self._codes:
            raise _broken("a frame before the main header")
        code = self._codes[code_byte]
        flags = code.flags
        if flags & _CODED:
            flags ^= self._number()
        if flags & _INVALID:
            raise _broken(f"frame code {code_byte} is not valid")
        stream = self._number() if flags & _STREAM_ID else code.stream
        coded = self._number() if flags & _CODED_PTS else None
        size = code.size_lsb + (code.size_mul * self._number() if flags & _SIZE_MSB else 0)
        if flags & _MATCH_TIME:
            self._number()
        header = self._number() if flags & _HEADER_IDX else code.header
        for _ in range(self._number() if flags & _RESERVED else code.reserved):
            self._number()
        if flags & _CHECKSUM:
            self._exactly(4)
        if flags & _SIDE_DATA and self._version > 3:
            raise _broken("side data is not expected on this pipe")
        if stream not in self._base_of or header >= len(self._elided):
            raise _broken("a frame of an unknown stream")
        if size > self._most:
            raise _broken(f"a packet of {size} bytes where at most {self._most} were expected")
        pts = self._last[stream] + code.pts_delta if coded is None else self._full_pts(stream, coded)
        self._last[stream] = pts
        prefix = self._elided[header]
        payload = self._exactly(size - len(prefix))
        return stream, pts, prefix + payload if prefix else payload

    def _full_pts(self, stream: int, coded: int) -> int:
        shift = self._shift_of[stream]
        if coded >= 1 << shift:
            return coded - (1 << shift)
        mask = (1 << shift) - 1
        delta = self._last[stream] - mask // 2
        return ((coded - delta) & mask) + delta

    def _number(self) -> int:
        value = 0
        read = self._source.read
        for _ in range(10):
            byte = read(1)
            if not byte:
                raise _CutShort
            bits = byte[0]
            value = value << 7 | bits & 127
            if bits < 128:
                return value
        raise _broken("a number of more than ten bytes")

    def _exactly(self, count: int) -> bytes:
        data = self._source.read(count)
        if len(data) < count:
            raise _CutShort
        return data


class _CutShort(Exception):
    """The bytes end inside a packet."""


class _Fields:
    """The fields of one header."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def at_end(self) -> bool:
        return self._at >= len(self._data)

    def number(self) -> int:
        value = 0
        while True:
            if self._at >= len(self._data):
                raise _broken("a header that is too short")
            byte = self._data[self._at]
            self._at += 1
            value = value << 7 | byte & 127
            if byte < 128:
                return value

    def signed(self) -> int:
        value = self.number() + 1
        return -(value >> 1) if value & 1 else value >> 1

    def text(self) -> bytes:
        length = self.number()
        self._at += length
        return self._data[self._at - length : self._at]


def _broken(what: str) -> ToolFailed:
    return ToolFailed("decoder_stream", f"the decoder's stream is broken: {what}", "report this with the file's digest")
