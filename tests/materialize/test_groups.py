"""Groups on the toy production: restored states, executed candidates, keys, gate, quotas."""

from __future__ import annotations

import json
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from materialize.branches import Executor, Finding, Measured, coverage, grounding
from materialize.config import GroupConfig, RewardConfig
from materialize.environment import Bench
from materialize.groups import Decision, choose, form_group
from materialize.matched import MatchedKey, Scored, advantages, matched_key, variance
from materialize.proposals import propose
from replay.episode import run_episode
from replay.policies.scripted import ScriptedPolicy
from replay.runtime import Runtime
from replay.suite import Suite
from schemas.canonical import canonical_bytes, sha256_bytes
from schemas.contract import Role
from schemas.errors import ConfigInvalid, SchemaMismatch
from schemas.storyboard import Storyboard
from schemas.tables import TABLE
from schemas.trajectory import Provenance, RoleOutput, Trajectory
from storage.arrow import finish_rows
from storage.artifacts import ArtifactStore
from storage.snapshots import SnapshotStore
from tests.replay.toy import ToyCritic, storyboard, toy_registry, toy_runtime

GROUPS = GroupConfig(candidates=4, seeds=(0, 1))
REWARDS = RewardConfig()


@dataclass
class World:
    """One recorded run and a bench to restore its states on."""

    board: Storyboard
    trajectory: Trajectory
    bench: Bench
    config: Any

    def policy(self, seed: int) -> ScriptedPolicy:
        still = self.config.model_copy(update={"policy": self.config.policy.model_copy(update={"mistake_rate": 0.0})})
        return ScriptedPolicy(self.board, seed, still, ToyCritic())

    def index(self, tool: str, role: Role) -> int:
        """The first accepted call of a tool by a role."""
        return next(c.call_index for c in self.trajectory.calls if c.tool == tool and c.role is role and not c.observation.blockers)

    def executor(self, index: int) -> Executor:
        return Executor(self.bench, self.trajectory, index, self.policy, GROUPS, REWARDS, counted)


def counted(runtime: Runtime) -> Measured:
    """Toy renders have no bytes to examine: the toy's own rule of which shots are black."""
    bad = tuple(
        Finding(s, "render_black", True)
        for s in runtime.state.film.shot_order
        if int(s[1:]) <= 2 and not runtime.state.shots[s].repairs_used
    )
    return Measured(1 - len(bad) / len(runtime.state.film.shot_order), bad)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    board = storyboard(10)
    runtime = toy_runtime(tmp_path_factory.mktemp("groups"), board, errors=2)
    suite = runtime.suite
    trajectory = run_episode(runtime, ScriptedPolicy(board, 1, suite.config, ToyCritic()))

    def make(folder: Path) -> Suite:
        store = ArtifactStore(suite.store.root)
        return Suite(store, SnapshotStore(store), suite.sandbox, suite.engines, suite.config, folder)

    return World(board, trajectory, Bench(suite.store, make, toy_registry(2)), suite.config)


def test_every_recorded_state_is_restored_with_the_context_that_was_seen(world: World) -> None:
    with world.bench.open() as env:
        for call in world.trajectory.calls:
            context = env.restore(world.trajectory, call.call_index)
            assert sha256_bytes(canonical_bytes(context.visible())) == call.context_sha256
            assert env.runtime.state_digest == call.state_before


def test_the_recorded_output_leads_to_the_recorded_state(world: World) -> None:
    with world.bench.open() as env:
        for call in world.trajectory.calls[::4]:
            env.restore(world.trajectory, call.call_index)
            assert env.step(call.output) == call.observation
            assert env.runtime.state_digest == call.state_after


def test_environments_of_many_threads_do_not_disturb_one_another(world: World) -> None:
    wanted = {c.call_index: c.state_after for c in world.trajectory.calls}
    seen: dict[tuple[int, int], str] = {}

    def work(number: int) -> None:
        with world.bench.open() as env:
            for call in world.trajectory.calls[number::4]:
                env.restore(world.trajectory, call.call_index)
                env.step(call.output)
                seen[number, call.call_index] = env.runtime.state_digest

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert {i: d for (_, i), d in seen.items()} == wanted


def test_tools_are_offered_to_the_orchestrator_only(world: World) -> None:
    with world.bench.open() as env:
        env.restore(world.trajectory, 0)
        assert len(env.tools()) == 13
        env.restore(world.trajectory, world.index("plan_shots", Role.GENERATOR))
        assert env.tools() == []


@pytest.mark.parametrize("index", [-1, 999])
def test_a_call_that_was_never_made_cannot_be_restored(world: World, index: int) -> None:
    with world.bench.open() as env, pytest.raises(ConfigInvalid, match="no_such_call"):
        env.restore(world.trajectory, index)


def test_nothing_can_be_done_before_a_restore_or_after_close(world: World) -> None:
    env = world.bench.open()
    with pytest.raises(ConfigInvalid, match="not_restored"):
        env.context()
    env.restore(world.trajectory, 0)
    env.close()
    env.close()
    with pytest.raises(ConfigInvalid, match="not_restored"):
        env.tools()


def test_potentials_and_reward_of_the_recorded_rest(world: World) -> None:
    with world.bench.open() as env:
        env.restore(world.trajectory, 0)
        for call in world.trajectory.calls:
            env.step(call.output)
        assert (env.potentials[0], env.potentials[-1]) == (0.0, 1.0)
        assert len(env.potentials) == len(world.trajectory.calls) + 1


def test_a_valid_call_beats_a_mistake_under_the_same_continuation(world: World) -> None:
    index = world.index("compose_timeline", Role.ORCHESTRATOR)
    executor = world.executor(index)
    good = executor.execute(world.trajectory.calls[index].output)
    bad = executor.execute(
        RoleOutput(role=Role.ORCHESTRATOR, tool="stitch_video", arguments_json='{"x":1}', provenance=Provenance.SCRIPTED_MISTAKE)
    )
    assert (good.refused, bad.refused) == (False, True)
    assert (good.reward.parts["g_del"], bad.reward.parts["g_del"]) == (1.0, 0.0)
    assert good.reward.value > REWARDS.alpha > bad.reward.value


def test_an_invalid_content_gets_nothing_and_a_partial_one_less(world: World) -> None:
    index = world.index("retrieve_visuals", Role.GENERATOR)
    executor = world.executor(index)
    said = world.trajectory.calls[index].output
    good = executor.execute(said)
    broken = executor.execute(said.model_copy(update={"text": said.text[:40]}))
    assert good.reward.value > 0.9
    assert (broken.reward.value, set(broken.reward.parts.values())) == (0.0, {0.0})


def test_a_repair_request_is_worth_what_it_mends_against_the_empty_diagnosis(world: World) -> None:
    index = world.index("repair_shots", Role.CRITIC)
    outcome = world.executor(index).execute(world.trajectory.calls[index].output)
    assert outcome.reward.parts["Q_empty"] == pytest.approx(0.8)
    assert outcome.reward.parts["U_repair"] == pytest.approx(0.2)
    assert (outcome.reward.parts["f_diag"], outcome.reward.parts["f_verify"]) == (1.0, 1.0)
    refused = world.executor(index).execute(RoleOutput(role=Role.CRITIC, text="{", provenance=Provenance.SCRIPTED_MISTAKE))
    assert (refused.refused, refused.reward.value) == (True, 0.0)


def test_equal_outputs_get_equal_rewards(world: World) -> None:
    index = world.index("search_music", Role.GENERATOR)
    executor, said = world.executor(index), world.trajectory.calls[index].output
    assert executor.execute(said) == executor.execute(said)


def make_group(world: World, index: int) -> Any:
    with world.bench.open() as env:
        context = env.restore(world.trajectory, index)
        key = matched_key(env.runtime, "frozen", GROUPS)

    def round_of(number: int) -> Any:
        return propose(context, world.trajectory.calls[index].output, [world.policy(n) for n in range(10)], 4 + number, number)

    return form_group(world.trajectory, index, key, round_of, world.executor(index), GROUPS)


@pytest.mark.parametrize(
    ("tool", "role"),
    [("compose_timeline", Role.ORCHESTRATOR), ("retrieve_visuals", Role.GENERATOR), ("repair_shots", Role.CRITIC)],
)
def test_a_group_of_each_role_is_accepted_and_fits_the_tables(world: World, tool: str, role: Role) -> None:
    group = make_group(world, world.index(tool, role))
    assert (group.status, group.key.role) == ("accepted", role)
    assert len({c.output.digest() for c in group.candidates}) == len(group.candidates) >= 2
    assert group.candidates[0].origin == "recorded" or group.rounds > 1
    assert sum(group.advantages.values()) == pytest.approx(0.0, abs=1e-6)
    for name, rows in group.rows().items():
        assert len(finish_rows(TABLE[name], rows, stage_key="stg_x", run_id="run_x")) == len(rows)


@pytest.mark.parametrize(
    ("tool", "role"),
    [("compose_timeline", Role.ORCHESTRATOR), ("retrieve_visuals", Role.GENERATOR), ("repair_shots", Role.CRITIC)],
)
def test_a_candidate_tells_what_it_was_answered_and_where_it_led(world: World, tool: str, role: Role) -> None:
    index = world.index(tool, role)
    recorded = world.trajectory.calls[index]
    rows = {r["origin"]: r for r in make_group(world, index).rows()["candidates"]}
    assert rows["recorded"]["observation_json"] == canonical_bytes(recorded.observation.model_dump(mode="json")).decode()
    assert rows["recorded"]["state_after"] == recorded.state_after
    assert rows["mistake"]["refused"]
    assert rows["mistake"]["state_after"] == recorded.state_before
    assert json.loads(rows["mistake"]["observation_json"])["status"] == "refused"


def test_a_group_without_variance_is_drawn_up_to_the_cap_and_queued(world: World) -> None:
    index = world.index("compose_timeline", Role.ORCHESTRATOR)
    said = world.trajectory.calls[index].output
    rounds: list[int] = []

    def same(number: int) -> Any:
        rounds.append(number)
        return ((said.model_copy(update={"text": f"thought {number}"}), "sample"),) * 2

    with world.bench.open() as env:
        env.restore(world.trajectory, index)
        key = matched_key(env.runtime, "frozen", GROUPS)
    group = form_group(world.trajectory, index, key, same, world.executor(index), GROUPS)
    assert (group.status, group.advantages, rounds) == ("queued", {}, [0, 1, 2])


def test_keys_differ_between_any_two_decisions_and_not_for_one(world: World) -> None:
    names = []
    with world.bench.open() as env:
        for call in world.trajectory.calls:
            env.restore(world.trajectory, call.call_index)
            names.append(matched_key(env.runtime, "frozen", GROUPS).group_id)
        env.restore(world.trajectory, 3)
        assert matched_key(env.runtime, "frozen", GROUPS).group_id == names[3]
        assert matched_key(env.runtime, "another", GROUPS).group_id != names[3]
        assert matched_key(env.runtime, "frozen", GroupConfig(seeds=(7,))).group_id != names[3]
        env.restore(world.trajectory, 3, budget=50)
        assert matched_key(env.runtime, "frozen", GROUPS).group_id != names[3]
    assert len(set(names)) == len(names)


COMMON = {"context", "state", "budget_left", "continuation", "seeds"}
LOCAL = COMMON | {"request", "artifacts", "tool", "schema"}
HELD = {
    "orchestrator": COMMON | {"task", "tools"},
    "generator": LOCAL,
    "critic": LOCAL | {"defects", "verification"},
}


@pytest.mark.parametrize(
    ("tool", "role"),
    [("compose_timeline", Role.ORCHESTRATOR), ("plan_shots", Role.GENERATOR), ("inspect_quality", Role.CRITIC)],
)
def test_a_key_holds_what_the_paper_holds_fixed(world: World, tool: str, role: Role) -> None:
    with world.bench.open() as env:
        env.restore(world.trajectory, world.index(tool, role))
        assert {n for n, _ in matched_key(env.runtime, "frozen", GROUPS).fields} == HELD[role.value]


KEYS = [MatchedKey(role, (("state", n),)) for role in Role for n in range(3)]
scored = st.lists(st.tuples(st.sampled_from(range(9)), st.floats(-1, 1)), min_size=1, max_size=30)


@given(scored, scored, st.integers(0, 8))
def test_nothing_is_ever_compared_across_keys(one: list[tuple[int, float]], other: list[tuple[int, float]], kept: int) -> None:
    """Whatever happens under other keys, the advantages of a group stay as they are."""

    def all_of(rows: list[tuple[int, float]]) -> list[Scored]:
        return [Scored(KEYS[k], f"{k}.{i}", r) for i, (k, r) in enumerate(rows)]

    mine = [(k, r) for k, r in one if k == kept]
    alone = {n: a for n, a in advantages(all_of(mine), GROUPS).items()}
    mixed = advantages(all_of(mine + [(k, r) for k, r in other if k != kept]), GROUPS)
    assert {n: a for n, a in mixed.items() if n.startswith(f"{kept}.")} == alone


def test_advantages_by_hand() -> None:
    key = KEYS[0]
    found = advantages([Scored(key, "a", 1.0), Scored(key, "b", 0.0)], GroupConfig(epsilon=1e-9))
    assert found == pytest.approx({"a": 1.0, "b": -1.0})
    assert variance([1.0, 0.0]) == 0.25
    assert advantages([Scored(key, "a", 0.5), Scored(key, "b", 0.5)], GROUPS) == {}
    with pytest.raises(SchemaMismatch):
        advantages([Scored(key, "a", 1.0), Scored(key, "a", 0.0)], GROUPS)


def decisions(**cells: int) -> list[Decision]:
    return [Decision("t", p, i, r, tool) for cell, n in cells.items() for r, p, tool in [cell.split("_")] for i in range(n)]


def test_decisions_are_chosen_evenly_over_role_task_and_tool() -> None:
    many = decisions(orchestrator_p1_render=40, orchestrator_p2_render=3, generator_p1_plan=2, critic_p1_inspect=1)
    chosen = choose(many, 6, 0, GroupConfig(per_cell=2))
    assert [d.role for d in chosen[:3]] == ["critic", "generator", "orchestrator"]
    assert sorted(Counter(d.role for d in chosen).items()) == [("critic", 1), ("generator", 2), ("orchestrator", 3)]
    assert {d.project_id for d in chosen if d.role == "orchestrator"} == {"p1", "p2"}
    assert len(choose(many, 99, 0, GroupConfig(per_cell=2))) == 7
    assert choose(many, 6, 0, GROUPS) == choose(many[::-1], 6, 0, GROUPS)


def test_queued_decisions_come_last_in_their_cell() -> None:
    many = decisions(orchestrator_p1_render=3)
    first = choose(many, 1, 0, GROUPS)[0]
    assert choose(many, 1, 0, GROUPS, frozenset({("t", first.call_index)}))[0] != first


def test_candidates_differ_and_hold_a_mistake(world: World) -> None:
    index = world.index("render_shots", Role.ORCHESTRATOR)
    with world.bench.open() as env:
        context = env.restore(world.trajectory, index)
    found = propose(context, world.trajectory.calls[index].output, [world.policy(n) for n in range(30)], 4, 0)
    assert len({(o.tool, o.arguments_json, o.text) for o, _ in found}) == len(found)
    assert found[0][1] == "recorded"
    assert "mistake" in [origin for _, origin in found]


def test_grounding_and_coverage_by_hand(world: World) -> None:
    index = world.index("retrieve_visuals", Role.GENERATOR)
    with world.bench.open() as env:
        context = env.restore(world.trajectory, index)
    shots = [r["shot_id"] for r in context.view["request"]["evidence"]["shots"]]
    half = RoleOutput(
        role=Role.GENERATOR,
        text='{"queries":[' + ",".join(f'{{"shot_id":"{s}","query":"narrator zebra"}}' for s in shots[: len(shots) // 2]) + "]}",
        provenance=Provenance.STUDENT,
    )
    assert coverage(context, half) == (len(shots) // 2) / len(shots)
    assert grounding(context, half) == 0.5
