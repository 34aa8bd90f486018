"""Which shots present a graphic: layouts on the screen, salient narration, and how often."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from inversion.salient import salient
from inversion.spotlight import find_spotlights, on_screen
from schemas.storyboard import Evidence, KeyFrame, SpotlightKind, TextBox


@dataclass(frozen=True)
class Stretch:
    start_us: int
    end_us: int


def line(text: str, x: int, y: int, height: int, confidence: float = 0.95) -> TextBox:
    return TextBox(text=text, x=x, y=y, width=int(len(text) * height * 0.5), height=height, confidence=confidence)


def seen(*lines: TextBox) -> Evidence:
    frame = KeyFrame(at_us=0, sha256="0" * 64, width=1280, height=720)
    return Evidence(key_frames=(frame,), text=lines, motion=0.0, luma=0.2, colour=(0, 0, 0), caption="a card")


CARDS = [
    (SpotlightKind.TITLE, {"title": "The printing press", "subtitle": "a short history"},
     (line("The printing press", 330, 280, 70), line("a short history", 480, 380, 30))),
    (SpotlightKind.NUMBER, {"value": "1455", "label": "first printed Bible"},
     (line("1455", 480, 240, 160), line("first printed Bible", 440, 450, 36))),
    (SpotlightKind.LIST, {"heading": "Three parts", "item1": "the ink", "item2": "the paper", "item3": "the press"},
     (line("Three parts", 120, 100, 60), line("• the ink", 130, 220, 40), line("• the paper", 130, 290, 40),
      line("• the press", 130, 360, 40))),
    (SpotlightKind.LIST, {"heading": "Three parts", "item1": "the ink", "item2": "the paper", "item3": "the press"},
     (line("Three parts", 130, 100, 64), line("the ink", 130, 220, 40), line("the paper", 131, 290, 40), line("the press", 129, 360, 40))),
    (SpotlightKind.QUOTE, {"quote": "Paper is patient", "author": "Anne Frank"},
     (line("“Paper is patient”", 300, 260, 60), line("— Anne Frank", 320, 360, 36))),
    (SpotlightKind.COMPARISON, {"left_title": "By hand", "left_text": "a year", "right_title": "By press", "right_text": "a day"},
     (line("By hand", 150, 200, 60), line("a year", 160, 300, 40), line("By press", 800, 200, 60), line("a day", 810, 300, 40))),
    (SpotlightKind.CHART, {"heading": "Books printed", "label1": "Lyon", "value1": "10%", "label2": "Mainz", "value2": "30%",
     "label3": "Paris", "value3": "60%"},
     (line("Books printed", 100, 60, 60), line("Lyon", 100, 200, 40), line("10%", 600, 200, 40), line("Mainz", 100, 300, 40),
      line("30%", 600, 300, 40), line("Paris", 100, 400, 40), line("60%", 600, 400, 40))),
    (SpotlightKind.LOWER_THIRD, {"title": "Walter Lewin", "subtitle": "Physicist"},
     (line("Walter Lewin", 80, 560, 44), line("Physicist", 80, 615, 30))),
    (SpotlightKind.TITLE, {"title": "活字印刷", "subtitle": "一段简史"}, (line("活字印刷", 500, 300, 80), line("一段简史", 560, 420, 36))),
]  # fmt: skip


YEARS = {
    "heading": "Price of one ream",
    "label1": "1750",
    "value1": "21",
    "label2": "1800",
    "value2": "26",
    "label3": "1850",
    "value3": "9",
}
LAYOUTS = [
    ("columns of figures", SpotlightKind.CHART,
     {"heading": "Clear nights", "label1": "Spring", "value1": "24", "label2": "Summer", "value2": "31", "label3": "Frost", "value3": "12"},
     (line("Clear nights", 100, 60, 60), line("24", 200, 300, 40), line("31", 500, 240, 40), line("12", 800, 400, 40),
      line("Spring", 160, 560, 40), line("Summer", 460, 560, 40), line("Frost", 760, 560, 40))),
    ("years in rows", SpotlightKind.CHART, YEARS,
     (line("Price of one ream", 100, 60, 60), line("1750", 100, 200, 40), line("21", 600, 200, 40), line("1800", 100, 300, 40),
      line("26", 700, 300, 40), line("1850", 100, 400, 40), line("9", 500, 400, 40))),
    ("years in columns", SpotlightKind.CHART, YEARS,
     (line("Price of one ream", 100, 60, 60), line("1750", 160, 560, 40), line("1800", 460, 560, 40), line("1850", 760, 560, 40),
      line("21", 180, 300, 40), line("26", 480, 240, 40), line("9", 790, 420, 40))),
    ("a heading of two lines", SpotlightKind.COMPARISON,
     {"left_title": "By eye alone", "left_text": "One star", "right_title": "By camera", "right_text": "Thousands"},
     (line("By eye", 80, 200, 60), line("alone", 80, 270, 54), line("One star", 80, 350, 40), line("By", 700, 200, 60),
      line("camera", 700, 270, 50), line("Thousands", 700, 350, 40))),
    ("a title and subtitle of two lines", SpotlightKind.TITLE,
     {"title": "Watching the Sky", "subtitle": "A small observatory and its people"},
     (line("Watching the", 80, 200, 100), line("Sky", 80, 310, 100), line("A small observatory and its", 80, 430, 44),
      line("people", 80, 490, 44))),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "slots", "lines"), [c[1:] for c in LAYOUTS], ids=[c[0] for c in LAYOUTS])
def test_other_layouts_are_read_too(kind: SpotlightKind, slots: dict[str, str], lines: tuple[TextBox, ...]) -> None:
    found = on_screen(seen(*lines))
    assert found is not None
    assert (found.kind, found.slots) == (kind, slots)


def test_type_on_an_upright_film_is_measured_by_its_width() -> None:
    frame = KeyFrame(at_us=0, sha256="0" * 64, width=270, height=480)
    lines = (line("Clean Water", 70, 160, 22), line("Pipes under an old city", 60, 200, 12))
    found = on_screen(seen(*lines).model_copy(update={"key_frames": (frame,)}))
    assert found is not None
    assert (found.kind, found.slots) == (SpotlightKind.TITLE, {"title": "Clean Water", "subtitle": "Pipes under an old city"})


@pytest.mark.parametrize(("kind", "slots", "lines"), CARDS)
def test_card_is_read_by_its_layout(kind: SpotlightKind, slots: dict[str, str], lines: tuple[TextBox, ...]) -> None:
    found = on_screen(seen(*lines))
    assert found is not None
    assert (found.kind, found.origin) == (kind, "screen")
    assert found.slots == slots


@pytest.mark.parametrize(
    "lines",
    [
        (),
        (line("faint scratches", 400, 300, 80, confidence=0.4),),
        tuple(line(f"$ command number {n}", 40, 30 * n, 18) for n in range(20)),
        (line("a small sign on a wall", 600, 300, 16),),
        (line("|/\\-=+", 500, 300, 80),),
        (line("15.5", 560, 300, 60),),
    ],
)
def test_what_is_no_graphic_gives_none(lines: tuple[TextBox, ...]) -> None:
    assert on_screen(seen(*lines)) is None


@pytest.mark.parametrize(
    ("text", "language", "kind", "slots"),
    [
        ("Now I take an object of 15.5 kilograms and drop it.", "en", SpotlightKind.NUMBER,
         {"value": "15.5 kilograms", "label": "Now I take an object"}),
        ("I believe in it for 100% and more.", "en", SpotlightKind.NUMBER, {"value": "100%", "label": "I believe in it"}),
        ("It cost $12 million to build.", "en", SpotlightKind.NUMBER, {"value": "$12 million", "label": "to build"}),
        ("There are three parts. First, the ink. Second, the paper. Third, the press.", "en", SpotlightKind.LIST,
         {"heading": "There are three parts", "item1": "the ink", "item2": "the paper", "item3": "the press"}),
        ("This is called kinetic energy, of course.", "en", SpotlightKind.LOWER_THIRD, {"title": "Kinetic energy"}),
        ("He said “I never make the same mistake twice” and left.", "en", SpotlightKind.QUOTE,
         {"quote": "I never make the same mistake twice"}),
        ("价格上涨了百分之三十，非常多。", "zh", SpotlightKind.NUMBER, {"value": "百分之三十", "label": "价格上涨了"}),
    ],
)  # fmt: skip
def test_salient_narration(text: str, language: str, kind: SpotlightKind, slots: dict[str, str]) -> None:
    best = salient(text, language)[0]
    assert (best.kind, best.slots) == (kind, slots)


@pytest.mark.parametrize(("text", "language"), [("So we go on from here.", "en"), ("Trois kilos de pommes.", "fr"), ("", "en")])
def test_plain_narration_gives_nothing(text: str, language: str) -> None:
    assert salient(text, language) == []


def test_graphics_from_narration_keep_thirty_seconds_apart() -> None:
    shots = [Stretch(n * 10_000_000, (n + 1) * 10_000_000) for n in range(7)]
    found = find_spotlights([seen()] * 7, ["It weighs 20 tons in the harbour."] * 7, shots, "en")
    assert [n for n, spot in enumerate(found) if spot] == [0, 3, 6]


def test_title_opens_the_first_narrated_shot() -> None:
    shots = [Stretch(0, 4_000_000), Stretch(4_000_000, 8_000_000)]
    found = find_spotlights([seen()] * 2, ["", "So we begin."], shots, "en", title="On paper")
    assert [spot.slots if spot else None for spot in found] == [None, {"title": "On paper"}]


def test_short_shots_get_no_graphic_from_the_narration() -> None:
    assert find_spotlights([seen()], ["It weighs 20 tons in the harbour."], [Stretch(0, 1_000_000)], "en") == [None]
