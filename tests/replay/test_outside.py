"""An outside agent at the desk: what it is told, what is recorded of it, and what it cannot do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from replay.episode import run_episode, trajectory_of
from replay.outside import OutsideSession
from replay.policies.scripted import ScriptedPolicy
from replay.runtime import Runtime
from replay.suite import Suite
from schemas.contract import Role
from schemas.errors import ToolFailed
from schemas.trajectory import Outcome, Provenance, Trajectory
from tests.replay.test_chat_policy import scripted
from tests.replay.toy import storyboard, toy_runtime

BOARD = storyboard(6)


@pytest.fixture
def recording(folder: Path) -> Trajectory:
    policy: ScriptedPolicy = scripted()
    return run_episode(toy_runtime(folder / "recording", BOARD), policy)


def play(session: OutsideSession, trajectory: Trajectory) -> None:
    """Make a run's calls as an outside agent would."""
    for call in trajectory.calls:
        if call.role is Role.ORCHESTRATOR:
            session.call(str(call.output.tool), json.loads(call.output.arguments_json or "{}"))
        else:
            session.call("give_content", {"content": call.output.text})


def desk(folder: Path) -> tuple[Runtime, OutsideSession]:
    runtime = toy_runtime(folder / "desk", BOARD)
    return runtime, OutsideSession(runtime)


def test_an_agents_calls_reach_the_states_the_editors_did(folder: Path, recording: Trajectory) -> None:
    runtime, session = desk(folder)
    play(session, recording)
    assert runtime.outcome is Outcome.DELIVERED
    assert [c.state_after for c in runtime.calls] == [c.state_after for c in recording.calls]


def test_its_words_are_marked_unknown_and_its_contents_known(folder: Path, recording: Trajectory) -> None:
    runtime, session = desk(folder)
    play(session, recording)
    outputs = [c.output for c in trajectory_of(runtime, "mcp", 0).calls]
    assert {o.provenance for o in outputs} == {Provenance.OUTSIDE}
    assert {(o.role is Role.ORCHESTRATOR, o.text_known) for o in outputs} == {(True, False), (False, True)}


def test_tools_are_the_canonical_ones_in_their_order_and_two_more(folder: Path) -> None:
    runtime, session = desk(folder)
    offered = session.tools()
    canonical = [(f["name"], f["parameters"]) for f in (s["function"] for s in runtime.registry.schemas())]
    assert [(t.name, t.schema) for t in offered[:-2]] == canonical
    assert [t.name for t in offered[-2:]] == ["give_content", "look"]


def test_looking_costs_nothing_and_shows_the_context(folder: Path) -> None:
    runtime, session = desk(folder)
    told = session.call("look", {})
    assert told.text == runtime.context().messages[-1].content
    assert (told.is_error, runtime.calls) == (False, ())


def test_a_request_for_content_is_told_with_its_schema(folder: Path) -> None:
    _, session = desk(folder)
    told = session.call("segment_article", {"max_sentences": 12})
    assert not told.is_error
    assert "# Request: segments for segment_article" in told.text
    assert told.text.endswith("Answer with 'give_content'.")


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("stitch_video", {}, "prerequisite_missing"),
        ("open_the_pod_bay_doors", {}, "unknown_tool"),
        ("segment_article", {"max_sentences": 12, "wings": 2}, "unknown_argument"),
        ("give_content", {"content": "{}"}, "unparsable_output"),
        ("segment_article", {"max_sentences": 12, "wings": None}, "unknown_argument"),
    ],
)
def test_a_wrong_call_is_refused_and_recorded(folder: Path, name: str, arguments: dict[str, object], code: str) -> None:
    runtime, session = desk(folder)
    told = session.call(name, arguments)
    assert told.is_error
    assert code in told.text
    assert {b.code.value for b in runtime.calls[0].observation.blockers} == {code}


def test_after_the_end_nothing_is_recorded(folder: Path, recording: Trajectory) -> None:
    runtime, session = desk(folder)
    play(session, recording)
    calls = len(runtime.calls)
    assert session.call("stitch_video", {}).is_error
    assert session.call("look", {}).text == "The run is over: delivered."
    assert len(runtime.calls) == calls


def test_a_fault_of_ours_is_told_as_one_and_leaves_no_call(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime, session = desk(folder)

    def broken(*_args: object) -> None:
        raise ToolFailed("engine_down", "the renderer ended without its product.")

    monkeypatch.setattr(Suite, "work", broken)
    told = session.call("segment_article", {"max_sentences": 12})
    assert told.is_error
    assert isinstance(told.fault, ToolFailed)
    assert "A fault of the workshop, not of your call (engine_down)" in told.text
    assert runtime.calls == ()


def test_committed_is_told_of_every_recorded_call(folder: Path) -> None:
    seen: list[int] = []
    runtime = toy_runtime(folder / "desk", BOARD)
    session = OutsideSession(runtime, lambda: seen.append(len(runtime.calls)))
    for name in ("look", "segment_article", "stitch_video"):
        session.call(name, {"max_sentences": 12})
    assert seen == [1, 2]
