"""The TRL adapter: one schema with the contracts, the same start for a group, executed rewards. TRL itself is not needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from transformers.utils import get_json_schema

from materialize.adapters.trl import content_reward, environment_class
from materialize.config import GroupConfig
from materialize.environment import Bench
from materialize.rollout import OVER
from replay.registry import Registry
from schemas.contract import Role
from schemas.errors import ConfigInvalid
from schemas.trajectory import Trajectory
from tests.materialize.test_groups import GROUPS, World, world  # noqa: F401 - the fixture


@dataclass
class ToyRuns:
    """One toy run as the source of decisions."""

    world: World
    groups: GroupConfig = GROUPS

    @property
    def registry(self) -> Registry:
        return self.world.bench.registry

    def find(self, row: Mapping[str, Any]) -> tuple[Trajectory, int]:
        if "call_index" not in row:
            raise ConfigInvalid("row", "names no call")
        return self.world.trajectory, int(row["call_index"])

    def bench(self, trajectory: Trajectory) -> Bench:
        return self.world.bench

    def continuation(self, trajectory: Trajectory) -> Any:
        return self.world.policy


@pytest.fixture
def row(world: World) -> dict[str, Any]:  # noqa: F811
    """The row of a decision late in the run."""
    return {"prompt": "ignored", "call_index": world.index("compose_timeline", Role.ORCHESTRATOR)}


@pytest.fixture
def factory(world: World) -> Any:  # noqa: F811
    return environment_class(ToyRuns(world))


def test_every_tool_is_a_method_with_the_schema_of_its_contract(world: World, factory: Any) -> None:  # noqa: F811
    for contract in world.bench.registry.contracts():
        made = get_json_schema(getattr(factory(), contract.name))["function"]
        told = contract.function_schema()["function"]
        assert (made["name"], made["description"]) == (told["name"], told["description"])
        assert made["parameters"].get("required", []) == told["parameters"]["required"]
        for name, spec in told["parameters"]["properties"].items():
            assert made["parameters"]["properties"][name]["type"] == spec["type"]
            assert made["parameters"]["properties"][name].get("enum") == spec.get("enum")


def test_members_of_a_group_start_alike_and_the_better_call_gets_more(factory: Any, row: dict[str, Any]) -> None:
    good, bad = factory(), factory()
    for member in (good, bad):
        assert member.reset(**row) is None
    assert "compose_timeline" in good.compose_timeline()
    assert "prerequisite_missing" in bad.render_shots(shots="all") or "timeline" in bad.render_shots(shots="all")
    assert good.get_reward() > bad.get_reward()


def test_a_reset_begins_anew(factory: Any, row: dict[str, Any]) -> None:
    env = factory()
    env.reset(**row)
    first = env.compose_timeline()
    env.reset(**row)
    assert env.compose_timeline() == first


def test_a_row_without_a_state_is_refused(factory: Any) -> None:
    with pytest.raises(ConfigInvalid, match="row"):
        factory().reset(prompt="x")


def test_an_agent_that_makes_no_call_is_not_given_the_frozen_policys_reward(factory: Any, row: dict[str, Any]) -> None:
    mute, able = factory(), factory()
    mute.reset(**row)
    able.reset(**row)
    able.compose_timeline()
    assert mute.get_reward() <= 0.5 < able.get_reward()


def test_after_its_calls_an_agent_is_only_told_that_it_is_over(world: World, row: dict[str, Any]) -> None:  # noqa: F811
    env = environment_class(ToyRuns(world), calls=1)()
    env.reset(**row)
    assert env.compose_timeline() == OVER
    assert env.stitch_video() == OVER
    assert env.get_reward() == env.get_reward() > 0.5


def test_contents_of_a_batch_are_rewarded_one_by_one(world: World) -> None:  # noqa: F811
    index = world.index("retrieve_visuals", Role.GENERATOR)
    said = world.trajectory.calls[index].output.text
    reward = content_reward(ToyRuns(world))
    completions = [[{"role": "assistant", "content": said}], [{"role": "assistant", "content": said[:9]}]]
    good, bad = reward(prompts=["p", "p"], completions=completions, call_index=[index, index], trainer_state=None)
    assert (good > 0.9, bad) == (True, 0.0)


def test_a_generators_state_is_refused(world: World, factory: Any, row: dict[str, Any]) -> None:  # noqa: F811
    with pytest.raises(ConfigInvalid, match="generator"):
        factory().reset(**{**row, "call_index": world.index("plan_shots", Role.GENERATOR)})


def test_nothing_can_be_called_before_a_reset(factory: Any) -> None:
    with pytest.raises(ConfigInvalid, match="not_reset"):
        factory().stitch_video()
