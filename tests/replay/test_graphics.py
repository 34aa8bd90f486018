"""The template pack: what a valid fill is, how it is laid out, and what the page holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from replay.graphics.fonts import choose_fonts
from replay.graphics.layout import FitGroup, line_count, shape_of, width_em
from replay.graphics.pack import bar_shares, check_fill, clean, figure, fitted, load_pack, load_templates, percent, room
from replay.graphics.project import build_project
from schemas.blocker import BlockerCode
from schemas.storyboard import SpotlightKind
from tests.replay.cards import ENGLISH as GOOD

CANVASES = ((1280, 720), (960, 720), (720, 1280), (720, 720), (320, 180))


def problems(name: str, slots: dict[str, str], size: tuple[int, int] = (1280, 720)) -> list[str]:
    kind = load_pack()[name].template.kind if name in load_pack() else SpotlightKind.TITLE
    return [b.subject for b in check_fill(name, slots, kind=kind, width=size[0], height=size[1])]


def test_the_pack_has_a_plain_template_of_every_kind_and_others() -> None:
    assert {kind.value for kind in SpotlightKind} <= set(load_templates())
    assert len(load_templates()) == 18
    assert {t.kind for t in load_templates().values()} == set(SpotlightKind)


def test_templates_of_a_kind_share_its_slots() -> None:
    for template in load_templates().values():
        plain = {s.name for s in load_templates()[template.kind.value].slots}
        assert {s.name for s in template.slots} <= plain, template.name


@pytest.mark.parametrize("name", sorted(GOOD))
@pytest.mark.parametrize("size", CANVASES)
def test_ordinary_fills_are_accepted_in_every_shape(name: str, size: tuple[int, int]) -> None:
    assert problems(name, GOOD[name], size) == []


@pytest.mark.parametrize("name", sorted(GOOD))
@pytest.mark.parametrize("size", [(1280, 720), (720, 1280), (720, 720)])
@pytest.mark.parametrize("word", ["mountain ", "山"])
def test_texts_of_full_length_fit_or_are_refused_for_room_only(name: str, size: tuple[int, int], word: str) -> None:
    template = load_templates()[name]
    slots = {s.name: (word * s.max_chars)[: s.max_chars].strip() for s in template.slots}
    slots |= {s: "45%" for s in slots if s.startswith("value") and name != "number"}
    found = check_fill(name, slots, kind=template.kind, width=size[0], height=size[1])
    assert all("does not fit the layout" in b.message for b in found)


@pytest.mark.parametrize(
    ("name", "slots", "expected"),
    [
        ("title", {}, ["content.slots.title"]),
        ("title", {"title": "  "}, ["content.slots.title"]),
        ("title", {"title": "x" * 81}, ["content.slots.title"]),
        ("title", {"title": "a", "color": "red"}, ["content.slots.color"]),
        ("title", {"title": "bell \x07"}, ["content.slots.title"]),
        ("title", {"title": "right \u202e left"}, ["content.slots.title"]),
        ("chart", {"heading": "h", "label1": "a", "value1": "many"}, ["content.slots.value1"]),
        ("chart", {"heading": "h", "label1": "a", "value1": "1", "label2": "b"}, ["content.slots.value2"]),
        ("chart", {"heading": "h", "label1": "a", "value1": "-5"}, ["content.slots.value1"]),
        ("dial", {"value": "12 bn", "label": "a"}, ["content.slots.value"]),
        ("dial", {"value": "120%", "label": "a"}, ["content.slots.value"]),
        ("banner", {"title": "a"}, ["content.template"]),
    ],
)
def test_bad_fills_name_the_slot(name: str, slots: dict[str, str], expected: list[str]) -> None:
    assert problems(name, slots) == expected


def test_a_template_of_another_kind_is_refused() -> None:
    found = check_fill("title", GOOD["title"], kind=SpotlightKind.QUOTE, width=1280, height=720)
    assert [(b.code, b.subject) for b in found] == [(BlockerCode.CONTENT_CONTRACT_BROKEN, "content.template")]


def test_an_unknown_template_is_an_unresolved_reference() -> None:
    found = check_fill("../title", {}, kind=SpotlightKind.TITLE, width=1280, height=720)
    assert [b.code for b in found] == [BlockerCode.UNRESOLVED_REFERENCE]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12 million", 12e6),
        ("3.4k", 3400.0),
        ("45%", 45.0),
        ("$7,900,000", 7.9e6),
        ("1200万", 12e6),
        ("3亿", 3e8),
        ("none", None),
        ("2 km", 2.0),
    ],
)
def test_figures_of_bars(text: str, expected: float | None) -> None:
    assert figure(text) == expected


def test_bars_are_shares_of_the_longest() -> None:
    texts = {"heading": "Cost", "label1": "North", "value1": "12 million", "label2": "South", "value2": "3 million"}
    assert bar_shares(load_pack()["chart"], texts) == {1: 100.0, 2: 25.0}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("45%", 45.0), ("12.5 per cent", 12.5), ("100％", 100.0), ("百分之30", 30.0), ("130%", None), ("45", None), ("45% of", None)],
)
def test_shares_of_dials(text: str, expected: float | None) -> None:
    assert percent(text) == expected


def test_a_dial_shows_its_share() -> None:
    assert bar_shares(load_pack()["dial"], {"value": "37%", "label": "x"}) == {1: 37.0}


def test_shown_texts_are_nfc_and_tidy() -> None:
    assert clean({"a": " Cafe\u0301\n bar ", "b": "  "}) == {"a": "Café bar"}


def test_long_texts_are_set_smaller() -> None:
    entry = load_pack()["title"]
    short, long = ({"title": t} for t in ("Bridges", "The long and winding story of a bridge that nobody ever used"))
    assert fitted(entry, short, 1280, 720)["title"] == 12.5
    assert fitted(entry, long, 1280, 720)["title"] < 12.5


@pytest.mark.parametrize("size", [(1280, 720), (720, 1280), (720, 720), (960, 720)])
@pytest.mark.parametrize(("han", "word"), [(False, "mountain "), (True, "山")])
def test_a_text_as_long_as_the_room_told_is_accepted(size: tuple[int, int], han: bool, word: str) -> None:
    for name, entry in load_pack().items():
        slots = {s.name: (word * 99)[: room(entry, s, *size, han=han)].strip() for s in entry.template.slots}
        slots |= {s: "45%" for s in slots if s.startswith("value") and name != "number"}
        assert problems(name, slots, size) == []


def test_a_name_of_full_length_has_room_on_every_canvas() -> None:
    entry = load_pack()["lower_third"]
    title = entry.template.slots[0]
    assert [room(entry, title, *size, han=False) for size in ((1280, 720), (960, 720), (720, 1280), (720, 720))] == [48, 48, 48, 48]
    assert room(entry, title, 720, 720, han=True) == 40


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [("one two three", 100.0, 1), ("one two three", 4.5, 2), ("桥要造两次", 3.0, 2), ("桥要造，", 3.0, 2), ("w" * 20, 5.0, 4)],
)
def test_lines_are_counted(text: str, width: float, lines: int) -> None:
    assert line_count(text, width, bold=False) == lines


def test_a_smaller_size_is_taken_rather_than_breaking_a_word() -> None:
    group = FitGroup("g", ("a",), 500, (10.0, 4.0), {"wide": (1.0, 1.0)}, 1.2)
    assert group.fit(["measurement"], "wide", (50.0, 60.0)) == 7.1
    assert group.fit(["a b c"], "wide", (50.0, 60.0)) == 10.0
    assert group.fit(["incomprehensibilities"], "wide", (30.0, 60.0)) == 10.0  # broken even at the smallest size


def test_widths_are_not_too_narrow() -> None:
    assert width_em("Handgloves", bold=True) >= 5.82  # Inter 700 measures 5.82 em
    assert width_em("桥梁", bold=False) == 2.0


@pytest.mark.parametrize(("size", "shape"), [((1280, 720), "wide"), ((960, 720), "wide"), ((720, 720), "square"), ((720, 1280), "tall")])
def test_shapes(size: tuple[int, int], shape: str) -> None:
    assert shape_of(*size) == shape


@pytest.fixture(scope="session")
def fonts() -> dict[str, Path]:
    from media.assets import asset
    from schemas.errors import EngineMissing

    try:
        return {"Inter": asset("fonts-inter").parent, "Noto Sans SC": asset("fonts-noto-sc").parent}
    except EngineMissing as missing:
        pytest.skip(str(missing))


def test_fonts_are_chosen_by_characters(fonts: dict[str, Path]) -> None:
    latin, missing = choose_fonts(["Bridge"], fonts)
    assert ({f.path.name for f in latin}, missing) == ({"inter-latin-500-normal.woff2", "inter-latin-700-normal.woff2"}, ())
    han, missing = choose_fonts(["桥 Bridge"], fonts)
    assert {f.family for f in han} == {"Inter", "Noto Sans SC"}
    assert missing == ()
    assert all(f.path.is_file() for f in han)


def test_a_character_without_a_glyph_is_named(fonts: dict[str, Path]) -> None:
    assert choose_fonts(["tree \U0001f9a9"], fonts)[1] == ("\U0001f9a9",)


def test_slot_texts_are_not_in_the_page(fonts: dict[str, Path]) -> None:
    hostile = "</script><b>&{{x}} @@BODY@@"
    project = build_project(load_pack()["title"], {"title": hostile}, width=1280, height=720, language="en", font_folders=fonts)
    page = project.texts["index.html"].decode()
    assert hostile not in page
    assert "@@" not in page
    assert json.loads(project.texts["slots.json"]) == {"title": hostile}


def test_optional_slots_that_are_empty_leave_no_element(fonts: dict[str, Path]) -> None:
    with_it = build_project(load_pack()["title"], GOOD["title"], width=1280, height=720, language="en", font_folders=fonts)
    without = build_project(
        load_pack()["title"], {"title": "a", "subtitle": " "}, width=1280, height=720, language="en", font_folders=fonts
    )
    assert 'data-var-text="subtitle"' in with_it.texts["index.html"].decode()
    assert 'data-var-text="subtitle"' not in without.texts["index.html"].decode()


def test_a_band_is_drawn_at_its_own_size(fonts: dict[str, Path]) -> None:
    project = build_project(load_pack()["lower_third"], GOOD["lower_third"], width=1280, height=720, language="en", font_folders=fonts)
    assert (project.width, project.height) == (768, 144)


def test_equal_fills_give_equal_projects(fonts: dict[str, Path]) -> None:
    one, two = (
        build_project(load_pack()["list"], GOOD["list"], width=1280, height=720, language="en", font_folders=fonts) for _ in range(2)
    )
    assert one == two
