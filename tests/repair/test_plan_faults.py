"""Plan-level faults: a spoiled call is refused for the reason that was put in, and its cause is on record."""

from __future__ import annotations

import json
from typing import Any

import pytest

from repair.config import FaultConfig
from repair.fault_kinds import PLAN_KINDS
from repair.plan_faults import TURNS, FaultyPolicy, plan_faults
from repair.registry import full_registry
from replay import checks
from replay.config import ReplayConfig
from replay.contexts import build_context
from replay.runtime import Runtime
from replay.state import apply, initial, put_shot
from schemas.contract import Role
from schemas.state import Change, ProductionState, ShotRecord
from schemas.trajectory import Provenance, RoleContext, RoleOutput
from tests.repair.conftest import Studio
from tests.repair.film import clip, invented, planned, task

CONFIG = ReplayConfig()


class Fixed:
    """A policy that always makes the same sensible call."""

    name, seed = "fixed", 3

    def __init__(self, tool: str, arguments: dict[str, Any]) -> None:
        self.call = (tool, arguments)

    def act(self, context: RoleContext) -> RoleOutput:
        tool, arguments = self.call
        return RoleOutput(role=context.role, tool=tool, arguments_json=json.dumps(arguments), provenance=Provenance.SCRIPTED)


def planned_film() -> ProductionState:
    """Segments and a plan, nothing produced."""
    shots = [ShotRecord(shot_id=f"s{i + 1:03d}", planned=planned(i)) for i in range(3)]
    state = initial(task((clip(invented("c"), "x"),)))
    segment = [{"index": 0, "title": "All", "script_start": 0, "script_end": len(state.film.task.script)}]
    changes = [Change(subject="film", field="segments", value=segment)]
    changes += [put_shot(s) for s in shots]
    changes.append(Change(subject="film", field="shot_order", value=[s.shot_id for s in shots]))
    return apply(state, changes)


def context(state: ProductionState) -> RoleContext:
    return build_context(state, (), registry=full_registry(), config=CONFIG, budget=40)


def always(kind: str, tool: str, arguments: dict[str, Any]) -> FaultyPolicy:
    policy = FaultyPolicy(Fixed(tool, arguments), FaultConfig(kinds=(kind,), count=TURNS))
    assert policy.turns[0] == kind
    return policy


@pytest.mark.parametrize(
    ("kind", "tool", "arguments", "spoiled", "blocker"),
    [
        ("missing_argument", "retrieve_visuals", {"shots": "all"}, "retrieve_visuals", "missing_argument"),
        ("broken_reference", "retrieve_visuals", {"shots": "all"}, "retrieve_visuals", "unresolved_reference"),
        ("dropped_producer", "retrieve_visuals", {"shots": "all"}, "compose_timeline", "prerequisite_missing"),
        ("dropped_producer", "search_music", {}, "compose_timeline", "prerequisite_missing"),
        ("wrong_order", "synthesize_narration", {"shots": "all"}, "stitch_video", "prerequisite_missing"),
    ],
)
def test_a_spoiled_call_is_refused_for_its_reason(kind: str, tool: str, arguments: dict[str, Any], spoiled: str, blocker: str) -> None:
    state = planned_film()
    output = always(kind, tool, arguments).act(context(state))
    assert output.tool == spoiled
    assert output.provenance is Provenance.SCRIPTED_MISTAKE
    refused = checks.orchestrator(output, state, full_registry(), CONFIG)
    assert isinstance(refused, tuple)
    assert refused[0].code == blocker


def test_a_fault_that_makes_no_sense_is_not_made() -> None:
    output = always("missing_argument", "search_music", {}).act(context(planned_film()))
    assert (output.tool, output.arguments_json, output.provenance) == ("search_music", "{}", Provenance.SCRIPTED)


def test_contents_are_left_alone() -> None:
    policy = always("wrong_order", "search_music", {})
    asked = context(planned_film()).model_copy(update={"role": Role.CRITIC})
    assert policy.act(asked).provenance is Provenance.SCRIPTED


def test_the_cause_is_on_record(studio: Studio) -> None:
    runtime = Runtime(planned_film(), full_registry(), studio.suite, budget=40)
    policy = always("broken_reference", "retrieve_visuals", {"shots": "all"})
    runtime.step(policy.act(runtime.context()))
    ((index, fault),) = plan_faults(runtime.calls)
    assert (index, fault.kind, fault.subject) == (0, "broken_reference", "shot:s998")
    assert fault.fault_id.startswith("flt_")


def test_turns_are_drawn_by_the_seed() -> None:
    def turns(seed: int) -> dict[int, str]:
        return FaultyPolicy(Fixed("search_music", {}), FaultConfig(kinds=PLAN_KINDS, count=4, seed=seed)).turns

    assert turns(1) == turns(1)
    assert turns(1) != turns(2)
    assert sorted(turns(1).values()) == sorted(PLAN_KINDS)
    assert all(0 <= t < TURNS for t in turns(1))
