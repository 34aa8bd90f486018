"""Settings of the inversion stage. Part of the stage key: another value, another storyboard.

Owns values and their bounds only; must not open files or import engines.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from inversion.language import language_code, stated_language
from schemas.canonical import Frozen


class AsrConfig(Frozen):
    """Who listens.

    ``engine`` is what runs when the source brings no text of its own. With ``prefer_given`` a source's sidecar subtitles, or else its
    known script, are used instead (and recorded as the engine).
    """

    engine: Literal["faster_whisper", "whisperx", "endpoint"] = "faster_whisper"
    prefer_given: bool = Field(default=True, description="use the source's own subtitles or script where it names them")
    model: str = Field(default="whisper-base", description="asset name, path of a local model folder, or a hub name such as large-v3")
    device: Literal["cpu", "cuda", "auto"] = "cpu"
    compute_type: str = Field(default="int8", description="CTranslate2 compute type")
    cpu_threads: int = Field(default=2, ge=1, le=64)
    beam_size: int = Field(default=1, ge=1, le=10)
    vad_min_silence_ms: int = Field(default=500, ge=50, description="shorter silences do not split speech, milliseconds")
    vad_threshold: float = Field(default=0.5, gt=0, lt=1)
    no_speech_threshold: float = Field(default=0.6, ge=0, le=1)
    endpoint_url: str | None = Field(default=None, description="base URL of an OpenAI-compatible server, e.g. http://host:8000/v1")
    endpoint_model: str = "whisper-1"
    endpoint_key_env: str | None = Field(default=None, description="environment variable that holds the key; never the key itself")
    endpoint_timeout_s: int = Field(default=300, ge=1)
    whisperx_align_model: str | None = Field(
        default=None, description="wav2vec2 model folder or hub name; None: WhisperX's own for the language"
    )
    whisperx_batch_size: int = Field(default=8, ge=1)


class TimingConfig(Frozen):
    """How word times are refined and guarded."""

    aligner: Literal["pocketsphinx", "none"] = Field(default="pocketsphinx", description="forced alignment of English words")
    max_word_us: int = Field(default=3_000_000, description="a word is never taken to last longer than this")
    split_silence_us: int = Field(default=2_000_000, description="a silence this long inside a recognised segment always splits it")
    uncovered_us: int = Field(default=1_000_000, description="speech this long without words is listened to again")
    hallucination_share: float = Field(
        default=0.1, ge=0, le=1, description="a segment with less of its time in speech than this is dropped"
    )
    loop_repeats: int = Field(default=3, ge=2, description="this many equal segments in a row are a loop: kept once and flagged")


class AlignConfig(Frozen):
    """How words are dealt out to shots."""

    snap_us: int = Field(default=200_000, ge=0, description="a cut this close to a word border counts as lying on it, microseconds")


class ShotConfig(Frozen):
    """How shots are found (inversion.shots)."""

    detector: Literal["builtin"] = "builtin"
    analysis_width: int = Field(default=64, ge=64, le=640, description="width frames are decoded to for detection, pixels")
    sensitivity: float = Field(default=0.5, ge=0, le=1, description="0 finds only certain cuts, 1 finds doubtful ones too")
    min_shot_us: int = Field(default=0, ge=0, description="shorter shots are joined to their neighbour; 0 keeps one-frame shots")


class EvidenceConfig(Frozen):
    """What is looked at in each shot (inversion.evidence)."""

    ocr: bool = True
    max_side: int = Field(default=1280, ge=64, le=4096, description="longer side of stored key frames, pixels")
    key_frames_per_shot: int = Field(default=1, ge=1, le=8)
    ocr_threads: int = Field(default=2, ge=1, le=64)
    caption_endpoint_url: str | None = Field(
        default=None,
        description="base URL of an OpenAI-compatible server with a vision model; None: captions are composed from measurements",
    )
    caption_endpoint_model: str = "vision"
    caption_endpoint_key_env: str | None = Field(default=None, description="environment variable that holds the key; never the key itself")
    caption_timeout_s: float = Field(default=120.0, gt=0, le=3600)
    caption_requests: int = Field(default=4, ge=1, le=64, description="captions asked for at the same time")


class AdmissionConfig(Frozen):
    """Thresholds of admission. A source under one of them is rejected with the figures."""

    languages: tuple[str, ...] = Field(default=(), description="allowed ISO 639-1 languages; empty allows all")
    min_duration_us: int = Field(default=2_000_000, ge=0)
    min_shots: int = Field(default=1, ge=1)
    min_narration_share: float = Field(default=0.05, ge=0, le=1)
    min_confidence: float = Field(default=0.3, ge=0, le=1, description="mean word confidence, where the back end gives one")
    min_speech_covered: float = Field(default=0.5, ge=0, le=1, description="share of detected speech that words must cover")
    licences: tuple[str, ...] = Field(default=(), description="allowed licences, compared without case; empty allows all, known or not")
    min_script_match: float = Field(default=0.6, ge=0, le=1, description="share of a given script's words that must be heard")

    @field_validator("languages")
    @classmethod
    def _codes(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_stated(name) for name in names)


class InversionConfig(Frozen):
    """All settings of inversion."""

    language: str | None = Field(default=None, description="language of all sources, ISO 639-1; None: the source's own, else detected")
    asr: AsrConfig = AsrConfig()
    timing: TimingConfig = TimingConfig()
    align: AlignConfig = AlignConfig()
    shots: ShotConfig = ShotConfig()
    evidence: EvidenceConfig = EvidenceConfig()
    admission: AdmissionConfig = AdmissionConfig()
    max_duration_us: int = Field(default=4 * 3_600_000_000, gt=0, description="longer sources are refused, microseconds")
    sidecar_bytes: int = Field(default=16 * 1024 * 1024, gt=0, description="largest subtitle or script file that is read")
    overlap: bool = Field(default=True, description="listen while the picture is decoded")

    @field_validator("language")
    @classmethod
    def _code(cls, name: str | None) -> str | None:
        return None if name is None else _known(name)


def _known(name: str) -> str:
    code = language_code(name)
    if code is None:
        raise ValueError(f"{name[:40]!r} is no language that can be recognised; give an ISO 639-1 code such as en or zh")
    return code


def _stated(name: str) -> str:
    code = "und" if name.strip().casefold() == "und" else stated_language(name)
    if code is None:
        raise ValueError(f"{name[:40]!r} is no language; give codes such as en or zh, or und for what is not known")
    return code
