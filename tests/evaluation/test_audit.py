"""The audit finds trajectories that execute again as recorded, and says where one does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evaluation.audit import (
    Audited,
    AuditReport,
    Difference,
    Settings,
    _RecordedFaults,
    audit_all,
    audit_lake,
    audit_trajectory,
    sampled,
)
from jobs.cli import app
from jobs.stages import trajectory_done
from media.command import Sandbox
from media.sandbox import open_sandbox
from repair.faults import FaultPlan
from replay.registry import Registry
from replay.tool import Product
from replay.tools.search_music import SearchMusic
from schemas.artifact import ArtifactKind
from schemas.errors import ConfigInvalid, EngineMissing
from schemas.trajectory import Call, Trajectory
from storage.artifacts import ArtifactStore
from storage.lake import Lake, StageCommit
from tests.replay.small_film import FAULTS, SmallFilm


class Made:
    """A played project whose trajectory lies in a lake. ``settings`` as in SmallFilm."""

    def __init__(self, root: Path, sandbox: Sandbox, **settings: Any) -> None:
        self.sandbox = sandbox
        self.film = SmallFilm(root, sandbox, **{"shots": 3, "spotlight_every": 99, "faults": FAULTS, **settings})
        self.lake = Lake(root / "lake")
        self.trajectory, run = self.film.play(root / "lake", 4)
        self.store: ArtifactStore = run.suite.store
        done = trajectory_done(self.trajectory, self.store, {})
        sha = self.store.put_bytes(self.trajectory.canonical(), ArtifactKind.TRAJECTORY, "application/json").sha256
        self.lake.commit(
            StageCommit(
                stage="replay",
                stage_key="stg_1",
                subject=self.trajectory.project_id,
                scope="one",
                status="done",
                output_sha256=sha,
                rows=done.rows,
                artifacts=(*done.artifacts, sha),
                run_id="run_1",
            )
        )

    def audit(self, trajectory: Trajectory, registry: Registry | None = None) -> Audited:
        """Audit a trajectory of this project."""
        return audit_trajectory(trajectory, self.store, self.sandbox, registry=registry, engines=self.film.engines)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("audit"), open_sandbox())


@pytest.mark.slow
def test_a_stored_trajectory_with_faults_executes_again_as_recorded(made: Made) -> None:
    trajectory = made.trajectory
    assert {f.kind for c in trajectory.calls for f in c.faults} == {"render_black", "narration_truncated"}
    result = CliRunner().invoke(app, ["audit", "--lake", str(made.lake.root), "--json"])
    assert result.exit_code == 0, result.output
    report: dict[str, Any] = json.loads(result.stdout)
    (one,) = report["trajectories"]
    assert (report["equal_states_share"], report["equal_frames_share"], report["equal_sound_share"]) == (1.0, 1.0, 1.0)
    assert (one["equal_states"], one["equal_contexts"], one["first_difference"]) == (len(trajectory.calls), len(trajectory.calls), None)
    assert (one["injected_faults"], one["frames"] > 60) == (2, True)


@pytest.mark.full
@pytest.mark.slow
def test_neural_speech_and_graphics_execute_again_as_recorded(tmp_path: Path) -> None:
    try:
        made = Made(tmp_path, open_sandbox(), spotlight_every=2, speech={"engine": "kokoro"})
    except EngineMissing as error:
        pytest.skip(f"the neural voice is not here: {error.next_step}")
    report = audit_lake(made.lake, open_sandbox(), seed=1)
    assert report.passed, report.as_json()
    assert any(c.tool == "decorate_spotlights" and c.artifacts for c in made.trajectory.calls)


def test_faults_strike_only_in_the_calls_that_recorded_some(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(FaultPlan, "__call__", lambda _self, index, _tool, product, *_: (asked.append(index), (product, ()))[1])
    recorded, product = _RecordedFaults(made.film.repair, made.trajectory), Product((), {})
    for call in made.trajectory.calls:
        assert recorded(call.call_index, "x", product, None, None) == (product, ())  # type: ignore[arg-type]
    assert asked == [c.call_index for c in made.trajectory.calls if c.faults]
    assert 1 <= len(asked) <= 2


class LaterMusic(SearchMusic):
    """A later version of a tool, which does something else."""

    contract = SearchMusic.contract.model_copy(update={"version": 2, "summary": "Choose louder music."})

    def execute(self, *_: Any) -> Any:
        raise AssertionError("an old trajectory is executed with the version it was made with")


@pytest.mark.slow
def test_an_old_trajectory_executes_on_the_tools_it_was_made_with(made: Made) -> None:
    old = [t for name in made.film.registry.names() if (t := made.film.registry.get(name)) is not None]
    later = Registry([*old, LaterMusic()])
    assert later.digest() != made.film.registry.digest()
    found = made.audit(made.trajectory, registry=later)
    assert (found.first, found.equal) == (None, True)


def changed(trajectory: Trajectory, tool: str, **update: Any) -> tuple[Trajectory, int]:
    """The trajectory as if its last committed call of a tool had been recorded otherwise; and that call's index."""
    calls = list(trajectory.calls)
    at = max(i for i, c in enumerate(calls) if c.tool == tool and c.changes)
    calls[at] = calls[at].model_copy(update=update)
    return trajectory.model_copy(update={"calls": tuple(calls)}), at


def with_value(call: Call, field: str, value: Any) -> dict[str, Any]:
    """An update of a call in which one change of a field has another value."""
    changes = [c.model_copy(update={"value": value}) if c.field == field else c for c in call.changes]
    return {"changes": tuple(changes), "state_after": "0" * 64}


@pytest.mark.slow
def test_the_first_difference_is_named_with_the_fields_that_changed(made: Made) -> None:
    recorded, at = changed(made.trajectory, "search_music")
    call = recorded.calls[at]
    other, _ = changed(made.trajectory, "search_music", **with_value(call, "music", {"track_id": "another"}))
    found = made.audit(other)
    assert found.first == Difference("call", at, "search_music", "differs in state_after, changes", ("film.music",))
    assert (found.equal, found.equal_states, found.equal_frames) == (False, len(other.calls) - 1, True)


def test_settings_that_were_not_stored_are_named(made: Made) -> None:
    lost = made.trajectory.model_copy(update={"config_digest": "f" * 64})
    found = made.audit(lost)
    assert found.first is not None
    assert (found.first.where, found.equal, found.equal_states) == ("settings", False, 0)
    assert "the settings ffffffffffff" in found.first.what
    with pytest.raises(ConfigInvalid):
        Settings.of(lost, made.store)


def test_tools_that_are_gone_are_named(made: Made) -> None:
    few = Registry([t for t in map(made.film.registry.get, ("plan_shots", "stitch_video")) if t is not None])
    found = made.audit(made.trajectory, registry=few)
    assert found.first is not None
    assert (found.first.where, found.equal) == ("tools", False)


def test_a_fault_of_ours_is_a_difference(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise KeyError("bug")

    tool = made.film.registry.get("search_music")
    monkeypatch.setattr(type(tool), "execute", broken)
    found = made.audit(made.trajectory)
    assert found.first is not None
    assert found.first.where == "fault"
    assert "tool_crashed" in found.first.what
    assert made.trajectory.calls[found.first.call_index or 0].tool == "search_music"


def test_an_audit_of_nothing_has_not_passed(tmp_path: Path) -> None:
    Lake(tmp_path / "lake")
    result = CliRunner().invoke(app, ["audit", "--lake", str(tmp_path / "lake"), "--json"])
    assert (result.exit_code, json.loads(result.stdout)["audited"]) == (4, 0)
    assert audit_all([], ArtifactStore(tmp_path / "a"), open_sandbox()).passed is False


def test_a_sample_is_drawn_by_its_seed() -> None:
    names = [f"trj_{i}" for i in range(20)]
    assert sampled(names, 5, 1) == sampled(reversed(names), 5, 1) != sampled(names, 5, 2)
    assert sorted(sampled(names, None, 3)) == sorted(names)


EQUAL = Audited("trj_1", "prj_1", 3, 3, 3, 1, 60, True, True, None, 1.0)


@pytest.mark.parametrize(
    ("change", "shares", "passed"),
    [
        ({}, (1.0, 1.0, 1.0), True),
        ({"equal_states": 2, "first": Difference("call", 1, "x", "differs")}, (0.5, 1.0, 1.0), False),
        ({"equal_frames": False, "first": Difference("frame", None, "x", "differs")}, (1.0, 0.5, 1.0), False),
        ({"equal_sound": False, "first": Difference("sound", None, "x", "differs")}, (1.0, 1.0, 0.5), False),
        ({"first": Difference("call", 1, "x", "differs in observation")}, (1.0, 1.0, 1.0), False),
    ],
    ids=["equal", "state", "frames", "sound", "observation"],
)
def test_shares_and_verdict(change: dict[str, Any], shares: tuple[float, float, float], passed: bool, capsys: Any) -> None:
    fields = {name: getattr(EQUAL, name) for name in Audited.__dataclass_fields__}
    report = AuditReport((EQUAL, Audited(**{**fields, **change})), 9)
    found = report.as_json()
    assert (found["equal_states_share"], found["equal_frames_share"], found["equal_sound_share"]) == shares
    assert (report.passed, found["stored"]) == (passed, 9)
    report.print()
    assert ("first difference" in capsys.readouterr().out) is not passed
