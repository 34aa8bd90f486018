"""Modules of the frameworks that adapters are written for: imported when an adapter is used, and named with their command when missing.

The versions are those that the adapters were proved with (tests/consumers, docs/rl.md). Knows nothing of what the modules hold.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from schemas.errors import EngineMissing

INSTALL = {
    "inspect": "inspect-ai==0.3.285",
    "nemo_gym": "nemo-gym==0.4.0",
    "openenv": "openenv==0.10.0",
    "skyrl": "skyrl-gym==0.4.0",
    "verifiers": "verifiers==0.4.0",
    "verl": "verl==0.9.1 uvicorn cachetools fastapi",
}
"""What brings a framework, with what its own package forgets to ask for."""


def module(framework: str, name: str) -> Any:
    """A module of a framework, or of something that comes with it.

    Args:
        framework: a key of :data:`INSTALL`.
        name: the module's full name.

    Raises:
        EngineMissing: it is not installed, or something that the module needs.
    """
    try:
        return import_module(name)
    except ImportError as error:
        package = INSTALL[framework].partition("==")[0]
        raise EngineMissing(f"{framework}_missing", f"the adapter needs {package}: {error}", f"pip install {INSTALL[framework]}") from error
