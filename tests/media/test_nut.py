"""The reader of the decoder's stream: exact stamps, and no way to be made to read more than was expected."""

from __future__ import annotations

import contextlib
import io
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from media.command import Command, Sandbox
from media.ffmpeg import tool
from media.nut import NutReader
from schemas.errors import ToolFailed
from tests.media.clips import picture


@pytest.fixture(scope="module")
def stream(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Five gray 4x2 pictures, a third of a second apart, in nanoseconds."""
    program, folders = tool("ffmpeg")
    argv = (
        *(program, "-v", "error", *picture(seconds=5 / 3, size="16x16", rate="3")),
        *("-vf", "scale=4:2,format=gray,settb=1/1000000000", "-fps_mode", "passthrough", "-enc_time_base", "1:1000000000"),
        *("-c:v", "rawvideo", "-f", "nut", "pipe:1"),
    )
    return sandbox.run(Command(argv=argv, folders=folders), tmp_path_factory.mktemp("nut")).stdout


def _read(data: bytes, most: int = 8) -> list[tuple[int, Fraction, int]]:
    reader = NutReader(io.BytesIO(data), most)
    return [(pts, reader.time_base(stream), len(payload)) for stream, pts, payload in reader.packets()]


def test_stamps_and_payloads(stream: bytes) -> None:
    tick = Fraction(1, 10**9)
    assert _read(stream) == [(n * 10**9 // 3 + (n == 2), tick, 8) for n in range(5)]


def test_nothing_is_nothing() -> None:
    assert _read(b"") == []


def test_a_cut_stream_gives_the_packets_before_the_cut(stream: bytes) -> None:
    counts = {len(_read(stream[:length])) for length in range(60, len(stream), 7)}
    assert counts == {0, 1, 2, 3, 4, 5}


def test_a_packet_larger_than_expected_is_refused(stream: bytes) -> None:
    with pytest.raises(ToolFailed, match="at most 7"):
        _read(stream, most=7)


def test_other_bytes_are_refused() -> None:
    with pytest.raises(ToolFailed, match="does not begin as NUT"):
        _read(b"RIFF" * 10)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_damage_is_a_typed_error_or_fewer_packets(stream: bytes, data: st.DataObject) -> None:
    damaged = bytearray(stream)
    for _ in range(data.draw(st.integers(1, 6))):
        damaged[data.draw(st.integers(25, len(stream) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ToolFailed):
        assert all(size <= 8 for _, _, size in _read(bytes(damaged)))
