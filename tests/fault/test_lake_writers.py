"""Many processes on one lake: nothing lost, one winner of each race, readers see whole versions and never wait."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from schemas.errors import AlreadyDone, LockHeld
from storage import durable
from storage.lake import Lake
from tests.conftest import Tally
from tests.fault.forks import Acknowledge, ended, fork
from tests.fault.sizes import sizes
from tests.storage.lakes import assert_sound, commit_of, count, put

pytestmark = pytest.mark.fault


@pytest.mark.slow
@pytest.mark.parametrize(
    ("writers", "commits", "readers"),
    [
        pytest.param(4, 25, 2, id="gate"),
        pytest.param(3, 100, 4, id="full-readers", marks=pytest.mark.full),
        pytest.param(4, 200, 0, id="full-4x200", marks=pytest.mark.full),
        pytest.param(16, 100, 0, id="full-16x100", marks=pytest.mark.full),
    ],
)
def test_writers_lose_nothing_and_readers_see_whole_versions(
    tmp_path: Path, writers: int, commits: int, readers: int, tally: Tally
) -> None:
    root = tmp_path / "lake"
    Lake(root)
    total = writers * commits

    def write(acknowledge: Acknowledge, writer: int) -> None:
        lake = Lake(root)
        for n in range(commits):
            number = writer * commits + n
            lake.commit(commit_of(number, artifacts=(put(lake, b"%d" % number),)))
            acknowledge(n)

    def read(acknowledge: Acknowledge) -> None:
        lake = Lake(root, create=False)
        looks = last = 0
        while last < total:
            con = lake.connect(threads=1)
            projects, words, runs = con.execute(
                "select (select count(*) from projects), (select count(*) from words), (select count(*) from stage_runs)"
            ).fetchall()[0]
            torn = con.execute(
                "select count(*) from (select project_id from words group by 1 having count(*) <> 3) "
                "union all select count(*) from words anti join projects using (project_id)"
            ).fetchall()
            con.close()
            assert (words, runs, torn) == (projects * 3, projects, [(0,), (0,)])
            assert projects >= last
            last, looks = projects, looks + 1
            acknowledge(min(looks, 255))

    began = time.monotonic()
    writing = [fork(lambda ack, w=w: write(ack, w)) for w in range(writers)]  # type: ignore[misc]
    reading = [fork(read) for _ in range(readers)]
    for pid, read_end in writing:
        assert ended(pid, read_end) == (0, list(range(commits)))
    wall = time.monotonic() - began
    looked = 0
    for pid, read_end in reading:
        status, looks = ended(pid, read_end)
        assert status == 0
        assert looks[-1] >= 3
        looked += looks[-1]
    lake = Lake(root)
    assert count(lake, "projects") == total
    assert [v.version for v in lake.versions()] == list(range(1, total + 1))
    assert_sound(lake)
    tally("R19" if readers else "writers", writers=writers, commits=total, lost=0, readers=readers, looks=looked, partial=0, lock_errors=0,
          commits_per_s=round(total / wall))  # fmt: skip


@pytest.mark.parametrize("races", sizes(10, 50))
def test_of_two_commits_of_one_key_one_wins(tmp_path: Path, races: int, tally: Tally) -> None:
    root = tmp_path / "lake"
    Lake(root)

    def compete(acknowledge: Acknowledge, me: int) -> None:
        lake = Lake(root)
        for race in range(races):
            (root / f"ready{me}.{race}").touch()
            while not (root / f"ready{1 - me}.{race}").exists():
                time.sleep(0)
            try:
                lake.commit(commit_of(race, run_id=f"run_{me}"))
                acknowledge(race)
            except AlreadyDone:
                acknowledge(100 + race)

    results = [ended(*both) for both in [fork(lambda ack, me=me: compete(ack, me)) for me in (0, 1)]]  # type: ignore[misc]
    assert [status for status, _ in results] == [0, 0]
    outcomes = [seen for _, seen in results]
    for race in range(races):
        assert sorted([outcomes[0][race], outcomes[1][race]]) == [race, 100 + race]
    lake = Lake(root)
    assert count(lake, "words") == races * 3
    assert len(lake.versions()) == races
    assert_sound(lake)
    began = time.monotonic()
    with durable.exclusive(root / "upkeep.lock", "the lake's upkeep"), pytest.raises(LockHeld):
        lake.compact()
    refused_s = time.monotonic() - began
    assert refused_s < 1
    tally("R12", races=races, commits_each=1, second_upkeep_refused_ms=round(refused_s * 1000))


def test_of_two_commits_of_one_scope_the_later_one_stands(tmp_path: Path) -> None:
    root = tmp_path / "lake"
    Lake(root)

    def compete(_acknowledge: Acknowledge, me: int) -> None:
        lake = Lake(root)
        for race in range(10):
            lake.commit(commit_of(1, f"{me}.{race}", words=me + 1))

    assert [ended(*both)[0] for both in [fork(lambda ack, me=me: compete(ack, me)) for me in (0, 1)]] == [0, 0]  # type: ignore[misc]
    lake = Lake(root)
    last = lake.versions()[-1]
    assert last.version == 10 * 2
    assert count(lake, "projects") == 1
    assert count(lake, "stage_runs") == 1
    assert_sound(lake)


def test_a_reader_does_not_wait_for_an_open_write(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    lake.commit(commit_of(1))
    with lake.ledger.writing():
        began = time.monotonic()
        other = Lake(lake.root, create=False)
        assert count(other, "words") == 3
        assert other.done("stg_1_a") is not None
        assert time.monotonic() - began < 5


def test_two_processes_make_one_lake(tmp_path: Path) -> None:
    for number in range(5):
        root = tmp_path / f"lake{number}"

        def make(_acknowledge: Acknowledge, n: int, root: Path = root) -> None:
            Lake(root).commit(commit_of(n))

        assert [ended(*both)[0] for both in [fork(lambda ack, n=n, make=make: make(ack, n)) for n in range(3)]] == [0, 0, 0]  # type: ignore[misc]
        assert count(Lake(root), "projects") == 3


def test_a_lake_object_may_cross_a_fork(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    lake.commit(commit_of(1))
    parent = os.getpid()

    def child(_acknowledge: Acknowledge) -> None:
        assert os.getpid() != parent
        lake.commit(commit_of(2))

    assert ended(*fork(child))[0] == 0
    lake.commit(commit_of(3))
    assert count(lake, "projects") == 3
    assert_sound(lake)
