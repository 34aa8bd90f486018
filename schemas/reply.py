"""What a model endpoint answered, whole: the record beside a role output that a chat policy authored.

Owns the record only. It is an artifact of its own, named by ``RoleOutput.reply``; it holds times, so no other digest is taken over it.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, ValidationError

from schemas.canonical import Frozen, Sha256
from schemas.errors import SchemaMismatch

REPLY_VERSION: Literal["reply.1"] = "reply.1"


class TokenLogprob(Frozen):
    """One generated token with its log probability."""

    token: str
    logprob: float


class ModelReply(Frozen):
    """One answer of a chat endpoint.

    Token ids and log probabilities are there only where the endpoint gives them; nothing is guessed.
    """

    schema_version: Literal["reply.1"] = REPLY_VERSION
    model: str = Field(description="the model that answered, as the endpoint names it")
    asked_model: str = Field(description="the model that was asked for")
    sampling: dict[str, Any] = Field(description="sampling settings sent: temperature, top_p, seed, max_tokens and extra ones")
    form: Literal["native", "hermes", "qwen_xml", "json", "text"] = Field(description="form in which the tool call or content came")
    pictures: tuple[Sha256, ...] = Field(default=(), description="artifacts: pictures that were sent with the request, in order")
    content: str = Field(description="text of the answer, reasoning included where the endpoint leaves it in")
    reasoning: str | None = Field(default=None, description="reasoning that came in a field of its own")
    tool_calls: tuple[dict[str, Any], ...] = Field(default=(), description="native tool calls as they came")
    finish_reason: str | None = None
    prompt_tokens: int | None = Field(default=None, ge=0)
    completion_tokens: int | None = Field(default=None, ge=0)
    cost_microusd: int | None = Field(default=None, ge=0, description="millionths of a dollar, from the configured prices")
    wall_ms: int = Field(ge=0, description="time of the request that was answered, waiting for a turn excluded")
    waited_ms: int = Field(default=0, ge=0, description="time spent waiting for a turn under the endpoint's limits")
    attempts: int = Field(default=1, ge=1, description="requests sent, failed ones included")
    prompt_token_ids: tuple[int, ...] | None = None
    completion_token_ids: tuple[int, ...] | None = None
    logprobs: tuple[TokenLogprob, ...] | None = None


def read_reply(data: bytes, of: str) -> ModelReply:
    """A stored reply; ``of`` names what it is the answer of, for the error.

    Raises:
        SchemaMismatch: it cannot be read by this release.
    """
    try:
        return ModelReply.model_validate_json(data)
    except ValidationError as error:
        raise SchemaMismatch("reply", f"the reply of {of} cannot be read by this release") from error
