"""Captions of the finished film as SubRip text: what is spoken, when.

Owns the breaking into cues and their times. Times inside one narration are shared out by the length of the text.
"""

from __future__ import annotations

from collections.abc import Sequence

from replay.graphics.layout import has_han
from replay.mix import Spoken
from replay.speech_text import clauses, sentences, spoken_length

LINE = 42
"""Latin characters in a line; half as many Han characters."""
CUE = 2 * LINE
_WIDE_MARKS = frozenset("，。、；：！？”）》…")
_MARKS = _WIDE_MARKS | frozenset(",.;:!?)%")


def to_srt(pieces: Sequence[Spoken]) -> bytes:
    """One or more cues for every narration, in film order; UTF-8."""
    out: list[str] = []
    number = 0
    for piece in pieces:
        cues = _cues(piece.text)
        total = sum(spoken_length(c) for c in cues) or 1
        done = 0
        for cue in cues:
            start = piece.start_us + (piece.end_us - piece.start_us) * done // total
            done += spoken_length(cue)
            end = piece.start_us + (piece.end_us - piece.start_us) * done // total
            number += 1
            out.append(f"{number}\n{_time(start)} --> {_time(end)}\n{_lines(cue)}\n")
    return "\n".join(out).encode()


def _cues(text: str) -> list[str]:
    room = CUE // 2 if has_han(text) else CUE
    return [clause for sentence in sentences(text, short=CUE // 3) for clause in clauses(sentence, room)]


def _lines(cue: str) -> str:
    """Two lines of about equal length where one is too long: broken at a space; in Han text behind a mark, or anywhere but in a word."""
    if (2 * len(cue) if has_han(cue) else len(cue)) <= LINE:
        return cue
    breaks = [i + 1 for i, c in enumerate(cue[:-1]) if c == " " or (has_han(cue) and c in _WIDE_MARKS and cue[i + 1] not in _MARKS)]
    if has_han(cue):
        near = [at for at in breaks if abs(at - len(cue) // 2) <= len(cue) // 5]
        breaks = near or [at for at in range(1, len(cue)) if not _is_torn(cue[at - 1], cue[at])]
    if not breaks:
        return cue
    at = min(breaks, key=lambda i: abs(i - len(cue) // 2))
    return f"{cue[:at].rstrip()}\n{cue[at:].lstrip()}"


def _is_torn(left: str, right: str) -> bool:
    """A break here would split a word or a figure, or begin a line with a mark."""
    return (left.isascii() and right.isascii() and left.isalnum() and right.isalnum()) or right in _MARKS


def _time(us: int) -> str:
    ms = (us + 500) // 1000
    return f"{ms // 3_600_000:02d}:{ms // 60_000 % 60:02d}:{ms // 1000 % 60:02d},{ms % 1000:03d}"
