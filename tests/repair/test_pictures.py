"""A critic that can see: which pictures it is sent, and that the context says exactly which."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from jobs.stages import trajectory_done
from media.images import decode_image
from repair.pictures import MOST, MOST_BYTES, shown, small_jpeg
from replay.chat.config import EndpointLimits, ModelConfig
from replay.chat.model import PICTURE_TOKENS, HttpChatModel, estimate
from replay.config import PolicyConfig
from replay.episode import trajectory_of
from replay.policies.chat import ChatPolicy
from schemas.canonical import canonical_text
from schemas.contract import Role
from schemas.reply import ModelReply
from schemas.trajectory import Provenance, RoleOutput
from tests.media.servers import Reply, serve
from tests.repair.conftest import SPOTLIGHT, Studio

SEES = ModelConfig(model="m", vision=True)
BLIND = ModelConfig(model="m")


def deciding(studio: Studio, **policy: Any) -> Studio:
    """The studio under another policy."""
    config = studio.suite.config.model_copy(update={"policy": PolicyConfig(**policy)})
    return replace(studio, suite=replace(studio.suite, config=config))


def inspect(studio: Studio, model: ModelConfig) -> tuple[Any, list[dict[str, Any]], ModelReply]:
    """One inspection judged by a chat model: the runtime, the requests it was sent, and the reply that is kept."""
    run = studio.runtime(studio.state)
    answer = {"choices": [{"message": {"content": '{"judgements": []}'}}]}
    call = canonical_text({"shots": "all"})
    run.step(RoleOutput(role=Role.ORCHESTRATOR, tool="inspect_quality", arguments_json=call, provenance=Provenance.STUDENT))
    with serve([Reply(json.dumps(answer).encode())]) as server:
        policy = ChatPolicy(HttpChatModel(model, EndpointLimits(endpoint_url=server.url)), run.suite.store)
        output = policy.act(run.context())
    assert output.reply is not None
    run.step(output)
    return run, server.requests, ModelReply.model_validate(run.suite.store.read_json(output.reply))


def test_a_critic_that_sees_is_sent_the_graphics_after_the_recorded_text(studio: Studio) -> None:
    run, (request,), reply = inspect(deciding(studio, name="chat", student=SEES), SEES)
    call = run.calls[1]
    kept = run.suite.store.read_json(call.context_sha256)
    system, user = request["messages"]
    text, picture = user["content"]
    assert [system, {"role": "user", "content": text["text"]}] == kept["messages"]
    assert [row["shot"] for row in call.request.evidence["pictures"]] == [SPOTLIGHT]
    data = base64.b64decode(picture["image_url"]["url"].removeprefix("data:image/jpeg;base64,"))
    assert data == run.suite.store.read(call.request.pictures[0])
    assert decode_image(data).shape == (36, 192, 3)
    assert call.request.pictures[0] in text["text"]
    assert reply.pictures == call.request.pictures


@pytest.mark.parametrize(
    "policy",
    [
        {"name": "scripted"},
        {"name": "chat", "student": BLIND},
        {"name": "mixed", "student": SEES, "teacher": BLIND},
        {"name": "mixed", "student": BLIND, "teacher": SEES},
    ],
    ids=["scripted", "blind", "blind teacher", "blind student"],
)
def test_no_picture_is_made_or_named_where_somebody_who_decides_cannot_see(studio: Studio, policy: dict[str, Any]) -> None:
    assert shown(studio.state, studio.state.film.shot_order, deciding(studio, **policy).env) == []


def test_a_model_that_is_not_declared_to_see_is_sent_text_alone(studio: Studio) -> None:
    run, (request,), reply = inspect(deciding(studio, name="mixed", student=SEES), BLIND)
    assert request["messages"] == run.suite.store.read_json(run.calls[1].context_sha256)["messages"]
    assert reply.pictures == ()


def test_pictures_are_few(studio: Studio) -> None:
    env = deciding(studio, name="chat", student=SEES).env
    graphic = studio.state.shots[SPOTLIGHT]
    many = {f"s{i:03d}": graphic for i in range(MOST + 3)}
    rows = shown(replace_shots(studio, many), many, env)
    assert [row["shot"] for row in rows] == list(many)[:MOST]


def replace_shots(studio: Studio, shots: dict[str, Any]) -> Any:
    """The film with other shots."""
    return studio.state.model_copy(update={"shots": shots})


@pytest.mark.parametrize(("height", "width"), [(720, 1280), (1280, 720), (90, 160)])
def test_a_picture_is_small_whatever_it_shows(height: int, width: int) -> None:
    noise = np.random.default_rng(5).integers(0, 256, (height, width, 3), dtype=np.uint8)
    data = small_jpeg(noise)
    assert len(data) <= MOST_BYTES
    assert max(decode_image(data).shape) <= 640
    assert small_jpeg(noise) == data


def test_a_picture_is_guessed_by_number_and_not_by_its_bytes() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64," + "A" * 100_000}}
    text = {"type": "text", "text": "look"}
    one, two = ([{"role": "user", "content": [text, *[picture] * n]}] for n in (1, 2))
    assert estimate({"messages": two}, 10) - estimate({"messages": one}, 10) == PICTURE_TOKENS


def test_pictures_belong_to_the_run_that_is_kept(studio: Studio) -> None:
    run, _, _ = inspect(deciding(studio, name="chat", student=SEES), SEES)
    done = trajectory_done(trajectory_of(run, "chat m", 0, config_digest="0" * 64), run.suite.store, {})
    assert set(run.calls[1].request.pictures) <= set(done.artifacts)
