"""A chat model behind HTTP: what is sent, what is kept of the reply, and the limits of an endpoint."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest

from media import gate
from media.gate import BudgetSpent, Gate
from replay.chat.config import EndpointLimits, ModelConfig
from replay.chat.model import ChatRequest, HttpChatModel, request_body
from schemas.errors import ConfigInvalid, EndpointFailed, EndpointRefused, Retry
from tests.media.servers import Reply, serve

MESSAGES = [{"role": "system", "content": "Edit."}, {"role": "user", "content": "Go."}]
TOOL = {"type": "function", "function": {"name": "t", "description": "d", "parameters": {"type": "object", "properties": {}}}}


def completion(message: Any, **more: Any) -> bytes:
    choice = {"index": 0, "message": message, "finish_reason": more.pop("finish_reason", "stop"), **more.pop("choice", {})}
    return json.dumps({"model": "tiny-1", "choices": [choice], "usage": {"prompt_tokens": 10, "completion_tokens": 4}, **more}).encode()


def model(url: str, limits: dict[str, Any] | None = None, **config: Any) -> HttpChatModel:
    return HttpChatModel(
        ModelConfig(model="tiny", **config), EndpointLimits(**{"endpoint_url": url, "timeout_s": 2, "attempts": 1, **(limits or {})})
    )


def test_an_orchestrator_request_offers_the_tools() -> None:
    body = request_body(ModelConfig(model="tiny", seed=5, temperature=0.7), ChatRequest(MESSAGES, [TOOL], turn=3))
    assert body == {
        "model": "tiny",
        "messages": MESSAGES,
        "temperature": 0.7,
        "top_p": 1.0,
        "max_tokens": 4096,
        "seed": 8,
        "tools": [TOOL],
    }


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("schema", {"type": "json_schema", "json_schema": {"name": "segments", "schema": {"type": "object"}}}),
        ("object_schema", {"type": "json_object", "schema": {"type": "object"}}),
        ("object", {"type": "json_object"}),
        ("none", None),
    ],
)
def test_a_content_request_binds_the_answer(form: Any, expected: Any) -> None:
    body = request_body(ModelConfig(model="tiny", json_form=form), ChatRequest(MESSAGES, (), {"type": "object"}, "segments"))
    assert body.get("response_format") == expected
    assert "tools" not in body


def test_extra_members_are_sent_as_they_are() -> None:
    body = request_body(ModelConfig(model="tiny", extra={"chat_template_kwargs": {"enable_thinking": False}}), ChatRequest(MESSAGES))
    assert body["chat_template_kwargs"] == {"enable_thinking": False}


def test_the_whole_reply_is_kept() -> None:
    message = {"role": "assistant", "content": "hm", "reasoning_content": "because", "tool_calls": [{"function": {"name": "t"}}]}
    logprobs = {"content": [{"token": "h", "logprob": -0.5}, {"token": "m", "logprob": -1.25}]}
    answer = completion(message, prompt_token_ids=[1, 2], choice={"token_ids": [3, 4], "logprobs": logprobs}, finish_reason="length")
    with serve([Reply(answer)]) as server:
        reply = model(server.url, {"prompt_price": 1_000_000, "completion_price": 3_000_000}, logprobs=True, token_ids=True).complete(
            ChatRequest(MESSAGES)
        )
        sent = server.requests[0]
    assert (sent["logprobs"], sent["return_token_ids"]) == (True, True)
    assert (reply.model, reply.asked_model, reply.content, reply.reasoning, reply.finish_reason) == (
        "tiny-1",
        "tiny",
        "hm",
        "because",
        "length",
    )
    assert (reply.prompt_tokens, reply.completion_tokens, reply.cost_microusd) == (10, 4, 22)
    assert (reply.prompt_token_ids, reply.completion_token_ids) == ((1, 2), (3, 4))
    assert reply.logprobs is not None
    assert [(t.token, t.logprob) for t in reply.logprobs] == [("h", -0.5), ("m", -1.25)]
    assert reply.tool_calls == ({"function": {"name": "t"}},)


@pytest.mark.parametrize(
    ("message", "content"),
    [
        ({"content": None}, ""),
        ({"content": ""}, ""),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "ab"),
        ({"content": "{broken", "tool_calls": None}, "{broken"),
    ],
)
def test_a_poor_answer_is_an_answer(message: dict[str, Any], content: str) -> None:
    with serve([Reply(completion(message))]) as server:
        assert model(server.url).complete(ChatRequest(MESSAGES)).content == content


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"{}", b'{"choices": []}', b'{"choices": [{"message": "hi"}]}', b"[1]", b'{"choices": 3}']
)
def test_an_answer_outside_the_protocol_is_a_fault_that_is_tried_again(body: bytes) -> None:
    with serve([Reply(body), Reply(completion({"content": "ok"}))]) as server:
        assert model(server.url, {"attempts": 2}).complete(ChatRequest(MESSAGES)).attempts == 2
    with serve([Reply(body)]) as server, pytest.raises(EndpointFailed, match="no chat completion") as caught:
        model(server.url).complete(ChatRequest(MESSAGES))
    assert caught.value.code == "endpoint_protocol"


def test_a_model_without_address_is_told_before_anything_runs() -> None:
    with pytest.raises(ConfigInvalid, match=r"run\.endpoints\.student\.endpoint_url is not set"):
        HttpChatModel(ModelConfig(model="tiny"), EndpointLimits())


def test_no_more_requests_fly_than_allowed() -> None:
    with serve([Reply(completion({"content": "ok"}), wait_s=0.15)]) as server:
        asked = model(server.url, {"concurrency": 2})
        began = time.monotonic()
        threads = [threading.Thread(target=asked.complete, args=(ChatRequest(MESSAGES),)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(server.requests) == 6
    assert time.monotonic() - began >= 3 * 0.15


def test_the_run_stops_asking_when_its_tokens_are_spent() -> None:
    with serve([Reply(completion({"content": "ok"}))]) as server:
        asked = model(server.url, {"budget_tokens": 20})
        asked.complete(ChatRequest(MESSAGES))
        asked.complete(ChatRequest(MESSAGES))
        with pytest.raises(BudgetSpent, match=r"28 of its 20 \(budget_tokens\)") as caught:
            asked.complete(ChatRequest(MESSAGES))
        assert len(server.requests) == 2
    assert isinstance(caught.value, EndpointRefused)
    assert caught.value.retry is Retry.NEVER


def test_money_is_a_budget_too() -> None:
    turns = Gate(EndpointLimits(budget_microusd=5))
    with turns.turn(1) as turn:
        turn.spent(1, 1, 7)
    with pytest.raises(BudgetSpent, match="budget_microusd"), turns.turn(1):
        pass


@pytest.mark.parametrize(
    ("limits", "guess", "waits"),
    [({"requests_per_minute": 2}, 1, [False, False, True]), ({"tokens_per_minute": 100}, 60, [False, True]), ({}, 10**9, [False, False])],
)
def test_a_minute_holds_no_more_than_allowed(
    monkeypatch: pytest.MonkeyPatch, limits: dict[str, Any], guess: int, waits: list[bool]
) -> None:
    monkeypatch.setattr(gate, "MINUTE_S", 0.4)
    turns = Gate(EndpointLimits(**limits))
    seen = []
    for _ in waits:
        with turns.turn(guess) as turn:
            turn.spent(None, None, None)
        seen.append(turn.waited_ms >= 300)
    assert seen == waits


def test_a_request_larger_than_the_minute_goes_alone_instead_of_waiting_for_ever() -> None:
    with Gate(EndpointLimits(tokens_per_minute=10)).turn(1_000) as turn:
        pass
    assert turn.waited_ms < 100
