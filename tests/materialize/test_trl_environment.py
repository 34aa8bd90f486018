"""The TRL adapter: one schema with the contracts, the same start for a group, executed rewards. TRL itself is not needed."""

from __future__ import annotations

from typing import Any

import pytest
from transformers.utils import get_json_schema

from materialize.adapters.trl import environment_class
from schemas.contract import Role
from schemas.errors import ConfigInvalid
from tests.materialize.test_groups import World, world  # noqa: F401 - the fixture


@pytest.fixture
def row(world: World) -> dict[str, Any]:  # noqa: F811
    """The row of a decision late in the run."""
    from schemas.artifact import ArtifactKind

    sha = world.bench.store.put_bytes(world.trajectory.canonical(), ArtifactKind.TRAJECTORY, "application/json").sha256
    return {"prompt": "ignored", "trajectory_sha256": sha, "call_index": world.index("compose_timeline", Role.ORCHESTRATOR)}


@pytest.fixture
def factory(world: World) -> Any:  # noqa: F811
    return environment_class(world.bench, lambda: world.policy(0))


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


@pytest.mark.parametrize("change", [{"call_index": None}, {"trajectory_sha256": None}])
def test_a_row_without_a_state_is_refused(factory: Any, row: dict[str, Any], change: dict[str, Any]) -> None:
    left = {k: v for k, v in row.items() if k not in change}
    with pytest.raises(ConfigInvalid, match="row"):
        factory().reset(**left)


def test_a_generators_state_is_refused(world: World, factory: Any, row: dict[str, Any]) -> None:  # noqa: F811
    with pytest.raises(ConfigInvalid, match="generator"):
        factory().reset(**{**row, "call_index": world.index("plan_shots", Role.GENERATOR)})


def test_nothing_can_be_called_before_a_reset(factory: Any) -> None:
    with pytest.raises(ConfigInvalid, match="not_reset"):
        factory().stitch_video()
