"""The draw of faults, and how a filter strikes: the first product of its kind, and never again."""

from __future__ import annotations

from collections import Counter

import pytest
from pydantic import ValidationError

from repair.config import FaultConfig
from repair.fault_kinds import EXECUTION_KINDS, KINDS
from repair.faults import FaultPlan, FaultSpec, subjects
from repair.spoil import SPOILERS, other_text
from replay.state import apply, film_change, shot_change
from replay.tool import Product
from schemas.errors import ConfigInvalid
from tests.repair.conftest import SPOTLIGHT, Studio
from tests.repair.film import film


def test_every_execution_kind_can_be_made() -> None:
    assert set(SPOILERS) == set(EXECUTION_KINDS) - {"product_rejected"}


def test_an_empty_plan_leaves_products_alone(studio: Studio) -> None:
    product = Product((film_change("plan_reflected", True),), {})
    assert FaultPlan()(0, "reflect_plan", product, studio.env, studio.state) == (product, ())


def test_the_draw_depends_on_the_seed_and_nothing_else() -> None:
    state = film(spotlight=1)
    config = FaultConfig(kinds=("render_black", "narration_silent"), count=2, seed=4)
    drawn = FaultPlan(config).drawn(state)
    assert FaultPlan(config).drawn(state) == drawn
    assert len({s.subject for s in drawn}) == 2
    assert {s.kind for s in drawn} == {"render_black", "narration_silent"}
    others = {FaultPlan(config.model_copy(update={"seed": seed})).drawn(state) for seed in range(12)}
    assert len(others) > 2


def test_no_more_faults_than_subjects() -> None:
    config = FaultConfig(kinds=("render_black",), count=50)
    assert Counter(s.subject for s in FaultPlan(config).drawn(film())) == Counter({"s001": 1, "s002": 1, "s003": 1})


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("music_silent", ("film",)),
        ("decoration_blank", ("s002",)),
        ("asset_repeated", ("s002", "s003")),
        ("render_black", ("s001", "s002", "s003")),
    ],
)
def test_only_subjects_that_have_the_product(kind: str, expected: tuple[str, ...]) -> None:
    assert subjects(film(spotlight=1), KINDS[kind]) == expected


def test_an_unknown_kind_is_a_configuration_error() -> None:
    with pytest.raises(ConfigInvalid, match="no fault kind 'render_pink'"):
        FaultPlan(explicit=(FaultSpec("render_pink", "s001"),))


def test_an_unknown_kind_is_no_setting() -> None:
    with pytest.raises(ValidationError, match="no fault kind 'render_pink'"):
        FaultConfig(kinds=("render_pink",), count=1)


def test_plan_level_kinds_are_not_drawn_here() -> None:
    assert FaultPlan(FaultConfig(kinds=("wrong_order",), count=3)).drawn(film()) == ()


def test_a_fault_strikes_the_first_product_only(studio: Studio) -> None:
    plan = FaultPlan(explicit=[FaultSpec("narration_silent", "s001")])
    track = studio.state.shots["s001"].narration
    assert track is not None
    healthy = Product((shot_change("s001", "narration", track),), {"spoken": 1}, (track.ref,))
    before = apply(studio.state, [shot_change("s001", "narration", None)])
    struck, faults = plan(7, "synthesize_narration", healthy, studio.env, before)
    assert [(f.kind, f.subject, f.detail) for f in faults] == [("narration_silent", "s001", "volume 0")]
    assert struck.results == healthy.results
    value = struck.changes[0].value
    assert value["ref"]["sha256"] != track.ref.sha256
    assert [a.sha256 for a in struck.artifacts] == [value["ref"]["sha256"]]
    assert studio.suite.store.has(value["ref"]["sha256"])
    again = plan(7, "synthesize_narration", healthy, studio.env, before)
    assert again == (struck, faults), "the same fault in a resumed run"
    assert plan(9, "repair_shots", healthy, studio.env, apply(before, struck.changes)) == (healthy, ())
    dropped = apply(before, [shot_change("s001", "mends_tried", ["narration_silent:renarrate:def_0"])])
    assert plan(9, "synthesize_narration", healthy, studio.env, dropped) == (healthy, ())


def test_a_fault_is_deterministic(studio: Studio) -> None:
    one, two = (SPOILERS["render_frozen"](studio.state, SPOTLIGHT, studio.env) for _ in range(2))
    assert one is not None
    assert one == two


@pytest.mark.parametrize(
    ("text", "other"),
    [("1,455 km", "5,899 km"), ("gravity", "garden"), ("能量守恒", "花园工具")],
)
def test_other_text_has_about_the_same_length(text: str, other: str) -> None:
    assert other_text(text) == other
