"""Why a project was admitted, in words and figures: every figure beside its threshold, every shot with its confidences, and the words that
stand at doubtful borders. Reads a finished storyboard; must not decide anything itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from inversion.admission import refuse_item, refuse_media, refuse_storyboard
from inversion.align import border_confidences
from inversion.config import InversionConfig
from inversion.reasons import FLAGS, REASONS
from inversion.storyboard import SCATTER_US, gap_strengths
from inversion.transcript import SpokenWord
from schemas.stage import RejectCode, Rejected
from schemas.storyboard import Storyboard, Word
from schemas.time import US, Span

DOUBTFUL = 0.9
"""A border whose words are on the right side with less probability than this is told."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value beside its threshold. ``passed`` is None where nothing is asked."""

    name: str
    seen: str
    wanted: str
    setting: str
    passed: bool | None

    def line(self) -> str:
        """As text."""
        verdict = {True: "ok", False: "NOT ENOUGH", None: "not asked"}[self.passed]
        return f"{self.name}: {self.seen} ({self.wanted}; {self.setting}): {verdict}"


@dataclass(frozen=True, slots=True)
class ShotFigures:
    """Confidences of one shot."""

    index: int
    start_us: int
    end_us: int
    transition_in: str
    cut_confidence: float
    words: int
    alignment_confidence: float

    def line(self) -> str:
        """As text."""
        return (
            f"shot {self.index}: {_s(self.start_us)} to {_s(self.end_us)}, {self.transition_in} (confidence {self.cut_confidence:.2f}), "
            f"{self.words} words (alignment {self.alignment_confidence:.2f})"
        )


@dataclass(frozen=True, slots=True)
class Border:
    """A cut that words may have been put on the wrong side of. ``before`` is the last word of the shot that ends, ``after`` the first of
    the one that begins; times are those of the words, None where there is no word."""

    shot: int
    cut_us: int
    confidence: float
    before: str | None
    before_end_us: int | None
    after: str | None
    after_start_us: int | None

    def line(self) -> str:
        """As text."""
        left = "" if self.before_end_us is None else f'"{self.before}" ends {_apart(self.before_end_us - self.cut_us)}'
        right = "" if self.after_start_us is None else f'"{self.after}" starts {_apart(self.after_start_us - self.cut_us)}'
        words = ", ".join(text for text in (left, right) if text)
        return f"cut at {_s(self.cut_us)} into shot {self.shot} (confidence {self.confidence:.2f}): {words}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything that can be told of one source."""

    uri: str
    project_id: str | None
    refused: Rejected | None
    """Why it was refused; None for a project that was admitted."""
    figures: tuple[Figure, ...] = ()
    shots: tuple[ShotFigures, ...] = ()
    borders: tuple[Border, ...] = ()
    flags: tuple[str, ...] = ()
    audio_choice: str | None = None

    def lines(self) -> list[str]:
        """As text, a line a fact."""
        if self.refused is not None:
            reason = REASONS[self.refused.code]
            out = [f"{self.uri}: refused, {self.refused.code.value}", f"why: {reason.meaning}", f"figures: {self.refused.detail}"]
            out += [f"setting: inversion.{name}" for name in (reason.setting or "").split(", ") if name]
            return [*out, f"what to do: {reason.next_step}", *(f.line() for f in self.figures)]
        out = [f"{self.uri}: admitted as {self.project_id}"]
        out += [figure.line() for figure in self.figures]
        out += [f"sound: {self.audio_choice}"] if self.audio_choice else []
        out += [f"flag {flag}: {FLAGS.get(flag.partition(':')[0], 'see docs/inversion.md')}" for flag in self.flags]
        out += [shot.line() for shot in self.shots]
        if self.shots:
            out.append(f"doubtful borders (confidence under {DOUBTFUL}): {len(self.borders)}")
        return out + [border.line() for border in self.borders]

    def as_json(self) -> dict[str, Any]:
        """Stable; keys are only ever added."""
        reason = None if self.refused is None else REASONS[self.refused.code]
        return {
            "version": "workprint.explain.1",
            "verdict": "admitted" if self.refused is None else "refused",
            "uri": self.uri,
            "project_id": self.project_id,
            "code": None if self.refused is None else self.refused.code.value,
            "detail": None if self.refused is None else self.refused.detail,
            "meaning": None if reason is None else reason.meaning,
            "setting": None if reason is None else reason.setting,
            "next_step": None if reason is None else reason.next_step,
            "figures": [asdict(figure) for figure in self.figures],
            "audio_choice": self.audio_choice,
            "flags": list(self.flags),
            "shots": [asdict(shot) for shot in self.shots],
            "doubtful_borders": [asdict(border) for border in self.borders],
        }


def explain_project(board: Storyboard, config: InversionConfig) -> Explanation:
    """A storyboard beside the thresholds of a configuration. Where that configuration would refuse it, it is told as refused."""
    refused = refuse_item(board.source, config.admission) or refuse_media(board.media, config) or _language(board, config)
    refused = refused or _covered(board, config) or refuse_storyboard(board, config.admission)
    return Explanation(
        uri=board.source.uri,
        project_id=board.project_id,
        refused=refused,
        figures=_figures(board, config),
        shots=tuple(
            ShotFigures(
                index=s.shot.index,
                start_us=s.shot.start_us,
                end_us=s.shot.end_us,
                transition_in=s.shot.transition_in.value,
                cut_confidence=s.shot.cut_confidence,
                words=s.shot.end_word - s.shot.first_word,
                alignment_confidence=s.shot.alignment_confidence,
            )
            for s in board.shots
        ),
        borders=_doubtful(board, config.align.snap_us),
        flags=board.admission.flags,
        audio_choice=board.media.audio_choice,
    )


def explain_refusal(uri: str, code: str, detail: str, project_id: str | None = None) -> Explanation:
    """A row of the table of rejections, in words."""
    return Explanation(uri=uri, project_id=project_id, refused=Rejected(RejectCode(code), detail))


def _language(board: Storyboard, config: InversionConfig) -> Rejected | None:
    allowed = config.admission.languages
    if not allowed or board.language in allowed:
        return None
    return Rejected(RejectCode.LANGUAGE_REFUSED, f"language is {board.language}, allowed: {', '.join(allowed)}")


def _covered(board: Storyboard, config: InversionConfig) -> Rejected | None:
    seen, wanted = board.admission.speech_covered, config.admission.min_speech_covered
    if seen >= wanted:
        return None
    return Rejected(RejectCode.LOW_CONFIDENCE, f"words cover {seen:.2f} of the detected speech, at least {wanted:.2f} is wanted")


def _figures(board: Storyboard, config: InversionConfig) -> tuple[Figure, ...]:
    figures, want = board.admission, config.admission
    length = board.shots[-1].shot.end_us
    licence = board.source.licence or "unknown"
    sure = figures.mean_confidence
    licences = {name.strip().casefold() for name in want.licences}

    def least(name: str, seen: float, wanted: float, setting: str) -> Figure:
        return Figure(name, f"{seen:.3f}", f"at least {wanted:.3f}", setting, seen >= wanted)

    def among(name: str, seen: str, allowed: Sequence[str], setting: str, holds: bool) -> Figure:
        return Figure(name, seen, f"allowed: {', '.join(allowed) or 'all'}", setting, holds if allowed else None)

    return (
        least("narration share", figures.narration_share, want.min_narration_share, "admission.min_narration_share"),
        Figure(
            "mean word confidence",
            "none given by the back end" if sure is None else f"{sure:.3f}",
            f"at least {want.min_confidence:.3f}",
            "admission.min_confidence",
            None if sure is None else sure >= want.min_confidence,
        ),
        least("speech covered by words", figures.speech_covered, want.min_speech_covered, "admission.min_speech_covered"),
        among("language", board.language, want.languages, "admission.languages", board.language in want.languages),
        among("licence", licence, want.licences, "admission.licences", licence.strip().casefold() in licences),
        Figure("shots", str(len(board.shots)), f"at least {want.min_shots}", "admission.min_shots", len(board.shots) >= want.min_shots),
        Figure(
            "length",
            _s(length),
            f"{_s(want.min_duration_us)} to {_s(config.max_duration_us)}",
            "admission.min_duration_us, max_duration_us",
            want.min_duration_us <= length and board.media.duration_us <= config.max_duration_us,
        ),
    )


def _doubtful(board: Storyboard, snap_us: int) -> tuple[Border, ...]:
    words = board.words
    edges = [*(s.shot.first_word for s in board.shots), board.shots[-1].shot.end_word]
    spoken = [SpokenWord(w.text, w.start_us, w.end_us, w.confidence, w.timing, w.space_after) for w in words]
    strengths = gap_strengths(spoken, [(s.first_word, s.end_word) for s in board.sentences])
    sure = border_confidences(
        [Span(start_us=w.start_us, end_us=w.end_us) for w in words],
        strengths,
        [Span(start_us=s.shot.start_us, end_us=s.shot.end_us) for s in board.shots],
        edges,
        snap_us,
        [SCATTER_US[w.timing] for w in words],
    )
    out: list[Border] = []
    for j, confidence in enumerate(sure, 1):
        if confidence >= DOUBTFUL:
            continue
        left: Word | None = words[edges[j] - 1] if edges[j] > 0 else None
        right: Word | None = words[edges[j]] if edges[j] < len(words) else None
        out.append(
            Border(
                shot=j,
                cut_us=board.shots[j].shot.start_us,
                confidence=round(confidence, 4),
                before=None if left is None else left.text,
                before_end_us=None if left is None else left.end_us,
                after=None if right is None else right.text,
                after_start_us=None if right is None else right.start_us,
            )
        )
    return tuple(out)


def _apart(us: int) -> str:
    return f"{abs(us) // 1000} ms {'before' if us < 0 else 'behind'} it"


def _s(us: int) -> str:
    return f"{us / US:.2f} s"
