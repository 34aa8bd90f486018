"""Every blocker code can be met, through the runtime, and each says what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from replay.runtime import Runtime
from schemas.blocker import Blocker, BlockerCode
from schemas.contract import Fact, Role
from schemas.trajectory import Observation, ObservationStatus, Provenance, RoleOutput
from tests.replay.doubles import (
    SEGMENTS,
    TinyTool,
    call,
    content,
    contract,
    count_tool,
    music_tool,
    planned,
    refused,
    runtime,
    stitch_tool,
)

Scene = Callable[[Path], tuple[Runtime, Observation]]


def one(output: RoleOutput, *tools: TinyTool, **settings: int) -> Scene:
    """A fresh run and one output."""

    def play(folder: Path) -> tuple[Runtime, Observation]:
        run = runtime(folder, *tools, **settings)
        return run, run.step(output)

    return play


def after_planning(output: RoleOutput) -> Scene:
    """One output after segments and shots."""

    def play(folder: Path) -> tuple[Runtime, Observation]:
        run = planned(runtime(folder))
        return run, run.step(output)

    return play


def bad_answer(folder: Path) -> tuple[Runtime, Observation]:
    run = runtime(folder)
    run.step(call("segment_article", max_sentences=2))
    return run, run.step(content(SEGMENTS))


def over_budget(folder: Path) -> tuple[Runtime, Observation]:
    run = runtime(folder, budget=1)
    run.step(call("nothing"))
    return run, run.step(call("stitch_video"))


def last_attempt(folder: Path) -> tuple[Runtime, Observation]:
    run = runtime(folder, budget=1)
    run.step(call("nothing"))
    return run, run.calls[-1].observation


SCENES: dict[BlockerCode, Scene] = {
    BlockerCode.UNPARSABLE_OUTPUT: one(RoleOutput(role=Role.ORCHESTRATOR, text="Let us begin.", provenance=Provenance.STUDENT)),
    BlockerCode.UNKNOWN_TOOL: one(call("paint_picture")),
    BlockerCode.ROLE_MISMATCH: one(content("{}")),
    BlockerCode.MISSING_ARGUMENT: one(call("segment_article")),
    BlockerCode.WRONG_TYPE: one(call("segment_article", max_sentences="3")),
    BlockerCode.VALUE_NOT_ALLOWED: one(call("segment_article", max_sentences=99)),
    BlockerCode.UNKNOWN_ARGUMENT: one(call("count", text="a", speed=1), count_tool()),
    BlockerCode.UNRESOLVED_REFERENCE: after_planning(call("plan_shots", segments="g09")),
    BlockerCode.PREREQUISITE_MISSING: one(call("plan_shots", segments="all")),
    BlockerCode.WRONG_STAGE_ORDER: after_planning(call("segment_article", max_sentences=3)),
    BlockerCode.CONTENT_CONTRACT_BROKEN: bad_answer,
    BlockerCode.BUDGET_EXHAUSTED: over_budget,
    BlockerCode.REPAIR_LIMIT_REACHED: one(call("mend"), TinyTool(contract("mend", repairable=True)), run_repairs=0),
    BlockerCode.PRODUCT_REJECTED: one(call("make"), TinyTool(contract("make"), executing=lambda _s, _g, _e: refused())),
    BlockerCode.DELIVERY_INCOMPLETE: last_attempt,
}


@pytest.mark.parametrize("code", list(BlockerCode), ids=lambda c: c.value)
def test_every_code_can_be_met_and_changes_nothing(folder: Path, code: BlockerCode) -> None:
    run, observation = SCENES[code](folder)
    assert observation.status is ObservationStatus.REFUSED
    assert observation.results == {}
    first = observation.blockers[0]
    assert first.code is code
    assert first.subject
    assert len(first.message) > 1
    assert run.calls[-1].state_before == run.calls[-1].state_after


def test_a_stitch_before_its_renders_names_the_tools_that_are_missing(folder: Path) -> None:
    needs = (Fact.SHOT_PLAN, Fact.RENDERS, Fact.NARRATION, Fact.MUSIC)
    makers = [
        TinyTool(contract(name, produces=(fact,)))
        for name, fact in (("render_shots", Fact.RENDERS), ("synthesize_narration", Fact.NARRATION))
    ]
    run = planned(runtime(folder, stitch_tool(needs=needs), music_tool(), *makers))
    blockers = run.step(call("stitch_video")).blockers
    assert [(b.needs, b.remedies, b.message) for b in blockers] == [
        (("renders",), ("render_shots",), "stitch_video needs renders; missing for 5 of 5: s001-s005"),
        (("narration",), ("synthesize_narration",), "stitch_video needs narration; missing for 4 of 4: s001-s003,s005"),
        (("music",), ("search_music",), "stitch_video needs music; the film has none yet"),
    ]


def test_at_most_eight_blockers_are_shown(folder: Path) -> None:
    many = tuple(Blocker(code=BlockerCode.UNRESOLVED_REFERENCE, subject=f"shot:s{i:03d}", message="no") for i in range(40))
    tool = TinyTool(contract("mend"), resolving=lambda _s, _a: many)
    assert len(runtime(folder, tool).step(call("mend")).blockers) == 8
