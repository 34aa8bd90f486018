"""Which chat model decides and how it is sampled (part of a trajectory's key), and where it is reached and within which limits (not)."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from media.gate import RateLimits
from schemas.canonical import Frozen


class ModelConfig(Frozen):
    """A chat model and its sampling."""

    model: str = Field(description="name the endpoint knows the model by")
    temperature: float = Field(default=0.0, ge=0, le=2)
    top_p: float = Field(default=1.0, gt=0, le=1)
    seed: int | None = Field(default=None, description="sampling seed; moved by the run's seed and the call's index")
    max_tokens: int = Field(default=4096, ge=16, description="tokens of one answer")
    tool_form: Literal["native", "hermes", "qwen_xml"] = Field(
        default="native", description="'native' sends tool schemas to the endpoint; the others write them into the system prompt as text"
    )
    json_form: Literal["schema", "object_schema", "object", "none"] = Field(
        default="schema",
        description="how generator and critic answers are bound: by their JSON Schema ('object_schema' sends it as llama-cpp-python reads "
        "it), to a JSON object, or not",
    )
    logprobs: bool = Field(default=False, description="ask for log probabilities of generated tokens and keep them")
    token_ids: bool = Field(default=False, description="ask for token ids (vLLM's return_token_ids) and keep them")
    vision: bool = Field(
        default=False, description="the model takes pictures: as critic it is shown the graphics it judges (bounded in number and bytes)"
    )
    extra: dict[str, Any] = Field(default_factory=dict, description="more members of the request body, e.g. chat_template_kwargs")


class EndpointLimits(RateLimits):
    """Where a chat model is reached, and how hard it may be worked. Never changes what a model would answer."""

    endpoint_url: str | None = Field(default=None, description="base address of an OpenAI-compatible server, e.g. http://host:8000/v1")
    endpoint_key_env: str | None = Field(default=None, description="environment variable that holds the key; never the key itself")
    timeout_s: int = Field(default=180, ge=1, description="limit of one request, seconds")
    attempts: int = Field(default=4, ge=1, le=10, description="requests sent for one answer at most; only transport faults are tried again")
    prompt_price: int = Field(default=0, ge=0, description="millionths of a dollar for a million prompt tokens")
    completion_price: int = Field(default=0, ge=0, description="millionths of a dollar for a million generated tokens")


class TurnConfig(Frozen):
    """Who takes a turn when teacher and student share a run (eq. 6 of the paper)."""

    beta_start: float = Field(default=0.8, ge=0, le=1, description="chance of the teacher at update 0")
    update: int = Field(default=0, ge=0, description="training update n that the run belongs to")
    decay_updates: int = Field(default=1, ge=1, description="T_decay: updates until the student is alone; the paper takes 70 % of training")
