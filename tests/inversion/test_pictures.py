"""Stills in numbers: light, colours, flatness, sharpness, and which are alike."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from evaluation.studio.pictures import darkened, landscape, still_life
from inversion.describe import compose
from inversion.pictures import kinship, look_at, same_still
from schemas.storyboard import TextBox

RNG = np.random.default_rng(11)
LAND, LIFE = landscape(RNG, 640, 360), still_life(RNG, 640, 360)


def plain(colour: tuple[int, int, int]) -> NDArray[np.uint8]:
    return np.full((360, 640, 3), colour, np.uint8)


@pytest.mark.parametrize(
    ("colour", "name"),
    [
        ((220, 30, 30), "red"), ((240, 140, 20), "orange"), ((240, 230, 40), "yellow"), ((30, 170, 60), "green"), ((30, 60, 210), "blue"),
        ((130, 60, 190), "purple"), ((240, 90, 170), "pink"), ((100, 60, 20), "brown"), ((250, 250, 250), "white"), ((8, 8, 8), "black"),
        ((128, 128, 128), "grey"), ((20, 200, 200), "cyan"),
    ],
)  # fmt: skip
def test_colours_have_their_names(colour: tuple[int, int, int], name: str) -> None:
    look = look_at(plain(colour))
    assert look.palette == ((name, 1.0),)
    assert look.colour == colour


def test_luma_runs_from_black_to_white() -> None:
    assert look_at(plain((0, 0, 0))).luma == 0.0
    assert look_at(plain((255, 255, 255))).luma == 1.0


def test_a_blurred_still_is_less_sharp() -> None:
    soft = np.asarray(Image.fromarray(LIFE).filter(ImageFilter.GaussianBlur(3)))
    assert look_at(soft).sharpness < 0.5 * look_at(LIFE).sharpness


def test_a_card_is_flat_and_a_picture_is_not() -> None:
    card = plain((20, 20, 40))
    card[150:200, 100:500] = 240
    assert look_at(card).flatness > 0.8
    assert look_at(LAND).flatness < 0.6


def test_kin_are_the_same_view_under_other_light() -> None:
    looks = [look_at(p) for p in (LAND, LIFE, darkened(LAND, 0.85))]
    found = kinship(looks)
    assert [index for index, _ in found] == [2, found[1][0], 0]
    assert found[0][1] is not None
    assert found[1][1] is not None
    assert found[0][1] > 0.85 > found[1][1]


def test_a_single_still_has_no_kin() -> None:
    assert kinship([look_at(LAND)]) == [(None, None)]


def test_the_same_still_through_a_codec_is_the_same() -> None:
    again = np.clip(LAND.astype(np.int16) + RNG.integers(-3, 4, LAND.shape), 0, 255).astype(np.uint8)
    assert same_still(look_at(LAND), look_at(again), LAND, again)


def test_one_more_word_makes_another_still() -> None:
    page = plain((250, 250, 250))
    page[100:120, 100:300] = 20
    more = page.copy()
    more[140:152, 100:130] = 20
    assert not same_still(look_at(page), look_at(more), page, more)
    assert not same_still(look_at(LAND), look_at(LIFE), LAND, LIFE)


def box(text: str, height: int = 40) -> TextBox:
    return TextBox(text=text, x=0, y=0, width=300, height=height, confidence=0.9)


@pytest.mark.parametrize(
    ("image", "motion", "text", "sentence"),
    [
        (plain((0, 0, 0)), 0.0, (), "Dark still plain frame, mostly black."),
        (plain((250, 250, 250)), 0.0, (), "Bright still plain frame, mostly white."),
        (LAND, 0.08, (), "Fast-moving picture"),
        (LAND, 0.0, (box("Chapter one", 60), box("of three", 20)), '; on screen: "Chapter one / of three".'),
    ],
)
def test_descriptions_say_what_was_measured(image: NDArray[np.uint8], motion: float, text: tuple[TextBox, ...], sentence: str) -> None:
    assert sentence in compose(look_at(image), motion, text)


def test_long_texts_are_shortened_to_the_largest_lines() -> None:
    lines = (box("a" * 100, 20), box("Heading", 60), box("b" * 100, 30))
    said = compose(look_at(LAND), 0.0, lines)
    assert "Heading" in said
    assert "b" * 100 in said
    assert "a" * 100 not in said
