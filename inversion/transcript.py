"""What was said: words, segments and transcripts, before they are dealt out to sentences and shots.

Owns the cutting of text into words with exact joins, for languages with and without spaces. Must not open files or listen to sound.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from schemas.storyboard import WordTiming
from schemas.time import Span

UNTIMED = WordTiming.INTERPOLATED

SOUND_NOTE = re.compile(r"^\s*(?:[\[(（【][^\])）】]*[\])）】]|[♪♫🎵🎶].*)\s*$")
"""A line that describes sound: [music], (applause), ♪ song ♪."""

_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_INVISIBLE = frozenset("\u200b\u2060\ufeff\u00ad")
_OPENERS = frozenset("“‘「『（《〈【〔［｛〖¿¡«‹([{")
_WIDE_CLOSERS = frozenset("。，、！？；：”’」』）》〉】〕］｝〗…—～·．")
_CLINGING = frozenset("ーゝゞヽヾ々ゃゅょっぁぃぅぇぉゎャュョッァィゥェォヮ")


@dataclass(frozen=True, slots=True)
class SpokenWord:
    """One word. Times are microseconds; None where nothing is known yet. ``space_after``: a space stands between it and the next."""

    text: str
    start_us: int | None = None
    end_us: int | None = None
    confidence: float | None = None
    timing: WordTiming = UNTIMED
    space_after: bool = True


@dataclass(frozen=True, slots=True)
class SpokenSegment:
    """Words that a back end gave together. ``start_us`` and ``end_us`` are None where the back end gave none."""

    words: tuple[SpokenWord, ...]
    start_us: int | None = None
    end_us: int | None = None
    confidence: float | None = None
    no_speech: float | None = None
    language: str | None = None
    """Where it differs from the film's."""
    flags: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The words joined exactly, without a space at the end."""
        return join_words(self.words)

    def flagged(self, flag: str) -> SpokenSegment:
        """The same segment with one more flag."""
        return self if flag in self.flags else replace(self, flags=(*self.flags, flag))


@dataclass(frozen=True, slots=True)
class Transcript:
    """All that was said, in order, every word timed and inside the film.

    ``speech`` are the detected spans of speech, ``speech_covered`` the share of them that words cover (1.0 when there is none).
    ``script_match`` is the share of a given script's words that were heard; None without a script.
    """

    segments: tuple[SpokenSegment, ...]
    language: str
    language_confidence: float | None
    engines: dict[str, str]
    speech: tuple[Span, ...]
    speech_covered: float
    flags: tuple[str, ...] = ()
    script_match: float | None = None


def clean_text(text: str) -> str:
    """Text that can be stored and shown: NFC, white space as single spaces, without control characters, lone surrogates,
    direction marks and invisible joints. Order is logical order, also for scripts written right to left."""
    return " ".join(_visible(text).split())


def _visible(text: str) -> str:
    kept = []
    for char in text:
        if char.isspace():
            kept.append(" ")
        elif char not in _BIDI and char not in _INVISIBLE and unicodedata.category(char) not in ("Cc", "Cs", "Cn", "Co"):
            kept.append(char)
    return unicodedata.normalize("NFC", "".join(kept))


def is_wide(char: str) -> bool:
    """Whether a character belongs to a script written without spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese)."""
    code = ord(char)
    return (
        0x3400 <= code <= 0x9FFF
        or 0x3040 <= code <= 0x30FF
        or 0xF900 <= code <= 0xFAFF
        or 0x20000 <= code <= 0x3FFFF
        or 0xFF66 <= code <= 0xFF9D
        or code == 0x3005
        or code == 0x3007
        or 0x0E00 <= code <= 0x0EFF
        or 0x1000 <= code <= 0x109F
        or 0x1780 <= code <= 0x17FF
    )


def is_wide_end(text: str) -> bool:
    """Whether a text ends in a script without spaces, or in its punctuation."""
    return bool(text) and (is_wide(text[-1]) or (text[-1] in _WIDE_CLOSERS and any(is_wide(c) for c in text)))


def is_spoken(text: str) -> bool:
    """Whether a text holds anything that is pronounced (a letter, a digit, or a currency or percent sign)."""
    return any(c.isalnum() or c in "%$€£¥&+@" for c in text)


def cut_words(text: str) -> list[tuple[str, bool]]:
    """Cut text into words: (word, a space follows).

    Words are runs without white space; in scripts without spaces, one character each. Closing punctuation stays with the word
    before it, opening punctuation with the word after it. Joining the words with their spaces gives :func:`clean_text` exactly.
    """
    clean = clean_text(text)
    return [(clean[a:b], space) for a, b, space in _cut(clean)]


def _cut(text: str) -> list[tuple[int, int, bool]]:
    """(start, end, a space follows) of each word in visible text."""
    out: list[tuple[int, int, bool]] = []
    position = 0
    for run in text.split(" "):
        if run:
            pieces = _cut_run(run)
            at = position
            for piece in pieces:
                out.append((at, at + len(piece), False))
                at += len(piece)
            out[-1] = (*out[-1][:2], True)
        position += len(run) + 1
    if out:
        out[-1] = (*out[-1][:2], False)
    return out


def _cut_run(run: str) -> list[str]:
    pieces: list[str] = []
    current = ""
    has_base = is_closed = base_is_wide = False
    for char in run:
        wide = is_wide(char)
        clings = char in _CLINGING or unicodedata.category(char).startswith("M")
        if wide and not clings:
            starts = has_base
        elif char in _OPENERS and (ord(char) > 0x7F or base_is_wide or is_closed):
            starts = has_base
        elif char.isalnum() and not clings:
            starts = has_base and (base_is_wide or is_closed)
        else:
            starts = False
        if starts:
            pieces.append(current)
            current = ""
            has_base = is_closed = base_is_wide = False
        current += char
        if wide or char.isalnum():
            has_base = True
            base_is_wide = base_is_wide or wide
        elif char in _WIDE_CLOSERS and has_base:
            is_closed = True
    if pieces and not has_base:
        pieces[-1] += current
    else:
        pieces.append(current)
    return pieces


def join_words(words: Iterable[SpokenWord]) -> str:
    """Words joined exactly; the space after the last one is left out."""
    parts: list[str] = []
    for word in words:
        parts.append(word.text)
        parts.append(" " if word.space_after else "")
    return "".join(parts[:-1])


def words_of(text: str) -> tuple[SpokenWord, ...]:
    """Untimed words of a text."""
    return tuple(SpokenWord(t, space_after=s) for t, s in cut_words(text))


@dataclass(frozen=True, slots=True)
class TimedPiece:
    """A stretch of text as a back end timed it; need not be a word. Text may begin with a space."""

    text: str
    start_us: int | None
    end_us: int | None
    confidence: float | None = None


def words_from_pieces(pieces: Sequence[TimedPiece], timing: WordTiming) -> tuple[SpokenWord, ...]:
    """Cut the joined text of ``pieces`` into words anew; each character takes its share of its piece's time.

    Pieces join as they are (a piece that begins a new word begins with a space). Words that touch untimed pieces only stay untimed.
    """
    chars: list[str] = []
    owner: list[tuple[int, int, int]] = []
    for number, piece in enumerate(pieces):
        text = _visible(piece.text)
        spoken = max(1, sum(c != " " for c in text))
        position = 0
        for c in text:
            chars.append(c)
            owner.append((number, position, spoken))
            position += c != " "
    text = "".join(chars)
    return tuple(_word(text[a:b], space, owner[a:b], pieces, timing) for a, b, space in _cut(text))


def _word(text: str, space: bool, owners: Sequence[tuple[int, int, int]], pieces: Sequence[TimedPiece], timing: WordTiming) -> SpokenWord:
    times: list[tuple[int, int]] = []
    sure: list[float] = []
    for number, position, count in owners:
        piece = pieces[number]
        if piece.confidence is not None:
            sure.append(piece.confidence)
        if piece.start_us is None or piece.end_us is None:
            continue
        length = piece.end_us - piece.start_us
        times.append((piece.start_us + length * position // count, piece.start_us + length * (position + 1) // count))
    confidence = sum(sure) / len(sure) if sure else None
    if not times:
        return SpokenWord(text, None, None, confidence, UNTIMED, space)
    return SpokenWord(text, min(t[0] for t in times), max(t[1] for t in times), confidence, timing, space)
