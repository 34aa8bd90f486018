"""Chat models of a run: which are asked, and the one connection to each that all projects of a process share.

A runner on several processes puts its own connections in place (:func:`share`), so that limits hold over the whole run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from jobs.config import WorkprintConfig
from media.gate import limit
from replay.chat.config import EndpointLimits, ModelConfig
from replay.chat.model import ChatModel, HttpChatModel
from schemas.errors import ConfigInvalid

Owner = Literal["student", "teacher"]
Part = Owner | Literal["judge"]

_OWN: dict[tuple[str, str, str], ChatModel] = {}
_SHARED: dict[str, ChatModel] = {}


def asked(config: WorkprintConfig) -> tuple[Part, ...]:
    """Parts that a chat model plays in this configuration: those of the policy, and the judge of graphics."""
    policy = config.replay.policy
    parts: tuple[Part, ...] = ()
    if policy.name == "chat":
        parts = ("student",) if policy.student is not None else ("teacher",)
    elif policy.name == "mixed":
        parts = ("student",) if policy.teacher is None else ("student", "teacher")
    return parts if config.repair.judge is None else (*parts, "judge")


def named(part: Part, config: WorkprintConfig) -> ModelConfig:
    """The model that plays a part.

    Raises:
        ConfigInvalid: none is configured.
    """
    policy = config.replay.policy
    found = {"student": policy.student, "teacher": policy.teacher, "judge": config.repair.judge}[part]
    if found is None:
        where = "repair.judge" if part == "judge" else f"replay.policy.{part}"
        raise ConfigInvalid("no_model", f"{where} names no model", f"set {where}.model")
    return found


def connect(part: Part, config: WorkprintConfig) -> HttpChatModel:
    """A new connection to a part's model.

    Raises:
        ConfigInvalid: the part has no model, or no address.
    """
    return HttpChatModel(named(part, config), limits(part, config), setting(part))


def limits(part: Part, config: WorkprintConfig) -> EndpointLimits:
    """Where a part's model is reached, and how hard it may be worked."""
    endpoints = config.run.endpoints
    return {"student": endpoints.student, "teacher": endpoints.teacher, "judge": endpoints.judge}[part]


def setting(part: Part) -> str:
    """Configuration key of a part's address."""
    return f"run.endpoints.{part}.endpoint_url"


def model(part: Part, config: WorkprintConfig) -> ChatModel:
    """The connection that this process uses: the run's own, where it has one to this model.

    Raises:
        ConfigInvalid: as :func:`connect`.
    """
    wanted = named(part, config)
    if part in _SHARED and _SHARED[part].config == wanted:
        return _SHARED[part]
    key = (part, wanted.digest(), limits(part, config).digest())
    if key not in _OWN:
        _OWN[key] = connect(part, config)
    return _OWN[key]


def limit_services(config: WorkprintConfig) -> None:
    """Hold this process to what the run allows of servers of recognition, captions and speech."""
    endpoints = config.run.endpoints
    limit(
        {
            "inversion.asr.endpoint_url": endpoints.recogniser,
            "inversion.evidence.caption_endpoint_url": endpoints.caption,
            "replay.speech.endpoint_url": endpoints.speech,
        }
    )


def share(models: Mapping[str, ChatModel]) -> None:
    """Use these connections in this process from now on."""
    _SHARED.clear()
    _SHARED.update(models)
