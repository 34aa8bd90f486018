"""Compaction and garbage collection: answers stay the same, only garbage goes."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
import sqlalchemy as sa

from schemas.artifact import ArtifactKind
from schemas.errors import ConfigInvalid, LockHeld
from storage import durable, upkeep
from storage.journal import Journal, discard
from storage.lake import Lake
from storage.ledger import ARTIFACT_REF, DATA_FILE, DATA_PART, LAKE_VERSION, STAGE_RUN
from tests.storage.lakes import assert_sound, commit_of, count, data_files, put, rejection_of


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


def everything(lake: Lake, version: int | None = None) -> list[object]:
    return [lake.scan(t, version).to_pylist() for t in ("projects", "words", "rejections", "stage_runs")]


def age(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


# -- compaction


def test_compaction_merges_small_files_and_answers_stay(lake: Lake) -> None:
    for n in range(6):
        lake.commit(commit_of(n))
    before = everything(lake)
    result = lake.compact()
    assert (result.files_before, result.files_after) == (18, 3)
    assert everything(lake) == before
    assert [f.rows for f in lake.files(table="words")] == [18]
    assert_sound(lake)


def test_older_versions_stay_readable_after_compaction(lake: Lake) -> None:
    for n in range(4):
        lake.commit(commit_of(n))
    before = [everything(lake, v) for v in range(5)]
    lake.compact()
    assert [everything(lake, v) for v in range(5)] == before


def test_compaction_of_a_compact_lake_does_nothing(lake: Lake) -> None:
    for n in range(3):
        lake.commit(commit_of(n))
    lake.compact()
    versions = lake.versions()
    assert lake.compact().versions == ()
    assert lake.versions() == versions


def test_large_files_are_left_alone(lake: Lake) -> None:
    for n in range(4):
        lake.commit(commit_of(n))
    assert lake.compact(target_bytes=1).versions == ()
    size = max(f.bytes for f in lake.files())
    lake.compact(target_bytes=2 * size + 2)
    assert [len(lake.files(table=t)) for t in ("words", "projects")] == [2, 2]
    assert_sound(lake)


def test_one_project_of_a_merged_file_can_be_replaced(lake: Lake) -> None:
    for n in range(4):
        lake.commit(commit_of(n, "a"))
    lake.compact()
    packed = lake.versions()[-1].version
    lake.commit(commit_of(2, "b", words=5))
    assert lake.query("select project_id, text, count(*) from words group by all order by all").rows == [
        ("prj_0", "a", 3),
        ("prj_1", "a", 3),
        ("prj_2", "b", 5),
        ("prj_3", "a", 3),
    ]
    assert lake.scan("words").num_rows == 14
    assert count(lake, "words", packed) == 12
    assert sorted(f.dead for f in lake.files(table="words")) == [(), ("stg_2_a",)]
    assert_sound(lake)
    before = everything(lake)
    lake.compact()  # the ended rows leave the file
    assert [(f.rows, f.dead) for f in lake.files(table="words")] == [(14, ())]
    assert everything(lake) == before
    assert_sound(lake)


def test_a_key_that_comes_back_is_told_from_its_ended_rows(lake: Lake) -> None:
    for n in range(3):
        lake.commit(commit_of(n, "a"))
    lake.compact()
    for key in "ba":
        lake.commit(commit_of(1, key, words=4))
    assert count(lake, "words") == 10
    lake.compact()
    assert count(lake, "words") == 10
    assert_sound(lake)


def test_a_merged_file_ends_with_its_last_project(lake: Lake) -> None:
    for n in range(2):
        lake.commit(commit_of(n, "a"))
    lake.compact()
    for n in range(2):
        lake.commit(rejection_of(n, "b"))
    assert lake.files(table="words") == []
    assert count(lake, "rejections") == 2


def test_what_is_replaced_during_a_compaction_ends_in_the_merged_file_too(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(3):
        lake.commit(commit_of(n, "a"))
    other = Lake(lake.root)
    write = lake.write_tables

    def late(stage: str, tables: dict[str, object]) -> object:
        made = write(stage, tables)
        if "words" in tables:
            other.commit(commit_of(1, "b", words=7))
        return made

    monkeypatch.setattr(lake, "write_tables", late)
    lake.compact()
    assert lake.query("select project_id, count(*) from words group by all order by all").rows == [("prj_0", 3), ("prj_1", 7), ("prj_2", 3)]
    assert_sound(lake)


def test_two_upkeeps_at_once_are_refused(lake: Lake) -> None:
    with durable.exclusive(lake.root / "upkeep.lock", "the lake's upkeep"):
        for work in (lake.compact, lake.gc):
            with pytest.raises(LockHeld):
                work()
    lake.compact()


# -- garbage collection


def test_only_old_garbage_goes(lake: Lake) -> None:
    kept = put(lake, b"referenced")
    lake.commit(commit_of(1, artifacts=(kept,)))
    orphan, fresh = put(lake, b"orphan"), put(lake, b"of a running stage")
    stray = lake.root / "tables" / "words" / "invert-stray.parquet"
    stray.write_bytes(b"x")
    unfinished = [lake.root / "tmp" / ".tmp-1-a", lake.store.root / "tmp" / ".tmp-2-b"]
    for path in unfinished:
        path.write_bytes(b"half")
    for path in (lake.store.path(orphan), lake.store.path(kept), stray, *unfinished, *(lake.root / f.path for f in lake.files())):
        age(path, 3600)
    would = lake.gc(grace_s=1800, dry_run=True)
    result = lake.gc(grace_s=1800)
    assert set(result.removed) == {
        f"artifacts/{orphan[:2]}/{orphan}",
        "tables/words/invert-stray.parquet",
        "tmp/.tmp-1-a",
        "artifacts/tmp/.tmp-2-b",
    }
    assert (result.bytes, result.young) == (15, 1)
    assert would == result
    assert list(lake.store.names()) == sorted([kept, fresh])
    assert lake.gc(grace_s=1800).removed == ()
    assert_sound(lake)


def test_what_can_be_reached_is_kept(lake: Lake) -> None:
    picture = put(lake, b"\x89PNG")
    record = lake.store.put_json({"asset": {"ref": {"sha256": picture}}}, ArtifactKind.RECORD).sha256
    manifest = lake.store.put_json([f"snp_{record}"], ArtifactKind.SNAPSHOT).sha256
    trajectory = lake.store.put_json({"calls": [{"snapshot_after": f"snp_{manifest}"}]}, ArtifactKind.TRAJECTORY).sha256
    garbage = lake.store.put_json({"refers": trajectory}, ArtifactKind.OTHER).sha256
    lake.commit(commit_of(1, output_sha256=trajectory))
    assert lake.gc(grace_s=0).removed == (f"artifacts/{garbage[:2]}/{garbage}",)
    assert set(lake.store.names()) == {picture, record, manifest, trajectory}


def test_what_a_journal_names_is_kept_until_the_journal_goes(lake: Lake) -> None:
    named = put(lake, b"made by a call")
    path = lake.root / "journals" / "stg_1"
    with Journal(path) as journal:
        journal.append({"call": 0, "artifacts": [named]})
        with pytest.raises(LockHeld):
            discard(path)
    assert lake.gc(grace_s=0).removed == ()
    discard(path)
    discard(path)
    assert lake.gc(grace_s=0).removed == (f"artifacts/{named[:2]}/{named}",)


def test_replaced_rows_and_their_artifacts_stay_until_their_version_is_given_up(lake: Lake) -> None:
    old, new = put(lake, b"old"), put(lake, b"new")
    lake.commit(commit_of(1, "a", artifacts=(old,)))
    lake.commit(commit_of(1, "b", artifacts=(new,)))
    assert lake.gc(grace_s=0).removed == ()
    assert count(lake, "words", 1) == 3
    result = lake.gc(grace_s=0, keep_versions=1)
    assert result.versions_given_up == 1
    assert f"artifacts/{old[:2]}/{old}" in result.removed
    assert len(result.removed) == 4  # its artifact, and its files of three tables
    assert [v.version for v in lake.versions()] == [2]
    with pytest.raises(ConfigInvalid, match="no_version"):
        lake.connect(1)
    assert lake.store.read(new) == b"new"
    assert lake.commit(commit_of(2)) == 3
    with lake.ledger.reading() as con:
        for table, rows in ((DATA_FILE, 6), (DATA_PART, 6), (STAGE_RUN, 2), (ARTIFACT_REF, 1)):
            assert con.execute(sa.select(sa.func.count()).select_from(table)).scalar_one() == rows
    assert_sound(lake)


def test_versions_that_readers_may_have_open_are_not_given_up(lake: Lake) -> None:
    for key in "abcd":
        lake.commit(commit_of(1, key))
    assert lake.gc(grace_s=3600, keep_versions=1).versions_given_up == 0
    with lake.ledger.writing() as con:  # the first two were committed two hours ago: only the first has not been the newest since
        con.execute(
            sa.update(LAKE_VERSION).where(LAKE_VERSION.c.version <= 2).values(committed_us=LAKE_VERSION.c.committed_us - 7200 * 10**6)
        )
    assert lake.gc(grace_s=3600, keep_versions=1).versions_given_up == 1
    assert [(v.version, count(lake, "words", v.version)) for v in lake.versions()] == [(2, 3), (3, 3), (4, 3)]


def test_garbage_that_gets_a_reference_during_collection_is_kept(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [put(lake, b"%d" % n) for n in range(5)]
    box = lake.store.put_json(names, ArtifactKind.OTHER).sha256
    other = Lake(lake.root)
    find = upkeep._candidates

    def late(lake: Lake, marked: object) -> object:
        found = list(find(lake, marked))  # type: ignore[arg-type]
        other.commit(commit_of(1, artifacts=(box,)))  # refers to all five through the box
        return iter(found)

    monkeypatch.setattr(upkeep, "_candidates", late)
    assert lake.gc(grace_s=0).removed == ()
    assert all(lake.store.has(n) for n in names)


def test_storing_garbage_again_makes_it_young(lake: Lake) -> None:
    name = put(lake, b"made by a run that died")
    age(lake.store.path(name), 10_000)
    assert put(Lake(lake.root), b"made by a run that died") == name
    assert lake.gc(grace_s=5000).removed == ()


def test_notes_of_artifacts_that_are_gone_go_too(lake: Lake) -> None:
    kept, gone = (lake.store.put_bytes(data, ArtifactKind.NARRATION, "audio/wav") for data in (b"kept", b"gone"))
    lake.commit(commit_of(1, artifacts=(kept.sha256,)))
    lake.store.remember("kept", kept)
    lake.store.remember("gone", gone)
    lake.gc(grace_s=0)
    lake.gc(grace_s=0)
    assert lake.store.recall("kept") == kept
    assert lake.store.recall("gone") is None
    assert len(list((lake.store.root / "recall").glob("*/*"))) == 1
    assert lake.fsck().findings == ()


@pytest.mark.parametrize(("grace_s", "keep"), [(-1, None), (0, 0)])
def test_senseless_settings_are_refused(lake: Lake, grace_s: float, keep: int | None) -> None:
    with pytest.raises(ConfigInvalid):
        lake.gc(grace_s=grace_s, keep_versions=keep)


def test_an_empty_lake_needs_no_upkeep(lake: Lake) -> None:
    assert lake.compact().versions == ()
    assert lake.gc(grace_s=0, keep_versions=1).removed == ()
    assert data_files(lake) == []
