"""Text recognition on stills: RapidOCR with the models that lie inside its wheel (PP-OCRv6, English and Chinese).

Owns the loading of those models and the order of the lines. It reads pictures that are already arrays; it must not open
files of strangers, and it never reaches for the network: a missing model is an error that names the package.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from schemas.errors import EngineMissing
from schemas.storyboard import TextBox

_MODELS = {
    "Det": "PP-OCRv6_det_small.onnx",
    "Rec": "PP-OCRv6_rec_small.onnx",
    "Cls": "ch_ppocr_mobile_v2.0_cls_mobile.onnx",
}
_DETECT_SIDE = 960
"""Longer side at which lines are looked for, pixels; they are read at full size."""
_MIN_SCORE = 0.6
"""Lines read with less confidence are noise more often than text."""

_lock = threading.Lock()
_idle: list[Any] = []
"""Loaded engines that nobody is using; shared by all readers of the process."""


def _load() -> Any:
    """One engine on one thread (one thread an engine costs least CPU time, and its results do not vary)."""
    spec = find_spec("rapidocr")
    if spec is None or spec.origin is None:
        raise EngineMissing("ocr_missing", "text recognition needs the package rapidocr", "pip install rapidocr==3.10.0 onnxruntime")
    folder = Path(spec.origin).parent / "models"
    params: dict[str, Any] = {
        "Global.log_level": "critical",
        "Global.use_cls": False,
        "Global.text_score": _MIN_SCORE,
        "Det.limit_type": "max",
        "Det.limit_side_len": _DETECT_SIDE,
        "EngineConfig.onnxruntime.intra_op_num_threads": 1,
        "EngineConfig.onnxruntime.inter_op_num_threads": 1,
    }
    for part, name in _MODELS.items():
        if not (folder / name).is_file():
            raise EngineMissing(
                "ocr_model_missing", f"the installed rapidocr has no {name} inside", "pip install --force-reinstall rapidocr==3.10.0"
            )
        params[f"{part}.model_path"] = str(folder / name)
    return import_module("rapidocr").RapidOCR(params=params)


@contextmanager
def _engine() -> Iterator[Any]:
    with _lock:
        engine = _idle.pop() if _idle else None
    if engine is None:
        engine = _load()
    try:
        yield engine
    finally:
        with _lock:
            _idle.append(engine)


class RapidReader:
    """Reads lines of text, English and Chinese. Implements ``replay.engines.TextReader``.

    Models are loaded at the first read, once for each thread that reads at the same time, at most ``threads`` of them.

    Args:
        threads: how many reads may run at the same time; more callers than that wait.
    """

    def __init__(self, threads: int = 2) -> None:
        try:
            release = version("rapidocr")
        except PackageNotFoundError:
            release = "missing"
        self.name = f"rapidocr {release} PP-OCRv6 small"
        self._slots = threading.BoundedSemaphore(max(1, threads))

    def read(self, image: NDArray[np.uint8]) -> tuple[TextBox, ...]:
        """Text lines of an sRGB picture, shape [height, width, 3]; boxes in its pixels; top to bottom, then left to right.

        Raises:
            EngineMissing: the package or a model in it is not installed.
            ValueError: the array is not [height, width, 3].
        """
        if image.ndim != 3 or image.shape[2] != 3:
            raise ValueError(f"a picture has shape [height, width, 3], not {image.shape}")
        if min(image.shape[:2]) < 8:
            return ()
        with self._slots, _engine() as engine:
            found = engine(np.ascontiguousarray(_padded(image)[..., ::-1]))
        texts = getattr(found, "txts", None)
        if not texts or found.boxes is None or found.scores is None:
            return ()
        height, width = image.shape[:2]
        boxes = [_box(t, b, s, width, height) for t, b, s in zip(texts, found.boxes, found.scores, strict=True)]
        return reading_order(box for box in boxes if box.text)


def _padded(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Slivers get a black border below and at the right, so that scaling them leaves every side some pixels."""
    height, width = image.shape[:2]
    least = max(64, max(height, width) // 8)
    down, right = max(0, least - height), max(0, least - width)
    return np.pad(image, ((0, down), (0, right), (0, 0))) if down or right else image


def _box(text: str, corners: NDArray[np.float32], score: float, width: int, height: int) -> TextBox:
    left = int(min(max(np.floor(corners[:, 0].min()), 0), width - 1))
    top = int(min(max(np.floor(corners[:, 1].min()), 0), height - 1))
    right = int(min(max(np.ceil(corners[:, 0].max()), left + 1), width))
    bottom = int(min(max(np.ceil(corners[:, 1].max()), top + 1), height))
    confidence = round(min(max(float(score), 0.0), 1.0), 4)
    return TextBox(text=text.strip(), x=left, y=top, width=right - left, height=bottom - top, confidence=confidence)


def reading_order(boxes: Iterator[TextBox] | list[TextBox]) -> tuple[TextBox, ...]:
    """Boxes top to bottom; those whose middles share a line stand left to right."""
    rows: list[list[TextBox]] = []
    for box in sorted(boxes, key=lambda b: (b.y + b.height / 2, b.x)):
        middle = box.y + box.height / 2
        if rows and abs(middle - _middle(rows[-1])) < 0.5 * min(box.height, rows[-1][0].height):
            rows[-1].append(box)
        else:
            rows.append([box])
    return tuple(box for row in rows for box in sorted(row, key=lambda b: b.x))


def _middle(row: list[TextBox]) -> float:
    return sum(b.y + b.height / 2 for b in row) / len(row)
