"""Artifacts: bytes named by their sha256."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from schemas.canonical import Frozen, Sha256


class ArtifactKind(StrEnum):
    """What the bytes are."""

    STORYBOARD = "storyboard"
    KEY_FRAME = "key_frame"
    CLIP = "clip"
    NARRATION = "narration"
    DECORATION = "decoration"
    MUSIC = "music"
    TIMELINE = "timeline"
    RENDER = "render"
    VIDEO = "video"
    MANIFEST = "manifest"
    CONTEXT = "context"
    SNAPSHOT = "snapshot"
    RECORD = "record"
    TRAJECTORY = "trajectory"
    EVIDENCE = "evidence"
    REPLY = "reply"
    OTHER = "other"


class ArtifactRef(Frozen):
    """A reference to stored bytes."""

    sha256: Sha256
    kind: ArtifactKind
    media_type: str = Field(description="MIME type")
    size_bytes: int = Field(ge=0)
