"""What the hostile tests share: a sandbox, a Python that can run inside it, and a look at what is left behind."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from media.command import Command, Completed, Limits, Sandbox
from media.sandbox import open_sandbox
from tests.hostile.tally import Tally

TALLY = Tally()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count what every test came to."""
    TALLY.note(report.nodeid, report.outcome, report.user_properties)


def pytest_sessionfinish() -> None:
    """Write the counts where ``WORKPRINT_COUNTS`` says; by the process that sees all reports."""
    goal = os.environ.get("WORKPRINT_COUNTS")
    if goal and "PYTEST_XDIST_WORKER" not in os.environ:
        Path(goal).write_text(json.dumps(TALLY.as_json(), indent=2) + "\n")


@pytest.fixture(scope="session")
def sandbox() -> Sandbox:
    return open_sandbox()


@pytest.fixture(scope="session")
def inside_python() -> tuple[str, Mapping[str, Path]]:
    """A Python for inside, and the folder that must be mounted for it."""
    for program in (Path(sys.executable).resolve(), Path("/usr/bin/python3")):
        if program.is_relative_to("/usr") and program.exists():
            return str(program), {}
    return f"/opt/python/bin/python{sys.version_info[0]}.{sys.version_info[1]}", {"/opt/python": Path(sys.base_prefix)}


Inside = Callable[..., Completed]


@pytest.fixture
def inside(sandbox: Sandbox, inside_python: tuple[str, Mapping[str, Path]], tmp_path: Path) -> Inside:
    """Run a Python script inside and collect its outputs."""
    program, folders = inside_python

    def run(script: str, *words: str, limits: Limits | None = None, outputs: tuple[str, ...] = ()) -> Completed:
        command = Command(
            argv=(program, "-I", "-S", "/in/script.py", *words),
            texts={"script.py": script.encode()},
            folders=folders,
            outputs=outputs,
            limits=limits or Limits(wall_s=20),
        )
        return sandbox.run(command, tmp_path)

    return run


def processes_with(mark: str) -> list[int]:
    """Processes on this machine whose command line holds a mark."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                if mark.encode() in Path(f"/proc/{name}/cmdline").read_bytes():
                    found.append(int(name))
            except OSError:
                continue
    return found
