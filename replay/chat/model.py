"""A chat model as the runtime's policies use it: one request, one reply, whole. Here over HTTP; the protocol is all that policies know.

Owns the form of requests and replies of the OpenAI chat protocol. What a reply means is replay.chat.parsing's business: one that makes
no sense as a decision is still a reply.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from media.endpoint import Endpoint, EndpointClient
from media.gate import Gate
from replay.chat.config import EndpointLimits, ModelConfig
from schemas.errors import ConfigInvalid, EndpointFailed
from schemas.reply import ModelReply, TokenLogprob

MAX_LOGPROBS = 100_000
"""Tokens of one answer whose log probabilities are kept."""
CHARS_PER_TOKEN = 3
"""For the first guess of a request's tokens; the endpoint's own count replaces it."""
PICTURE_TOKENS = 1_500
"""The same for one picture, whatever its bytes."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What one model is asked once."""

    messages: Sequence[dict[str, Any]]
    tools: Sequence[dict[str, Any]] = ()
    """OpenAI function schemas; empty where content is asked for."""
    schema: dict[str, Any] | None = None
    """JSON Schema of the content asked for."""
    schema_name: str = "content"
    turn: int = 0
    """Moves the sampling seed."""


class ChatModel(Protocol):
    """Something that answers chat requests."""

    config: ModelConfig

    def complete(self, request: ChatRequest) -> ModelReply:
        """One answer.

        Raises:
            EndpointFailed: none could be had; a fault of ours, never an observation.
        """
        ...


@dataclass(slots=True)
class HttpChatModel:
    """A model behind an OpenAI-compatible server (vLLM, SGLang, llama.cpp, hosted ones).

    Args:
        setting: configuration key of the address, for errors.

    Raises:
        ConfigInvalid: no address, or none that makes sense.
    """

    config: ModelConfig
    limits: EndpointLimits
    setting: str = "run.endpoints.student.endpoint_url"
    _client: EndpointClient = field(init=False)
    _gate: Gate = field(init=False)

    def __post_init__(self) -> None:
        if self.limits.endpoint_url is None:
            raise ConfigInvalid("endpoint_url_missing", f"a chat model decides and {self.setting} is not set", f"set {self.setting}")
        self._client = EndpointClient(
            Endpoint(
                self.limits.endpoint_url, self.setting, self.limits.endpoint_key_env, float(self.limits.timeout_s), self.limits.attempts
            ),
            gate=None,
        )
        self._gate = Gate(self.limits)

    def complete(self, request: ChatRequest) -> ModelReply:
        """One answer, within the endpoint's limits.

        Raises:
            EndpointFailed: no answer, or none in the protocol.
            EndpointRefused: the server refused, or the run's budget for this endpoint is spent.
        """
        body = request_body(self.config, request)
        with self._gate.turn(estimate(body, self.config.max_tokens)) as turn:
            replies: list[ModelReply] = []
            answer = self._client.post("chat/completions", json=body, check=lambda data: replies.append(self._read(data, body)))
            reply = replies[-1]
            turn.spent(reply.prompt_tokens, reply.completion_tokens, reply.cost_microusd)
        return reply.model_copy(update={"wall_ms": answer.wall_ms, "attempts": answer.attempts, "waited_ms": turn.waited_ms})

    def _read(self, data: bytes, body: dict[str, Any]) -> ModelReply:
        return read_reply(data, self.config, body, self.limits, host=self._client.host)


def estimate(body: dict[str, Any], max_tokens: int) -> int:
    """Tokens a request may take, guessed from above before the endpoint has counted."""
    texts, pictures = [], 0
    for message in body.get("messages", ()):
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        texts.append([part for part in parts if part.get("type") == "text"])
        pictures += sum(1 for part in parts if part.get("type") != "text")
    return len(orjson.dumps([texts, body.get("tools", ())])) // CHARS_PER_TOKEN + pictures * PICTURE_TOKENS + max_tokens


def request_body(config: ModelConfig, request: ChatRequest) -> dict[str, Any]:
    """The JSON body of a chat request."""
    body: dict[str, Any] = {
        "model": config.model,
        "messages": list(request.messages),
        "temperature": config.temperature,
        "top_p": config.top_p,
        "max_tokens": config.max_tokens,
    }
    if config.seed is not None:
        body["seed"] = config.seed + request.turn
    if request.tools:
        body["tools"] = list(request.tools)
    if request.schema is not None and config.json_form == "schema":
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": request.schema_name, "schema": request.schema}}
    elif request.schema is not None and config.json_form == "object_schema":
        body["response_format"] = {"type": "json_object", "schema": request.schema}
    elif request.schema is not None and config.json_form == "object":
        body["response_format"] = {"type": "json_object"}
    if config.logprobs:
        body["logprobs"] = True
    if config.token_ids:
        body["return_token_ids"] = True
    return {**body, **config.extra}


def read_reply(answer: bytes, config: ModelConfig, body: dict[str, Any], limits: EndpointLimits, *, host: str) -> ModelReply:
    """A chat completion as a record.

    Raises:
        EndpointFailed: the bytes are no chat completion. What the model wrote inside one is never judged here.
    """
    try:
        root = orjson.loads(answer)
        choice = root["choices"][0]
        message = choice["message"]
        if not isinstance(message, dict):
            raise TypeError("message")
        content = _text(message.get("content"))
        calls = message.get("tool_calls") or ()
        usage = root.get("usage") or {}
        prompt_tokens, completion_tokens = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
        sampling = {k: v for k, v in body.items() if k not in ("model", "messages", "tools", "response_format")}
        return ModelReply(
            model=str(root.get("model") or config.model),
            asked_model=config.model,
            sampling=sampling,
            form="text",
            content=content,
            reasoning=_text(message.get("reasoning_content") or message.get("reasoning")) or None,
            tool_calls=tuple(c for c in calls if isinstance(c, dict)),
            finish_reason=None if choice.get("finish_reason") is None else str(choice["finish_reason"]),
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            cost_microusd=_cost(prompt_tokens, completion_tokens, limits),
            wall_ms=0,
            prompt_token_ids=_ids(root.get("prompt_token_ids")),
            completion_token_ids=_ids(choice.get("token_ids")),
            logprobs=_logprobs(choice.get("logprobs")),
        )
    except (orjson.JSONDecodeError, LookupError, TypeError, AttributeError, ValueError) as error:
        raise EndpointFailed(
            "endpoint_protocol",
            f"{host} answered something that is no chat completion ({type(error).__name__})",
            "check that the address ends in /v1 of an OpenAI-compatible server",
        ) from error


def _text(value: Any) -> str:
    """Content as text; parts of a list are joined."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(str(part.get("text", "")) for part in value if isinstance(part, dict))
    raise TypeError("content")


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None


def _cost(prompt: int | None, completion: int | None, limits: EndpointLimits) -> int | None:
    if not (limits.prompt_price or limits.completion_price) or prompt is None or completion is None:
        return None
    return -(-(prompt * limits.prompt_price + completion * limits.completion_price) // 1_000_000)


def _ids(value: Any) -> tuple[int, ...] | None:
    return tuple(value) if isinstance(value, list) and all(isinstance(v, int) for v in value) else None


def _logprobs(value: Any) -> tuple[TokenLogprob, ...] | None:
    rows = value.get("content") if isinstance(value, dict) else None
    if not isinstance(rows, list):
        return None
    found = [
        TokenLogprob(token=str(r.get("token", "")), logprob=float(r["logprob"]))
        for r in rows[:MAX_LOGPROBS]
        if isinstance(r, dict) and isinstance(r.get("logprob"), int | float) and math.isfinite(r["logprob"])
    ]
    return tuple(found)
