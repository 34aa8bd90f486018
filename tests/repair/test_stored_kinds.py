"""Every kind of stored run can be taken up again: faults are put into it, and what failed in it is finished by the teacher."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from jobs.cli import app
from jobs.episodes import commit_run, open_episode, recorded_start, workshop
from jobs.stages import replay_digest
from media.command import Sandbox
from replay.outside import GIVE_CONTENT, OutsideSession
from replay.policies.mixed import teacher_turn
from replay.suite import Suite
from schemas.artifact import ArtifactKind
from schemas.canonical import derive_id
from schemas.contract import Role
from schemas.trajectory import Outcome, Provenance, Trajectory
from storage.lake import Lake
from tests.media.servers import Reply, serve
from tests.repair.runs import Stored, another_run, ask, config, run, stored_run
from tests.repair.students import PROSE, STUDENT, blundering, first, repeated, reply

SHARE, SEED = 0.5, 4
"""The teacher's share in the mixed run, and the seed of its coin."""


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory, sandbox: Sandbox, suite: Suite) -> Stored:
    music = suite.config.mix.music_folder
    assert music is not None
    made = stored_run(tmp_path_factory.mktemp("kinds"), sandbox, music)
    assert made.base.outcome is Outcome.DELIVERED
    return made


def scripted(stored: Stored, sandbox: Sandbox) -> Trajectory:
    return stored.base


def chat(stored: Stored, sandbox: Sandbox) -> Trajectory:
    with serve(repeated(stored.base.calls)) as server:
        return another_run(stored, sandbox, "chat", STUDENT, server.url)


def mixed(stored: Stored, sandbox: Sandbox) -> Trajectory:
    """Both would say the same, so the student's answers are those of the calls that the coin gives to it."""
    own = [c for c in stored.base.calls if not teacher_turn(SHARE, SEED, c.call_index)]
    with serve(repeated(own)) as server:
        policy = {"name": "mixed", "student": {"model": "tiny"}, "turns": {"beta_start": SHARE}}
        return another_run(stored, sandbox, "mixed", policy, server.url)


def recorded(stored: Stored, sandbox: Sandbox) -> Trajectory:
    sha = Lake(stored.lake).store.put_bytes(stored.base.canonical(), ArtifactKind.TRAJECTORY, "application/json").sha256
    return another_run(stored, sandbox, "recorded", {"name": "recorded", "recording": sha})


def outside(stored: Stored, sandbox: Sandbox) -> Trajectory:
    """Somebody's agent, from the snapshot before the narration on; it asks for something that is not there first."""
    lake = Lake(stored.lake)
    start = stored.base.calls[first(stored.base, Role.ORCHESTRATOR, "synthesize_narration")]
    settings = config(stored.music)
    with open_episode(workshop(settings, lake.store), recorded_start(lake, start.snapshot_before), replay_digest(settings)) as episode:
        session = OutsideSession(episode.runtime)
        session.call("render_everything", {})
        for call in stored.base.calls[start.call_index :]:
            asked = call.role is not Role.ORCHESTRATOR
            told = {"content": call.output.text} if asked else json.loads(call.output.arguments_json or "{}")
            session.call(GIVE_CONTENT if asked else str(call.output.tool), told)
        made = episode.trajectory("mcp")
        commit_run(lake, made, episode.spent_us)
    return made


KINDS: dict[str, tuple[Callable[[Stored, Sandbox], Trajectory], str, Provenance]] = {
    "scripted": (scripted, "scripted", Provenance.SCRIPTED),
    "chat": (chat, "chat tiny", Provenance.STUDENT),
    "mixed": (mixed, "mixed", Provenance.TEACHER),
    "recorded": (recorded, "recorded", Provenance.SCRIPTED),
    "outside": (outside, "mcp", Provenance.OUTSIDE),
}
"""How a run of each kind is made, what its policy is called, and an author that is found in it."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_faults_are_put_into_every_kind_of_stored_run(stored: Stored, sandbox: Sandbox, kind: str) -> None:
    make, policy, author = KINDS[kind]
    base = make(stored, sandbox)
    assert (base.policy, base.outcome) == (policy, Outcome.DELIVERED)
    assert author in {c.output.provenance for c in base.calls}
    (report,) = run(stored, "inject", base.trajectory_id, "--kinds", "narration_quiet,render_no_graphic", "--count", "2", "--seed", "3")
    assert [(f["kind"], f["recovered"]) for f in report["faults"]] == [("narration_quiet", True), ("render_no_graphic", True)]
    assert (report["base_trajectory_id"], report["outcome"]) == (base.trajectory_id, "delivered")
    sha = ask(stored, "select trajectory_sha256 s from trajectories where trajectory_id = :id", id=report["trajectory_id"])[0]
    made = Trajectory.model_validate_json(Lake(stored.lake).store.read(sha["s"]))
    assert [c.digest() for c in made.calls[: report["kept_calls"]]] == [c.digest() for c in base.calls[: report["kept_calls"]]]
    assert made.policy == (policy if policy == "scripted" else f"{policy}+scripted")


def too_early(run: Trajectory) -> tuple[int, Reply]:
    return first(run, Role.ORCHESTRATOR, "synthesize_narration"), reply(tool="stitch_video")


def cut_content(run: Trajectory) -> tuple[int, Reply]:
    index = first(run, Role.GENERATOR, "plan_shots")
    return index, reply(run.calls[index].output.text[:40])


BLUNDERS: dict[str, tuple[Callable[[Trajectory], tuple[int, Reply]], str]] = {
    "prose": (lambda _run: (0, reply(PROSE)), "unparsable_output"),
    "too early": (too_early, "prerequisite_missing"),
    "cut content": (cut_content, "unparsable_output"),
    "unknown shot": (
        lambda run: (
            first(run, Role.ORCHESTRATOR, "render_shots"),
            reply(tool="render_shots", arguments='{"shots": "s998"}'),
        ),
        "unresolved_reference",
    ),
}
"""Where a student blunders and how, and the code of the blocker that answers."""

RARER = ("cut content", "unknown shot")


@pytest.mark.slow
@pytest.mark.parametrize("blunder", [pytest.param(b, marks=pytest.mark.full) if b in RARER else b for b in BLUNDERS])
def test_a_students_run_is_finished_by_the_teacher_from_its_first_failure(
    stored: Stored, sandbox: Sandbox, tmp_path: Path, blunder: str
) -> None:
    make, code = BLUNDERS[blunder]
    index, wrong = make(stored.base)
    with serve(blundering(stored.base, {index: wrong})) as server:
        student = another_run(stored, sandbox, f"student {blunder}", STUDENT, server.url)
    failed = student.calls[index]
    assert failed.observation.blockers[0].code.value == code
    settings = tmp_path / "config.yaml"
    settings.write_text("materialize: {tokenizer: none}\n")
    (row,) = run(stored, "rft", student.trajectory_id, "--config", str(settings))
    start = student.calls[failed.orchestrator_call]
    assert (row["failure_call"], row["failure_code"], row["snapshot_id"]) == (start.call_index, code, start.snapshot_before)
    assert (row["provenance"], row["replayed"], row["failed_checks"], row["admitted"]) == ("teacher_assisted", True, [], True)
    assert row["quality"] >= 0.8
    calls = ask(
        stored, "select provenance, status, state_after from calls where trajectory_id = :id order by call_index", id=row["trajectory_id"]
    )
    kept, suffix = calls[: start.call_index], calls[start.call_index :]
    assert [c["state_after"] for c in kept] == [c.state_after for c in student.calls[: start.call_index]]
    assert {c["provenance"] for c in kept} <= {"student"}
    assert {c["provenance"] for c in suffix} == {"teacher"}
    assert "refused" not in {c["status"] for c in suffix}
    taught = ask(
        stored,
        """select c.call_index from calls c join examples e using (context_sha256) where c.trajectory_id = :id and c.provenance = 'teacher'
           and c.role = 'orchestrator'""",
        id=row["trajectory_id"],
    )
    assert len(taught) >= 2, "what another student's continuation gave already is given once"


@pytest.mark.slow
def test_complete_successes_say_who_had_a_part_in_them(stored: Stored, sandbox: Sandbox, tmp_path: Path) -> None:
    settings = tmp_path / "config.yaml"
    settings.write_text("materialize: {tokenizer: none}\n")
    for make, provenance in ((chat, "student"), (mixed, "teacher_assisted")):
        (row,) = run(stored, "rft", make(stored, sandbox).trajectory_id, "--config", str(settings))
        assert (row["failure_call"], row["provenance"], row["replayed"], row["failed_checks"]) == (None, provenance, True, [])


@pytest.mark.slow
def test_a_bare_storyboard_is_produced_with_faults_in_it(stored: Stored, tmp_path: Path) -> None:
    """There is no stored run to take up: the causes are in the calls of the one that is made."""
    board = stored.board.model_copy(update={"project_id": derive_id("project", {"source_sha256": stored.board.media.sha256})})
    (tmp_path / "storyboard.json").write_bytes(board.canonical())
    settings = tmp_path / "config.yaml"
    settings.write_text(yaml.safe_dump(config(stored.music).model_dump(mode="json")))
    where = ("-o", str(tmp_path / "film"), "--source", str(stored.source), "--config", str(settings))
    what = ("--kinds", "narration_silent,broken_reference", "--count", "2", "--json")
    result = CliRunner().invoke(app, ["inject", str(tmp_path / "storyboard.json"), *where, *what])
    assert result.exit_code == 0, result.output
    (report,) = json.loads(result.stdout)
    assert {(f["kind"], f["level"], f["recovered"]) for f in report["faults"]} == {
        ("narration_silent", "execution", True),
        ("broken_reference", "plan", True),
    }
    made = json.loads((tmp_path / "film" / "trajectory.json").read_text())
    assert {f["kind"] for c in made["calls"] for f in c["faults"]} == {"narration_silent"}
    assert sum("injected fault" in c["output"]["reason"] for c in made["calls"]) == 1
    assert (tmp_path / "film" / "video.mp4").is_file()


def test_a_run_that_no_fault_can_strike_is_left_out(stored: Stored, sandbox: Sandbox) -> None:
    """An agent that only ever talks makes nothing that could be spoiled."""
    with serve([reply(PROSE)]) as server:
        idle = another_run(stored, sandbox, "idle", STUDENT, server.url)
    assert idle.outcome is Outcome.INCOMPLETE
    result = CliRunner().invoke(app, ["inject", idle.trajectory_id, "--lake", str(stored.lake), "--kinds", "render_black", "--json"])
    assert "no drawn fault can strike this trajectory" in str(result.exception)
