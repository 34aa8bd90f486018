"""Killed, failed and powered off at every point: nothing acknowledged is lost, nothing is doubled, torn or dangling."""

from __future__ import annotations

import random
import shutil
import signal
import statistics
from collections import deque
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from schemas.errors import AlreadyDone, StorageFault, StorageFull
from storage import durable
from storage.lake import Lake
from tests.conftest import Tally
from tests.fault.forks import Acknowledge, Points, PowerLoss, die, ended, failing, fork, kill_after, set_fault_point, told
from tests.fault.sizes import sizes
from tests.storage.lakes import assert_sound, commit_of, count, put

pytestmark = pytest.mark.fault

PER_KILL = 3
MOST = 16
OPENED = 255

COMMIT_POINTS = (
    # the artifact: its bytes, its folder, its name
    *("write", "fsync", "mkdir", "fsync_folder", "fsync_folder", "rename", "fsync_folder"),
    # the Parquet files of projects, words and stage_runs: bytes and names, then everything is made durable at once
    *(("write", "rename") * 3),
    *("fsync", "fsync", "fsync", "fsync_folder", "fsync_folder", "fsync_folder", "fsync_folder"),
    # the one transaction
    *("ledger_begin", "ledger_commit", "committed"),
)
"""Every write of one commit. New I/O changes this list: look at what a crash there would leave."""


def work(lake: Lake, n: int) -> None:
    """An artifact and a commit that refers to it."""
    lake.commit(commit_of(n, artifacts=(put(lake, b"artifact of %d" % n),)))


@pytest.mark.slow
@pytest.mark.parametrize("kills", sizes(60, 1000))
def test_random_kills_on_the_whole_commit_path(tmp_path: Path, kills: int, seed: int, tally: Tally) -> None:
    """Each child commits until it is killed, so that every kill strikes: after some acknowledgements (none: the lake may still be opening)
    and a random part of the time that a commit takes now."""
    root = tmp_path / "lake"
    Lake(root)
    rng = random.Random(seed)  # noqa: S311
    acknowledged: set[int] = set()
    unacknowledged = 0
    usual: deque[float] = deque([0.05], maxlen=15)
    for number in range(kills):

        def commits(acknowledge: Acknowledge, first: int = number * MOST) -> None:
            lake = Lake(root)
            acknowledge(OPENED)
            for n in range(MOST):
                work(lake, first + n)
                acknowledge(n)
            signal.pause()

        pid, read_end = fork(commits)
        heard, times = told(read_end, rng.randrange(PER_KILL + 1))
        usual.extend(later - sooner for sooner, later in pairwise(times))
        kill_after(pid, rng.uniform(0.0, 1.2 * statistics.median(usual)))
        status, seen = ended(pid, read_end)
        assert status == -9, f"kill {number} did not strike, seed {seed}"
        acknowledged |= {number * MOST + n for n in (*heard, *seen) if n != OPENED}
        there = {int((v.subject or "")[4:]) for v in Lake(root).versions()}
        assert acknowledged <= there, f"lost after kill {number}, seed {seed}"
        assert len(there - acknowledged) <= unacknowledged + 1
        unacknowledged = len(there - acknowledged)
    lake = Lake(root)
    assert_sound(lake)
    every = {number * MOST + n for number in range(kills) for n in range(PER_KILL)}
    for n in sorted(every):  # the next run does what is missing, and only that
        try:
            work(lake, n)
        except AlreadyDone:
            assert n in there
        else:
            assert n not in there
    assert count(lake, "projects") == len(every | there)
    assert count(lake, "words") == len(every | there) * 3
    assert_sound(lake)
    assert kills // 2 < len(acknowledged) < kills * MOST // 2  # in the middle of the work, neither all before it nor all after it
    tally("R1", kills=kills, acknowledged=len(acknowledged), unacknowledged=unacknowledged, lost=0, duplicate=0, torn=0, dangling=0)


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    """A lake with one commit."""
    root = tmp_path / "prepared"
    work(Lake(root), 0)
    return root


def copies(prepared: Path, number: int) -> Path:
    root = prepared.parent / f"copy{number}"
    shutil.copytree(prepared, root)
    return root


def points_of(action: Callable[[], object]) -> list[str]:
    points = Points()
    before = durable.fault_point
    set_fault_point(points)
    try:
        action()
    finally:
        set_fault_point(before)
    return points.seen


def test_the_points_of_a_commit_are_known(prepared: Path) -> None:
    lake = Lake(copies(prepared, 0))
    assert tuple(points_of(lambda: work(lake, 7))) == COMMIT_POINTS


@pytest.mark.slow
@pytest.mark.parametrize("how", ["kill", "power loss"])
def test_a_crash_at_every_point_of_a_commit(prepared: Path, how: str, tally: Tally) -> None:
    whole = 0
    for at in range(len(COMMIT_POINTS)):
        root = copies(prepared, at)

        def crash(acknowledge: Acknowledge, root: Path = root, at: int = at) -> None:
            lake = Lake(root)
            set_fault_point(Points(die, at) if how == "kill" else PowerLoss(at))
            work(lake, 7)
            acknowledge(7)

        status, seen = ended(*fork(crash))
        assert (status, seen) == (-9, [])
        lake = Lake(root)
        there = count(lake, "projects")
        assert there in (1, 2)
        whole += there == 2
        assert count(lake, "words") == there * 3
        assert_sound(lake)
        if there == 1:
            work(lake, 7)
        assert lake.done("stg_7_a") is not None
        assert count(lake, "projects") == 2
        assert_sound(lake)
        shutil.rmtree(root)
    assert whole == 1  # only after the transaction: nothing is true before it
    tally("R3", how=how, points=len(COMMIT_POINTS), unrecoverable=0)


@pytest.mark.parametrize(("number", "error"), [(5, StorageFault), (28, StorageFull)], ids=["EIO", "ENOSPC"])
def test_an_error_at_every_point_of_a_commit(
    prepared: Path, monkeypatch: pytest.MonkeyPatch, number: int, error: type[StorageFault], tally: Tally
) -> None:
    for at in range(len(COMMIT_POINTS) - 1):  # at 'committed' it is true already
        root = copies(prepared, at)
        lake = Lake(root)
        monkeypatch.setattr(durable, "fault_point", Points(failing(number), at))
        with pytest.raises(error):
            work(lake, 7)
        monkeypatch.undo()
        with pytest.raises(StorageFault):
            work(lake, 8)
        again = Lake(root)
        assert count(again, "projects") == 1
        work(again, 7)
        assert_sound(again)
        shutil.rmtree(root)
    tally("R3", how=error.__name__, points=len(COMMIT_POINTS) - 1, unrecoverable=0)


@pytest.mark.parametrize("how", ["kill", "power loss"])
def test_a_crash_at_every_point_of_making_a_lake(tmp_path: Path, how: str) -> None:
    total = len(points_of(lambda: Lake(tmp_path / "whole")))
    assert total > 10
    for at in range(total):
        root = tmp_path / f"lake{at}"

        def crash(_acknowledge: Acknowledge, root: Path = root, at: int = at) -> None:
            set_fault_point(Points(die, at) if how == "kill" else PowerLoss(at))
            Lake(root)

        status, _ = ended(*fork(crash))
        assert status == -9
        lake = Lake(root)
        work(lake, 1)
        assert_sound(lake)


@pytest.mark.slow
def test_a_kill_at_every_point_of_compaction(tmp_path: Path) -> None:
    prepared = tmp_path / "prepared"
    lake = Lake(prepared)
    for n in range(4):
        lake.commit(commit_of(n))
    lake.commit(commit_of(1, "b", words=4))
    expected = [lake.scan(t).to_pylist() for t in ("projects", "words", "stage_runs")]
    total = len(points_of(lambda: Lake(copies(prepared, 99)).compact()))
    for at in range(total):
        root = copies(prepared, at)

        def crash(_acknowledge: Acknowledge, root: Path = root, at: int = at) -> None:
            lake = Lake(root)
            set_fault_point(Points(die, at))
            lake.compact()

        ended(*fork(crash))
        lake = Lake(root)
        assert [lake.scan(t).to_pylist() for t in ("projects", "words", "stage_runs")] == expected
        lake.compact()
        assert len(lake.files()) == 3
        assert [lake.scan(t).to_pylist() for t in ("projects", "words", "stage_runs")] == expected
        assert_sound(lake)
        shutil.rmtree(root)


@pytest.mark.parametrize("kills", sizes(20, 100))
def test_kills_during_garbage_collection_remove_nothing_referenced(tmp_path: Path, kills: int, seed: int, tally: Tally) -> None:
    root = tmp_path / "lake"
    lake = Lake(root)
    for n in range(5):
        work(lake, n)
    lake.commit(commit_of(1, "b"))
    garbage = {put(lake, b"garbage %d" % n) for n in range(30)}
    rng = random.Random(seed)  # noqa: S311
    killed = 0
    for number in range(kills):
        garbage |= {put(lake, b"more garbage %d %d" % (number, n)) for n in range(4)}

        def crash(_acknowledge: Acknowledge, at: int = rng.randrange(8)) -> None:
            lake = Lake(root)
            set_fault_point(Points(die, at))
            lake.gc(grace_s=0, keep_versions=1)

        status, _ = ended(*fork(crash))
        killed += status == -9
        lake = Lake(root)
        assert status in (-9, 0)
        assert_sound(lake)
        assert count(lake, "words") == 15
    lake.gc(grace_s=0)
    assert not garbage & set(lake.store.names())
    assert lake.fsck().findings == ()
    tally("R16", kills=killed, referenced_objects_removed=0)
