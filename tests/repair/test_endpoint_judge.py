"""A vision model as judge: over loopback HTTP, with good answers and bad ones."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from media.images import decode_image
from repair.checks.spotlight import spotlight_findings
from repair.endpoint_judge import EndpointJudge, rubric, rubric_digest
from repair.inspect import examine
from repair.measurements import MEASURED
from repair.registry import full_registry
from replay.chat.config import EndpointLimits, ModelConfig
from replay.chat.model import HttpChatModel
from replay.runtime import Runtime
from schemas.errors import ConfigInvalid, EndpointFailed
from schemas.verdict import DefectCode as Code
from storage.artifacts import ArtifactStore
from tests.media.servers import Reply, Server, serve
from tests.repair.conftest import SPOTLIGHT, TITLE, Crew, Studio, call
from tests.repair.test_judge import card

GOOD: dict[str, Any] = {"text": 10, "contrast": 10, "placement": 10, "clarity": 5, "problems": []}
BAD: dict[str, Any] = {"text": 2, "contrast": 8, "placement": 4, "clarity": 2, "problems": ["text_wrong", "overflow"]}


def reply(content: str, status: int = 200) -> Reply:
    """A chat completion that says something."""
    body = {"model": "vlm", "choices": [{"message": {"role": "assistant", "content": content}, "finish_reason": "stop"}]}
    return Reply(json.dumps(body).encode(), status=status)


def judge_at(server: Server, **changes: Any) -> EndpointJudge:
    """A judge that asks a server."""
    limits = EndpointLimits(endpoint_url=server.url, attempts=2, timeout_s=5)
    return EndpointJudge(HttpChatModel(ModelConfig(model="vlm", **changes), limits, "run.endpoints.judge.endpoint_url"))


def test_the_request_holds_rubric_texts_and_picture(tmp_path: Path) -> None:
    picture = card(TITLE)
    with serve([reply(json.dumps(GOOD))]) as server:
        said = judge_at(server).judge(picture, {"title": TITLE}, ArtifactStore(tmp_path))
    assert said.score == 0.9
    assert said.problems == ()
    (request,) = server.requests
    system, user = request["messages"]
    assert system == {"role": "system", "content": rubric()}
    assert json.dumps({"title": TITLE}) in user["content"][0]["text"]
    sent = user["content"][1]["image_url"]["url"].removeprefix("data:image/png;base64,")
    assert (decode_image(base64.b64decode(sent)) == picture).all()
    assert request["temperature"] == 0
    assert request["response_format"]["json_schema"]["name"] == "judgement"


def test_a_picture_is_asked_about_once(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    with serve([reply(json.dumps(BAD)), reply(json.dumps(GOOD))]) as server:
        first = judge_at(server).judge(card(TITLE), {"title": TITLE}, store)
        again = judge_at(server).judge(card(TITLE), {"title": TITLE}, store)
        other = judge_at(server, temperature=0.5).judge(card(TITLE), {"title": TITLE}, store)
    assert again == first
    assert first.problems == ("spotlight_text_wrong", "spotlight_overflow")
    assert other.score == 0.9, "another sampling is another judge"
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "bad",
    [
        "The picture looks fine to me.",
        "",
        '{"text": 11, "contrast": 1, "placement": 1, "clarity": 1, "problems": []}',
        '{"text": 1, "contrast": 1, "placement": 1, "problems": []}',
        '{"text": 1, "contrast": 1, "placement": 1, "clarity": 1, "problems": ["ugly"]}',
        '{"text": 1, "contrast": 1, "placement": 1, "clarity": 1, "problems": [], "verdict": "fail"}',
        '[{"text": 1}]',
    ],
)
def test_an_answer_outside_the_form_is_asked_again_and_never_a_verdict(tmp_path: Path, bad: str) -> None:
    with serve([reply(bad), reply("```json\n" + json.dumps(GOOD) + "\n```")]) as server:
        assert judge_at(server).judge(card(TITLE), {"title": TITLE}, ArtifactStore(tmp_path / "a")).score == 0.9
    with serve([reply(bad)]) as server, pytest.raises(EndpointFailed, match="judge_protocol"):
        judge_at(server).judge(card(TITLE), {"title": TITLE}, ArtifactStore(tmp_path / "b"))
    assert len(server.requests) == 3


@pytest.mark.parametrize(("status", "body"), [(500, b"oops"), (401, b"no key"), (200, b"<html>"), (200, b'{"choices": []}')])
def test_a_server_that_fails_is_a_fault_of_ours(tmp_path: Path, status: int, body: bytes) -> None:
    store = ArtifactStore(tmp_path)
    with serve([Reply(body, status=status)]) as server, pytest.raises(EndpointFailed):
        judge_at(server).judge(card(TITLE), {"title": TITLE}, store)
    with serve([reply(json.dumps(GOOD))]) as server:
        assert judge_at(server).judge(card(TITLE), {"title": TITLE}, store).score == 0.9, "nothing was noted of the failure"


def test_a_judge_without_an_address_is_a_configuration_error() -> None:
    with pytest.raises(ConfigInvalid, match=r"run\.endpoints\.judge\.endpoint_url"):
        HttpChatModel(ModelConfig(model="vlm"), EndpointLimits(), "run.endpoints.judge.endpoint_url")


def test_its_word_is_a_finding_that_the_critic_may_dismiss(studio: Studio) -> None:
    with serve([reply(json.dumps(BAD))]) as server:
        env = replace(studio.env, engines=replace(studio.suite.engines, judge=judge_at(server, max_tokens=100)))
        found = list(spotlight_findings(studio.state, [SPOTLIGHT], env, MEASURED))
        report = examine(studio.state, (SPOTLIGHT,), env)
    assert {(f.code, f.hard, f.severity) for f in found} == {
        (Code.SPOTLIGHT_TEXT_WRONG, False, "error"),
        (Code.SPOTLIGHT_OVERFLOW, False, "error"),
    }
    assert report.judge == "endpoint"
    assert report.judged == {SPOTLIGHT: 0.36}


def test_an_inspection_records_the_judge_and_a_failing_endpoint_leaves_no_trace(studio: Studio) -> None:
    with serve([Reply(b"down", status=500)]) as server:
        suite = replace(studio.suite, engines=replace(studio.suite.engines, judge=judge_at(server, max_tokens=101)))
        down = Runtime(studio.state, full_registry(), suite)
        with pytest.raises(EndpointFailed):
            call(down, "inspect_quality", Crew(), shots="all")
        assert down.calls == ()
        assert down.state == studio.state
    with serve([reply(json.dumps(GOOD))]) as server:
        suite = replace(studio.suite, engines=replace(studio.suite.engines, judge=judge_at(server, max_tokens=101)))
        runtime = Runtime(studio.state, full_registry(), suite)
        call(runtime, "inspect_quality", Crew(), shots="all")
    evidence = runtime.calls[-1].request
    assert evidence is not None
    assert f"vlm rubric {rubric_digest()[:12]}" in evidence.evidence["judge"]
    (seen,) = [v for v in runtime.calls[-1].verdicts if v.subject == SPOTLIGHT]
    assert (seen.judge, seen.score) == ("endpoint", 0.9)
    assert suite.engines.versions()["judge"] == f"vlm rubric {rubric_digest()[:12]}"


def test_the_rubric_is_frozen() -> None:
    """A change of rubric, weights or form is another judge: state it, and change this digest."""
    assert rubric_digest()[:12] == "f0014772402e"
