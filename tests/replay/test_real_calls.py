"""Every call of a real trajectory, restored in a store of its own and executed again, twice: equal digests, one effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from media.sandbox import open_sandbox
from repair.faults import FaultPlan
from replay.runtime import Runtime
from replay.suite import Suite
from schemas.artifact import ArtifactKind
from schemas.contract import ToolContract
from schemas.trajectory import ObservationStatus, Outcome, Provenance, Trajectory
from storage.artifacts import ArtifactStore
from storage.reach import reachable
from storage.snapshots import SnapshotStore, snapshot_sha256
from tests.replay.small_film import FAULTS, SmallFilm

pytestmark = pytest.mark.slow


class Played:
    """The project and one delivered run of it, in which every tool was called."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.film = SmallFilm(root, open_sandbox(), shots=4, faults=FAULTS)
        self.trajectory: Trajectory
        (root / "run").mkdir()
        self.trajectory, run = self.film.play(root / "run", 4)
        self.store = run.suite.store

    def restored(self, index: int) -> tuple[Runtime, Suite]:
        """A run that starts before a call, in a store that holds nothing but what its snapshot refers to."""
        before = self.trajectory.calls[index].snapshot_before
        place = self.root / f"call-{index}"
        if not place.exists():
            copy = ArtifactStore(place / "artifacts")
            for name in sorted(reachable(self.store, [snapshot_sha256(before)])):
                copy.put_file(self.store.path(name), ArtifactKind.OTHER, "application/octet-stream")
            (place / "scratch").mkdir()
        store = ArtifactStore(place / "artifacts")
        suite = Suite(store, SnapshotStore(store), self.film.sandbox, self.film.engines, self.film.config, place / "scratch")
        history, faults = self.trajectory.calls[:index], FaultPlan(self.film.repair.faults)
        return Runtime(before, self.film.registry, suite, history=history, fault_filter=faults), suite


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    return Played(tmp_path_factory.mktemp("calls"))


def test_the_run_calls_every_tool_and_is_delivered(played: Played) -> None:
    committed = {c.tool for c in played.trajectory.calls if c.observation.status is ObservationStatus.COMMITTED}
    contracts: tuple[ToolContract, ...] = played.film.registry.contracts()
    assert committed == {c.name for c in contracts}
    assert played.trajectory.outcome is Outcome.DELIVERED
    assert {f.kind for c in played.trajectory.calls for f in c.faults} == {"render_black", "narration_truncated"}


def test_every_call_restored_and_stepped_gives_equal_digests_and_one_effect(played: Played) -> None:
    for index, recorded in enumerate(played.trajectory.calls):
        if recorded.output.provenance is Provenance.RUNTIME:
            continue
        first, suite = played.restored(index)
        first.step(recorded.output)
        assert first.calls[index] == recorded, f"call {index}, {recorded.tool}"
        made = sorted(suite.store.names())
        again, suite = played.restored(index)
        again.step(recorded.output)
        assert again.calls[index] == recorded, f"call {index}, {recorded.tool}, for the second time"
        assert again.calls[index].key == recorded.key
        assert sorted(suite.store.names()) == made, f"call {index}, {recorded.tool}, has a second effect"
