"""The embedded judge on pictures drawn here: text, contrast, border, blank share; and its reading of texts."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from media.ocr import RapidReader
from repair.judge import blank_share, contrast_ratio, judge, similarity
from repair.limits import LIMITS
from schemas.storyboard import TextBox

TITLE = "Why pendulums keep time"
DARK, LIGHT = (13, 18, 32), (245, 247, 252)


@pytest.fixture(scope="module")
def reader() -> RapidReader:
    return RapidReader()


def card(text: str, ink: tuple[int, int, int] = LIGHT, at: tuple[int, int] = (60, 120), size: int = 36) -> NDArray[np.uint8]:
    image = Image.new("RGB", (640, 360), DARK)
    font = ImageFont.load_default(size=size)
    ImageDraw.Draw(image).text(at, text, fill=ink, font=font)
    return np.asarray(image)


@pytest.mark.parametrize(
    ("lines", "expected", "value"),
    [
        (["Why pendulums", "keep time"], TITLE, 1.0),
        (["WHY PENDULUMS KEEP TIME"], TITLE, 1.0),
        (["unrelated"], "", 1.0),
        ([], TITLE, 0.0),
        (["45%"], "45 %", 1.0),
        (["47%"], "45 %", 0.5),
        (["能量守恒", "定律"], "能量守恒定律。", 1.0),
        (["能量守亘定律"], "能量守恒定律", 10 / 12),
    ],
)
def test_similarity_of_what_was_read(lines: list[str], expected: str, value: float) -> None:
    assert similarity(expected, lines) == pytest.approx(value)


def test_columns_are_read_by_their_words() -> None:
    assert similarity("mass does not matter", ["mass does", "length does", "not matter", "matter a lot"]) == 1.0


def test_other_words_are_not_similar() -> None:
    assert similarity(TITLE, ["Quarterly budget overview"]) < LIMITS.text_wrong


@pytest.mark.parametrize(
    ("a", "b", "ratio"),
    [((0, 0, 0), (255, 255, 255), 21.0), ((119, 119, 119), (255, 255, 255), 4.48), ((40, 40, 40), (40, 40, 40), 1.0)],
)
def test_contrast_is_that_of_wcag(a: tuple[int, int, int], b: tuple[int, int, int], ratio: float) -> None:
    region = np.full((20, 40, 3), a, np.uint8)
    region[5:15, 10:20] = b
    assert contrast_ratio(region) == pytest.approx(ratio, abs=0.02)


def test_blank_share_counts_the_most_frequent_colour() -> None:
    region = np.zeros((10, 10, 3), np.uint8)
    region[0, :5] = 255
    assert blank_share(region) == pytest.approx(0.95)


def test_a_good_card_scores_high(reader: RapidReader) -> None:
    image = card(TITLE)
    seen = judge(image, reader.read(image), {"title": TITLE})
    assert seen.text == 1.0
    assert seen.contrast is not None
    assert seen.contrast > 12
    assert seen.score == 1.0


def test_another_text_scores_low(reader: RapidReader) -> None:
    image = card("Quarterly budget overview")
    seen = judge(image, reader.read(image), {"title": TITLE})
    assert seen.text < LIMITS.text_wrong
    assert seen.score < 0.75


def test_faint_text_has_low_contrast(reader: RapidReader) -> None:
    image = card(TITLE, ink=(38, 44, 60))
    seen = judge(image, reader.read(image), {"title": TITLE})
    assert seen.contrast is not None
    assert seen.contrast < LIMITS.contrast_min


def test_text_at_the_border_is_seen(reader: RapidReader) -> None:
    image = card(TITLE, at=(-60, 120))
    seen = judge(image, reader.read(image), {"title": TITLE})
    assert seen.edge_px is not None
    assert seen.edge_px < seen.edge_limit_px


def test_an_empty_card_shows_nothing() -> None:
    seen = judge(card(""), (), {"title": TITLE})
    assert seen.blank_share == 1.0
    assert seen.text == 0.0
    assert seen.score == pytest.approx(0.1)


def test_the_worst_slot_decides() -> None:
    boxes = (TextBox(text=TITLE, x=60, y=120, width=400, height=40, confidence=0.99),)
    seen = judge(card(TITLE), boxes, {"title": TITLE, "subtitle": "A lecture by the swinging ball"})
    assert [s.name for s in seen.slots] == ["subtitle", "title"]
    assert seen.text < 0.5
