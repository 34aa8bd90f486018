"""Writes tiny ONNX models byte by byte, so that tests of model folders need neither torch nor the onnx package.

The image-text model made here is no random one: its picture vector is the mean colour, its text vector the colours named, so that what it
finds can be said beforehand. Field numbers are those of onnx.proto3.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

COLOURS = ["[UNK]", "red", "green", "blue"]


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes | str) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _ints(name: str, values: list[int]) -> bytes:
    return _bytes(5, _bytes(1, name) + b"".join(_number(8, v) for v in values) + _number(20, 7))


def _flag(name: str, value: int) -> bytes:
    return _bytes(5, _bytes(1, name) + _number(3, value) + _number(20, 2))


def _node(op: str, inputs: list[str], output: str, *attributes: bytes) -> bytes:
    return _bytes(1, b"".join(_bytes(1, i) for i in inputs) + _bytes(2, output) + _bytes(4, op) + b"".join(attributes))


def _constant(name: str, value: np.ndarray) -> bytes:
    dims = b"".join(_number(1, d) for d in value.shape)
    return _bytes(5, dims + _number(2, 1) + _bytes(8, name) + _bytes(9, value.astype("<f4").tobytes()))


def _value(field: int, name: str, kind: int, shape: list[str | int]) -> bytes:
    dims = b"".join(_bytes(1, _bytes(2, d) if isinstance(d, str) else _number(1, d)) for d in shape)
    return _bytes(field, _bytes(1, name) + _bytes(2, _bytes(1, _number(1, kind) + _bytes(2, dims))))


def _model(graph: bytes) -> bytes:
    return _number(1, 8) + _bytes(8, _bytes(1, "") + _number(2, 13)) + _bytes(7, graph)


def vision_model() -> bytes:
    """[1, 3, h, w] -> mean of every channel, [1, 3]."""
    mean = _node("ReduceMean", ["pixel_values"], "image_embeds", _ints("axes", [2, 3]), _flag("keepdims", 0))
    ends = _value(11, "pixel_values", 1, ["n", 3, "h", "w"]) + _value(12, "image_embeds", 1, ["n", 3])
    return _model(mean + _bytes(2, "colour") + ends)


def text_model() -> bytes:
    """[1, length] -> mean of the rows of the tokens, [1, 3]."""
    table = np.array([[0.01, 0.01, 0.01], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], np.float32)
    rows = _node("Gather", ["table", "input_ids"], "rows") + _node(
        "ReduceMean", ["rows"], "text_embeds", _ints("axes", [1]), _flag("keepdims", 0)
    )
    ends = _value(11, "input_ids", 7, ["n", "length"]) + _value(12, "text_embeds", 1, ["n", 3])
    return _model(rows + _bytes(2, "words") + _constant("table", table) + ends)


def image_text_folder(folder: Path, *, below: str = "onnx") -> Path:
    """A folder as an export of CLIP is laid out."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    (folder / below).mkdir(parents=True)
    (folder / below / "vision_model.onnx").write_bytes(vision_model())
    (folder / below / "text_model.onnx").write_bytes(text_model())
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(COLOURS)}, unk_token="[UNK]"))  # noqa: S106 - no password
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "do_resize": True, "size": {"shortest_edge": 32}, "do_center_crop": True, "crop_size": {"height": 32, "width": 32},
        "rescale_factor": 1 / 255, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5],
    }  # fmt: skip
    (folder / "preprocessor_config.json").write_text(json.dumps(config))
    return folder
