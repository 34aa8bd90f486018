"""Runs recorded by every release so far are read and executed again by this one, to the same verdicts."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import pytest

from schemas.trajectory import Call, ObservationStatus, Outcome, Trajectory
from tests.conftest import Tally
from tests.replay.frozen_runs import FROZEN, RUNS, Kind

RELEASES = sorted(p.stem for p in FROZEN.glob("*.tar"))


def verdict(call: Call) -> tuple[Any, ...]:
    """What the runtime and inspection decided about one output."""
    blockers = [(b.code, b.subject) for b in call.observation.blockers]
    return call.role, call.tool, call.observation.status, blockers, [(v.subject, v.passed) for v in call.verdicts]


@pytest.mark.parametrize("name", RELEASES)
def test_recorded_runs_come_to_the_same_verdicts(tmp_path: Path, name: str, tally: Tally) -> None:
    with tarfile.open(FROZEN / f"{name}.tar") as archive:
        archive.extractall(tmp_path, filter="data")
    runs = states = calls = refused = incomplete = 0
    for seed in range(RUNS):
        folder = tmp_path / str(seed)
        recorded = Trajectory.model_validate_json((folder / "trajectory.json").read_bytes())
        now = Kind(seed).again(folder, recorded)
        assert [verdict(c) for c in now.calls] == [verdict(c) for c in recorded.calls], f"run {seed}"
        assert now.outcome is recorded.outcome
        runs, calls = runs + 1, calls + len(recorded.calls)
        states += sum(was.state_after == is_now.state_after for was, is_now in zip(recorded.calls, now.calls, strict=True))
        refused += sum(c.observation.status is ObservationStatus.REFUSED for c in recorded.calls)
        incomplete += recorded.outcome is Outcome.INCOMPLETE
    assert refused > 0  # both kinds of verdict occur
    assert incomplete > 0
    tally("R14", runs=name, recorded=runs, calls=calls, refused=refused, other_verdicts=0, calls_with_the_recorded_state=states)
