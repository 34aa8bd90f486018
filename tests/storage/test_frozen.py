"""Lakes of every released schema version open, read as they did, can be worked on, and are upgraded by compaction."""

from __future__ import annotations

import dataclasses
import json
import tarfile
from pathlib import Path

import pytest

import schemas.tables
from schemas.errors import SchemaMismatch
from schemas.tables import TABLE, TableSpec, col
from storage import lake as lake_module
from storage import upkeep, views
from storage.lake import Lake
from storage.upgrade import UPGRADES, Upgrade
from tests.conftest import Tally
from tests.storage.frozen_lake import FROZEN, digest_of_rows
from tests.storage.lakes import commit_of, count

RELEASES = sorted(p.stem for p in FROZEN.glob("*.tar"))


def test_there_is_a_frozen_lake_of_every_table_version() -> None:
    frozen = [json.loads((FROZEN / f"{name}.json").read_text())["tables"] for name in RELEASES]
    for spec in TABLE.values():
        versions = {tables[spec.name]["version"] for tables in frozen if spec.name in tables}
        assert versions >= set(range(1, spec.version)), f"freeze a lake before table {spec.name} changes"


@pytest.mark.parametrize("name", RELEASES)
def test_a_frozen_lake_opens_and_says_what_it_said(tmp_path: Path, name: str, tally: Tally) -> None:
    with tarfile.open(FROZEN / f"{name}.tar") as archive:
        archive.extractall(tmp_path, filter="data")
    expected = json.loads((FROZEN / f"{name}.json").read_text())
    lake = Lake(tmp_path / "lake", create=False)
    report = lake.fsck()
    assert [f for f in report.findings if f.fault.value != "duplicate_key"] == []
    con = lake.connect()
    for table, e in expected["tables"].items():
        assert con.table(table).aggregate("count(*)").to_arrow_table().to_pylist() == [{"count_star()": e["rows"]}]
        assert digest_of_rows(lake, table, e["columns"]) == e["digest"]
    con.close()
    assert digest_of_rows(lake, "words", expected["tables"]["words"]["columns"], expected["old_version"]) == expected["old_words"]
    lake.commit(commit_of(77))
    lake.compact()
    for table in set(expected["tables"]) - {"projects", "words", "stage_runs"}:
        assert digest_of_rows(lake, table, expected["tables"][table]["columns"]) == expected["tables"][table]["digest"]
    tally("R14", lake=name, tables=len(expected["tables"]), differing_digests=0)


WORDS = TABLE["words"]
NEXT = dataclasses.replace(
    WORDS,
    version=2,
    columns=(
        *(c for c in WORDS.columns if c.name != "shot_index"),
        col("length_us", "int", "how long it lasts"),
        col("shot", "text", "shot id"),
        col("note", "text", "a remark", null="none was made"),
    ),
)
STEP = Upgrade(adds={"length_us": "end_us - start_us", "shot": "'s' || shot_index"}, changes={"text": "upper(text)"}, drops=("shot_index",))


@pytest.fixture
def raised(monkeypatch: pytest.MonkeyPatch) -> TableSpec:
    """The table words in its next version, everywhere."""
    tables = {**TABLE, "words": NEXT}
    for module in (schemas.tables, lake_module, views, upkeep):
        monkeypatch.setattr(module, "TABLE", tables, raising=False)
        monkeypatch.setattr(module, "TABLES", tuple(tables.values()), raising=False)
    monkeypatch.setitem(UPGRADES, ("words", 1), STEP)
    return NEXT


def test_older_rows_are_read_through_their_upgrade_and_compaction_writes_it_down(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    lake = Lake(tmp_path / "lake")
    lake.commit(commit_of(1, "old"))
    lake.commit(commit_of(2, "old"))
    request.getfixturevalue("raised")
    row = {c.name: None for c in NEXT.columns} | {"project_id": "prj_3", "word_index": 0, "text": "new", "start_us": 1, "end_us": 2}
    row |= {"timing": "aligned", "sentence_index": 0, "length_us": 1, "shot": "s7"}
    lake.commit(commit_of(3, rows={"words": [row]}))
    sql = "select project_id, text, length_us, shot, note from words order by project_id, word_index"
    expected = [("prj_1", "OLD", 9, "s0", None)] * 3 + [("prj_2", "OLD", 9, "s0", None)] * 3 + [("prj_3", "new", 1, "s7", None)]
    assert lake.query(sql).rows == expected
    assert [(r["project_id"], r["text"], r["length_us"], r["shot"], r["note"]) for r in lake.scan("words").to_pylist()] == expected
    assert {f.schema_version for f in lake.files(table="words")} == {1, 2}
    lake.compact()
    assert {f.schema_version for f in lake.files(table="words")} == {2}
    assert lake.query(sql).rows == expected
    assert_sound_but_for_words(lake)


def assert_sound_but_for_words(lake: Lake) -> None:
    assert lake.fsck().is_sound
    assert count(lake, "words") == 7


def test_a_lake_of_a_newer_release_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(tmp_path / "lake")
    with monkeypatch.context() as patch:
        patch.setattr(lake_module, "TABLE", {**TABLE, "words": dataclasses.replace(WORDS, version=9)})
        lake.commit(commit_of(1))
    with pytest.raises(SchemaMismatch, match="table_version"):
        lake.scan("words")
    with pytest.raises(SchemaMismatch, match="table_version"):
        lake.connect()
