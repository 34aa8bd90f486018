"""Any storyboard validates against its schema and comes back from SubRip and OpenTimelineIO: silent, one shot, Chinese, right to left."""

from __future__ import annotations

from itertools import pairwise

import jsonschema
import opentimelineio as otio
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from inversion.interchange import from_otio, from_srt, to_otio, to_srt
from inversion.transcript import Transcript
from schemas.storyboard import Storyboard, Transition
from tests.inversion.test_storyboard import Found, board, media, spoken

TEXTS = {
    "en": ["It works.", "No end,", "Why? Because.", "<b>Not</b> markup & --> no arrow.", "1"],
    "zh": ["今天天气很好。", "他问：“你好吗？”", "3.5倍！", "GPT-4 很快"],
    "ar": ["مرحبا بالعالم.", "كيف حالك؟", "السعر 3.5 دولار."],
    "ja": ["「行こう！」と言った。", "えっ…"],
    "th": ["สวัสดีครับ"],
}

films = st.sampled_from(sorted(TEXTS)).flatmap(
    lambda language: st.tuples(
        st.just(language),
        st.lists(st.tuples(st.sampled_from(TEXTS[language]), st.integers(0, 2_500), st.integers(300, 3_000)), max_size=5),
        st.sets(st.integers(1, 249), max_size=5),
        st.booleans(),
    )
)
"""Language, lines with pause and length in milliseconds, cuts in frames, whether the rate varies."""

Film = tuple[str, list[tuple[str, int, int]], set[int], bool]


def made(film: Film) -> Storyboard:
    language, parts, cuts, vfr = film
    at, timed = 0, []
    for text, pause, length in parts:
        timed.append((text, at + pause, at + pause + length))
        at += pause + length
    edges = [0, *sorted(c * 40_000 for c in cuts), 10_000_000]
    shots = [Found(a, b, Transition.START if a == 0 else Transition.CUT) for a, b in pairwise(edges)]
    transcript = spoken(*timed, language=language) if timed else Transcript((), language, None, {}, (), 1.0)
    return board(transcript, shots, info=media(10_000_000, vfr=vfr))


@given(films)
@example(("en", [], set(), False))
@example(("zh", [("今天天气很好。", 0, 900)], set(), True))
@example(("ar", [("كيف حالك؟", 9_500, 2_000)], {100}, False))
@settings(max_examples=40, deadline=None)
def test_any_storyboard_validates_and_comes_back(film: Film) -> None:
    found = made(film)
    jsonschema.validate(found.model_dump(mode="json"), Storyboard.model_json_schema())
    assert Storyboard.model_validate_json(found.canonical()) == found
    said = [(s.text, s.start_us, s.end_us) for s in found.sentences]
    cues = from_srt(to_srt(found))
    assert [c.text for c in cues] == [text for text, _, _ in said]
    assert all(c.start_us <= start < c.start_us + 1_000 for c, (_, start, _) in zip(cues, said, strict=True))
    cuts, markers = from_otio(to_otio(found))
    assert [(c.start_us, c.end_us) for c in cuts] == [(s.shot.start_us, s.shot.end_us) for s in found.shots]
    assert [(m.text, m.start_us, m.end_us) for m in markers] == said


@pytest.mark.parametrize("language", sorted(TEXTS))
def test_the_script_is_what_was_said_in_the_order_it_was_said(language: str) -> None:
    parts = [(text, 100, 900) for text in TEXTS[language]]
    found = made((language, parts, {50}, False))
    assert [c for c in found.script if c != " "] == [c for text in TEXTS[language] for c in text if c != " "]


def test_other_programs_read_the_timeline() -> None:
    found = made(("ar", [("كيف حالك؟", 0, 900)], {100}, False))
    timeline = otio.adapters.read_from_string(to_otio(found), "otio_json")
    assert timeline.duration() == otio.opentime.RationalTime(250, 25)
