"""The same lake on a Postgres ledger: one set of tables, the same promises. Needs psycopg and a Postgres installation, else it skips."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.errors import AlreadyDone, ConfigInvalid, SchemaMismatch
from storage.lake import Lake
from tests.fault.forks import Acknowledge, ended, fork
from tests.storage.lakes import assert_sound, commit_of, count, put, rejection_of

pytestmark = [pytest.mark.slow, pytest.mark.fault]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """URL of a server of our own, reached over a socket in a folder; databases are made by :func:`url`."""
    pytest.importorskip("psycopg", reason="the Postgres driver is not installed (pip install 'psycopg[binary]')")
    if shutil.which("initdb") is None or shutil.which("pg_ctl") is None:
        pytest.skip("initdb and pg_ctl are not on the path")
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    drop: list[str] = []
    if os.geteuid() == 0:  # Postgres refuses to run as root
        os.chown(folder, 65534, 65534)
        drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    data = str(folder / "data")
    try:
        subprocess.run([*drop, "initdb", "-D", data, "-U", "lake", "-A", "trust", "--no-sync"], check=True, capture_output=True)
        options = f"-k {folder} -c listen_addresses='' -c max_connections=50"
        subprocess.run(
            [*drop, "pg_ctl", "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start"], check=True, capture_output=True
        )
        try:
            yield str(folder)
        finally:
            subprocess.run([*drop, "pg_ctl", "-D", data, "-m", "immediate", "stop"], check=True, capture_output=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def url(server: str, request: pytest.FixtureRequest) -> str:
    """A fresh database."""
    import psycopg

    name = f"lake{abs(hash(request.node.name)) % 10**8}"
    with psycopg.connect(f"host={server} user=lake dbname=postgres", autocommit=True) as con:
        con.execute(f"create database {name}".encode())
    return f"postgresql+psycopg://lake@/{name}?host={server}"


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
    with pytest.raises(ConfigInvalid, match="ledger_kind"):
        Lake(tmp_path / "lake")
    with pytest.raises(SchemaMismatch, match="foreign_ledger"):
        Lake(tmp_path / "other", ledger_url=url)


def test_four_writers_and_a_race(tmp_path: Path, url: str) -> None:
    root = tmp_path / "lake"
    Lake(root, ledger_url=url)

    def write(acknowledge: Acknowledge, me: int) -> None:
        lake = Lake(root, ledger_url=url)
        for n in range(20):
            lake.commit(commit_of(me * 20 + n))
            acknowledge(me * 20 + n)
            try:
                lake.commit(commit_of(100 + n))
                acknowledge(100 + n)
            except AlreadyDone:
                pass

    results = [ended(*both) for both in [fork(lambda ack, me=me: write(ack, me)) for me in range(4)]]  # type: ignore[misc]
    assert [status for status, _ in results] == [0, 0, 0, 0]
    assert sorted(n for _, seen in results for n in seen) == [*range(80), *range(100, 120)]
    lake = Lake(root, ledger_url=url)
    assert count(lake, "projects") == 100
    assert [v.version for v in lake.versions()] == list(range(1, 101))
    assert_sound(lake)
