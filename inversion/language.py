"""Which language a text is in, from its script and its commonest words; and what is known of languages.

A guess for texts that come without sound, and for single sentences of films in two languages. Recognisers know better: their answer is
preferred wherever there is one.
"""

from __future__ import annotations

import re
import unicodedata

from inversion.lexicon import FUNCTION_WORDS, LANGUAGE_NAMES, LANGUAGES

_SCRIPTS = (
    ("HIRAGANA", "ja"), ("KATAKANA", "ja"), ("HANGUL", "ko"), ("CJK", "zh"), ("ARABIC", "ar"), ("HEBREW", "he"), ("DEVANAGARI", "hi"),
    ("THAI", "th"), ("LAO", "lo"), ("KHMER", "km"), ("MYANMAR", "my"), ("CYRILLIC", "ru"), ("GREEK", "el"), ("BENGALI", "bn"),
    ("TAMIL", "ta"), ("TELUGU", "te"), ("GEORGIAN", "ka"), ("ARMENIAN", "hy"),
)  # fmt: skip

NO_SPACES = frozenset({"zh", "yue", "ja", "th", "lo", "km", "my"})
"""Languages written without spaces between words."""

_NO_LANGUAGE = frozenset({"und", "mul", "mis", "zxx", "unk", "any", "xx", "n", "na"})
"""Codes and habits that say that a language is not known, or not one."""


def language_code(name: str) -> str | None:
    """ISO 639-1 code of a language as people and files write it (``EN``, ``en-US``, ``zh_Hans``, ``eng``, ``English``); None where it is
    none that a recogniser knows."""
    first = _first(name)
    code = LANGUAGE_NAMES.get(first, first)
    return code if code in LANGUAGES else None


def stated_language(name: str) -> str | None:
    """Code of a language that a text or a person states, though no recogniser may know it (``ga``, ``gsw-CH``).

    Never a part of a longer word: what is no code and no known name (``Klingon``, ``und``) is None, and has to be guessed.
    """
    known = language_code(name)
    if known is not None:
        return known
    first = _first(name)
    return first if re.fullmatch(r"[a-z]{2,3}", first) and first not in _NO_LANGUAGE else None


def _first(name: str) -> str:
    return re.split(r"[-_\s(]", name.strip().casefold(), maxsplit=1)[0]


def script_of(char: str) -> str | None:
    """Language that a character's script stands for, None for Latin and for what is in no script."""
    if not char.isalpha():
        return None
    name = unicodedata.name(char, "")
    return next((code for prefix, code in _SCRIPTS if name.startswith(prefix)), None)


def guess_language(text: str, expected: str | None = None) -> str:
    """ISO 639-1 code of a text; ``expected`` (else ``und``) where nothing speaks against it.

    A script decides where at least a third of the letters are in it (kana makes Japanese of Chinese characters); Latin text is decided by
    common words, at least two of them and twice as many as the expected language has.
    """
    counts: dict[str, int] = {}
    letters = 0
    for char in text:
        if char.isalpha():
            letters += 1
            code = script_of(char) or "latin"
            counts[code] = counts.get(code, 0) + 1
    if not letters:
        return expected or "und"
    if counts.get("ja", 0) * 10 >= letters:
        return "ja"
    weight = {code: n * (3 if code in ("zh", "ko") else 1) for code, n in counts.items()}
    best = max(weight, key=lambda code: (weight[code], code))
    if best == "latin":
        return _latin(text, expected)
    same_script = {"ru": ("uk", "bg", "sr", "be", "mk", "kk"), "ar": ("fa", "ur", "ps"), "hi": ("mr", "ne"), "zh": ("yue", "ja")}
    return expected if expected in same_script.get(best, ()) and expected is not None else best


def _latin(text: str, expected: str | None) -> str:
    words = [w.strip(".,!?;:\"'()“”").casefold() for w in text.split()]
    hits = {code: sum(w in known for w in words) for code, known in FUNCTION_WORDS.items()}
    best = max(hits, key=lambda code: (hits[code], code == expected, code == "en"))
    if expected in hits and hits[best] < max(2, 2 * hits[expected]):
        return expected
    if expected is not None and expected not in hits and expected not in ("und", *(c for _, c in _SCRIPTS)) and hits[best] < 3:
        return expected
    return best if hits[best] >= 1 else (expected or "und")
