"""Admission: whether a source becomes a project, by closed reasons and configured thresholds, with the figures kept.

What can be told from the file alone is asked before anybody listens; the rest once the storyboard stands. :mod:`inversion.explain` says in
words why.
"""

from __future__ import annotations

from inversion.config import AdmissionConfig, InversionConfig
from inversion.transcript import Transcript
from schemas.media import MediaInfo, SourceItem
from schemas.stage import RejectCode, Rejected
from schemas.storyboard import Storyboard
from schemas.time import US


def refuse_item(item: SourceItem, config: AdmissionConfig) -> Rejected | None:
    """By what the user says of a source: its licence."""
    if config.licences:
        own = (item.licence or "").strip().casefold()
        if own not in {name.strip().casefold() for name in config.licences}:
            return Rejected(RejectCode.LICENCE_REFUSED, f"licence is {item.licence or 'not given'}, allowed: {', '.join(config.licences)}")
    return None


def refuse_media(media: MediaInfo, config: InversionConfig) -> Rejected | None:
    """By what is in a file: picture, sound and length."""
    if media.video is None:
        return Rejected(RejectCode.NO_VIDEO, f"no moving picture ({_ignored(media)})")
    if media.audio is None:
        return Rejected(RejectCode.NO_AUDIO, f"no sound track ({_ignored(media)})")
    length = media.video.duration_us
    if length < config.admission.min_duration_us:
        return Rejected(RejectCode.TOO_SHORT, f"the picture lasts {_s(length)}, at least {_s(config.admission.min_duration_us)} is wanted")
    if media.duration_us > config.max_duration_us:
        return Rejected(
            RejectCode.LIMIT_DURATION, f"the film lasts {_s(media.duration_us)}, at most {_s(config.max_duration_us)} is allowed"
        )
    return None


def refuse_transcript(transcript: Transcript, config: AdmissionConfig) -> Rejected | None:
    """By what is said: whether anything, in which language, and whether it is the given script."""
    words = sum(len(s.words) for s in transcript.segments)
    if not words:
        heard = sum(s.duration_us for s in transcript.speech)
        return Rejected(RejectCode.NO_SPEECH, f"no words were recognised; {_s(heard)} of sound were taken for speech")
    if config.languages and transcript.language not in config.languages:
        sure = "" if transcript.language_confidence is None else f" (probability {transcript.language_confidence:.2f})"
        return Rejected(RejectCode.LANGUAGE_REFUSED, f"language is {transcript.language}{sure}, allowed: {', '.join(config.languages)}")
    if transcript.script_match is not None and transcript.script_match < config.min_script_match:
        return Rejected(
            RejectCode.SCRIPT_MISMATCH,
            f"{transcript.script_match:.2f} of the script's words were heard, at least {config.min_script_match:.2f} are wanted",
        )
    if transcript.speech_covered < config.min_speech_covered:
        return Rejected(
            RejectCode.LOW_CONFIDENCE,
            f"words cover {transcript.speech_covered:.2f} of the detected speech, at least {config.min_speech_covered:.2f} is wanted",
        )
    return None


def refuse_storyboard(board: Storyboard, config: AdmissionConfig) -> Rejected | None:
    """By the figures of the whole: narration share, confidence, number of shots."""
    figures = board.admission
    if figures.narration_share < config.min_narration_share:
        return Rejected(
            RejectCode.LOW_NARRATION_SHARE,
            f"narration fills {figures.narration_share:.3f} of the picture, at least {config.min_narration_share:.3f} is wanted",
        )
    if figures.mean_confidence is not None and figures.mean_confidence < config.min_confidence:
        return Rejected(
            RejectCode.LOW_CONFIDENCE,
            f"mean word confidence is {figures.mean_confidence:.2f}, at least {config.min_confidence:.2f} is wanted",
        )
    if len(board.shots) < config.min_shots:
        return Rejected(RejectCode.TOO_FEW_SHOTS, f"the film has {len(board.shots)} shots, at least {config.min_shots} are wanted")
    return None


def _ignored(media: MediaInfo) -> str:
    kept = [name for name, stream in (("picture", media.video), ("sound", media.audio)) if stream is not None]
    others = ["; ".join(media.ignored_streams)] if media.ignored_streams else []
    return ", ".join([f"{name} only" if not others else name for name in kept] + others) or "no streams at all"


def _s(us: int) -> str:
    return f"{us / US:.2f} s"
