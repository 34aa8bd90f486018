"""Measurements of artifacts, noted in the store: the same bytes are decoded for a check once, not once a call.

Owns the notes only; what is measured is decided by media.measure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from media.command import Sandbox
from media.measure import AudioMeasure, VideoMeasure, check_audio, check_video
from schemas.artifact import ArtifactKind, ArtifactRef
from storage.artifacts import ArtifactStore

VERSION = "2"
"""Version of what media.measure measures; another one makes the notes worthless."""

M = TypeVar("M", VideoMeasure, AudioMeasure)


def measured_video(ref: ArtifactRef, store: ArtifactStore, sandbox: Sandbox) -> VideoMeasure:
    """Measures of a video artifact. Raises as ``media.measure.check_video``."""
    return _noted("video", ref, store, VideoMeasure, lambda path: check_video(path, sandbox))


def measured_audio(ref: ArtifactRef, store: ArtifactStore, sandbox: Sandbox) -> AudioMeasure:
    """Measures of a sound artifact. Raises as ``media.measure.check_audio``."""
    return _noted("audio", ref, store, AudioMeasure, lambda path: check_audio(path, sandbox))


def _noted(kind: str, ref: ArtifactRef, store: ArtifactStore, form: type[M], measure: Callable[[Path], M]) -> M:
    key = f"measure {kind} {VERSION} {ref.sha256}"
    note = store.recall(key)
    if note is not None:
        value: dict[str, Any] = store.read_json(note.sha256)
        return form(**value)
    found = measure(store.path(ref.sha256))
    store.remember(key, store.put_json(asdict(found), ArtifactKind.OTHER))
    return found
