"""Settings of inspection, repair and fault injection. Part of the replay stage's key."""

from __future__ import annotations

from pydantic import Field, field_validator

from repair.fault_kinds import KINDS
from replay.chat.config import ModelConfig
from schemas.canonical import Frozen


class FaultConfig(Frozen):
    """Faults put in on purpose, with their cause recorded (repair.faults)."""

    kinds: tuple[str, ...] = Field(default=(), description="fault kinds to draw from; empty injects nothing")
    count: int = Field(default=0, ge=0, description="how many faults one run gets")
    seed: int = 0

    @field_validator("kinds")
    @classmethod
    def _known(cls, kinds: tuple[str, ...]) -> tuple[str, ...]:
        unknown = [k for k in kinds if k not in KINDS]
        if unknown:
            raise ValueError(f"there is no fault kind {unknown[0]!r}; the kinds are {', '.join(KINDS)}")
        return kinds


class RepairConfig(Frozen):
    """All settings of repair."""

    faults: FaultConfig = FaultConfig()
    judge: ModelConfig | None = Field(
        default=None,
        description="vision model that judges rendered graphics, at 'run.endpoints.judge'; none leaves them to the embedded judge",
    )
