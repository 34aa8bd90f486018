"""Why a source is refused, in words: every closed reason with its meaning, the setting behind it, and what a person can do.

Owns the wording; docs/inversion.md holds the same table, and a test compares them. Must not decide anything.
"""

from __future__ import annotations

from dataclasses import dataclass

from schemas.stage import RejectCode


@dataclass(frozen=True, slots=True)
class Reason:
    """``setting`` names the configuration value behind it, under ``inversion``; None where it is no matter of degree."""

    meaning: str
    setting: str | None
    next_step: str


REASONS: dict[RejectCode, Reason] = {
    RejectCode.EMPTY_FILE: Reason("the file has no bytes", None, "copy it again"),
    RejectCode.NOT_FOUND: Reason("there is no file of this name, or a link leads nowhere", None, "check the path"),
    RejectCode.NOT_A_FILE: Reason("it is a folder, a pipe or a device", None, "name a regular file"),
    RejectCode.OUTSIDE_ROOT: Reason("a link leads out of the folder that was given", None, "name the file itself"),
    RejectCode.NOT_MEDIA: Reason("its first bytes are those of no film", None, "give a film"),
    RejectCode.MANIFEST_REFUSED: Reason(
        "it is a playlist or script that would open other files", None, "give the films it names, or a manifest of ours"
    ),
    RejectCode.CONTAINER_REFUSED: Reason("the container is a film's, but not one that is accepted", None, "convert it to mp4 or mkv"),
    RejectCode.CODEC_REFUSED: Reason("none of its codecs is accepted", None, "convert it to a common codec"),
    RejectCode.UNREADABLE: Reason("it is damaged, cut off, or locked", None, "play it in another player; copy or convert it again"),
    RejectCode.NO_VIDEO: Reason("there is no moving picture; cover art does not count", None, "give a film"),
    RejectCode.NO_AUDIO: Reason("there is no sound track", None, "give a film with narration"),
    RejectCode.LIMIT_PIXELS: Reason("a picture is larger than is accepted", None, "scale the film down"),
    RejectCode.LIMIT_STREAMS: Reason("it holds more streams than are accepted", None, "keep one picture and one sound"),
    RejectCode.LIMIT_DURATION: Reason("it lasts longer, or holds more packets, than is accepted", "max_duration_us", "cut it in parts"),
    RejectCode.LIMIT_BYTES: Reason("the file is larger than is accepted", None, "encode it smaller"),
    RejectCode.NO_SPEECH: Reason("nobody says a word that was recognised", None, "give a film with narration"),
    RejectCode.LOW_NARRATION_SHARE: Reason(
        "too little of the film is narrated", "admission.min_narration_share", "lower the threshold, or leave the film out"
    ),
    RejectCode.LOW_CONFIDENCE: Reason(
        "what was recognised is uncertain, or much of the speech stayed without words",
        "admission.min_confidence, admission.min_speech_covered",
        "give subtitles or a script, or use a larger model",
    ),
    RejectCode.LANGUAGE_REFUSED: Reason(
        "the narration is in a language that is not asked for", "admission.languages", "name the language, or allow it"
    ),
    RejectCode.TOO_SHORT: Reason("the picture is shorter than is wanted", "admission.min_duration_us", "lower the threshold"),
    RejectCode.TOO_FEW_SHOTS: Reason("the film has fewer shots than are wanted", "admission.min_shots", "lower the threshold"),
    RejectCode.LICENCE_REFUSED: Reason("its licence is not one of those asked for", "admission.licences", "state the licence, or allow it"),
    RejectCode.SCRIPT_MISMATCH: Reason(
        "the script that was given is not what is said", "admission.min_script_match", "give the right script, or none"
    ),
}

FLAGS = {
    "dropped_in_silence": "segments were recognised where nobody speaks, and left out",
    "heard_again": "segments were found when speech without words was listened to a second time",
    "script_words_unspoken": "words of the script were not heard",
    "words_not_in_script": "words were heard that the script does not have",
    "cues_dropped": "subtitle lines lie behind the end of the sound, or hold no words",
    "cues_in_silence": "subtitle lines lie where nobody speaks",
}
"""Flags of a whole film (``name:count``), in words."""


def reasons_table() -> str:
    """The reasons as a Markdown table, for the documentation."""
    lines = ["| code | meaning | setting | what to do |", "| --- | --- | --- | --- |"]
    for code, reason in REASONS.items():
        setting = "" if reason.setting is None else ", ".join(f"`{name}`" for name in reason.setting.split(", "))
        lines.append(f"| `{code.value}` | {reason.meaning} | {setting} | {reason.next_step} |")
    return "\n".join(lines)
