"""Storyboards from outside: those that contradict themselves are named, those that inversion builds are not."""

from __future__ import annotations

from typing import Any

import pytest

from inversion.consistency import check_storyboard
from schemas.canonical import derive_id
from schemas.errors import ConfigInvalid
from schemas.storyboard import Storyboard
from tests.inversion.test_storyboard import Found, board, spoken

GOOD = board(
    spoken(("One two three.", 0, 900), ("Four five.", 1_100, 1_900)), [Found(0, 1_000_000), Found(1_000_000, 2_000_000)]
).model_copy(update={"project_id": derive_id("project", {"source_sha256": "a" * 64})})


def spoiled(path: str, value: Any) -> Storyboard:
    data = GOOD.model_dump(mode="json")
    at: Any = data
    *parents, last = path.split(".")
    for part in parents:
        at = at[int(part) if part.isdigit() else part]
    at[int(last) if last.isdigit() else last] = value
    return Storyboard.model_validate(data)


def test_what_inversion_builds_hangs_together() -> None:
    check_storyboard(GOOD)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("project_id", "../../etc/x", r"project_id '../../etc/x' is not that of media.sha256"),
        ("project_id", "CON", "project_id 'CON' is not"),
        ("language", "../x", "language '../x' is no language code"),
        ("frame_rate", {"num": 10**9, "den": 1}, "frame_rate 1000000000/1 is above 1000"),
        ("duration_max_us", 1, "are no range"),
        ("duration_max_us", 10**30, "are no range"),
        ("media.video.rotation", 45, "rotation 45 is none of"),
        ("media.video.display_width", 10**9, "display_width 1000000000 is above 32768"),
        ("media.audio.index", -1, "media.audio.index is -1"),
        ("shots.0.evidence.key_frames.0.sha256", "../../etc/passwd", "shots.0.evidence.key_frames are not all named by their sha256"),
        ("title", "A" * 1_000_000, "title has 1000000 characters"),
        ("shots.0.visual_query", "A" * 20_001, "shots.0.visual_query has 20001 characters"),
        ("shots", [], "there are 0 shots"),
        ("shots.1.shot.index", 0, "shots.1 has index 0"),
        ("shots.0.shot.start_us", -5, "shots.us.0 is -5 to 1000000"),
        ("shots.1.shot.start_us", 1_000, "shots.us.1 is 1000 to 2000000, behind 1000000"),
        ("shots.1.shot.start_us", 1_500_000, "shots.us.1 is 1500000 to 2000000, behind 1000000"),
        ("shots.1.shot.end_us", 1_000_000, "shots.1 lasts no time"),
        ("shots.0.target_duration_us", 0, "shots.0.target_duration_us is 0"),
        ("shots.0.target_duration_us", 10**15, "shots.0.target_duration_us is"),
        ("shots.1.shot.first_word", 999, "shots.words.1 is 999 to 5"),
        ("shots.1.script_end", 10**9, "shots.script.1 is"),
        ("shots.0.narration", "Something else.", r"shots.0.narration is not script\[0:15\]"),
        ("words.0.end_us", -5, "words.0 is 0 to -5 us"),
        ("words.0.shot", 7, "words.0 is of sentence 0 and shot 7"),
        ("sentences.0.shots", [9], r"sentences.0 lies over shots \[9\]"),
        ("sentences.1.end_word", 4, "sentences.words end at 4 of 5"),
        ("segments.0.end_sentence", 9, "segments.sentences.0 is 0 to 9"),
    ],
)
def test_a_contradiction_is_named(path: str, value: Any, words: str) -> None:
    with pytest.raises(ConfigInvalid, match=words) as caught:
        check_storyboard(spoiled(path, value))
    assert caught.value.code == "storyboard_inconsistent"


def test_only_the_first_contradictions_are_told() -> None:
    data = GOOD.model_dump(mode="json")
    for shot in data["shots"]:
        shot["target_duration_us"] = 0
    data |= {"project_id": "x", "language": "?", "duration_max_us": -1}
    with pytest.raises(ConfigInvalid, match=r"; and more Next"):
        check_storyboard(Storyboard.model_validate(data))
