"""What a source looks like, sounds like and says, as short codes that survive transcoding: for finding films that are nearly the same.

Owns how the codes are made and how two of them are compared. Which films belong together is decided in materialize.kinship.

- Picture: a 64-bit difference hash of every key frame (rows of 9 by 8 grey values, each compared with its neighbour). Flat pictures say
  nothing and are left out.
- Sound: one 32-bit code every 0.1 s, after Haitsma and Kalker (ISMIR 2002): signs of the changes of 33 band energies over band and time.
- Text: MinHash of the narration's word 3-grams (evaluation.shingles).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.shingles import Signature, estimated, shingles, signature
from media.audio import read_pcm
from media.command import Sandbox
from media.images import decode_image
from schemas.errors import MediaRejected
from schemas.storyboard import Storyboard
from storage.artifacts import ArtifactStore

RATE = 8000
HOP = 800
WINDOW = 6400
BANDS = 33
LOW_HZ, HIGH_HZ = 200.0, 3000.0

FLAT = 3.0
"""Standard deviation of the 72 grey values, of 255, below which a picture says nothing."""
NEAR_BITS = 8
"""Bits by which hashes of one picture may differ after transcoding."""
SOUND_BITS = 0.30
"""Share of differing bits below which two stretches of sound are the same; unrelated sound differs in half of them."""
SOUND_MIN = 50
"""Codes (5 s) that must overlap before sound is compared."""
GRAM = 3

Codes = NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Print:
    """Codes of one film."""

    project_id: str
    pictures: tuple[int, ...]
    sound: Codes
    text: Signature | None
    grams: int
    """Different word 3-grams of the narration."""

    def row(self) -> dict[str, Any]:
        """Row of table ``fingerprints``."""
        return {
            "project_id": self.project_id,
            "pictures": [f"{h:016x}" for h in self.pictures],
            "sound": self.sound.astype(">u4").tobytes().hex(),
            "text_signature": self.text.astype(">u8").tobytes().hex() if self.text is not None else "",
            "text_grams": self.grams,
        }

    @classmethod
    def of_row(cls, row: dict[str, Any]) -> Print:
        """Back from a row."""
        text = np.frombuffer(bytes.fromhex(row["text_signature"]), ">u8").astype(np.uint64)
        sound = np.frombuffer(bytes.fromhex(row["sound"]), ">u4").astype(np.uint32)
        return cls(
            row["project_id"], tuple(int(h, 16) for h in row["pictures"]), sound, text if text.size else None, int(row["text_grams"])
        )


def take(board: Storyboard, source: Path, store: ArtifactStore, sandbox: Sandbox) -> Print:
    """The print of an admitted film.

    Raises:
        ToolFailed, LimitExceeded, SandboxUnavailable: the sound cannot be decoded for reasons of ours.
        StorageFault, DigestMismatch: a key frame is missing or damaged.
    """
    frames = [k.sha256 for shot in board.shots for k in shot.evidence.key_frames]
    hashes = [picture_code(decode_image(store.read(sha))) for sha in dict.fromkeys(frames)]
    try:
        sound = sound_codes(read_pcm(source, board.media, sandbox, RATE))
    except MediaRejected:
        sound = np.zeros(0, np.uint32)
    grams = shingles(board.script, GRAM)
    return Print(board.project_id, tuple(dict.fromkeys(h for h in hashes if h is not None)), sound, signature(grams), len(grams))


def picture_code(picture: NDArray[np.uint8]) -> int | None:
    """Difference hash of a picture (H x W x 3): whether each of 9 x 8 mean grey values is brighter than its right neighbour. None for a
    flat picture."""
    grey = picture.astype(np.float64) @ np.array([0.299, 0.587, 0.114])
    rows = np.add.reduceat(grey, np.linspace(0, grey.shape[0], 9).astype(int)[:-1], axis=0)
    cells = np.add.reduceat(rows, np.linspace(0, grey.shape[1], 10).astype(int)[:-1], axis=1)
    cells /= (grey.shape[0] / 8) * (grey.shape[1] / 9)
    if cells.std() < FLAT:
        return None
    bits = (cells[:, :-1] > cells[:, 1:]).ravel()
    return int(sum(1 << i for i, bit in enumerate(bits) if bit))


def sound_codes(samples: NDArray[np.int16]) -> Codes:
    """Codes of a sound track at ``RATE`` samples a second; nothing for less than one second."""
    count = (len(samples) - WINDOW) // HOP + 1
    if count < 2:
        return np.zeros(0, np.uint32)
    window = np.hanning(WINDOW)
    edges = np.geomspace(LOW_HZ, HIGH_HZ, BANDS + 1) * WINDOW / RATE
    starts = np.unique(edges.astype(int))
    out = np.zeros((count, BANDS))
    for first in range(0, count, 256):  # 256 windows at a time: 13 MB
        last = min(first + 256, count)
        block = np.stack([samples[i * HOP : i * HOP + WINDOW] for i in range(first, last)]) * window
        power = np.abs(np.fft.rfft(block, axis=1)) ** 2
        out[first:last] = np.add.reduceat(power[:, : starts[-1]], starts[:-1], axis=1)[:, :BANDS]
    change = np.diff(np.diff(out, axis=1), axis=0) > 0
    weights = (np.uint64(1) << np.arange(BANDS - 1, dtype=np.uint64)).astype(np.uint64)
    return (change.astype(np.uint64) @ weights).astype(np.uint32)


def pictures_shared(a: Print, b: Print) -> float:
    """Share of the key frames of the film with fewer of them that the other one shows too, 0 to 1; 0 with fewer than 3 frames."""
    few, many = sorted((a.pictures, b.pictures), key=len)
    if len(few) < 3:
        return 0.0
    other = np.array(many, dtype=np.uint64)
    near = sum(1 for h in few if int(np.bitwise_count(other ^ np.uint64(h)).min()) <= NEAR_BITS)
    return near / len(few)


def sound_shared(a: Print, b: Print) -> float:
    """Share of the shorter sound track that is the same in both at the offset that fits best, 0 to 1."""
    few, many = sorted((a.sound, b.sound), key=len)
    if len(few) < SOUND_MIN:
        return 0.0
    best = 0.0
    for offset, _ in Counter(_offsets(few, many)).most_common(3):
        start, end = max(0, -offset), min(len(few), len(many) - offset)
        if end - start < SOUND_MIN:
            continue
        bits = np.bitwise_count(few[start:end] ^ many[start + offset : end + offset])
        blocks = [bits[i : i + SOUND_MIN].mean() / 32 for i in range(0, len(bits) - SOUND_MIN + 1, SOUND_MIN)]
        best = max(best, sum(SOUND_MIN for share in blocks if share < SOUND_BITS) / len(few))
    return min(1.0, best)


def _offsets(few: Codes, many: Codes) -> list[int]:
    """Places where equal codes lie, as differences; codes that are common in a track (silence) are left out."""
    where: dict[int, list[int]] = {}
    for at, code in enumerate(many.tolist()):
        where.setdefault(code, []).append(at)
    return [at - here for here, code in enumerate(few.tolist()) for at in where.get(code, ()) if len(where[code]) <= 8]


def text_shared(a: Print, b: Print) -> float:
    """Estimated share of the 3-grams of the shorter narration that the other holds too, 0 to 1; 0 below 30 grams."""
    if a.text is None or b.text is None or min(a.grams, b.grams) < 30:
        return 0.0
    alike = estimated(a.text, b.text)
    return min(1.0, alike * (a.grams + b.grams) / ((1 + alike) * min(a.grams, b.grams)))
