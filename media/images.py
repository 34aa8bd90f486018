"""Stills as files: writes arrays of ours and reads artifacts of ours. A user's picture is decoded in the sandbox, never here."""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from schemas.errors import ToolFailed

_FORMS = ("PNG", "JPEG")


def png_bytes(array: NDArray[np.uint8]) -> bytes:
    """A PNG file of a uint8 array, H x W x 3 sRGB or H x W luma. Equal arrays give equal bytes."""
    return _encode(array, "PNG", {"compress_level": 6})


def jpeg_bytes(array: NDArray[np.uint8], quality: int = 90) -> bytes:
    """A JPEG file of a uint8 array, H x W x 3 sRGB or H x W luma.

    Args:
        quality: 1 to 95.
    """
    return _encode(array, "JPEG", {"quality": quality})


def decode_image(data: bytes) -> NDArray[np.uint8]:
    """The picture of a PNG or JPEG artifact of ours as uint8 H x W x 3 sRGB.

    Raises:
        ToolFailed: the bytes are no such picture.
    """
    try:
        with Image.open(io.BytesIO(data), formats=_FORMS) as image:
            return np.asarray(image.convert("RGB"))
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise ToolFailed("image", f"expected a PNG or JPEG of our own: {error}", "make the artifact again") from error


def _encode(array: NDArray[np.uint8], form: str, options: dict[str, int]) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(array)).save(buffer, form, **options)
    return buffer.getvalue()
