"""The same lake in a bucket with a Postgres ledger: what one machine commits, another one reads, and nothing else is different."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.errors import AlreadyDone, ConfigInvalid, DigestMismatch, StorageFault
from storage.bucket import Bucket
from storage.fsck import Fault
from storage.lake import Lake
from tests.conftest import Tally
from tests.fault.forks import Acknowledge, ended, fork
from tests.fault.light import config_of, light_groups, rows_of, run_light
from tests.fault.sizes import sizes
from tests.storage.lakes import assert_sound, commit_of, count, one, put, rejection_of

pytestmark = [pytest.mark.slow, pytest.mark.fault]


@pytest.fixture
def here(bucket: str, url: str, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A lake in a bucket as this machine sees it."""
    monkeypatch.setenv("WORKPRINT_LEDGER", url)
    return Lake(bucket)


@pytest.fixture
def there(here: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """The same lake as another machine sees it: with a working folder of its own."""
    monkeypatch.setenv("WORKPRINT_CACHE", str(tmp_path / "there"))
    return Lake(here.location, create=False)


def test_another_machine_sees_rows_and_artifacts(here: Lake, there: Lake) -> None:
    sha = put(here, b"a picture")
    here.commit(commit_of(1, artifacts=(sha,)))
    assert there.root != here.root
    assert count(there, "words") == 3
    con = there.connect()
    assert one(con, "select count(*) from words") == 3
    con.close()
    assert there.store.read(sha) == b"a picture"
    assert there.store.path(sha).read_bytes() == b"a picture"
    assert there.done("stg_1_a") is not None
    with pytest.raises(AlreadyDone):
        there.commit(commit_of(1))
    there.commit(rejection_of(1, "b"))
    assert [count(here, "words", v) for v in (1, 2)] == [3, 0]
    assert_sound(here)


def test_bytes_stored_for_later_are_in_the_bucket_when_a_commit_names_them(here: Lake, there: Lake) -> None:
    from schemas.artifact import ArtifactKind

    sha = here.store.put_bytes(b"a context", ArtifactKind.OTHER, "text/plain", later=True).sha256
    assert not there.store.has(sha)
    here.commit(commit_of(1, artifacts=(sha,)))
    assert there.store.read(sha) == b"a context"


def test_an_artifact_that_is_on_this_machine_only_is_not_enough(here: Lake) -> None:
    sha = put(here, b"x")
    assert here.bucket is not None
    here.bucket.remove(here.store.key(sha))
    here.store._shared.clear()
    with pytest.raises(StorageFault, match="artifact_missing"):
        here.commit(commit_of(1, artifacts=(sha,)))


def test_compaction_and_collection_work_on_the_bucket(here: Lake, there: Lake) -> None:
    for n in range(4):
        here.commit(commit_of(n, artifacts=(put(here, b"%d" % n),)))
    orphan = put(here, b"orphan")
    there.compact()
    assert count(here, "words") == 12
    assert there.gc(grace_s=0, keep_versions=1).versions_given_up == 6
    bucket = Bucket(str(here.location))
    assert sorted(o.key.split("/")[1] for o in bucket.list("tables")) == ["projects", "stage_runs", "words"]
    assert not here.store.is_shared(orphan) or bucket.stat(here.store.key(orphan)) is None
    assert len(list(bucket.list("artifacts"))) == 4
    assert count(here, "words") == 12
    assert_sound(there)


def test_damage_in_the_bucket_is_found(here: Lake, there: Lake) -> None:
    sha = put(here, b"a picture")
    here.commit(commit_of(1, artifacts=(sha,)))
    bucket = Bucket(str(here.location))
    words = next(f.path for f in here.files() if f.table == "words")
    bucket.put(words, b"flipped")
    bucket.put(here.store.key(sha), b"a pictura")
    report = there.fsck()
    assert set(report.of(Fault.DAMAGED)) == {words, here.store.key(sha)}
    with pytest.raises(DigestMismatch):
        there.scan("words")
    with pytest.raises(DigestMismatch):
        there.store.read(sha)
    bucket.remove(words)
    assert there.fsck().of(Fault.MISSING) == (words,)


@pytest.mark.parametrize("commits", sizes(6, 50))
def test_four_machines_write_at_once(here: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commits: int, tally: Tally) -> None:
    def write(acknowledge: Acknowledge, me: int) -> None:
        monkeypatch.setenv("WORKPRINT_CACHE", str(tmp_path / f"machine{me}"))
        lake = Lake(here.location, create=False)
        for n in range(commits):
            lake.commit(commit_of(me * commits + n, artifacts=(put(lake, b"%d" % n),)))
            acknowledge(n)

    results = [ended(*both) for both in [fork(lambda ack, me=me: write(ack, me)) for me in range(4)]]  # type: ignore[misc]
    assert results == [(0, list(range(commits)))] * 4
    assert count(here, "projects") == 4 * commits
    assert_sound(here)
    tally("bucket", machines=4, commits=4 * commits, lost=0)


def test_a_run_gives_the_rows_of_a_run_into_a_folder(here: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_light(here.location, light_groups(range(5)), config_of())
    monkeypatch.delenv("WORKPRINT_LEDGER")
    run_light(tmp_path / "folder", light_groups(range(5)), config_of())
    assert rows_of(here) == rows_of(Lake(tmp_path / "folder"))


def test_what_is_not_there_or_not_named_is_told(bucket: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORKPRINT_LEDGER", raising=False)
    with pytest.raises(ConfigInvalid, match="no_ledger"):
        Lake(bucket)
    with pytest.raises(ConfigInvalid, match="no_lake"):
        Lake(bucket, create=False, ledger_url=url)
    with pytest.raises(ConfigInvalid, match="bucket_url"):
        Lake("s3:///", ledger_url=url)
