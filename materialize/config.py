"""Settings of materialization. Part of its stage key."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from schemas.canonical import Frozen


class MaterializeConfig(Frozen):
    """All settings of materialization."""

    tokenizer: Literal["qwen3", "none"] = Field(default="qwen3", description="tokenizer that counts tokens")
    validation_share: float = Field(default=0.05, ge=0, le=0.5, description="share of projects in the validation split")
    held_out_share: float = Field(default=0.05, ge=0, le=0.5, description="share of projects kept for the benchmark, never trained on")
    split_seed: int = 0
    pinned: dict[str, Literal["train", "validation", "held_out"]] = Field(
        default_factory=dict, description="project id (or key of its near-duplicate group) to split, for projects decided by hand"
    )
    check_snapshots: bool = Field(default=False, description="load the state of every example and compare its digest; slow, for audits")
