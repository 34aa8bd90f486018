"""A lake is looked after while a run goes on, and what one project costs does not depend on how many others there are."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa

from jobs.tidy import tidied, tidy
from schemas.errors import StorageFault, ToolFailed
from storage.lake import Lake
from tests.fault.light import config_of, light_groups, run_light
from tests.storage.lakes import assert_sound, commit_of, count, rejection_of


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Six projects in files of their own."""
    lake = Lake(tmp_path / "lake")
    for n in range(6):
        lake.commit(commit_of(n))
    return lake


def test_small_files_are_merged_from_a_number_on(lake: Lake) -> None:
    assert not tidy(lake.root, files=7)
    assert len(lake.files()) == 18
    assert tidy(lake.root, files=6)
    assert len(lake.files()) == 3
    assert count(lake, "words") == 18
    assert not tidy(lake.root, files=6)
    assert_sound(lake)


def test_a_lake_is_looked_after_during_a_run_and_at_its_end(lake: Lake) -> None:
    with tidied(lake.root, every_s=0.05, files=6):
        began = time.monotonic()
        while len(lake.files()) > 3 and time.monotonic() - began < 30:
            time.sleep(0.05)
        assert len(lake.files()) == 3
        for n in range(6, 12):
            lake.commit(commit_of(n))
    assert len(lake.files()) <= 6
    assert count(lake, "words") == 36


def test_a_run_on_ray_merges_outside_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise AssertionError("merged in the driver")

    monkeypatch.setattr(Lake, "compact", refused)
    monkeypatch.setattr("jobs.ray_runner.tidied", partial(tidied, every_s=0.5, files=6))
    lake = Lake(tmp_path / "lake")
    results = run_light(lake.root, light_groups(range(20)), config_of(engine="ray", ray={"cpus_per_project": 1}))
    assert {r.status for r in results} == {"delivered"}
    assert len(lake.files()) < 6 * 5, "20 projects make 160 files"
    assert {v.kind for v in lake.versions()} == {"commit", "compaction"}
    assert count(lake, "words") == 60
    assert not lake.fsck().findings


def test_a_merge_that_fails_elsewhere_is_tried_again_later(lake: Lake) -> None:
    def dies(_: Path) -> None:
        raise ToolFailed("merge_died", "the process that merges small files ended")

    assert not tidy(lake.root, dies, files=6)
    assert tidy(lake.root, files=6)


def test_a_run_that_is_broken_off_does_not_wait_for_a_merge(lake: Lake) -> None:
    with pytest.raises(KeyboardInterrupt), tidied(lake.root, every_s=60, files=1):
        raise KeyboardInterrupt
    assert len(lake.files()) == 18


def test_a_second_upkeep_and_a_broken_lake_do_not_end_a_run(lake: Lake, tmp_path: Path) -> None:
    with lake.ledger.upkeep():
        assert not tidy(lake.root, files=1)
    assert not tidy(tmp_path / "nowhere", files=1)


def test_the_rows_of_a_stage_are_found_in_small_merged_and_replaced_files(lake: Lake) -> None:
    assert [r["word_index"] for r in lake.rows_of("words", "stg_1_a")] == [0, 1, 2]
    lake.compact()
    lake.commit(commit_of(1, "b", words=5))
    assert lake.rows_of("words", "stg_1_a") == []
    assert [(r["project_id"], r["text"]) for r in lake.rows_of("words", "stg_1_b")] == [("prj_1", "b")] * 5
    assert {r["project_id"] for r in lake.rows_of("words", "stg_2_a")} == {"prj_2"}
    lake.commit(rejection_of(2, "b"))
    assert lake.rows_of("words", "stg_2_a") == []
    assert len(lake.rows_of("rejections", "stg_2_b")) == 1
    assert lake.rows_of("words", "stg_none") == []


def test_the_rows_of_a_stage_are_checked(lake: Lake) -> None:
    (file,) = [f for f in lake.files(table="words") if "stg_3_a" in {r["stage_key"] for r in lake.read_file(f).to_pylist()}]
    (lake.root / file.path).unlink()
    with pytest.raises(StorageFault):
        lake.rows_of("words", "stg_3_a")
    assert len(lake.rows_of("words", "stg_4_a")) == 3


def test_a_ledger_from_before_some_indexes_gets_them(lake: Lake) -> None:
    with lake.ledger.writing() as con:
        con.execute(sa.text("drop index stage_run_subject"))
        con.execute(sa.text("drop index data_part_ended"))
    lake.ledger.close()
    copy = lake.root.rename(lake.root.parent / "copied elsewhere")  # a file that no engine of this process knows
    (copy / "ledger.sqlite").write_bytes((copy / "ledger.sqlite").read_bytes())
    again = Lake(copy, create=False)
    with again.ledger.reading() as con:
        plan = con.execute(sa.text("explain query plan select * from stage_run where subject = 'prj_1' and removed_version is null")).all()
        ended = con.execute(sa.text("explain query plan select * from data_part where path = 'x' and removed_version is not null")).all()
    assert "stage_run_subject" in str(plan)
    assert "data_part_ended" in str(ended)
    assert [r.stage_key for r in again.live("prj_1")] == ["stg_1_a"]
