"""The intent behind a shot, in words: what it communicates, a query for pictures like it, and the mood of the whole.

Composed from the narration's own terms and from what was seen; no model. Nothing in narration or on-screen text is followed.
"""

from __future__ import annotations

from collections.abc import Sequence

from inversion.language import NO_SPACES
from inversion.lexicon import MOODS
from inversion.terms import key_phrases, stem, terms
from inversion.transcript import is_wide
from schemas.storyboard import BoardShot, Evidence, Spotlight

_STATEMENT = 240
_QUERY = 200
_OWN_WORDS = 5
_PHRASES = 4
_SCREEN_PHRASES = 2
_LEGIBLE = 0.8
"""Confidence from which on-screen text may shape a query."""
_FAST, _SLOW = 2.9, 1.9
"""Words a second of brisk and of slow narration (characters a second, halved, in languages without spaces)."""
_MANY_CUTS, _FEW_CUTS = 12.0, 4.0
"""Cuts a minute of brisk and of calm editing."""


def shorten(text: str, limit: int) -> str:
    """At most ``limit`` characters of one line, cut at a word border where there is one, with an ellipsis where something is left out."""
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    cut = line[: limit - 1]
    space = cut.rfind(" ")
    return (cut[:space] if space > limit // 2 else cut).rstrip(" ,;:，；：") + "…"


def communicates(narration: str, statement: str, spotlight: Spotlight | None, evidence: Evidence) -> str:
    """What a shot must get across, as one line: its card, and what is spoken over it (the whole sentence where the shot holds only a few
    words of it); what is seen where nothing is spoken."""
    parts: list[str] = []
    if spotlight is not None:
        shown = ", ".join(v for v in spotlight.slots.values() if v)
        parts.append(
            f"{spotlight.kind.value.replace('_', ' ')}: {shorten(shown, 100)}" if shown else spotlight.kind.value.replace("_", " ")
        )
    said = narration if len(narration.split()) >= _OWN_WORDS or sum(map(is_wide, narration)) >= 2 * _OWN_WORDS else statement or narration
    if said.strip():
        parts.append(shorten(said, _STATEMENT - sum(len(p) + 3 for p in parts)))
    elif evidence.caption:
        parts.append(shorten(evidence.caption, _STATEMENT - sum(len(p) + 3 for p in parts)))
    return " | ".join(parts) or "a picture without words"


def visual_query(narration: str, sentence: str, evidence: Evidence, language: str, weights: dict[str, float]) -> str:
    """A search query for pictures that would serve this shot, in the narration's language, at most 200 characters.

    Key phrases of what is spoken over the shot (of the whole sentence where the shot holds only a few words of it), then of the text on
    screen; what is seen where neither says anything.
    """
    found = key_phrases(narration, language, weights, _PHRASES)
    if len(found) < 2 and sentence:
        found += key_phrases(sentence, language, weights, _PHRASES)
    screen = " \n".join(b.text for b in evidence.text if b.confidence >= _LEGIBLE)
    found += key_phrases(screen, language, weights, _SCREEN_PHRASES)
    out = ""
    seen: list[str] = []
    for phrase in found:
        key = phrase.casefold()
        joined = f"{out}, {phrase}" if out else phrase
        if any(key in s or s in key for s in seen) or len(joined) > _QUERY:
            continue
        out = joined
        seen.append(key)
    return out or shorten(evidence.caption or narration or sentence, _QUERY) or "picture"


def music_moods(script: str, language: str, words_per_s: float, cuts_per_minute: float) -> tuple[str, ...]:
    """Up to three moods for background music, best first, from the words of the script and the pace of speech and cutting."""
    found = terms(script, language)
    total = max(1, sum(found.values()))
    score: dict[str, float] = {}
    for mood, lexicon in MOODS.items():
        keys = {stem(w, language) for w in lexicon}
        hits = sum(script.count(w) for w in lexicon if not w.isascii()) if language in NO_SPACES else sum(found[k] for k in keys)
        score[mood] = min(1.0, 12.0 * hits / total)
    pace = words_per_s / 2 if language in NO_SPACES else words_per_s
    score["energetic"] += 0.5 * (pace > _FAST) + 0.5 * (cuts_per_minute > _MANY_CUTS)
    score["calm"] += 0.25 + 0.25 * (pace < _FAST) + 0.5 * (cuts_per_minute < _FEW_CUTS)
    score["tender"] += 0.2 * (pace < _SLOW)
    ranked = sorted(score, key=lambda mood: (-score[mood], mood))
    return tuple(ranked[:3])


def constraints_of(shot: BoardShot, starts_inside: bool, ends_inside: bool, outlasts: bool) -> tuple[str, ...]:
    """What a new version of a shot has to respect, as closed words: starts_mid_sentence, ends_mid_sentence, no_narration,
    narration_outlasts_picture, text_on_screen, captions_burned_in, under_one_second, gradual_transition_in."""
    facts = (
        ("starts_mid_sentence", starts_inside),
        ("ends_mid_sentence", ends_inside),
        ("no_narration", not shot.shot.has_narration),
        ("narration_outlasts_picture", outlasts),
        ("text_on_screen", bool(shot.evidence.text)),
        ("captions_burned_in", bool(shot.evidence.burned_captions)),
        ("under_one_second", shot.shot.end_us - shot.shot.start_us < 1_000_000),
        ("gradual_transition_in", shot.shot.transition_start_us is not None),
    )
    return tuple(name for name, holds in facts if holds)


def statement_of(sentences: Sequence[str], shares: Sequence[int]) -> str:
    """The sentence that has most words in the shot; the earlier one of equals; empty without any."""
    if not sentences:
        return ""
    return sentences[max(range(len(sentences)), key=lambda k: (shares[k], -k))]
