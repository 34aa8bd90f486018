"""Burned-in captions told apart from cards, names and menus."""

from __future__ import annotations

import pytest

from inversion.captions import Read, split_captions
from schemas.storyboard import TextBox


def line(text: str, x: int, y: int, width: int, height: int = 40) -> TextBox:
    return TextBox(text=text, x=x, y=y, width=width, height=height, confidence=0.95)


def read(*lines: TextBox, changes: int = 0) -> Read:
    return Read(lines, 1280, 720, changes)


CAPTION = line("and so we came to the river", 390, 640, 500)
NEXT = line("which was higher than before", 380, 640, 520)
NAME = line("Walter Lewin", 90, 600, 260, 44)
TITLE = line("The printing press", 340, 300, 600, 80)


def captions(*reads: Read) -> list[tuple[str, ...]]:
    return [found for _, found in split_captions(reads)]


def test_a_line_that_changes_within_its_shot_is_a_caption() -> None:
    kept, found = split_captions([read(TITLE, CAPTION, changes=2)])[0]
    assert found == ("and so we came to the river",)
    assert kept == (TITLE,)


def test_another_text_in_the_same_place_of_another_shot_is_a_caption() -> None:
    assert captions(read(CAPTION), read(NEXT)) == [("and so we came to the river",), ("which was higher than before",)]


def test_chinese_captions_are_found_too() -> None:
    one, two = line("我们来到了河边", 480, 645, 320), line("水位比以前更高", 470, 645, 330)
    assert captions(read(one), read(two)) == [("我们来到了河边",), ("水位比以前更高",)]


def test_captions_of_two_lines_stay_together() -> None:
    upper = line("and so we came to", 420, 590, 440)
    assert captions(read(upper, CAPTION, changes=1)) == [("and so we came to", "and so we came to the river")]


@pytest.mark.parametrize(
    "reads",
    [
        pytest.param([read(CAPTION)], id="seen once, never changing"),
        pytest.param([read(CAPTION), read(CAPTION)], id="the same text again: a footer"),
        pytest.param([read(NAME), read(line("Ada Lovelace", 90, 600, 240, 44))], id="names on the left"),
        pytest.param([read(TITLE), read(line("Another title", 340, 300, 600, 80))], id="titles in the middle"),
        pytest.param([read(line("BIG", 500, 560, 280, 120), changes=2)], id="too tall"),
        pytest.param(
            [read(line("File", 480, 640, 120), line("Edit", 640, 640, 120), changes=3)],
            id="a row of a menu",
        ),
    ],
)
def test_what_lacks_one_of_the_marks_is_no_caption(reads: list[Read]) -> None:
    assert captions(*reads) == [()] * len(reads)
    assert [kept for kept, _ in split_captions(reads)] == [r.lines for r in reads]
