"""Chat models of a run: which are asked, and the one connection to each that all projects of a process share.

A runner on several processes puts its own connections in place (:func:`share`), so that limits hold over the whole run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from jobs.config import WorkprintConfig
from replay.chat.model import ChatModel, HttpChatModel
from schemas.errors import ConfigInvalid

Part = Literal["student", "teacher"]

_OWN: dict[tuple[str, str, str], ChatModel] = {}
_SHARED: dict[str, ChatModel] = {}


def asked(config: WorkprintConfig) -> tuple[Part, ...]:
    """Parts that a chat model plays in this configuration."""
    policy = config.replay.policy
    if policy.name == "chat":
        return ("student",) if policy.student is not None else ("teacher",)
    if policy.name == "mixed":
        return ("student",) if policy.teacher is None else ("student", "teacher")
    return ()


def connect(part: Part, config: WorkprintConfig) -> HttpChatModel:
    """A new connection to a part's model.

    Raises:
        ConfigInvalid: the part has no address.
    """
    model = getattr(config.replay.policy, part)
    return HttpChatModel(model, getattr(config.run.endpoints, part), f"run.endpoints.{part}.endpoint_url")


def connect_judge(config: WorkprintConfig) -> HttpChatModel:
    """A new connection to the model that judges graphics.

    Raises:
        ConfigInvalid: no model is configured, or it has no address.
    """
    if config.repair.judge is None:
        raise ConfigInvalid("no_judge", "repair.judge names no model", "set repair.judge.model")
    return HttpChatModel(config.repair.judge, config.run.endpoints.judge, "run.endpoints.judge.endpoint_url")


def model(part: Part, config: WorkprintConfig) -> ChatModel:
    """The connection that this process uses.

    Raises:
        ConfigInvalid: as :func:`connect`.
    """
    if part in _SHARED:
        return _SHARED[part]
    key = (part, getattr(config.replay.policy, part).digest(), getattr(config.run.endpoints, part).digest())
    if key not in _OWN:
        _OWN[key] = connect(part, config)
    return _OWN[key]


def share(models: Mapping[str, ChatModel]) -> None:
    """Use these connections in this process from now on."""
    _SHARED.clear()
    _SHARED.update(models)
