"""Fixtures of the media tests: the real sandbox, and films made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from media.command import Sandbox
from media.probe import probe
from media.sandbox import open_sandbox
from schemas.media import MediaInfo
from tests.media.clips import FAST, make, picture, tone


@pytest.fixture(scope="session")
def sandbox() -> Sandbox:
    return open_sandbox()


@pytest.fixture(scope="session")
def reel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder for films that several tests use."""
    return tmp_path_factory.mktemp("reel")


@pytest.fixture(scope="session")
def film(sandbox: Sandbox, reel: Path) -> Path:
    """Two seconds, 160x90, 25 fps, with a tone."""
    return make(sandbox, reel / "film.mp4", [*picture(), *tone(), *FAST, "-c:a", "aac", "-shortest"])


@pytest.fixture(scope="session")
def film_info(film: Path, sandbox: Sandbox) -> MediaInfo:
    """What the probe says of it."""
    return probe(film, sandbox)
