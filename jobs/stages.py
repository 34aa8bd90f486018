"""The three stages wired to their packages: what each needs, built once a process and used again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from inversion.invert import invert
from jobs.config import WorkprintConfig
from media.command import Sandbox
from media.ocr import RapidReader
from replay.build_engines import build_engines
from replay.config import ReplayConfig
from replay.engines import Engines
from schemas.canonical import digest_of
from schemas.example import Example
from schemas.media import SourceItem
from schemas.stage import Done, Rejected
from schemas.storyboard import Storyboard
from schemas.trajectory import Trajectory
from storage.artifacts import ArtifactStore

Note = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Workshop:
    """What the stages work with."""

    config: WorkprintConfig
    store: ArtifactStore
    sandbox: Sandbox

    @property
    def engines(self) -> Engines:
        """Speech, embedding, music, templates and text recognition; built once a process."""
        return _engines(self.config.replay, self.sandbox)


@lru_cache(maxsize=2)
def _engines(config: ReplayConfig, sandbox: Sandbox) -> Engines:
    return build_engines(config, sandbox)


@lru_cache(maxsize=1)
def _reader() -> RapidReader:
    return RapidReader()


def replay_settings(config: WorkprintConfig) -> dict[str, Any]:
    """The part of the configuration that decides a trajectory."""
    return {"replay": config.replay.model_dump(mode="json"), "repair": config.repair.model_dump(mode="json")}


def replay_digest(config: WorkprintConfig) -> str:
    """Digest of :func:`replay_settings`."""
    return digest_of(replay_settings(config))


def run_invert(shop: Workshop, item: SourceItem, path: Path, note: Note) -> Done[Storyboard] | Rejected:
    """Source to storyboard."""
    return invert(item, path, shop.config.inversion, sandbox=shop.sandbox, store=shop.store, reader=_reader(), note=note)


def run_replay(shop: Workshop, board: Storyboard, source: Path, journal: Path, config_digest: str, note: Note) -> Done[Trajectory]:
    """Storyboard to trajectory, with inspection and repair; resumes from the journal of a run that was stopped."""
    raise RuntimeError("wired below")


def run_materialize(shop: Workshop, board: Storyboard, trajectory: Trajectory, note: Note) -> Done[tuple[Example, ...]]:
    """Trajectory to examples and rows."""
    raise RuntimeError("wired below")
