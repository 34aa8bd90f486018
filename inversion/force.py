"""Forced alignment of English words with pocketsphinx: when each word of a known text is spoken in a known stretch of sound.

Its acoustic model comes in the wheel. Start times scatter by about 30 ms where Whisper's attention scatters by about 70 ms (measured on
synthetic speech with known phone times; see docs/inversion.md). Must not recognise: a text that is not what is spoken gives times that
mean nothing, and the caller checks them.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from functools import lru_cache
from importlib import metadata
from typing import Any

import numpy as np

from inversion.pronounce import arpabet
from inversion.speech import Samples, us_at
from schemas.errors import EngineMissing

LANGUAGES = frozenset({"en"})
"""Languages the aligner has sounds for."""

_FRAME_US = 10_000
_EARLY_US = 20_000
"""How much too early frames date what they hear; put on again. A frame is named by the start of its window of 25.6 ms, 13 ms before its
middle; the rest was measured: 31 ms (median of 86 borders inside running synthetic speech, refined by its sound) and 18 ms (median of
16 beginnings after a pause, against the energy of recorded speech)."""
_BEAMS = ("1e-48", "1e-80")
"""Search widths, the cheap one first: both gave the same times on 257 s of speech (99th percentile of differences 0 ms), the narrow
one in 60 % of the time; where it finds no way through, the wide one may. A width of 0 breaks the search."""
_LONGEST = 60
"""Longer words (addresses) are not aligned, letters."""
_LOCK = threading.Lock()
"""A decoder does one search at a time."""
_LETTERS = re.compile(r"[a-z']+")


def name() -> str:
    """Engine and version, for the record."""
    return f"pocketsphinx {metadata.version('pocketsphinx')}"


@lru_cache(maxsize=len(_BEAMS))
def _decoder(beam: str) -> Any:
    try:
        from pocketsphinx import Decoder
    except ImportError as error:
        raise EngineMissing(
            "pocketsphinx_missing", f"forced alignment needs pocketsphinx: {error}", "pip install pocketsphinx==5.1.1"
        ) from error
    width = float(beam)
    return Decoder(samprate=16000, lm=None, beam=width, pbeam=width, wbeam=width, loglevel="FATAL")


def align_words(sound: Samples, words: Sequence[str]) -> list[tuple[int, int] | None] | None:
    """When each word is spoken, as microseconds (start, end) from the first sample, in steps of 10 ms.

    None for a word without sounds (a dash). None for the whole where no way through the sound was found: the text is not what is
    spoken, or the sound is too hard.

    Args:
        sound: 16 kHz mono, at most about 30 s.
        words: as written, in order; numbers and names are pronounced by rule.
    """
    with _LOCK:
        for beam in _BEAMS:
            found = _search(_decoder(beam), sound, words)
            if found is not None:
                return found
    return None


def _search(decoder: Any, sound: Samples, words: Sequence[str]) -> list[tuple[int, int] | None] | None:
    entries = [_entry(decoder, w) for w in words]
    spoken = [e for e in entries if e is not None]
    if not spoken:
        return None
    decoder.reinit_feat()  # the front end's noise tracker remembers earlier sounds: equal sound must give equal times, whatever came before
    decoder.set_align_text(" ".join(spoken))
    decoder.start_utt()
    decoder.process_raw((np.clip(sound, -1.0, 1.0) * 32767.0).astype(np.int16).tobytes(), full_utt=True)
    decoder.end_utt()
    path = decoder.seg()
    if path is None:
        return None
    times: list[tuple[str, int, int]] = []
    for segment in path:
        text = segment.word
        if text.startswith(("<", "[", "(")) or text == "NULL":
            continue
        start, end = segment.start_frame * _FRAME_US + _EARLY_US, (segment.end_frame + 1) * _FRAME_US + _EARLY_US
        times.append((text.split("(")[0], start, max(start + 1, min(end, us_at(len(sound))))))
    if [t[0] for t in times] != spoken:
        return None
    found = iter(times)
    out: list[tuple[int, int] | None] = []
    for entry in entries:
        if entry is None:
            out.append(None)
        else:
            _, start, end = next(found)
            out.append((start, end))
    return out


def _entry(decoder: Any, word: str) -> str | None:
    """Dictionary entry of a word, added where the dictionary lacks it; None if it has no sounds."""
    plain = word.lower().strip('"“”‘’.,!?;:()[]…-–—').replace("’", "'")
    if _LETTERS.fullmatch(plain) and decoder.lookup_word(plain) is not None:
        return plain
    sounds = arpabet(word) if len(word) <= _LONGEST else ()
    if not sounds:
        return None
    entry = "x" + "".join(f"{ord(c):x}" for c in plain)
    if decoder.lookup_word(entry) is None:
        decoder.add_word(entry, " ".join(sounds), True)
    return entry
