"""Several seeded trajectories of one project, with real tools on a short piece of a lecture: first one seed, then two, then one again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from jobs.cli import app
from jobs.config import WorkprintConfig, load_config
from jobs.stages import replay_settings, variants
from media.assets import asset
from media.command import Command, Limits
from media.sandbox import open_sandbox
from replay.config import ReplayConfig
from schemas.errors import EngineMissing
from storage.lake import Lake

CONFIG = """
inversion: {asr: {model: whisper-tiny-en}}
replay:
  seeds: SEEDS
  policy: {seed: 3}
  speech: {engine: flite}
  retrieval: {embedder: hashing}
  render: {height: 180, preset: ultrafast}
repair: {faults: {kinds: [render_black], count: 1, seed: 5}}
materialize: {tokenizer: none}
"""

PER_TRAJECTORY = ("trajectories", "calls", "snapshots", "verdicts", "repairs", "artifacts")


@dataclass
class Lakes:
    """A lake that is run with changing seeds."""

    folder: Path
    reports: dict[str, dict[str, Any]]

    def run(self, seeds: str, engine: str) -> dict[str, Any]:
        """Run the film and keep the report of its only source."""
        config = self.folder / "config.yaml"
        config.write_text(CONFIG.replace("SEEDS", seeds))
        film, lake = str(self.folder / "lecture.mkv"), str(self.folder / "lake")
        result = CliRunner().invoke(app, ["run", film, "--lake", lake, "--config", str(config), "--engine", engine, "--json"])
        assert result.exit_code == 0, result.output
        source: dict[str, Any] = json.loads(result.stdout)["sources"][0]
        return source

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """Rows of a query."""
        return Lake(self.folder / "lake", create=False).query(sql).rows


@pytest.fixture(scope="module")
def lakes(tmp_path_factory: pytest.TempPathFactory) -> Lakes:
    try:
        film = asset("demo-video")
    except EngineMissing as e:
        pytest.skip(f"the demo film is not here: {e.next_step}")
    folder = tmp_path_factory.mktemp("seeds")
    cut = ("ffmpeg", "-nostdin", "-v", "error", "-ss", "62", "-i", "/in/film", "-t", "14", "-c", "copy", "/out/lecture.mkv")
    done = open_sandbox().run(Command(cut, inputs={"film": film}, outputs=("lecture.mkv",), limits=Limits(wall_s=120)), folder)
    assert done.returncode == 0, done.stderr
    lakes = Lakes(folder, {})
    lakes.reports["one"] = lakes.run("[3]", "local")
    lakes.reports["two"] = lakes.run("2", "ray")
    return lakes


@pytest.mark.slow
def test_a_seed_more_costs_its_own_replay_and_nothing_else(lakes: Lakes) -> None:
    assert (lakes.reports["one"]["stages_run"], lakes.reports["one"]["stages_skipped"]) == (3, 0)
    assert (lakes.reports["two"]["stages_run"], lakes.reports["two"]["stages_skipped"]) == (2, 2)


@pytest.mark.slow
def test_each_seed_is_a_trajectory_of_the_same_project(lakes: Lakes) -> None:
    rows = lakes.ask("select seed, project_id, outcome from trajectories order by seed")
    assert [(r[0], r[2]) for r in rows] == [(3, "delivered"), (4, "delivered")]
    assert len({r[1] for r in rows}) == 1
    assert lakes.ask("select count(distinct tool_sequence) from trajectories") == [(2,)]


@pytest.mark.slow
@pytest.mark.parametrize("table", PER_TRAJECTORY)
def test_rows_of_both_trajectories_lie_side_by_side(lakes: Lakes, table: str) -> None:
    assert lakes.ask(f"select count(distinct trajectory_id) from {table} where trajectory_id is not null") == [(2,)]  # noqa: S608


@pytest.mark.slow
def test_keys_and_artifacts_of_two_trajectories_do_not_clash(lakes: Lakes) -> None:
    assert Lake(lakes.folder / "lake", create=False).fsck().is_sound


@pytest.mark.slow
def test_examples_of_both_trajectories_are_different_and_share_a_split(lakes: Lakes) -> None:
    (row,) = lakes.ask(
        "select count(*), count(distinct example_id), count(distinct (context_sha256, completion_json)), count(distinct trajectory_id), "
        "count(distinct split) from examples"
    )
    assert row[0] == row[1] == row[2]
    assert row[3:] == (2, 1)


@pytest.mark.slow
def test_faults_are_drawn_anew_for_every_trajectory(lakes: Lakes) -> None:
    assert lakes.ask("select count(*), count(distinct injected_fault) from repairs where injected_fault is not null") == [(2, 2)]


@pytest.mark.slow
def test_groups_are_executed_from_recorded_states_and_their_rewards_explained(lakes: Lakes) -> None:
    lake = str(lakes.folder / "lake")
    made = CliRunner().invoke(app, ["groups", "--lake", lake, "--sample", "3", "-k", "3", "--json"])
    assert made.exit_code == 0, made.output
    groups = json.loads(made.stdout)["groups"]
    assert {g["role"] for g in groups} == {"orchestrator", "generator", "critic"}
    for group in groups:
        rewards = {c["origin"]: c["reward"] for c in group["candidates"]}
        assert rewards["recorded"] > rewards["mistake"]
        best = group["candidates"][0]["candidate"]
        shown = json.loads(CliRunner().invoke(app, ["reward", "explain", best, "--lake", lake, "--json"]).stdout)
        assert (round(shown["reward"], 6), shown["status"]) == (rewards["recorded"], "accepted")
        assert shown["matched_key"]["role"] == group["role"]
    again = CliRunner().invoke(app, ["groups", "--lake", lake, "--sample", "3", "-k", "3", "--json"])
    assert json.loads(again.stdout)["known"] == 3
    (row,) = lakes.ask("select count(*), count(distinct c.group_id) from candidates c join groups g using (group_id)")
    assert row[1] == 3


@pytest.mark.slow
def test_seeds_that_are_known_are_not_done_again_and_seeds_not_asked_for_end(lakes: Lakes) -> None:
    again = lakes.run("[3, 4]", "local")
    assert (again["stages_run"], again["stages_skipped"]) == (0, 4)
    ((other,),) = lakes.ask("select trajectory_id from trajectories where seed = 4")
    faulty = CliRunner().invoke(
        app, ["inject", other, "--lake", str(lakes.folder / "lake"), "--kinds", "narration_quiet", "--count", "1", "--json"]
    )
    assert faulty.exit_code == 0, faulty.output
    assert lakes.ask("select count(*) from trajectories") == [(3,)]
    fewer = lakes.run("[3]", "local")
    assert (fewer["stages_run"], fewer["stages_skipped"]) == (1, 2)
    (gone,) = lakes.ask("select count(*) from groups where trajectory_id not in (select trajectory_id from trajectories)")
    assert gone == (0,)
    for table in (*PER_TRAJECTORY, "examples"):
        assert lakes.ask(f"select count(distinct trajectory_id) from {table} where trajectory_id is not null") == [(1,)]  # noqa: S608


def test_a_variant_depends_on_its_own_seed_only() -> None:
    base = WorkprintConfig.model_validate({"repair": {"faults": {"kinds": ["render_black"], "count": 1, "seed": 5}}})
    one, two = (base.model_copy(update={"replay": base.replay.model_copy(update={"seeds": s})}) for s in ((7,), (0, 7)))
    assert replay_settings(variants(one)[0]) == replay_settings(variants(two)[1])
    assert replay_settings(variants(two)[0]) == replay_settings(base)
    assert (variants(one)[0].replay.policy.seed, variants(one)[0].repair.faults.seed) == (7, 12)


def test_a_count_stands_for_seeds_from_the_policys_on() -> None:
    assert ReplayConfig.model_validate({"seeds": 3, "policy": {"seed": 10}}).seeds == (10, 11, 12)


@pytest.mark.parametrize("seeds", [0, 65, [1, 1], "many"])
def test_seeds_that_make_no_sense_are_refused(seeds: Any) -> None:
    with pytest.raises(ValidationError):
        ReplayConfig.model_validate({"seeds": seeds})


def test_built_in_configurations_name_seeds_that_differ() -> None:
    assert all(len({v.replay.policy.seed for v in variants(load_config(n))}) == len(variants(load_config(n))) for n in ("local", "demo"))
