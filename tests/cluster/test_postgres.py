"""The same lake on a Postgres ledger: one set of tables, the same promises."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from schemas.errors import AlreadyDone, ConfigInvalid, LockHeld, SchemaMismatch, StorageFault
from storage.lake import Lake
from tests.conftest import Tally
from tests.fault.forks import Acknowledge, ended, fork
from tests.storage.lakes import assert_sound, commit_of, count, put, rejection_of

pytestmark = [pytest.mark.slow, pytest.mark.fault]


def test_commits_versions_and_upkeep(tmp_path: Path, url: str) -> None:
    lake = Lake(tmp_path / "lake", ledger_url=url)
    for n in range(3):
        lake.commit(commit_of(n, artifacts=(put(lake, b"%d" % n),)))
    with pytest.raises(AlreadyDone):
        lake.commit(commit_of(1))
    lake.commit(commit_of(1, "b", words=5))
    lake.commit(rejection_of(2, "b"))
    assert [count(lake, "words", v) for v in range(6)] == [0, 3, 6, 9, 11, 8]
    lake.compact()
    assert count(lake, "words") == 8
    lake.commit(commit_of(0, "b", words=1))
    assert count(lake, "words") == 6
    assert lake.gc(grace_s=0, keep_versions=1).versions_given_up > 0
    again = Lake(lake.root, create=False, ledger_url=url)
    assert again.query("select project_id, count(*) from words group by all order by all").rows == [("prj_0", 1), ("prj_1", 5)]
    again.record_failure(stage="s", subject="x", uri="u", error_type="E", code="c", message="m", attempts=1, quarantined=True, run_id="r")
    assert count(again, "failures") == 1
    assert_sound(again)


def test_the_ledger_is_not_mistaken(tmp_path: Path, url: str) -> None:
    Lake(tmp_path / "lake", ledger_url=url)
    with pytest.raises(ConfigInvalid, match="no_ledger"):
        Lake(tmp_path / "lake")
    with pytest.raises(SchemaMismatch, match="foreign_ledger"):
        Lake(tmp_path / "other", ledger_url=url)


def test_the_ledger_is_found_in_the_environment(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKPRINT_LEDGER", url)
    Lake(tmp_path / "lake").commit(commit_of(1))
    assert not (tmp_path / "lake" / "ledger.sqlite").exists()
    assert count(Lake(tmp_path / "lake", create=False), "projects") == 1


def test_two_upkeeps_of_two_machines_exclude_each_other(tmp_path: Path, url: str) -> None:
    lake = Lake(tmp_path / "lake", ledger_url=url)
    lake.commit(commit_of(1))
    other = Lake(lake.root, ledger_url=url)
    with other.ledger.upkeep(), pytest.raises(LockHeld):
        lake.compact()
    lake.compact()


@pytest.mark.parametrize(
    ("writers", "commits"),
    [
        pytest.param(4, 20, id="gate"),
        pytest.param(4, 200, id="full-4x200", marks=pytest.mark.full),
        pytest.param(16, 100, id="full-16x100", marks=pytest.mark.full),
    ],
)
def test_writers_and_races_lose_nothing(tmp_path: Path, url: str, writers: int, commits: int, tally: Tally) -> None:
    root = tmp_path / "lake"
    Lake(root, ledger_url=url)

    def write(acknowledge: Acknowledge, me: int) -> None:
        lake = Lake(root, ledger_url=url)
        for n in range(commits):
            lake.commit(commit_of(me * commits + n))
            acknowledge(n)
            if n < 10:
                try:
                    lake.commit(commit_of(100_000 + n))
                    acknowledge(240 + n)
                except AlreadyDone:
                    pass

    began = time.monotonic()
    results = [ended(*both) for both in [fork(lambda ack, me=me: write(ack, me)) for me in range(writers)]]  # type: ignore[misc]
    wall = time.monotonic() - began
    assert [status for status, _ in results] == [0] * writers
    assert sorted(n for _, seen in results for n in seen if n >= 240) == list(range(240, 250))
    assert [[n for n in seen if n < 240] for _, seen in results] == [list(range(commits))] * writers
    lake = Lake(root, ledger_url=url)
    assert count(lake, "projects") == writers * commits + 10
    assert [v.version for v in lake.versions()] == list(range(1, writers * commits + 11))
    assert_sound(lake)
    tally("writers on Postgres", writers=writers, commits=writers * commits + 10, lost=0, commits_per_s=round(writers * commits / wall))


def test_a_server_that_is_gone_is_a_typed_fault(tmp_path: Path, url: str, server: str) -> None:
    import psycopg

    lake = Lake(tmp_path / "lake", ledger_url=url)
    lake.commit(commit_of(1))
    with psycopg.connect(f"host={server} user=lake dbname=postgres", autocommit=True) as con:
        con.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname like 'lake%'")
    lake.commit(commit_of(2))  # the idle connection was lost, a new one is made
    assert count(lake, "projects") == 2
    with pytest.raises(StorageFault, match="ledger_failed"):
        Lake(tmp_path / "other", ledger_url="postgresql+psycopg://lake@/none?host=/nonexistent")
