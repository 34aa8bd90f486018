"""Stills as files."""

from __future__ import annotations

import numpy as np
import pytest

from media.images import decode_image, jpeg_bytes, png_bytes
from schemas.errors import ToolFailed

PICTURE = (np.arange(20 * 30 * 3) % 251).astype(np.uint8).reshape(20, 30, 3)


def test_png_is_exact() -> None:
    assert np.array_equal(decode_image(png_bytes(PICTURE)), PICTURE)
    assert png_bytes(PICTURE) == png_bytes(PICTURE[:, ::-1][:, ::-1])


def test_luma_comes_back_as_gray() -> None:
    gray = PICTURE[:, :, 0]
    assert np.array_equal(decode_image(png_bytes(gray)), np.repeat(gray[:, :, None], 3, axis=2))


def test_jpeg_is_near() -> None:
    flat = np.full((16, 16, 3), (200, 100, 50), np.uint8)
    assert np.abs(decode_image(jpeg_bytes(flat)).astype(int) - flat).max() <= 4


@pytest.mark.parametrize("data", [b"", b"text", b"\x89PNG\r\n\x1a\n", b"GIF89a" + bytes(50)])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ToolFailed):
        decode_image(data)
