"""Fixtures shared by all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder with real media and bug-report inputs beside the checkout; skips where it is absent."""
    folder = ROOT.parent / "shared"
    if not (folder / "media").is_dir():
        pytest.skip(f"real media not found beside the checkout ({folder.name}/media)")
    return folder
