"""Fixtures shared by all tests."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder with real media and bug-report inputs beside the checkout; skips where it is absent."""
    folder = ROOT.parent / "shared"
    if not (folder / "media").is_dir():
        pytest.skip(f"real media not found beside the checkout ({folder.name}/media)")
    return folder


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("workprint")
    group.addoption("--seed", type=int, default=20261130, help="seed of every random fault test; printed by each")
    group.addoption("--figures", metavar="FILE", help="append what each fault test counted to this file, one JSON object a line")


Tally = Callable[..., None]


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """Seed of a random test; shown when it fails, and with -s always."""
    value: int = request.config.getoption("--seed")
    print(f"seed {value}")
    return value


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Tally:
    """``tally("R1", kills=200, lost=0)`` keeps what a fault test counted, for RELIABILITY.md (``python -m tests.fault.report``)."""
    began = time.monotonic()

    def write(id: str, **counts: Any) -> None:
        print(f"{id}: {counts}")
        path = request.config.getoption("--figures")
        if path is None:
            return
        line = {
            "id": id,
            "size": next((s for s in ("full", "gate") if s in request.node.name.partition("[")[2]), "same"),
            "test": request.node.nodeid,
            "seed": request.config.getoption("--seed"),
            "counts": counts,
            "wall_s": round(time.monotonic() - began, 1),
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.release().partition('-')[0]}",
            "load": round(os.getloadavg()[0], 1),
            "versions": {"python": platform.python_version()} | {n: version(n) for n in ("duckdb", "pyarrow", "ray", "sqlalchemy")},
        }
        with Path(path).open("a") as file:
            file.write(json.dumps(line) + "\n")

    return write
