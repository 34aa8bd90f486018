"""``decorate_spotlights``: fills are judged before anything is drawn, drawn literally, and drawn once."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Any

import pytest

from media.assets import asset
from media.frames import grab_frames
from media.probe import probe
from media.sandbox import open_sandbox
from replay.graphics.conformance import check_card
from replay.graphics.pack import load_pack
from replay.graphics.project import build_project
from replay.graphics.render import font_folders
from replay.measured import measured_video
from replay.tool import Refusal
from replay.tools import compose_timeline, decorate_spotlights, render_shots, retrieve_visuals, search_music, synthesize_narration
from schemas.blocker import BlockerCode
from schemas.errors import EngineMissing
from tests.replay.cards import CHINESE, ENGLISH
from tests.replay.studio import Studio, queries

DECORATE = decorate_spotlights.TOOL
SPOTS = {"s001": "title", "s003": "number"}
FILLS = {
    "fills": [
        {"shot_id": "s001", "template": "title", "slots": {"title": "The clock"}},
        {"shot_id": "s003", "template": "number", "slots": {"value": "12", "label": "cells that live"}},
    ]
}


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Studio:
    return Studio(tmp_path_factory.mktemp("studio"), open_sandbox())


def needs_renderer() -> None:
    try:
        for name in ("hyperframes", "node", "browser", "fonts-inter", "fonts-noto-sc"):
            asset(name)
    except EngineMissing as missing:
        pytest.skip(str(missing))


def test_the_generator_sees_the_templates_of_the_planned_kinds(studio: Studio) -> None:
    request = DECORATE.need(studio.planned(spotlights=SPOTS), {"shots": "missing"}, (), studio.env())
    assert request is not None
    assert [row["shot_id"] for row in request.evidence["shots"]] == ["s001", "s003"]
    assert [t["template"] for t in request.evidence["templates"]] == ["chapter", "definition", "dial", "number", "question", "title"]


def test_shots_without_a_spotlight_have_nothing_to_decorate(studio: Studio) -> None:
    assert [b.code for b in DECORATE.resolve(studio.planned(), {"shots": "all"})] == [BlockerCode.VALUE_NOT_ALLOWED]


@pytest.mark.parametrize(
    ("fills", "subject"),
    [
        ([FILLS["fills"][0]], "content:fills"),
        ([*FILLS["fills"], {"shot_id": "s002", "template": "title", "slots": {"title": "x"}}], "content:fills.2.shot_id"),
        ([{"shot_id": "s001", "template": "quote", "slots": {"quote": "x"}}, FILLS["fills"][1]], "content:fills.0.template"),
        ([{"shot_id": "s001", "template": "nope", "slots": {}}, FILLS["fills"][1]], "content:fills.0.template"),
        ([{"shot_id": "s001", "template": "title", "slots": {"title": "w" * 90}}, FILLS["fills"][1]], "content:fills.0.slots.title"),
        ([{"shot_id": "s001", "template": "title", "slots": {"html": "<b>"}}, FILLS["fills"][1]], "content:fills.0.slots.html"),
    ],
)
def test_fills_that_do_not_fit_are_refused(studio: Studio, fills: list[dict[str, Any]], subject: str) -> None:
    state = studio.planned(spotlights=SPOTS)
    assert DECORATE.accept(state, {"shots": "missing"}, (), FILLS) == ()
    assert subject in [b.subject for b in DECORATE.accept(state, {"shots": "missing"}, (), {"fills": fills})]


def test_a_character_without_a_glyph_is_a_refusal(studio: Studio) -> None:
    needs_renderer()
    state = studio.planned([("A clock.", "clock", 2000)], spotlights={"s001": "title"})
    fills = {"fills": [{"shot_id": "s001", "template": "title", "slots": {"title": "clock \U0001f9a9"}}]}
    done = studio.attempt(DECORATE, state, {"shots": "all"}, (fills,))
    assert isinstance(done, Refusal)
    assert "U+1F9A9" in done.blockers[0].message


@pytest.mark.slow
def test_a_hostile_text_is_shown_as_it_stands_and_reaches_the_film(studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_renderer()
    hostile = "</script><b>&{{x}}"
    state = studio.planned(
        [("The clock runs on a card.", "colour test card with a clock", 6000)], spotlights={"s001": "title"}, width=640, height=360
    )
    fills = {"fills": [{"shot_id": "s001", "template": "title", "slots": {"title": hostile}}]}
    state, product = studio.run(DECORATE, state, {"shots": "all"}, (fills,))
    drawn = state.shots["s001"].decoration
    assert drawn is not None
    m = measured_video(drawn.ref, studio.store, studio.sandbox)
    assert (m.width, m.height, m.frames, drawn.slots) == (640, 360, 60, {"title": hostile})
    assert m.black_share < 0.1

    from media.ocr import RapidReader

    file = studio.store.path(drawn.ref.sha256)
    still = grab_frames(file, probe(file, studio.sandbox), studio.sandbox, [1_950_000], 640)[0]
    seen = "".join(box.text for box in RapidReader().read(still)).replace(" ", "")
    assert SequenceMatcher(None, seen, hostile).ratio() > 0.85, seen

    monkeypatch.setattr(studio.store, "recall", lambda _key: None)
    fresh, _ = studio.run(DECORATE, state, {"shots": "all"}, (fills,))
    assert fresh.shots["s001"].decoration == drawn
    monkeypatch.undo()
    monkeypatch.setattr(decorate_spotlights, "draw_clips", lambda *_a: pytest.fail("it was drawn again"))
    again, _ = studio.run(DECORATE, state, {"shots": "all"}, (fills,))
    assert again.shots["s001"].decoration == drawn

    state, _ = studio.run(retrieve_visuals.TOOL, state, {"shots": "all"}, (queries(state),))
    state, _ = studio.run(synthesize_narration.TOOL, state, {"shots": "all"})
    state, _ = studio.run(search_music.TOOL, state, {}, ({"query": "hum", "moods": []},))
    state, _ = studio.run(compose_timeline.TOOL, state)
    state, product = studio.run(render_shots.TOOL, state, {"shots": "all"})
    assert product.results["shots"][0]["graphic"] == "title"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["columns", "dial", "line", "lower_third", "question", "tiles", "title", "versus"])
def test_the_hyperframes_cli_finds_no_fault_in_a_filled_template(name: str) -> None:
    judge(name, "en", (1280, 720))


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(ENGLISH))
@pytest.mark.parametrize("size", [(1280, 720), (720, 1280), (720, 720), (960, 720)])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_hyperframes_cli_finds_no_fault_in_any_template(name: str, size: tuple[int, int], language: str) -> None:
    judge(name, language, size)


def judge(name: str, language: str, size: tuple[int, int]) -> None:
    needs_renderer()
    texts = (CHINESE if language == "zh" else ENGLISH)[name]
    project = build_project(
        load_pack()[name], texts, width=size[0], height=size[1], language=language, font_folders=font_folders(), as_defaults=True
    )
    report = check_card(project, open_sandbox())
    found = [f for part in ("lint", "runtime", "layout", "motion", "contrast") for f in report[part]["findings"]]
    assert (report["ok"], [(f["code"], f.get("selector"), f.get("message")) for f in found if f["severity"] != "info"]) == (True, [])
    assert report["contrast"]["checked"] > 0
