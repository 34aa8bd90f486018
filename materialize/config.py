"""Settings of materialization. Part of its stage key."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

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
    same_pictures: float = Field(
        default=0.5, gt=0, le=1, description="share of the key frames of the film with fewer of them that makes two films near-duplicates"
    )
    same_sound: float = Field(default=0.4, gt=0, le=1, description="share of the shorter sound track that makes them near-duplicates")
    same_text: float = Field(default=0.5, gt=0, le=1, description="share of the shorter narration that makes them near-duplicates")
    check_snapshots: bool = Field(default=False, description="load the state of every example and compare its digest; slow, for audits")


class RewardConfig(Frozen):
    """Weights of the rewards of eq. 9 to 11 (arXiv 2610.38352, Appendix A.2). The paper names the symbols and does not publish their values
    (the six weights of the rule score apart, see evaluation.quality): every default here is this project's own choice."""

    gamma: float = Field(default=1.0, gt=0, le=1, description="discount of progress per call")
    epsilon_p: float = Field(
        default=0.05, gt=0, lt=1, description="margin that keeps the progress of failed branches below the delivery tier"
    )
    alpha: float = Field(default=0.5, ge=0, le=1, description="share of delivery and progress credit against final quality")
    lambda_p: float = Field(default=0.1, ge=0, description="weight of the penalty for stopping below the delivery quality")
    q_min: float = Field(default=0.6, ge=0, le=1, description="delivery quality")
    audit_weight: float = Field(default=0.3, ge=0, le=1, description="w_a: share of the render audit in final quality")
    milestones: dict[str, float] = Field(
        default_factory=lambda: {
            "segments": 1.0,
            "shot_plan": 1.0,
            "assets": 1.0,
            "narration": 1.0,
            "decorations": 1.0,
            "music": 1.0,
            "timeline": 1.0,
            "renders": 1.0,
            "delivery": 1.0,
        },
        description="omega_k > 0 by fact of the production state (schemas.contract.Fact)",
    )
    generator: dict[str, float] = Field(
        default_factory=lambda: {"schema_validity": 0.25, "grounding": 0.25, "coverage": 0.25, "usability": 0.25},
        description="w_k^G by feature",
    )
    diagnosis: float = Field(default=0.3, ge=0, description="w_d")
    repair: float = Field(default=0.4, ge=0, description="w_r, of the repair utility in -1..1")
    verification: float = Field(default=0.3, ge=0, description="w_v")
    unnecessary: float = Field(default=0.2, ge=0, description="w_u, subtracted")

    @model_validator(mode="after")
    def _positive(self) -> RewardConfig:
        if not self.milestones or min(self.milestones.values()) <= 0:
            raise ValueError("every milestone needs a weight above 0")
        if not self.generator or min(self.generator.values()) < 0:
            raise ValueError("generator weights may not be negative")
        return self


class GroupConfig(Frozen):
    """How comparison groups are made (Appendix A.2). The paper names delta and the cap and publishes no values: these are ours."""

    candidates: int = Field(default=4, ge=2, le=64, description="K: different outputs of one group")
    sampler: Literal["scripted", "chat"] = Field(
        default="scripted",
        description="who proposes outputs: 'scripted' gives the recorded one, alternatives of other seeds and mistakes; 'chat' gives "
        "samples of the model of replay.policy.student (or .teacher), and nothing else",
    )
    continuation: Literal["scripted", "chat"] = Field(
        default="scripted", description="the frozen policy that plays on after every candidate: the scripted editor, or that chat model"
    )
    seeds: tuple[int, ...] = Field(
        default=(0,), min_length=1, description="paired seeds of the frozen continuation, the same for every output"
    )
    delta: float = Field(default=1e-4, ge=0, description="rewards of an accepted group vary by more than this (variance)")
    rounds: int = Field(
        default=3, ge=1, le=20, description="times a group of too little variance is drawn before it goes to the coverage queue"
    )
    per_cell: int = Field(default=2, ge=1, description="quota: groups for one role, task and tool")
    epsilon: float = Field(default=1e-6, gt=0, description="keeps the normalised advantage finite")
