"""Recorded decisions of one lake executed again: by many threads and processes at once, by name, and as rollouts of an agent."""

from __future__ import annotations

import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest

from materialize.recorded import LakeRuns
from materialize.rollout import OVER, Rollout
from schemas.contract import Role
from schemas.errors import ConfigInvalid
from tests.materialize.real_lake import RealLake, execute_again

TOOLS = ("synthesize_narration", "retrieve_visuals", "compose_timeline", "render_shots", "inspect_quality", "stitch_video")


@pytest.fixture(scope="module")
def runs(real_lake: RealLake) -> LakeRuns:
    return real_lake.runs


def index_of(real_lake: RealLake, tool: str, role: Role, trajectory: int = 0) -> int:
    """The first accepted call of a tool by a role."""
    calls = real_lake.trajectories[trajectory].calls
    return next(c.call_index for c in calls if c.tool == tool and c.role is role and c.observation.status.value != "refused")


@pytest.mark.slow
def test_many_threads_and_processes_execute_real_calls_of_one_lake_as_recorded(real_lake: RealLake) -> None:
    wanted = {
        (t.trajectory_id, c.call_index): (c.state_after, c.observation.model_dump_json())
        for t in real_lake.trajectories
        for c in t.calls
        if c.tool in TOOLS
    }
    assert [t.calls[i].faults for t, i in ((real_lake.trajectories[0], 15), (real_lake.trajectories[1], 11))]  # a refused product in each
    calls = sorted(wanted)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        parts = [calls[0::2], calls[1::2]]
        found = [row for part in pool.map(execute_again, [real_lake.lake.root] * 2, parts, [2, 2]) for row in part]
    assert {(t, i): (state, seen) for t, i, state, seen in found} == wanted


def test_a_fault_of_the_recorded_run_strikes_every_restored_run_alike(real_lake: RealLake, runs: LakeRuns) -> None:
    trajectory = real_lake.trajectories[0]
    refused = next(c for c in trajectory.calls if c.faults and c.observation.status.value == "refused")
    for _ in range(2):
        with runs.bench(trajectory).open() as env:
            env.restore(trajectory, refused.call_index)
            assert env.step(refused.output) == refused.observation


def test_runs_of_one_setting_share_a_bench_and_its_engines(real_lake: RealLake, runs: LakeRuns) -> None:
    assert runs.bench(real_lake.trajectories[0]) is runs.bench(real_lake.trajectories[1])


def test_a_lake_opened_in_another_process_is_the_same_lake(real_lake: RealLake, runs: LakeRuns) -> None:
    again = pickle.loads(pickle.dumps(runs))  # noqa: S301 - our own
    trajectory = real_lake.trajectories[0]
    assert again.continuation_name(trajectory) == runs.continuation_name(trajectory)
    assert again.find({"trajectory_id": trajectory.trajectory_id, "call_index": 3}) == (trajectory, 3)


def test_a_decision_is_found_by_run_and_call_or_by_its_state(real_lake: RealLake, runs: LakeRuns) -> None:
    trajectory = real_lake.trajectories[1]
    (sha,) = runs.lake.query("select trajectory_sha256 from trajectories where trajectory_id = $1", [trajectory.trajectory_id]).rows[0]
    call = trajectory.calls[10]
    assert runs.find({"trajectory_sha256": sha, "call_index": 10, "prompt": "other"}) == (trajectory, 10)
    assert runs.find({"trajectory_id": trajectory.trajectory_id, "call_index": 10, "snapshot_id": None}) == (trajectory, 10)
    assert runs.find({"snapshot_id": call.snapshot_before, "trajectory_id": trajectory.trajectory_id}) == (trajectory, 10)
    other, index = runs.find({"snapshot_id": call.snapshot_before})
    assert other.calls[index].snapshot_before == call.snapshot_before


@pytest.mark.parametrize("row", [{}, {"call_index": 1}, {"trajectory_id": "trj_none", "call_index": 1}, {"snapshot_id": "snp_none"}])
def test_a_row_that_names_nothing_is_refused(runs: LakeRuns, row: dict[str, Any]) -> None:
    with pytest.raises(ConfigInvalid, match="row"):
        runs.find(row)


def row_of(real_lake: RealLake, tool: str, role: Role) -> dict[str, Any]:
    return {"trajectory_id": real_lake.trajectories[0].trajectory_id, "call_index": index_of(real_lake, tool, role)}


@pytest.mark.slow
def test_a_rollout_with_the_recorded_call_delivers_and_one_without_a_call_does_not(real_lake: RealLake, runs: LakeRuns) -> None:
    row = row_of(real_lake, "compose_timeline", Role.ORCHESTRATOR)
    call = real_lake.trajectories[0].calls[row["call_index"]]
    with Rollout(runs) as good, Rollout(runs) as mute:
        good.reset(row, calls=1)
        mute.reset(row, calls=1)
        assert good.call(call.output.tool, call.output.arguments_json or "{}") == OVER
        assert (good.done, mute.done) == (True, False)
        kept, lost = good.reward(), mute.reward()
    assert (kept.parts["g_del"], lost.parts["g_del"]) == (1.0, 0.0)
    assert kept.value > 0.5 >= lost.value


def test_a_content_is_worth_what_a_group_would_give_it(real_lake: RealLake, runs: LakeRuns) -> None:
    row = row_of(real_lake, "retrieve_visuals", Role.GENERATOR)
    said = real_lake.trajectories[0].calls[row["call_index"]].output.text
    rewards = []
    for text in (said, said[: len(said) // 2]):
        with Rollout(runs) as rollout:
            assert rollout.reset(row).tools == ()
            rollout.say(text)
            assert rollout.done
            rewards.append(rollout.reward())
    assert rewards[0].parts == {"schema_validity": 1.0, "grounding": 1.0, "coverage": 1.0, "usability": 1.0}
    assert (rewards[1].value, set(rewards[1].parts.values())) == (0.0, {0.0})


def test_contents_that_a_call_asks_for_are_answered_by_the_frozen_policy(real_lake: RealLake, runs: LakeRuns) -> None:
    with Rollout(runs) as rollout:
        rollout.reset(row_of(real_lake, "search_music", Role.ORCHESTRATOR))
        read = rollout.call("search_music", {})
        assert rollout.made == 2
        assert rollout.environment.runtime.state.film.music is not None
        assert read == rollout.environment.context().messages[-1].content
        assert "unknown_argument" in rollout.call("search_music", '{"x": 1}')


def test_a_generators_decision_takes_no_call_and_nothing_is_done_before_a_reset(real_lake: RealLake, runs: LakeRuns) -> None:
    rollout = Rollout(runs)
    with pytest.raises(ConfigInvalid, match="not_reset"):
        rollout.call("stitch_video", {})
    rollout.reset(row_of(real_lake, "retrieve_visuals", Role.GENERATOR))
    with pytest.raises(ConfigInvalid, match="not_a_call"):
        rollout.call("stitch_video", {})
    rollout.close()
