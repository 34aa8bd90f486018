"""Sentences out of words: by punctuation where it can be trusted, by pauses where it cannot.

Abbreviations, initials, ordinals and decimals do not end sentences; Chinese and Japanese sentences end without spaces, with their closing
quotes; text written right to left keeps its logical order. Words are never changed: the sentences' words joined give the text exactly.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from inversion.language import NO_SPACES, guess_language
from inversion.lexicon import FUNCTION_WORDS
from inversion.transcript import SpokenSegment, SpokenWord, is_wide, join_words

_STOPS = "。！？!?｡؟۔।॥።։။។…"
_CLOSERS = "\"'”’」』）》〉】〕］)]}»›＂＇"
_OPENERS = "\"'“‘「『（《〈【〔［([{«‹¿¡-–—"
_ENDING = re.compile(rf"([.{_STOPS}]+)[{re.escape(_CLOSERS)}“‘«‹]*$")
"""A full stop and what closes behind it; German and Danish quotes end in what opens them elsewhere."""
_CLAUSE = re.compile(rf"[,;:，、；：،؛–—-][{re.escape(_CLOSERS)}]*$")

_TITLES = frozenset(
    "mr mrs ms dr prof st mt col sgt capt lt maj adm gov hon messrs vs approx dept ca bzw hr fr frau sra srta dra mme mlle ing dott "
    "sig avv dhr mevr bijv tzw np ul им ул см напр проф акад डॉ श्री प्रो कु e.g i.e z.b d.h u.a p.ex т.е".split()
)
"""Abbreviations that something always follows."""
_NUMBERED = frozenset("no nos nr núm fig figs vol pp p eq sec ch art cf pag pág blz str рис стр гл नं".split())
"""Abbreviations when a number follows, words of their own else (No.)."""
_MAYBE = frozenset(
    "etc inc ltd co corp jr sr al u.s u.k u.n e.u d.c a.m p.m b.c a.d ph.d m.d b.a m.a jan feb mar apr jun jul aug sep sept oct nov dec "
    "mon tue wed thu fri sat sun ft in lb oz hrs mins secs min ave blvd rd gen sen rep rev pres usw ud uds itd т.д т.п др пр".split()
)
"""Abbreviations that may end a sentence: a pause and a capital decide."""
_ONE_LETTER_WORDS = frozenset("aeiouyàèéóя")
"""Words of one letter; another lone letter is an abbreviation."""
_ORDINALS = frozenset("de da nb no nn fi is cs sk hu sl hr sr et lv pl".split())
"""Languages that write a full stop behind ordinal numbers."""
_SPEECH_VERBS = "问说道喊叫答想嚷骂念と言聞叫"

_ABBREVIATION_PAUSE_US = 250_000
_LOWER_PAUSE_US = 700_000
_ELLIPSIS_PAUSE_US = 1_000_000
_PLAIN_PAUSE_US = 700_000
_WIDE_PAUSE_US = 450_000
"""Pauses that end a sentence where punctuation cannot be trusted; shorter in languages without spaces."""
_TRUSTED, _WIDE_TRUSTED = 0.5, 0.6
"""Punctuation is trusted when at least this share of the long pauses carries a full stop; more is asked in languages without spaces."""
_LONGEST_US = 40_000_000
_LONGEST_WORDS = 80
_LONGEST_WIDE = 120


@dataclass(frozen=True, slots=True)
class SentenceDraft:
    """words[first:end] of the whole film, with flags of the segments they came from."""

    first: int
    end: int
    text: str
    language: str
    flags: tuple[str, ...]
    confidence: float | None


def split_sentences(segments: Sequence[SpokenSegment], language: str, split_silence_us: int) -> tuple[SentenceDraft, ...]:
    """Sentences of a film, covering all its words in order.

    Args:
        segments: of a finished transcript: every word timed.
        language: of the film, ISO 639-1.
        split_silence_us: a pause this long ends a sentence, half as long again where the text goes on in lower case.
    """
    words = [w for s in segments for w in s.words]
    owner = [k for k, s in enumerate(segments) for _ in s.words]
    if not words:
        return ()
    by_pause = _plain_pause(language) if _pauses_decide(words, language) else None
    edges = [0]
    for k in range(1, len(words)):
        a, b = segments[owner[k - 1]], segments[owner[k]]
        changes = owner[k] != owner[k - 1] and (a.flags != b.flags or a.language != b.language)
        if changes or _ends(words, k, edges[-1], _pause(words, k), split_silence_us, by_pause, language):
            edges.append(k)
    edges.append(len(words))
    out: list[SentenceDraft] = []
    for first, end in (part for run in pairwise(edges) for part in _shorter(words, *run)):
        own = [segments[k] for k in dict.fromkeys(owner[first:end])]
        text = join_words(words[first:end])
        known = [w.confidence for w in words[first:end] if w.confidence is not None]
        out.append(
            SentenceDraft(
                first=first,
                end=end,
                text=text,
                language=own[0].language or guess_language(text, language),
                flags=tuple(dict.fromkeys(f for s in own for f in s.flags)),
                confidence=sum(known) / len(known) if known else None,
            )
        )
    return tuple(out)


def is_clause_end(text: str) -> bool:
    """Whether a word ends in a comma, colon, dash or the like."""
    return _CLAUSE.search(text) is not None


def _pause(words: Sequence[SpokenWord], k: int) -> int:
    """Silence before word k, microseconds."""
    before, after = words[k - 1].end_us, words[k].start_us
    return 0 if before is None or after is None else after - before


def _pauses_decide(words: Sequence[SpokenWord], language: str) -> bool:
    """Whether punctuation is not to be trusted, because most long pauses of the film carry no full stop: recognisers often leave Chinese
    without them, and join sentences that they hear in one breath. Then every long pause ends a sentence."""
    long = [k for k in range(1, len(words)) if _pause(words, k) >= _plain_pause(language)]
    stopped = sum(_ENDING.search(words[k - 1].text) is not None for k in long)
    return bool(long) and stopped < (_WIDE_TRUSTED if language in NO_SPACES else _TRUSTED) * len(long)


def _plain_pause(language: str) -> int:
    return _WIDE_PAUSE_US if language in NO_SPACES else _PLAIN_PAUSE_US


def _ends(words: Sequence[SpokenWord], k: int, first: int, pause: int, split_silence_us: int, by_pause: int | None, language: str) -> bool:
    """Whether a sentence ends between words k - 1 and k."""
    following = words[k].text
    if not any(c.isalnum() for c in following) and following[0] in _CLOSERS + _STOPS + ".,;:":
        return False  # punctuation that stands by itself, as in French
    text = _with_lone_marks(words, k - 1, first)
    stop = _ENDING.search(text)
    opening = following.lstrip(_OPENERS)[:1]
    goes_on = stop is None and opening.islower()
    if pause >= split_silence_us * (3 if goes_on else 2) // 2:
        return True
    if stop is None:
        return by_pause is not None and pause >= by_pause
    marks = stop.group(1)
    if any(c in "。！？｡؟۔।॥።։។" for c in marks):
        return not _reports(words, k, text)
    if is_wide(text[: stop.start(1)][-1:] or " ") and marks[-1] not in "…":
        return not _reports(words, k, text)
    if marks.endswith("…") or marks.startswith("..."):
        return pause >= _ELLIPSIS_PAUSE_US or (not opening.islower() and pause >= 0 and opening.isalpha() and not is_wide(opening))
    if marks[-1] in "!?":
        return not (opening.islower() and stop.end(1) < len(text))
    return _full_stop_ends(text[: stop.start(1)], following.lstrip(_OPENERS), pause, k - 1 == first, language)


def _with_lone_marks(words: Sequence[SpokenWord], k: int, first: int) -> str:
    """Word k, and if it is punctuation only, with the word before it."""
    text = words[k].text
    while k > first and not any(c.isalnum() for c in text):
        k -= 1
        text = words[k].text + text
    return text


def _full_stop_ends(stem: str, following: str, pause: int, is_first: bool, language: str) -> bool:
    """Whether an ASCII full stop between ``stem`` and ``following`` ends a sentence."""
    opening = following[:1]
    bare = stem.lstrip(_OPENERS)
    plain = bare.casefold()
    if plain in _TITLES or (plain in _NUMBERED and opening.isdigit()):
        return False
    starts = opening.isupper() and following.rstrip(",").casefold() in FUNCTION_WORDS.get(language, FUNCTION_WORDS["en"])
    is_letter = len(plain) == 1 and plain.isalpha() and not is_wide(plain)
    is_initial = is_letter and (not bare.islower() or plain not in _ONE_LETTER_WORDS)
    if is_initial or plain in _MAYBE or re.fullmatch(r"(?:[^\W\d_]\.)+[^\W\d_]", plain):
        if plain == "i" and not opening.islower():
            return pause >= _ABBREVIATION_PAUSE_US // 2
        return not opening.islower() and (pause >= (2 if is_initial else 1) * _ABBREVIATION_PAUSE_US or (starts and not is_initial))
    if is_first and re.fullmatch(r"\d{1,2}|[ivx]{1,4}", plain):
        return False
    if language in _ORDINALS and re.fullmatch(r"\d{1,3}|[ivx]{1,6}", plain) and opening.isalpha():
        return starts or pause >= _ABBREVIATION_PAUSE_US
    if opening.islower():
        return pause >= _LOWER_PAUSE_US
    return True


def _reports(words: Sequence[SpokenWord], k: int, text: str) -> bool:
    """A quotation goes on with who said it, in a few characters: 他问。"""
    if text[-1] not in "”’」』" or not is_wide(words[k].text.lstrip(_OPENERS)[:1] or " "):
        return False
    clause = ""
    for word in words[k : k + 7]:
        clause += word.text
        if _ENDING.search(word.text) or is_clause_end(word.text):
            break
    if clause.endswith(("：", ":")):
        return False  # it introduces the next quotation
    return any(verb in clause[:7] for verb in _SPEECH_VERBS) and len(clause) <= 7


def _shorter(words: Sequence[SpokenWord], first: int, end: int) -> list[tuple[int, int]]:
    """A run without full stops that is too long for a sentence, cut at its clearest inner border until it is not."""
    wide = sum(is_wide(c) for w in words[first:end] for c in w.text)
    length = (words[end - 1].end_us or 0) - (words[first].start_us or 0)
    too_long = wide > _LONGEST_WIDE or (end - first - wide) > _LONGEST_WORDS or length > _LONGEST_US
    if not too_long or end - first < 8:
        return [(first, end)]
    middle = (first + end) / 2

    def clearness(k: int) -> tuple[float, int]:
        score = min(_pause(words, k), 1_500_000) / 1_000_000 + (0.6 if is_clause_end(words[k - 1].text) else 0.0)
        return (score - abs(k - middle) / (end - first), -k)

    cut = max(range(first + 3, end - 2), key=clearness)
    return [*_shorter(words, first, cut), *_shorter(words, cut, end)]
