"""An image-text model as a local folder: pictures and queries become vectors that can be compared (CLIP, SigLIP and the like, as ONNX).

Owns preparing pictures and texts for such a model. No package brings weights, so nothing is configured by default; a folder holds
``text_model.onnx`` and ``vision_model.onnx`` (or both under ``onnx/``), ``tokenizer.json`` and ``preprocessor_config.json``, which is how
exports of these models are laid out. Pictures come as arrays: whoever has a file decodes it in the sandbox first.
"""

from __future__ import annotations

import importlib
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image as Pictures

from replay.embed import Vectors
from replay.engines import Image
from schemas.canonical import sha256_bytes
from schemas.errors import ConfigInvalid

PARTS = ("text_model.onnx", "vision_model.onnx", "tokenizer.json", "preprocessor_config.json")
MAX_TOKENS = 77
"""Where the tokenizer's own settings say nothing: CLIP's text length."""


class OnnxImageText:
    """A folder's model. Loaded at first use; one thread, so that vectors repeat."""

    def __init__(self, folder: Path) -> None:
        found = {part: _part(folder, part) for part in PARTS}
        self._files = found
        try:
            self._prepare = _Preparation(json.loads(found["preprocessor_config.json"].read_text(encoding="utf-8")))
        except (ValueError, KeyError, TypeError) as error:
            raise _bad(folder, f"preprocessor_config.json: {error}") from error
        digest = sha256_bytes("".join(sha256_bytes(found[part].read_bytes()) for part in PARTS).encode())
        self.name = f"{folder.name} {digest[:12]}"
        self._folder = folder
        self._open: dict[str, Any] = {}
        self._lock = threading.Lock()

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, shape [len(texts), d]."""
        rows = []
        for text in texts:
            tokens = self._tokenizer().encode(text or "-")
            given = {"input_ids": np.asarray([tokens.ids], np.int64), "attention_mask": np.asarray([tokens.attention_mask], np.int64)}
            rows.append(self._run("text_model.onnx", given))
        return _units(rows)

    def encode_images(self, images: Sequence[Image]) -> Vectors:
        """Unit vectors, shape [len(images), d]."""
        return _units([self._run("vision_model.onnx", {"pixel_values": self._prepare(image)}) for image in images])

    def _tokenizer(self) -> Any:
        with self._lock:
            if "tokenizer" not in self._open:
                tokenizer = importlib.import_module("tokenizers").Tokenizer.from_file(str(self._files["tokenizer.json"]))
                if tokenizer.truncation is None:
                    tokenizer.enable_truncation(MAX_TOKENS)
                self._open["tokenizer"] = tokenizer
            return self._open["tokenizer"]

    def _run(self, part: str, given: dict[str, Any]) -> Vectors:
        with self._lock:
            if part not in self._open:
                ort = importlib.import_module("onnxruntime")
                options = ort.SessionOptions()
                options.intra_op_num_threads = options.inter_op_num_threads = 1
                self._open[part] = ort.InferenceSession(str(self._files[part]), options, providers=["CPUExecutionProvider"])
            session = self._open[part]
        wanted = {i.name for i in session.get_inputs()}
        if not wanted <= set(given):
            raise _bad(self._folder, f"{part} asks for {', '.join(sorted(wanted - set(given)))}")
        outputs = [o.name for o in session.get_outputs()]
        name = next((n for n in outputs if "embeds" in n), next((n for n in outputs if "pooler" in n), outputs[0]))
        value = np.asarray(session.run([name], {k: v for k, v in given.items() if k in wanted})[0], np.float32)
        if value.ndim != 2 or value.shape[0] != 1:
            raise _bad(self._folder, f"{part} gives {name} of shape {value.shape}, expected one vector")
        found: Vectors = value[0]
        return found


class _Preparation:
    """What ``preprocessor_config.json`` says is done to a picture."""

    def __init__(self, config: dict[str, Any]) -> None:
        size = config["size"]
        edge = size if isinstance(size, int) else size.get("shortest_edge")
        self.edge = None if edge is None else int(edge)
        crop = config.get("crop_size", size) if config.get("do_center_crop", self.edge is not None) else size
        self.height, self.width = (int(crop), int(crop)) if isinstance(crop, int) else (int(crop["height"]), int(crop["width"]))
        self.scale = float(config.get("rescale_factor", 1 / 255))
        self.mean = np.asarray(config.get("image_mean", (0.5, 0.5, 0.5)), np.float32)
        self.std = np.asarray(config.get("image_std", (0.5, 0.5, 0.5)), np.float32)

    def __call__(self, image: Image) -> Vectors:
        picture = Pictures.fromarray(image)
        if self.edge is None:
            picture = picture.resize((self.width, self.height), Pictures.Resampling.BICUBIC)
        else:
            factor = self.edge / min(picture.size)
            size = (max(self.width, round(picture.width * factor)), max(self.height, round(picture.height * factor)))
            picture = picture.resize(size, Pictures.Resampling.BICUBIC)
            left, top = (picture.width - self.width) // 2, (picture.height - self.height) // 2
            picture = picture.crop((left, top, left + self.width, top + self.height))
        values = (np.asarray(picture, np.float32) * self.scale - self.mean) / self.std
        return np.ascontiguousarray(values.transpose(2, 0, 1)[None]).astype(np.float32)


def open_sight(folder: str) -> OnnxImageText:
    """The image-text model of a folder.

    Raises:
        ConfigInvalid: a part is missing or not as described.
    """
    return OnnxImageText(Path(folder))


def _part(folder: Path, name: str) -> Path:
    for place in (folder / name, folder / "onnx" / name):
        if place.is_file():
            return place
    raise _bad(folder, f"{name} is not there")


def _bad(folder: Path, what: str) -> ConfigInvalid:
    parts = ", ".join(PARTS)
    return ConfigInvalid("image_model", f"replay.retrieval.image_model {folder}: {what}", f"the folder must hold {parts} of one model")


def _units(rows: Sequence[Vectors]) -> Vectors:
    values = np.stack(rows).astype(np.float64) if rows else np.zeros((0, 1))
    unit: Vectors = np.round(values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-9), 6).astype(np.float32)
    return unit
