"""The planning tools: what they accept, what they refuse, what they leave behind."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from replay.runtime import Runtime
from replay.tools.segment_article import PART_CHARS, script_parts
from schemas.contract import Role
from schemas.trajectory import Observation, ObservationStatus
from tests.replay.doubles import PLAN, SCRIPT, SEGMENTS, call, content, planned, runtime, task


@pytest.fixture
def run(folder: Path) -> Runtime:
    return runtime(folder)


def codes(observation: Observation) -> list[tuple[str, str]]:
    return [(b.code.value, b.subject) for b in observation.blockers]


def changed(value: dict[str, Any], *path: Any, to: Any) -> dict[str, Any]:
    """A deep copy with one value replaced."""
    out = copy.deepcopy(value)
    target = out
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = to
    return out


def test_segments_tile_the_script(run: Runtime) -> None:
    run.step(call("segment_article", max_sentences=3))
    assert run.step(content(SEGMENTS)).results == {"segments": 3, "titles": ["By sea", "Clippers", "Today"]}
    segments = run.state.film.segments
    assert segments is not None
    assert [SCRIPT[s.script_start : s.script_end] for s in segments] == [
        "Tea came to Europe by sea. It was dear at first. Only the rich could buy it. ",
        "Then the clippers made the way short. A race from China took a hundred days. ",
        "Today a cup costs next to nothing.",
    ]


@pytest.mark.parametrize(
    ("answer", "subject"),
    [
        (changed(SEGMENTS, "segments", 0, "sentences", to=4), "content:segments.0.sentences"),
        (changed(SEGMENTS, "segments", 1, "starts_with", to="Then a clipper"), "content:segments.1.starts_with"),
        (changed(SEGMENTS, "segments", 0, "sentences", to=2), "content:segments.1.starts_with"),
        ({"segments": SEGMENTS["segments"][:2]}, "content:segments"),
        ({"segments": [*SEGMENTS["segments"], {"title": "More", "starts_with": "x", "sentences": 1}]}, "content:segments.3"),
        ({"segments": []}, "content:segments"),
        (changed(SEGMENTS, "segments", 0, "title", to=""), "content:segments.0.title"),
        ({}, "content:segments"),
        ({"segments": SEGMENTS["segments"], "note": "hi"}, "content:note"),
    ],
    ids=["too many sentences", "wrong words", "wrong count", "uncovered", "beyond the end", "none", "no title", "empty", "unknown key"],
)
def test_segments_that_break_the_contract_are_refused(run: Runtime, answer: dict[str, Any], subject: str) -> None:
    run.step(call("segment_article", max_sentences=3))
    before = run.state_digest
    observation = run.step(content(answer))
    assert codes(observation)[0] == ("content_contract_broken", subject)
    assert run.state_digest == before


def test_a_long_script_is_segmented_in_parts(folder: Path) -> None:
    script = " ".join(f"This is sentence number {i} of a very long script that goes on and on." for i in range(300))
    run = runtime(folder, start=task(script))
    parts = script_parts(script)
    assert len(parts) == 3
    assert all(p[-1].end - p[0].start <= PART_CHARS for p in parts)
    observation = run.step(call("segment_article", max_sentences=40))
    for i, part in enumerate(parts):
        assert observation.results == {"asked": "generator", "kind": "segments", "part": i + 1}
        sizes = [40] * (len(part) // 40) + ([len(part) % 40] if len(part) % 40 else [])
        starts = [sum(sizes[:k]) for k in range(len(sizes))]
        items = [
            {"title": f"Part {i} {k}", "starts_with": script[part[at].start :][:20], "sentences": n}
            for k, (at, n) in enumerate(zip(starts, sizes, strict=True))
        ]
        observation = run.step(content({"segments": items}))
    assert observation.status is ObservationStatus.COMMITTED
    segments = run.state.film.segments
    assert segments is not None
    assert (segments[0].script_start, segments[-1].script_end) == (0, len(script))


def test_segments_cannot_change_under_a_shot_plan(run: Runtime) -> None:
    assert codes(planned(run).step(call("segment_article", max_sentences=3))) == [("wrong_stage_order", "tool:segment_article")]


def test_planned_spans_tile_the_script_and_keep_the_text(run: Runtime) -> None:
    shots = planned(run).state.shots
    spans = [(s.planned.script_start, s.planned.script_end) for s in shots.values()]
    assert spans == [(0, 27), (27, 77), (77, 154), (154, 154), (154, 188)]
    assert [s.planned.text for s in shots.values()] == [item["text"] for item in PLAN["shots"]]


@pytest.mark.parametrize(
    ("answer", "subject"),
    [
        (changed(PLAN, "shots", 1, "text", to="It was cheap at first. Only the rich could buy it."), "content:shots.1.text"),
        (changed(PLAN, "shots", 0, "text", to="Tea came to Europe"), "content:shots.1.text"),
        (changed(PLAN, "shots", 1, "text", to="It was dear at first."), "content:shots.2"),
        ({"shots": PLAN["shots"][:4]}, "content:shots"),
        ({"shots": PLAN["shots"][:3]}, "content:shots"),
        (changed(PLAN, "shots", 0, "segment", to=7), "content:shots.0.segment"),
        (changed(PLAN, "shots", 3, "segment", to=0), "content:shots.3.segment"),
        (changed(PLAN, "shots", 2, "spotlight_brief", to=" "), "content:shots.2.spotlight_brief"),
        (changed(PLAN, "shots", 0, "target_ms", to=6000), "content:shots.0.target_ms"),
        (changed(PLAN, "shots", 0, "target_ms", to=100), "content:shots.0.target_ms"),
        (changed(PLAN, "shots", 0, "spotlight", to="fireworks"), "content:shots.0.spotlight"),
    ],
    ids=[
        "rewritten script",
        "gap",
        "unfinished segment",
        "end not covered",
        "segment without shots",
        "unknown segment",
        "out of order",
        "no brief",
        "over the call's limit",
        "too short for the schema",
        "unknown kind",
    ],
)
def test_plans_that_break_the_contract_are_refused(run: Runtime, answer: dict[str, Any], subject: str) -> None:
    run.step(call("segment_article", max_sentences=3))
    run.step(content(SEGMENTS))
    run.step(call("plan_shots", segments="all", max_shot_ms=5000))
    before = run.state_digest
    assert codes(run.step(content(answer)))[0] == ("content_contract_broken", subject)
    assert run.state_digest == before


@pytest.mark.parametrize(
    ("segments", "expected"),
    [
        ("missing", []),
        ("all", []),
        ("g01", []),
        ("g01-g02,g03", []),
        ("g02", [("wrong_stage_order", "segment:g01")]),
        ("g01,g03", [("wrong_stage_order", "segment:g02")]),
        ("g04", [("unresolved_reference", "segment:g04")]),
        ("g03-g01", [("unresolved_reference", "segment:g03-g01")]),
        ("first", [("value_not_allowed", "argument:segments")]),
        ("", [("value_not_allowed", "argument:segments")]),
    ],
)
def test_which_segments_a_call_may_name(run: Runtime, segments: str, expected: list[tuple[str, str]]) -> None:
    run.step(call("segment_article", max_sentences=3))
    run.step(content(SEGMENTS))
    assert codes(run.step(call("plan_shots", segments=segments))) == expected


def test_segments_are_planned_one_after_the_other_with_ids_in_film_order(run: Runtime) -> None:
    run.step(call("segment_article", max_sentences=3))
    run.step(content(SEGMENTS))
    for names, shots in (("g01", PLAN["shots"][:2]), ("missing", PLAN["shots"][2:])):
        run.step(call("plan_shots", segments=names))
        run.step(content({"shots": shots}))
    assert run.state.film.shot_order == ("s001", "s002", "s003", "s004", "s005")


def test_planning_again_keeps_the_shots_that_did_not_change(run: Runtime) -> None:
    before = planned(run).state
    run.step(call("plan_shots", segments="g01"))
    observation = run.step(content({"shots": changed(PLAN, "shots", 1, "visual_query", to="a golden cup")["shots"][:2]}))
    assert observation.results["kept"] == 1
    assert run.state.film.shot_order == ("s001", "s006", "s003", "s004", "s005")
    assert run.state.shots["s001"] is before.shots["s001"]


def test_nothing_missing_is_said_so(run: Runtime) -> None:
    assert codes(planned(run).step(call("plan_shots", segments="missing"))) == [("value_not_allowed", "argument:segments")]


def test_a_reflection_patches_only_what_it_names(run: Runtime) -> None:
    before = planned(run).state
    run.step(call("reflect_plan", focus="pacing"))
    answer = {
        "findings": [{"shot_id": "s001", "code": "pacing", "note": "too long for six words"}],
        "patch": [{"shot_id": "s001", "target_ms": 2500}, {"shot_id": "s005", "visual_query": "tea bag in a mug"}],
    }
    observation = run.step(content(answer, role=Role.CRITIC))
    assert observation.results["patched"] == ["s001", "s005"]
    after = run.state
    assert (after.shots["s001"].planned.target_duration_us, after.shots["s005"].planned.visual_query) == (2_500_000, "tea bag in a mug")
    assert [after.shots[s] is before.shots[s] for s in before.film.shot_order] == [False, True, True, True, False]
    assert after.film.plan_reflected


@pytest.mark.parametrize(
    ("answer", "subject"),
    [
        ({"findings": [{"shot_id": "s099", "code": "pacing", "note": "x"}]}, "content:findings.0.shot_id"),
        ({"patch": [{"shot_id": "s099", "target_ms": 900}]}, "content:patch.0.shot_id"),
        ({"patch": [{"shot_id": "s001"}]}, "content:patch.0"),
        ({"patch": [{"shot_id": "s001", "visual_query": "  "}]}, "content:patch.0.visual_query"),
        ({"patch": [{"shot_id": "s001", "target_ms": 900}, {"shot_id": "s001", "target_ms": 800}]}, "content:patch"),
        ({"findings": [{"shot_id": "s001", "code": "taste", "note": "x"}]}, "content:findings.0.code"),
    ],
)
def test_reflections_that_break_the_contract_are_refused(run: Runtime, answer: dict[str, Any], subject: str) -> None:
    planned(run).step(call("reflect_plan", focus="all"))
    assert codes(run.step(content(answer, role=Role.CRITIC)))[0] == ("content_contract_broken", subject)
