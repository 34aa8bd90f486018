"""The narration script as text: where its sentences lie. Every character belongs to exactly one sentence.

Owns the sentence borders that segments are counted in. Pure; works for scripts with and without spaces between words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_SENTENCE = 400
"""Characters after which a sentence without punctuation is cut at the last comma or space."""

_ENDS = ".!?。！？…；;"
_WIDE = "。！？；"
_CLOSERS = "\"'”’»)]）】」』"
_ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof st sr jr vs etc e.g i.e no fig vol inc ltd co u.s u.k a.m p.m approx dept est gen gov "
    "jan feb mar apr jun jul aug sep sept oct nov dec".split()
)
_WORD_BEFORE = re.compile(r"[A-Za-z][A-Za-z.]*$")


@dataclass(frozen=True, slots=True)
class SentenceSpan:
    """A half-open range of script characters; white space after a sentence belongs to it."""

    start: int
    end: int


def sentences(script: str) -> tuple[SentenceSpan, ...]:
    """Sentences of a script, in order, covering it exactly; empty for an empty script."""
    spans: list[SentenceSpan] = []
    start = i = 0
    while i < len(script):
        if script[i] in _ENDS or script[i] == "\n":
            end = i + 1
            while end < len(script) and script[end] in _ENDS + _CLOSERS:
                end += 1
            if _breaks(script, start, i, end):
                while end < len(script) and script[end].isspace():
                    end += 1
                spans.append(SentenceSpan(start, end))
                start = end
            i = end
        elif i - start >= MAX_SENTENCE:
            start = _cut(script, start, i, spans)
            i = max(i, start)
        else:
            i += 1
    if start < len(script):
        if script[start:].strip() or not spans:
            spans.append(SentenceSpan(start, len(script)))
        else:
            spans[-1] = SentenceSpan(spans[-1].start, len(script))
    return tuple(spans)


def _breaks(script: str, start: int, at: int, end: int) -> bool:
    """Whether the punctuation at ``at`` (closing marks up to ``end``) ends the sentence that began at ``start``."""
    if not script[start:at].strip():
        return False
    if end >= len(script) or script[at] == "\n" or any(c in _WIDE for c in script[at:end]):
        return True
    if not script[end].isspace():
        return _is_wide(script[end]) and _is_wide(script[at - 1])
    if script[at] == ".":
        word = _WORD_BEFORE.search(script, start, at)
        if word and (word.group().lower() in _ABBREVIATIONS or len(word.group()) == 1):
            return False
        rest = script[end:].lstrip()[:1]
        return not rest.islower()
    return True


def _cut(script: str, start: int, at: int, spans: list[SentenceSpan]) -> int:
    """Cut an over-long sentence at its last comma, else space, in the second half; else right here."""
    for marks in ("，,、:：", " "):
        place = max(script.rfind(m, start + MAX_SENTENCE // 2, at) for m in marks)
        if place >= 0:
            end = place + 1
            while end < len(script) and script[end].isspace():
                end += 1
            break
    else:
        end = at
    spans.append(SentenceSpan(start, end))
    return end


def _is_wide(char: str) -> bool:
    return "\u2e80" <= char <= "\u9fff" or "\uac00" <= char <= "\ud7af" or "\uff00" <= char <= "\uffef"


def skip_space(script: str, at: int) -> int:
    """The first position from ``at`` on that holds no white space."""
    while at < len(script) and script[at].isspace():
        at += 1
    return at
