"""What is written as it is spoken, in English and Mandarin: the way from a text to the words that a voice is given.

Letter-to-sound engines read words, plain numbers, years, decimals and ordinals; anything else they misread or silently drop ("10:30",
"5kg", "3×4", "¥100", "Привет"), so it is written out here first. Owns the order of the steps and the words of single signs; each language
has its own rules (replay.speech_english, replay.speech_mandarin). Must not know engines; captions keep the text as it was written.

Pure: text in, text out. Other languages come back as they are.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from replay import speech_english, speech_mandarin
from replay.romanise import romanise
from replay.speech_figures import plain_figures

_LONGEST = 1000
_ENDS = re.compile(r"[.!?…]['\")\]”’»]*\s+|[。！？；]")
_LOOSE = re.compile(r"\s+([,.;:!?]+(?=\s|$))")
_UNSPOKEN = frozenset(("So", "Sk", "Cf", "Co", "Cn", "Cs", "Cc"))
"""Kinds of characters that nobody reads aloud: pictures, marks without a letter, controls."""
_GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "Δ": "delta", "ε": "epsilon", "θ": "theta", "λ": "lambda", "μ": "mu",
    "µ": "mu",
    "π": "pi", "ρ": "rho", "σ": "sigma", "Σ": "sigma", "τ": "tau", "φ": "phi", "ψ": "psi", "ω": "omega", "Ω": "omega",
}  # fmt: skip


def spoken(text: str, language: str) -> str:
    """The text in words that a voice of this language reads right.

    Args:
        text: tidy text (``speech_text.plain``).
        language: BCP 47; only its first part counts.
    """
    base = language.split("-")[0].lower()
    if base not in ("en", "zh"):
        return text
    text = "".join(_written_out(piece, base) for piece in _pieces(text))
    return _LOOSE.sub(r"\1", " ".join(text.split()))


def _pieces(text: str) -> Iterator[str]:
    """Pieces of at most :data:`_LONGEST` characters, cut behind a sentence, else at a space, else anywhere: the time that a rule takes may
    grow with the square of what it is given."""
    at = 0
    while len(text) - at > _LONGEST:
        window = text[at : at + _LONGEST]
        ends = [m.end() for m in _ENDS.finditer(window)]
        cut = ends[-1] if ends else (window.rfind(" ") + 1 or _LONGEST)
        yield window[:cut]
        at += cut
    yield text[at:]


def _written_out(text: str, base: str) -> str:
    own = speech_english if base == "en" else speech_mandarin
    space = " " if text[-1:] == " " else ""
    text = own.figures(plain_figures(text))
    for pattern, words in own.RULES:
        text = pattern.sub(words, text)
    return "".join(_WORD_OF[base].get(c) or _read(c) for c in romanise(text)) + space


def _read(char: str) -> str:
    """A character as it goes to the voice: itself, the name of a sign of mathematics or money that has no word of its own, or a space."""
    kind = unicodedata.category(char)
    if kind in _UNSPOKEN or (kind[0] == "M" and char >= "\u0370"):
        return " "
    return f" {unicodedata.name(char, '').lower()} " if kind in ("Sm", "Sc") and char >= "\u00a1" else char


_WORD_OF: dict[str, dict[str, str]] = {
    "en": {
        "×": " times ", "÷": " divided by ", "=": " equals ", "±": " plus or minus ", "≈": " about ", "≠": " is not ", "<": " less than ",
        ">": " greater than ", "≤": " at most ", "≥": " at least ", "→": " to ", "∞": " infinity ", "&": " and ", "@": " at ",
        "‰": " per mille",
        "°": " degrees ", "§": " section ", "∑": " sum ", "∫": " integral ", "∈": " in ",
    "∂": " partial ", **{sign: f" {word} " for sign, word in _GREEK.items()},
    },
    "zh": {
        "×": "乘", "÷": "除以", "=": "等于", "±": "正负", "≈": "约等于", "≠": "不等于", "<": "小于", ">": "大于", "≤": "小于等于",
        "≥": "大于等于",
        "→": "到", "∞": "无穷大", "°": "度", "π": "派", "μ": "缪", "Ω": "欧姆",
        **{sign: f" {word} " for sign, word in _GREEK.items() if sign not in "πμΩ"},
    },
}  # fmt: skip
