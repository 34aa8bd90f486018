"""A replay killed at any call, or inside one, goes on at the next call and ends in the very trajectory of a run that nobody killed."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from media.sandbox import open_sandbox
from repair.config import FaultConfig
from tests.conftest import ROOT
from tests.fault.replay_child import play
from tests.replay.small_film import SmallFilm

pytestmark = [pytest.mark.fault, pytest.mark.slow]

SEED = 20261130
POLICY = 4
GATE = 3
"""Seeded points of the gate; the full test kills at and inside every call."""


class Killable:
    """The project, the operations of each call of an unkilled run, and that run's trajectory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        faults = FaultConfig(kinds=("render_black",), count=1, seed=5)
        self.film = SmallFilm(root, open_sandbox(), shots=2, spotlight_every=99, faults=faults)
        self.bytes, self.operations = play(self.film, self.place("whole"), POLICY)

    def place(self, name: str) -> Path:
        """A new folder for one run; two tests may kill at the same point."""
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.root))

    def child(self, place: Path, *point: int) -> subprocess.Popen[bytes]:
        """Another process that runs, or goes on with, the replay of a folder; returns once it has begun."""
        argv = [sys.executable, "-m", "tests.fault.replay_child", str(self.root), str(place), str(POLICY), *map(str, point)]
        started = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE)
        assert started.stdout is not None
        assert started.stdout.readline() == b"ready\n"
        return started

    def kill_at(self, call: int, operation: int) -> None:
        """Kill one run before an operation of a call, and see it go on to the same end."""
        place = self.place(f"call-{call}-{operation}")
        assert self.child(place, call, operation).wait() == -signal.SIGKILL
        assert self.finished(place), f"killed in call {call} before operation {operation}"

    def finished(self, place: Path) -> bool:
        """Go on with the run of a folder; whether it ends as the unkilled one did."""
        return play(self.film, place, POLICY)[0] == self.bytes

    def points(self) -> list[tuple[int, int]]:
        """For every call: before its first operation, before its journal line is written, and after that before it is durable."""
        out: list[tuple[int, int]] = []
        for call, operations in enumerate(self.operations):
            last = len(operations) - 1
            out += sorted({(call, 0), (call, max(0, last - 1)), (call, last)})
        return out


@pytest.fixture(scope="module")
def killable(tmp_path_factory: pytest.TempPathFactory) -> Killable:
    return Killable(tmp_path_factory.mktemp("kills"))


def test_killed_at_seeded_points_the_run_ends_as_if_it_had_not_been(killable: Killable) -> None:
    points = killable.points()
    assert len(points) > 2 * 20
    assert all(operations[-2:] == ["write", "fsync"] for operations in killable.operations)
    for call, operation in random.Random(SEED).sample(points, GATE):  # noqa: S311
        killable.kill_at(call, operation)


def test_killed_twice_in_the_middle_of_engines_the_run_ends_as_if_it_had_not_been(killable: Killable) -> None:
    place = killable.place("anywhere")
    rng = random.Random(SEED)  # noqa: S311
    for _ in range(2):
        child = killable.child(place)
        time.sleep(rng.uniform(0.3, 2.0))
        child.kill()
        child.wait()
    assert killable.finished(place), f"seed {SEED}"


@pytest.mark.full
@pytest.mark.timeout(5400)
def test_killed_at_and_inside_every_call_the_run_ends_as_if_it_had_not_been(killable: Killable) -> None:
    for call, operation in killable.points():
        killable.kill_at(call, operation)
