"""Fixtures of the replay tests."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from media.command import Sandbox
from media.sandbox import open_sandbox

MEMORY = Path("/dev/shm")  # noqa: S108


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder in memory where there is such a thing: these tests write many small durable files and test no disk."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None, prefix="workprint-test-") as path:
        yield Path(path)


@pytest.fixture(scope="session")
def sandbox() -> Sandbox:
    """The real sandbox of this host."""
    return open_sandbox()
