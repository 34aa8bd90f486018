"""Key terms of a text: what it is about, in its own words, without a model.

Languages with spaces: runs of content words between function words and punctuation (as in RAKE). Chinese, Japanese and their like: runs of
characters between particles and punctuation. Deterministic; meant for queries and titles, not for understanding.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from inversion.language import NO_SPACES
from inversion.lexicon import FILLERS, FUNCTION_WORDS, PARTICLES
from inversion.transcript import is_wide

_TOKEN = re.compile(r"[^\W_]+(?:[.'’\-][^\W_]+)*[%°]?", re.UNICODE)
_STOP = re.compile(r"[.,;:!?()\[\]{}\"“”«»…—–/|]+(?:\s|$)|[。，、！？；：…「」『』“”（）《》〈〉【】〔〕\n]")
_LONGEST_PHRASE = 4
_LONGEST_RUN = 8


_ENDINGS = (
    ("ization", 4), ("ations", 4), ("ation", 4), ("ings", 4), ("ing", 4), ("ies", 3), ("ied", 3), ("ers", 4), ("ed", 4), ("es", 4),
    ("er", 5), ("ly", 4), ("s", 4),
)  # fmt: skip
"""Endings that are cut off an English word, and the letters that must stay."""


def phrases(text: str, language: str) -> list[tuple[str, ...]]:
    """Candidate phrases of a text, in order, as tuples of words (of one run each in languages without spaces)."""
    out: list[tuple[str, ...]] = []
    for part in _STOP.split(text):
        if language in NO_SPACES:
            out += _wide_phrases(part)
        else:
            out += _spaced_phrases(part, language)
    return out


def _spaced_phrases(part: str, language: str) -> list[tuple[str, ...]]:
    stop = FUNCTION_WORDS.get(language, FUNCTION_WORDS["en"]) | (FILLERS if language == "en" else frozenset())
    out: list[tuple[str, ...]] = []
    run: list[str] = []
    for token in _TOKEN.findall(part):
        key = token.casefold().replace("’", "'")
        if key in stop or (key.replace("'", "") in stop and "'" in key) or (len(key) < 2 and not key.isdigit()):
            out += _cut(run)
            run = []
        else:
            run.append(token)
    return out + _cut(run)


def _cut(run: Sequence[str]) -> list[tuple[str, ...]]:
    return [tuple(run[k : k + _LONGEST_PHRASE]) for k in range(0, len(run), _LONGEST_PHRASE)]


def _wide_phrases(part: str) -> list[tuple[str, ...]]:
    """Runs of wide characters between particles; Latin words and numbers by themselves."""
    out: list[tuple[str, ...]] = []
    run = ""
    k = 0
    while k < len(part):
        particle = next((size for size in (3, 2, 1) if part[k : k + size] in PARTICLES), 0)
        if particle or not is_wide(part[k]):
            out += _wide_run(run)
            run = ""
            if particle:
                k += particle
                continue
            match = _TOKEN.match(part, k)
            if match is not None and not is_wide(part[k]):
                token = match.group()
                narrow = next((i for i, c in enumerate(token) if is_wide(c)), len(token))
                if (narrow >= 2 or token[:narrow].isdigit()) and token[:narrow].casefold() not in FUNCTION_WORDS["en"]:
                    out.append((token[:narrow],))
                k += max(1, narrow)
                continue
        else:
            run += part[k]
        k += 1
    return out + _wide_run(run)


def _wide_run(run: str) -> list[tuple[str, ...]]:
    return [(run[k : k + _LONGEST_RUN],) for k in range(0, len(run), _LONGEST_RUN) if len(run[k : k + _LONGEST_RUN]) >= 2]


def stem(word: str, language: str) -> str:
    """A rough stem, so that forms of one English word count as one."""
    key = word.casefold().replace("’", "'")
    if language != "en" or len(key) < 5 or not key.isalpha():
        return key
    for ending, least in _ENDINGS:
        if key.endswith(ending) and len(key) - len(ending) >= least and not key.endswith("ss"):
            return key[: -len(ending)] + ("y" if ending in ("ies", "ied") else "")
    return key


def terms(text: str, language: str) -> Counter[str]:
    """How often each term comes: stems of content words, or pairs of characters in languages without spaces."""
    out: Counter[str] = Counter()
    for phrase in phrases(text, language):
        for word in phrase:
            if language in NO_SPACES and is_wide(word[0]):
                out.update(word[k : k + 2] for k in range(len(word) - 1))
            else:
                out[stem(word, language)] += 1
    return out


def key_phrases(text: str, language: str, weights: dict[str, float], most: int) -> list[str]:
    """The phrases that say most, best first, none inside another, as they are written.

    Args:
        weights: weight of each term (see :func:`rarity`); unknown terms weigh 1.
        most: number of phrases.
    """
    scored: dict[str, tuple[float, int, str]] = {}
    for position, phrase in enumerate(phrases(text, language)):
        written = " ".join(phrase)
        key = written.casefold()
        parts = terms(written, language)
        if not parts:
            continue
        score = sum(weights.get(t, 1.0) for t in parts) / len(parts) ** 0.5 * (0.6 if written.isdigit() else 1.0)
        if key in scored:
            old, first, text_ = scored[key]
            scored[key] = (old + 0.3 * score, first, text_)
        else:
            scored[key] = (score, position, written)
    out: list[str] = []
    for _, _, written in sorted(scored.values(), key=lambda s: (-round(s[0], 6), -len(s[2]), s[1])):
        key = written.casefold()
        if all(key not in o.casefold() and o.casefold() not in key for o in out):
            out.append(written)
        if len(out) == most:
            break
    return out


def rarity(texts: Iterable[str], language: str) -> dict[str, float]:
    """Weight of each term over a film's sentences: 1 for a term of every sentence, more the rarer it is, with a share for its frequency,
    so that the film's own subject outweighs words that come once."""
    count = 0
    seen: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for text in texts:
        count += 1
        found = terms(text, language)
        seen.update(found.keys())
        total.update(found)
    if not count:
        return {}
    return {t: (1.0 + (count - n) / count) * (1.0 + min(3, total[t] - 1) * 0.4) for t, n in seen.items()}
