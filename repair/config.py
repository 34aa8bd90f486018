"""Settings of inspection, repair and fault injection. Part of the replay stage's key."""

from __future__ import annotations

from pydantic import Field, ValidationError, field_validator

from repair.fault_kinds import KINDS
from replay.chat.config import ModelConfig
from schemas.canonical import Frozen
from schemas.errors import ConfigInvalid


class FaultConfig(Frozen):
    """Faults put in on purpose, with their cause recorded (repair.faults)."""

    kinds: tuple[str, ...] = Field(default=(), description="fault kinds to draw from; empty injects nothing")
    count: int = Field(default=0, ge=0, description="how many faults one run gets")
    seed: int = 0
    explicit: tuple[str, ...] = Field(default=(), description="faults by name beside those drawn, e.g. 'render_black@s002'")

    @field_validator("explicit")
    @classmethod
    def _named(cls, explicit: tuple[str, ...]) -> tuple[str, ...]:
        for one in explicit:
            kind, _, subject = one.partition("@")
            if kind not in KINDS or not subject:
                raise ValueError(f"{one!r} is no fault; expected a kind and a subject, such as 'render_black@s002'")
        return explicit

    @field_validator("kinds")
    @classmethod
    def _known(cls, kinds: tuple[str, ...]) -> tuple[str, ...]:
        unknown = [k for k in kinds if k not in KINDS]
        if unknown:
            raise ValueError(f"there is no fault kind {unknown[0]!r}; the kinds are {', '.join(KINDS)}")
        return kinds


def fault_config(kinds: tuple[str, ...], count: int, seed: int) -> FaultConfig:
    """Settings from a command line.

    Raises:
        ConfigInvalid: a kind that does not exist.
    """
    try:
        return FaultConfig(kinds=kinds, count=count, seed=seed)
    except ValidationError as error:
        message = error.errors(include_url=False, include_input=False)[0]["msg"]
        raise ConfigInvalid("unknown_fault", message.removeprefix("Value error, "), "see docs/repair.md") from error


class RepairConfig(Frozen):
    """All settings of repair."""

    faults: FaultConfig = FaultConfig()
    judge: ModelConfig | None = Field(
        default=None,
        description="vision model that judges rendered graphics, at 'run.endpoints.judge'; none leaves them to the embedded judge",
    )
