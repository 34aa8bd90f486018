"""Plan and length checks on records alone: a healthy row and a faulty row for each."""

from __future__ import annotations

import pytest

from repair.checks.plan import is_ordered, plan_findings, script_coverage, script_gaps
from repair.respan import respanned
from schemas.state import PlannedShot, ProductionState
from schemas.verdict import DefectCode as Code
from tests.repair.film import QUERIES, SCRIPT, TEXTS, clip, film, invented, narration, planned, task

ALL = ("s001", "s002", "s003")


def codes(state: ProductionState) -> list[tuple[str, Code, str]]:
    return [(f.subject, f.code, f.severity) for f in plan_findings(state, ALL)]


def test_a_healthy_plan_has_no_findings() -> None:
    assert codes(film()) == []


def test_a_dropped_span_is_uncovered() -> None:
    plans = [planned(0), planned(1, text="", script_start=len(TEXTS[0]) + 1, script_end=len(TEXTS[0]) + 1), planned(2)]
    state = film(plans=plans)
    missing = sum(1 for c in TEXTS[1] if not c.isspace())
    assert script_gaps(state) == (missing, 0)
    assert codes(state) == [("s001", Code.PLAN_UNCOVERED, "error")], "the shot before it does not reach to the next one"
    assert script_coverage(state) == pytest.approx(1 - missing / sum(1 for c in SCRIPT if not c.isspace()))


def test_a_rewritten_text_carries_nothing() -> None:
    state = film(plans=[planned(0, text="A pendulum swings faster when it is heavy, as we all know."), planned(1), planned(2)])
    assert script_gaps(state)[0] == sum(1 for c in TEXTS[0] if not c.isspace())


def test_a_repeated_span_counts_as_repeated() -> None:
    again = planned(0)
    state = film(plans=[planned(0), again, planned(2)])
    assert script_gaps(state) == (sum(1 for c in TEXTS[1] if not c.isspace()), sum(1 for c in TEXTS[0] if not c.isspace()))


def test_shots_out_of_order_are_not_ordered() -> None:
    state = film(plans=[planned(1), planned(0), planned(2)])
    assert script_gaps(state) == (0, 0)
    assert not is_ordered(state)
    assert ("s001", Code.PLAN_UNCOVERED, "error") in codes(state)


def test_a_script_that_no_shot_speaks_is_a_finding_on_the_film() -> None:
    state = film(plans=[planned(i, text="", script_start=0, script_end=0) for i in range(3)])
    assert ("film", Code.PLAN_UNCOVERED, "error") in codes(state)


@pytest.mark.parametrize(
    ("plans", "changed"),
    [
        ((planned(0), planned(1), planned(2)), {}),
        ((planned(0), planned(1, text=TEXTS[1][:20], script_end=len(TEXTS[0]) + 21), planned(2)), {"s002": TEXTS[1]}),
        ((planned(0), planned(0), planned(2)), {"s001": "", "s002": f"{TEXTS[0]} {TEXTS[1]}"}),
        ((planned(0), planned(1, text="", script_start=40, script_end=40), planned(2)), {"s001": f"{TEXTS[0]} {TEXTS[1]}"}),
        ((planned(0), planned(1), planned(2, text="Something else.")), {"s003": TEXTS[2]}),
    ],
)
def test_spans_are_set_so_that_the_script_is_carried_once(plans: tuple[PlannedShot, ...], changed: dict[str, str]) -> None:
    state = film(plans=list(plans))
    new = {sid: p for sid, p in respanned(state).items() if p != state.shots[sid].planned}
    assert {sid: p.text for sid, p in new.items()} == changed
    mended = {sid: shot.model_copy(update={"planned": new.get(sid, shot.planned)}) for sid, shot in state.shots.items()}
    assert script_gaps(state.model_copy(update={"shots": mended})) == (0, 0)


@pytest.mark.parametrize(
    ("planned_query", "severity"),
    [(QUERIES[0], "warning"), ("", "warning"), (QUERIES[1], "error")],  # with a query of its own the shot was searched for wrongly
)
def test_neighbours_with_one_query_are_a_repetition(planned_query: str, severity: str) -> None:
    clips = tuple(clip(invented(f"c{i}"), QUERIES[0]) for i in range(3))
    state = film(clips=clips, plans=[planned(0), planned(1, visual_query=planned_query), planned(2)])
    same = state.shots["s002"].asset.model_copy(update={"query": "Pendulum  in a LECTURE hall"})  # type: ignore[union-attr]
    shots = {**state.shots, "s002": state.shots["s002"].model_copy(update={"asset": same})}
    assert codes(state.model_copy(update={"shots": shots})) == [("s002", Code.PLAN_REPETITION, severity)]


@pytest.mark.parametrize(
    ("frames", "target_us", "expected"),
    [
        (60, 4_000_000, []),
        (150, 4_000_000, [("s001", Code.PACING_TOO_LONG, "warning")]),
        (99, 4_000_000, []),  # 2.6 s longer: under the slack
        (60, 16_000_000, [("s001", Code.PACING_TOO_SHORT, "warning")]),
        (50, 4_000_000, [("s001", Code.PACING_TOO_SHORT, "error")]),  # 3.33 s of room for 3.7 s of speech
    ],
)
def test_pacing_of_a_slot(frames: int, target_us: int, expected: list[tuple[str, Code, str]]) -> None:
    state = film(frames=(frames, 60, 60), plans=[planned(0, target_duration_us=target_us), planned(1), planned(2)])
    assert codes(state) == expected


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ((3_000_000, 60_000_000), []),
        ((3_000_000, 11_000_000), [("film", Code.PACING_TOO_LONG, "warning")]),
        ((13_000_000, 60_000_000), [("film", Code.PACING_TOO_SHORT, "warning")]),
    ],
)
def test_length_of_the_film(bounds: tuple[int, int], expected: list[tuple[str, Code, str]]) -> None:
    clips = tuple(clip(invented(f"c{i}"), QUERIES[i]) for i in range(3))
    state = film(clips=clips, task=task(clips, duration_min_us=bounds[0], duration_max_us=bounds[1]))
    assert codes(state) == expected


def test_lengths_of_a_stale_timeline_are_not_judged() -> None:
    state = film(frames=(150, 60, 60))
    longer = narration(invented("longer"), 1, 3_900_000)
    shots = {**state.shots, "s002": state.shots["s002"].model_copy(update={"narration": longer})}
    assert codes(state.model_copy(update={"shots": shots})) == []


def test_the_slot_that_makes_the_film_too_long_is_an_error() -> None:
    """The guilty shot is mended; the film's own finding stays a warning, for mending it would move every shot."""
    clips = tuple(clip(invented(f"c{i}"), QUERIES[i], 20_000_000) for i in range(3))
    state = film(frames=(150, 60, 60), clips=clips, task=task(clips, duration_max_us=15_000_000))
    assert codes(state) == [("film", Code.PACING_TOO_LONG, "warning"), ("s001", Code.PACING_TOO_LONG, "error")]
