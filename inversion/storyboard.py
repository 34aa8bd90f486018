"""Assembly of the storyboard: sentences, shots, alignment, evidence and intent into one record.

``script`` is the text of all sentences. The character ranges of sentences, segments and shots each tile it: a space between two parts
belongs to the part before it. A shot's ``narration`` is its range of the script without the space at its end. Words that start after the
last frame have no shot; their text belongs to the range of the last shot, which is held for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, Protocol

from inversion.align import CLAUSE, PLAIN, SENTENCE, Assignment, assign
from inversion.config import InversionConfig
from inversion.intent import communicates, constraints_of, music_moods, statement_of, visual_query
from inversion.segments import cut_segments, title_of
from inversion.sentences import SentenceDraft, is_clause_end, split_sentences
from inversion.speech import merge_spans
from inversion.terms import rarity
from inversion.transcript import SpokenWord, Transcript
from schemas.media import MediaInfo, SourceItem
from schemas.storyboard import (
    Admission,
    BoardSegment,
    BoardShot,
    Evidence,
    Sentence,
    Shot,
    Spotlight,
    Storyboard,
    Transition,
    Word,
    WordTiming,
)
from schemas.time import Rate, Span

AFTER_PICTURE = "after_picture"
"""Flag of a sentence some of whose words start after the last frame."""
INTERPOLATED = "times_interpolated"
"""Flag of a sentence most of whose word times were filled in."""

SCATTER_US = {WordTiming.ALIGNED: 30_000, WordTiming.RECOGNISED: 75_000, WordTiming.SIDECAR: 100_000, WordTiming.INTERPOLATED: 250_000}
"""Standard deviation of word times by their source; the first two measured (docs/inversion.md), the others assumed."""
_CLAUSE_PAUSE_US = 200_000
_JOIN_US = 400_000
_FASTEST, _SLOWEST = 3.6, 1.6
"""Words a second that a narrator can be asked for (half that many wide characters count as words)."""


class FoundShot(Protocol):
    """What inversion.shots finds of one shot (structural)."""

    @property
    def start_us(self) -> int: ...
    @property
    def end_us(self) -> int: ...
    @property
    def start_frame(self) -> int: ...
    @property
    def end_frame(self) -> int: ...
    @property
    def transition_in(self) -> Transition: ...
    @property
    def transition_start_us(self) -> int | None: ...
    @property
    def transition_end_us(self) -> int | None: ...
    @property
    def confidence(self) -> float: ...


FindSpotlights = Callable[[Sequence[str]], Sequence[Spotlight | None]]
"""From the narration of each shot to its spotlight; evidence and shots are bound by the caller."""


@dataclass(frozen=True, slots=True)
class _Text:
    """The script and where its words stand in it."""

    script: str
    starts: list[int]

    def range_of(self, first: int, end: int) -> tuple[int, int]:
        """Character range of words[first:end], up to the start of the next word."""
        return self._at(first), self._at(end)

    def _at(self, word: int) -> int:
        return self.starts[word] if word < len(self.starts) else len(self.script)

    def narration(self, first: int, end: int) -> str:
        """Text of words[first:end] without the space at its end."""
        a, b = self.range_of(first, end)
        return self.script[a:b].rstrip()


def build_storyboard(
    project_id: str,
    item: SourceItem,
    media: MediaInfo,
    transcript: Transcript,
    shots: Sequence[FoundShot],
    evidence: Sequence[Evidence],
    find_spotlights: FindSpotlights,
    config: InversionConfig,
    engines: dict[str, str],
) -> Storyboard:
    """The storyboard of one film.

    Args:
        transcript: finished; may be empty.
        shots: in order, at least one, each beginning where the last one ends.
        evidence: one for each shot.
        find_spotlights: called once with the narration of each shot.
    """
    spoken = [w for s in transcript.segments for w in s.words]
    drafts = split_sentences(transcript.segments, transcript.language, config.timing.split_silence_us)
    text = _text(spoken)
    spans = [Span(start_us=w.start_us or 0, end_us=w.end_us or 0) for w in spoken]
    film = [Span(start_us=s.start_us, end_us=s.end_us) for s in shots]
    assignment = assign(
        spans, gap_strengths(spoken, [(d.first, d.end) for d in drafts]), film, config.align.snap_us, [SCATTER_US[w.timing] for w in spoken]
    )
    words = _words(spoken, drafts, assignment)
    sentences = _sentences(words, drafts, text)
    weights = rarity((d.text for d in drafts), transcript.language)
    edges = [*assignment.edges[:-1], len(words)]
    narrations = [text.narration(a, b) for a, b in pairwise(edges)]
    spotlights = find_spotlights(narrations)
    board: list[BoardShot] = []
    for j, (found, seen) in enumerate(zip(shots, evidence, strict=True)):
        first, end = assignment.edges[j], assignment.edges[j + 1]
        shot = _shot(j, found, first, end, assignment.confidence[j])
        board.append(_board_shot(shot, edges[j], edges[j + 1], text, sentences, spotlights[j], seen, weights, transcript.language))
    picture_us = film[-1].end_us
    speech = merge_spans((s for s in spans if s.duration_us > 0), _JOIN_US)
    spoken_us = sum(min(s.end_us, picture_us) - s.start_us for s in speech if s.start_us < picture_us)
    low, high = _feasible(spoken, board, picture_us)
    seconds = max(1.0, sum(s.duration_us for s in speech) / 1e6)
    return Storyboard(
        project_id=project_id,
        source=item,
        media=media,
        frame_rate=media.video.rate if media.video is not None else Rate(num=25, den=1),
        language=transcript.language,
        title=item.title or (title_of(drafts, transcript.language, weights) if drafts else "Untitled"),
        script=text.script,
        words=tuple(words),
        sentences=tuple(sentences),
        shots=tuple(board),
        segments=_segments(drafts, sentences, transcript.language),
        aspect_ratio=aspect_of(media),
        duration_min_us=low,
        duration_max_us=high,
        music_moods=music_moods(text.script, transcript.language, len(words) / seconds, 60e6 * (len(shots) - 1) / max(1, picture_us)),
        admission=Admission(
            narration_share=min(1.0, round(spoken_us / max(1, picture_us), 6)),
            mean_confidence=mean_confidence(spoken),
            speech_covered=min(1.0, round(transcript.speech_covered, 6)),
            flags=transcript.flags,
        ),
        engines=engines,
    )


def mean_confidence(words: Sequence[SpokenWord]) -> float | None:
    """Mean over the words that have one, None where no word has."""
    known = [w.confidence for w in words if w.confidence is not None]
    return round(min(1.0, max(0.0, math.fsum(known) / len(known))), 6) if known else None


def aspect_of(media: MediaInfo) -> Literal["16:9", "9:16", "1:1", "4:3"]:
    """The nearest of the four aspect ratios, by the logarithm of the display shape; 16:9 without a picture."""
    shapes: tuple[tuple[Literal["16:9", "9:16", "1:1", "4:3"], float], ...] = (
        ("16:9", 16 / 9),
        ("4:3", 4 / 3),
        ("1:1", 1.0),
        ("9:16", 9 / 16),
    )
    if media.video is None:
        return "16:9"
    own = math.log(media.video.display_width / media.video.display_height)
    return min(shapes, key=lambda s: abs(math.log(s[1]) - own))[0]


def _text(words: Sequence[SpokenWord]) -> _Text:
    """The script. Between sentences stands what stands between their words."""
    starts: list[int] = []
    parts: list[str] = []
    length = 0
    for k, word in enumerate(words):
        starts.append(length)
        piece = word.text + (" " if word.space_after and k + 1 < len(words) else "")
        parts.append(piece)
        length += len(piece)
    return _Text("".join(parts), starts)


def gap_strengths(words: Sequence[SpokenWord], sentences: Sequence[tuple[int, int]]) -> list[int]:
    """How strong the gap before each word and after the last one is (inversion.align).

    Args:
        sentences: first and end word of each.
    """
    out = [PLAIN] * (len(words) + 1)
    for k in range(1, len(words)):
        pause = (words[k].start_us or 0) - (words[k - 1].end_us or 0)
        if pause >= _CLAUSE_PAUSE_US or is_clause_end(words[k - 1].text):
            out[k] = CLAUSE
    for first, end in sentences:
        out[first] = out[end] = SENTENCE
    return out


def _words(spoken: Sequence[SpokenWord], drafts: Sequence[SentenceDraft], assignment: Assignment) -> list[Word]:
    sentence = [k for k, d in enumerate(drafts) for _ in range(d.first, d.end)]
    return [
        Word(
            index=k,
            text=w.text,
            start_us=w.start_us or 0,
            end_us=w.end_us or 0,
            confidence=None if w.confidence is None else round(min(1.0, max(0.0, w.confidence)), 6),
            timing=w.timing,
            sentence=sentence[k],
            shot=assignment.shot_of(k),
            space_after=w.space_after and k + 1 < len(spoken),
        )
        for k, w in enumerate(spoken)
    ]


def _sentences(words: Sequence[Word], drafts: Sequence[SentenceDraft], text: _Text) -> list[Sentence]:
    out: list[Sentence] = []
    for k, draft in enumerate(drafts):
        own = words[draft.first : draft.end]
        shots = tuple(dict.fromkeys(w.shot for w in own if w.shot is not None))
        flags = list(draft.flags)
        if any(w.shot is None for w in own):
            flags.append(AFTER_PICTURE)
        if 2 * sum(w.timing is WordTiming.INTERPOLATED for w in own) > len(own):
            flags.append(INTERPOLATED)
        start, end = text.range_of(draft.first, draft.end)
        out.append(
            Sentence(
                index=k,
                text=draft.text,
                start_us=own[0].start_us,
                end_us=own[-1].end_us,
                first_word=draft.first,
                end_word=draft.end,
                script_start=start,
                script_end=end,
                language=draft.language,
                confidence=None if draft.confidence is None else round(min(1.0, max(0.0, draft.confidence)), 6),
                shots=shots,
                flags=tuple(flags),
            )
        )
    return out


def _shot(index: int, found: FoundShot, first: int, end: int, confidence: float) -> Shot:
    return Shot(
        index=index,
        start_us=found.start_us,
        end_us=found.end_us,
        start_frame=found.start_frame,
        end_frame=found.end_frame,
        transition_in=found.transition_in,
        transition_start_us=found.transition_start_us,
        transition_end_us=found.transition_end_us,
        cut_confidence=found.confidence,
        first_word=first,
        end_word=end,
        alignment_confidence=confidence,
        has_narration=end > first,
    )


def _board_shot(
    shot: Shot,
    first: int,
    end: int,
    text: _Text,
    sentences: Sequence[Sentence],
    spotlight: Spotlight | None,
    seen: Evidence,
    weights: dict[str, float],
    language: str,
) -> BoardShot:
    """One shot with its intent; words[first:end] are those whose text it carries (for the last shot also those after the picture)."""
    narration = text.narration(first, end)
    start, stop = text.range_of(first, end)
    over = [s for s in sentences if s.first_word < end and s.end_word > first]
    shares = [min(s.end_word, end) - max(s.first_word, first) for s in over]
    statement = statement_of([s.text for s in over], shares)
    spoken_in = over[max(range(len(over)), key=lambda k: (shares[k], -k))].language if over else language
    whole = BoardShot(
        shot=shot,
        narration=narration,
        script_start=start,
        script_end=stop,
        communicates=communicates(narration, statement, spotlight, seen),
        visual_query=visual_query(narration, statement, seen, spoken_in, weights),
        target_duration_us=shot.end_us - shot.start_us,
        spotlight=spotlight,
        evidence=seen,
    )
    marks = constraints_of(
        whole,
        starts_inside=bool(over) and over[0].first_word < first,
        ends_inside=bool(over) and over[-1].end_word > end,
        outlasts=end > shot.end_word,
    )
    return whole.model_copy(update={"constraints": marks})


def _segments(drafts: Sequence[SentenceDraft], sentences: Sequence[Sentence], language: str) -> tuple[BoardSegment, ...]:
    cut = cut_segments(drafts, [(s.start_us, s.end_us) for s in sentences], language)
    return tuple(
        BoardSegment(
            index=k,
            title=s.title,
            first_sentence=s.first,
            end_sentence=s.end,
            script_start=sentences[s.first].script_start,
            script_end=sentences[s.end - 1].script_end,
        )
        for k, s in enumerate(cut)
    )


def _feasible(words: Sequence[SpokenWord], shots: Sequence[BoardShot], picture_us: int) -> tuple[int, int]:
    """Lengths that a new version of the film can have: from the fastest sensible reading of the script, or half of the film if that is
    longer, to half as long again as the film, or the slowest reading with all unnarrated shots if that is longer."""
    count = sum(max(1, sum(c.isalnum() for c in w.text) // 6) if w.space_after else 0.5 for w in words)
    silent = sum(s.target_duration_us for s in shots if not s.shot.has_narration)
    low = max(picture_us // 2, round(count / _FASTEST * 1e6))
    high = max(picture_us * 3 // 2, round(count / _SLOWEST * 1e6) + silent)
    return min(low, picture_us), max(high, low)
