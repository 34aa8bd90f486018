"""Facts read off the state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from replay import facts
from replay.lineage import delivery_inputs, frames_of, render_inputs, renders_digest, text_digest, timeline_inputs
from replay.registry import base_tools
from replay.state import apply, film_change, initial, shot_change
from schemas.artifact import ArtifactKind
from schemas.contract import Fact
from schemas.state import AssetChoice, Change, Decoration, Delivery, MusicChoice, Narration, ProductionState, Render, Timeline, TimelineItem
from schemas.verdict import Defect, DefectCode
from tests.replay.doubles import planned, ref, runtime, task


@pytest.fixture
def plan(folder: Path) -> ProductionState:
    return planned(runtime(folder)).state


def asset(n: int) -> AssetChoice:
    return AssetChoice(clip_id=f"clip_{n}", ref=ref(f"clip {n}"), query="sea", score=0.5, ranked=(f"clip_{n}",))


def narration(state: ProductionState, sid: str, voice: str = "en-voice") -> Narration:
    return Narration(
        ref=ref(f"voice {sid}", ArtifactKind.NARRATION),
        duration_us=2_000_000,
        sample_rate=24_000,
        voice=voice,
        loudness_lufs=-16.0,
        text_sha256=text_digest(state.shots[sid].planned.text),
    )


DECORATION = Decoration(
    ref=ref("card", ArtifactKind.DECORATION),
    template="number_card",
    template_digest="0" * 64,
    slots={"value": "100"},
    placement="full_frame",
    duration_us=3_000_000,
    width=1280,
    height=720,
)
MUSIC = MusicChoice(track_id="t", ref=ref("music", ArtifactKind.MUSIC), title="T", licence="CC0-1.0", query="calm", duration_us=60_000_000)


def everything(state: ProductionState) -> ProductionState:
    """A state in which every production fact holds."""
    order = state.film.shot_order
    changes: list[Change] = [film_change("music", MUSIC), shot_change("s003", "decoration", DECORATION)]
    for n, sid in enumerate(order):
        changes.append(shot_change(sid, "asset", asset(n)))
        if state.shots[sid].planned.text:
            changes.append(shot_change(sid, "narration", narration(state, sid)))
    state = apply(state, changes)
    items = [TimelineItem(shot_id=sid, start_frame=60 * n, frames=60, narration_offset_us=0) for n, sid in enumerate(order)]
    timeline = Timeline(ref=ref("otio", ArtifactKind.TIMELINE), items=tuple(items), total_frames=300, inputs_digest=timeline_inputs(state))
    state = apply(state, [film_change("timeline", timeline)])
    renders = [
        shot_change(
            sid,
            "render",
            Render(ref=ref(f"render {sid}"), frames=frames_of(state, sid) or 0, inputs_digest=render_inputs(state, sid) or ""),
        )
        for sid in order
    ]
    state = apply(state, renders)
    delivery = Delivery(
        video=ref("film"), manifest=ref("manifest"), duration_us=10_000_000, loudness_lufs=-16.0, inputs_digest=delivery_inputs(state)
    )
    return apply(state, [film_change("inspected", renders_digest(state)), film_change("delivery", delivery)])


def test_a_fresh_state_has_its_task_and_nothing_else() -> None:
    state = initial(task())
    assert [f.value for f in Fact if facts.holds(f, state)] == ["script", "source_pool", "music_library"]


def test_a_plan_brings_its_own_facts_and_none_of_the_products(plan: ProductionState) -> None:
    lacking = {f.value: facts.lacking(f, plan) for f in Fact if not facts.holds(f, plan)}
    every = ("s001", "s002", "s003", "s004", "s005")
    assert lacking == {
        "assets": every,
        "narration": ("s001", "s002", "s003", "s005"),
        "decorations": ("s003",),
        "music": ("film",),
        "timeline": ("film",),
        "renders": every,
        "inspection": ("film",),
        "open_defects": ("film",),
        "delivery": ("film",),
    }


def test_a_finished_film_has_everything_but_defects(plan: ProductionState) -> None:
    state = everything(plan)
    assert [f.value for f in Fact if not facts.holds(f, state)] == ["open_defects"]


DEFECT = Defect(defect_id="d1", code=DefectCode.RENDER_BLACK, subject="s001", severity="error", measured="black 1.0")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (shot_change("s001", "asset", None), {"assets": ("s001",), "renders": ("s001",)}),
        (shot_change("s001", "excluded_clips", ["clip_0"]), {"assets": ("s001",)}),
        (shot_change("s001", "asset", asset(9)), {"renders": ("s001",)}),
        (
            shot_change("s001", "narration", None),
            {"narration": ("s001",), "timeline": ("film",), "inspection": ("film",), "delivery": ("film",)},
        ),
        (
            shot_change("s003", "decoration", None),
            {"decorations": ("s003",), "renders": ("s003",), "inspection": ("film",), "delivery": ("film",)},
        ),
        (film_change("music", None), {"music": ("film",), "inspection": ("film",), "delivery": ("film",)}),
        (film_change("timeline", None), {"timeline": ("film",), "renders": ("s001", "s002", "s003", "s004", "s005")}),
        (shot_change("s002", "render", None), {"renders": ("s002",), "inspection": ("film",), "delivery": ("film",)}),
        (film_change("segments", None), {"segments": ("film",), "shot_plan": ("film",)}),
        (shot_change("s001", "open_defects", [DEFECT]), {"open_defects": ()}),
    ],
    ids=[
        "no asset",
        "excluded clip",
        "other asset",
        "no narration",
        "no card",
        "no music",
        "no timeline",
        "no render",
        "no segments",
        "defect",
    ],
)
def test_what_one_change_takes_away(plan: ProductionState, change: Change, expected: dict[str, tuple[str, ...]]) -> None:
    before = everything(plan)
    after = apply(before, [change])
    differing = {f.value: facts.lacking(f, after) for f in Fact if facts.lacking(f, after) != facts.lacking(f, before)}
    assert differing == expected


def test_a_segment_without_shots_is_named(plan: ProductionState) -> None:
    order = ["s001", "s002", "s003"]
    gone: list[Any] = [Change(subject=s, field="record") for s in ("s004", "s005")]
    assert facts.lacking(Fact.SHOT_PLAN, apply(plan, [*gone, film_change("shot_order", order)])) == ("g03",)


def test_another_voice_makes_a_narration_stale(plan: ProductionState) -> None:
    state = apply(everything(plan), [shot_change("s001", "narration", narration(plan, "s001", voice="other"))])
    assert facts.lacking(Fact.NARRATION, state) == ("s001",)


def test_the_usual_producers_of_a_fact_promise_it() -> None:
    promised = {t.contract.name: t.contract.produces for t in base_tools()}
    for fact, names in facts.PRODUCERS.items():
        for name in names:
            assert fact in promised.get(name, (fact,)), f"replay.facts.PRODUCERS names {name} for {fact.value}"
