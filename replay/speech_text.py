"""Text on its way to a voice: sentences, speakable or not, runs of one script.

Owns the splitting; how figures and signs are spoken is in replay.speech_forms. Must not know engines.
"""

from __future__ import annotations

import html
import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

_ENDS = re.compile(r"(?<=[.!?…])[\"')\]”’»]*\s+|(?<=[。！？；!?])[”』」）]*(?=\S)|\n+")
_ABBREVIATION = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|No|vs|etc|e\.g|i\.e|approx|Fig|Inc|Ltd|Co)|\b[A-Z])\.$")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f][A-Za-z\u00c0-\u024f0-9'’.&+-]*(?:\s+[A-Za-z\u00c0-\u024f][A-Za-z\u00c0-\u024f0-9'’.&+-]*)*")

SHORT = 24
"""Shorter sentences are spoken together with a neighbour: voices are unsteady on very short input."""


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of text in one script."""

    text: str
    script: Literal["latin", "han"]


def is_speakable(text: str) -> bool:
    """The text holds at least one letter or digit."""
    return any(unicodedata.category(c)[0] in ("L", "N") for c in text)


_ENTITY = re.compile(r"&(?:#\d{1,7}|#x[0-9a-fA-F]{1,6}|[A-Za-z]\w{1,30});")
_VALUE = r"""(?:"[^"<>]*"|'[^'<>]*'|[^\s"'<>]+)"""
_TAG = re.compile(rf"<!--.{{0,2000}}?-->|<[/?!]?([A-Za-z][\w:.-]{{0,30}})(?:\s+[\w:.-]+\s*=\s*{_VALUE})*\s*[/?]?>", re.DOTALL)
_TAGS = frozenset(
    "a abbr audio b big blockquote br break c center code desc div em emphasis font h1 h2 h3 h4 h5 h6 hr html i img lang lexicon li mark "
    "media ol p par phoneme pre prosody q rt rp ruby s say-as script seq small span speak strike strong style sub sup table tbody "
    "td th title "
    "token tr tt u ul v video voice w xml".split()
)
"""Marks of HTML, SSML and subtitles. Other words in angle brackets, such as ``<file>``, are said."""


def plain(text: str) -> str:
    """The words without marks for machines: no tags, characters for their entities; NFC, one space for white space."""
    text = _ENTITY.sub(lambda m: html.unescape(m.group()), text)
    text = _TAG.sub(_untagged, text)
    return " ".join(unicodedata.normalize("NFC", text).split())


def _untagged(match: re.Match[str]) -> str:
    name = (match.group(1) or "").lower()
    return " " if not name or name in _TAGS or ":" in name or "=" in match.group() else f" {name} "


def spoken_length(text: str) -> int:
    """Length in Latin letters: a Han character takes about as long to say as three."""
    return sum(3 if "\u2e80" <= c <= "\u9fff" else 1 for c in text)


def sentences(text: str, *, short: int = SHORT) -> tuple[str, ...]:
    """Sentences in order; abbreviations do not end one, those below ``short`` (see :func:`spoken_length`) join their neighbour."""
    pieces: list[str] = []
    for piece in _ENDS.split(text):
        piece = piece.strip()
        if not piece:
            continue
        if pieces and (_ABBREVIATION.search(pieces[-1]) or spoken_length(pieces[-1]) < short):
            pieces[-1] = _joined(pieces[-1], piece)
        else:
            pieces.append(piece)
    if len(pieces) > 1 and spoken_length(pieces[-1]) < short:
        last = pieces.pop()
        pieces[-1] = _joined(pieces[-1], last)
    return tuple(pieces)


def _joined(left: str, right: str) -> str:
    return f"{left}{right}" if "\u2e80" <= right[0] <= "\u9fff" else f"{left} {right}"


def clauses(text: str, longest: int) -> tuple[str, ...]:
    """Pieces of at most about ``longest`` characters, cut after commas and the like, then at spaces, then anywhere."""
    if len(text) <= longest:
        return (text,)
    for pattern in (r"(?<=[,;:，；：、—])\s*", r"\s+"):
        parts = [p for p in re.split(pattern, text) if p]
        if len(parts) > 1:
            out: list[str] = []
            for part in parts:
                joined = _joined(out[-1], part) if out else part
                if out and len(joined) <= longest:
                    out[-1] = joined
                else:
                    out.extend(clauses(part, longest))
            return tuple(out)
    return tuple(text[i : i + longest] for i in range(0, len(text), longest))


def runs(text: str) -> tuple[Run, ...]:
    """Latin words apart from everything else, in order."""
    out: list[Run] = []
    at = 0
    for match in _LATIN.finditer(text):
        if match.start() > at:
            out.append(Run(text[at : match.start()], "han"))
        out.append(Run(match.group(), "latin"))
        at = match.end()
    if at < len(text):
        out.append(Run(text[at:], "han"))
    return tuple(out)
