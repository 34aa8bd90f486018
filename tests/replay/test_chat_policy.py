"""A chat model as policy: through the real runtime, over loopback HTTP, well behaved and not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from replay.chat.config import EndpointLimits, ModelConfig, TurnConfig
from replay.chat.model import HttpChatModel
from replay.config import PolicyConfig, ReplayConfig
from replay.contexts import prompt
from replay.episode import run_episode
from replay.policies.chat import ChatPolicy
from replay.policies.mixed import MixedPolicy, teacher_share, teacher_turn
from replay.policies.scripted import ScriptedPolicy
from replay.runtime import Runtime
from schemas.canonical import digest_of
from schemas.contract import Role, shown_schema
from schemas.errors import EndpointFailed
from schemas.reply import ModelReply
from schemas.trajectory import Outcome, Provenance, Trajectory
from storage.journal import Journal
from tests.media.servers import Reply, Server, serve
from tests.replay.toy import ToyCritic, storyboard, toy_runtime

BOARD = storyboard(6)


def scripted(seed: int = 3, rate: float = 0.0) -> ScriptedPolicy:
    return ScriptedPolicy(BOARD, seed, ReplayConfig(policy=PolicyConfig(mistake_rate=rate)), ToyCritic())


@pytest.fixture
def recording(folder: Path) -> Trajectory:
    """A scripted run whose outputs a model can repeat."""
    return run_episode(toy_runtime(folder / "recording", BOARD), scripted())


def answer(content: str = "", tool: str | None = None, arguments: str = "{}") -> Reply:
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if tool is not None:
        message["tool_calls"] = [{"id": "c", "type": "function", "function": {"name": tool, "arguments": arguments}}]
    body = {
        "model": "tiny",
        "choices": [{"message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 50, "completion_tokens": 9},
    }
    return Reply(json.dumps(body).encode())


def repeated(trajectory: Trajectory) -> list[Reply]:
    """The outputs of a run as a model's replies."""
    return [answer(c.output.text, c.output.tool, c.output.arguments_json or "{}") for c in trajectory.calls]


def model(server: Server, attempts: int = 2, **config: Any) -> HttpChatModel:
    return HttpChatModel(ModelConfig(model="tiny", **config), EndpointLimits(endpoint_url=server.url, timeout_s=2, attempts=attempts))


def runtime(folder: Path, **options: Any) -> Runtime:
    return toy_runtime(folder / "chat", BOARD, **options)


def test_a_model_that_decides_as_the_editor_did_reaches_the_same_states(folder: Path, recording: Trajectory) -> None:
    with serve(repeated(recording)) as server:
        run = runtime(folder)
        trajectory = run_episode(run, ChatPolicy(model(server), run.suite.store))
    assert trajectory.outcome is Outcome.DELIVERED
    assert [c.state_after for c in trajectory.calls] == [c.state_after for c in recording.calls]
    assert {c.output.provenance for c in trajectory.calls} == {Provenance.STUDENT}


def test_a_model_is_sent_the_context_that_is_recorded_and_nothing_else(folder: Path, recording: Trajectory) -> None:
    with serve(repeated(recording)) as server:
        run = runtime(folder)
        trajectory = run_episode(run, ChatPolicy(model(server, json_form="none"), run.suite.store))
    kept = [run.suite.store.read_json(c.context_sha256) for c in trajectory.calls]
    shown = [{**k, "tools": [shown_schema(t) for t in k["tools"]]} for k in kept]
    assert [{"messages": r["messages"], "tools": r.get("tools", [])} for r in server.requests] == shown


def test_the_whole_reply_is_kept_beside_each_call(folder: Path, recording: Trajectory) -> None:
    with serve(repeated(recording)) as server:
        run = runtime(folder)
        first = run_episode(run, ChatPolicy(model(server), run.suite.store)).calls[0]
    assert first.output.usage == {"prompt_tokens": 50, "completion_tokens": 9}
    assert first.output.reply is not None
    reply = ModelReply.model_validate(run.suite.store.read_json(first.output.reply))
    assert (reply.form, reply.model, reply.sampling["temperature"]) == ("native", "tiny", 0.0)


def test_every_call_names_the_prompt_it_was_made_under(recording: Trajectory) -> None:
    named = {c.role: c.prompt_sha256 for c in recording.calls}
    assert named == {role: digest_of([role.value, *prompt(role)]) for role in Role}
    assert all(c.prompt_sha256 == named[c.role] for c in recording.calls)


def test_the_time_a_reply_took_names_nothing(folder: Path, recording: Trajectory) -> None:
    first = recording.calls[0].output
    assert first.model_copy(update={"reply": "0" * 64}).digest() == first.digest()


@pytest.mark.parametrize(
    ("blunder", "code"),
    [
        (answer("I would plan the shots."), "unparsable_output"),
        (answer(""), "unparsable_output"),
        (answer(tool="segment_article", arguments='{"max_segments": '), "unparsable_output"),
        (answer(tool="render_everything"), "unknown_tool"),
        (answer(tool="stitch_video"), "prerequisite_missing"),
        (answer(tool="plan_shots", arguments='{"wings": 2}'), "unknown_argument"),
        (answer("<tool_call>\n<function=stitch_video>\n</function>\n</tool_call>"), "prerequisite_missing"),
    ],
    ids=["prose", "empty", "cut", "unknown", "too early", "argument", "xml too early"],
)
def test_a_blunder_is_a_typed_blocker_and_the_run_goes_on(folder: Path, recording: Trajectory, blunder: Reply, code: str) -> None:
    with serve([blunder, *repeated(recording)]) as server:
        run = runtime(folder)
        trajectory = run_episode(run, ChatPolicy(model(server), run.suite.store))
    assert code in [b.code.value for b in trajectory.calls[0].observation.blockers]
    assert trajectory.outcome is Outcome.DELIVERED


@pytest.mark.parametrize("content", ["", "Here it is: {}", "{}", '{"segments": [{"title": "x"', "null"])
def test_poor_content_is_refused_and_asked_for_again(folder: Path, recording: Trajectory, content: str) -> None:
    place = next(i for i, c in enumerate(recording.calls) if c.role is not Role.ORCHESTRATOR)
    script = repeated(recording)
    with serve([*script[:place], answer(content), *script[place:]]) as server:
        run = runtime(folder)
        trajectory = run_episode(run, ChatPolicy(model(server), run.suite.store))
    assert trajectory.calls[place].observation.status.value == "refused"
    assert trajectory.outcome is Outcome.DELIVERED


def test_a_model_that_never_makes_sense_ends_incomplete(folder: Path) -> None:
    with serve([answer("What shall I do?")]) as server:
        run = runtime(folder, budget=5)
        trajectory = run_episode(run, ChatPolicy(model(server), run.suite.store))
    assert trajectory.outcome is Outcome.INCOMPLETE
    assert [c.output.provenance.value for c in trajectory.calls] == ["student"] * 5 + ["runtime"]


@pytest.mark.parametrize(
    "fault", [Reply(b"busy", 503), Reply(b"", 429, {"Retry-After": "0"}), Reply(b"<html>"), Reply(b'{"choices": [{"mess', cut=12)]
)
def test_a_fault_of_the_endpoint_is_no_observation(folder: Path, recording: Trajectory, fault: Reply) -> None:
    with serve([fault, *repeated(recording)]) as server:
        run = runtime(folder)
        trajectory = run_episode(run, ChatPolicy(model(server), run.suite.store))
    assert len(trajectory.calls) == len(recording.calls)
    assert all(not c.observation.blockers for c in trajectory.calls)


def test_a_dead_endpoint_stops_the_run_and_a_later_one_goes_on_at_the_next_call(folder: Path, recording: Trajectory) -> None:
    script = repeated(recording)
    with serve([*script[:4], Reply(b"down", 500)]) as server:
        journal = Journal(folder / "journal")
        run = runtime(folder, journal=journal)
        with pytest.raises(EndpointFailed, match="HTTP 500"):
            run_episode(run, ChatPolicy(model(server, attempts=1), run.suite.store))
        assert len(run.calls) == 4
        journal.close()
    with serve(script[4:]) as server:
        run = runtime(folder, journal=Journal(folder / "journal"))
        trajectory = run_episode(run, ChatPolicy(model(server), run.suite.store))
    assert trajectory.outcome is Outcome.DELIVERED
    assert [c.state_after for c in trajectory.calls] == [c.state_after for c in recording.calls]


@pytest.mark.parametrize(
    ("update", "decay", "share"),
    [(0, 700, 0.8), (350, 700, 0.4), (700, 700, 0.0), (1000, 700, 0.0), (175, 700, 0.8 * (1 + 2**-0.5) / 2), (1, 1, 0.0)],
)
def test_the_teachers_share_follows_the_cosine(update: int, decay: int, share: float) -> None:
    assert teacher_share(TurnConfig(update=update, decay_updates=decay)) == pytest.approx(share, abs=1e-12)


def test_the_coin_is_fair_and_belongs_to_the_call() -> None:
    tossed = [teacher_turn(0.8, 7, index) for index in range(5_000)]
    assert 0.78 < sum(tossed) / len(tossed) < 0.82
    assert teacher_turn(0.8, 7, 41) is tossed[41]
    assert tossed != [teacher_turn(0.8, 8, index) for index in range(5_000)]


def test_turns_are_recorded_with_their_owner(folder: Path) -> None:
    with serve([answer("Hm.")]) as server:
        run = runtime(folder, budget=40)
        student = ChatPolicy(model(server), run.suite.store)
        trajectory = run_episode(run, MixedPolicy(scripted(), student, TurnConfig(), seed=1))
    owners = {c.output.provenance.value for c in trajectory.calls}
    assert {"student", "teacher"} <= owners
    for call in trajectory.calls:
        if call.output.provenance is Provenance.STUDENT:
            assert call.output.reply is not None
            assert call.observation.blockers
        elif call.output.provenance is Provenance.TEACHER:
            assert not call.observation.blockers
    assert trajectory.outcome is Outcome.DELIVERED
