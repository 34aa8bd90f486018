"""The lake: a commit is true as a whole or not at all, is replaced as a whole, and stays readable in its version.

Longer than 500 lines because every promise of the lake has its test here.
"""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pyarrow as pa
import pytest
import sqlalchemy as sa

from schemas.artifact import ArtifactKind
from schemas.errors import AlreadyDone, ConfigInvalid, DigestMismatch, PipelineError, SchemaMismatch, StorageFault, StorageFull
from schemas.tables import TABLE, TABLES
from storage import arrow, durable, history
from storage.lake import Lake
from storage.ledger import DATA_FILE
from tests.storage.lakes import assert_sound, commit_of, count, data_files, one, project, put, rejection_of, sentence, word


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


# -- commits


def test_a_commit_is_read_back(lake: Lake) -> None:
    output = put(lake, b"storyboard")
    assert lake.done("stg_1_a") is None
    assert lake.commit(commit_of(1, output_sha256=output)) == 1
    record = lake.done("stg_1_a")
    assert record is not None
    assert (record.stage, record.status, record.output_sha256, record.rows_out, record.version) == ("invert", "done", output, 4, 1)
    con = lake.connect()
    assert con.execute("select project_id, title, stage_key, run_id from projects").fetchall() == [("prj_1", "Film 1", "stg_1_a", "run_1")]
    assert con.execute("select word_index, text from words order by word_index").fetchall() == [(0, "a"), (1, "a"), (2, "a")]
    assert con.execute("select stage, subject, status, output_sha256, rows_out from stage_runs").fetchall() == [
        ("invert", "prj_1", "done", output, 4)
    ]


def test_another_process_sees_it(lake: Lake) -> None:
    lake.commit(commit_of(1))
    again = Lake(lake.root, create=False)
    assert again.done("stg_1_a") == lake.done("stg_1_a")
    assert count(again, "words") == 3


def test_the_same_key_again_is_already_done_and_adds_nothing(lake: Lake) -> None:
    lake.commit(commit_of(1))
    files = data_files(lake)
    with pytest.raises(AlreadyDone):
        lake.commit(commit_of(1))
    assert count(lake, "words") == 3
    assert [v.version for v in lake.versions()] == [1]
    assert data_files(lake) == files


def test_a_new_key_for_the_same_scope_replaces_the_rows(lake: Lake) -> None:
    lake.commit(commit_of(1, "a", words=3))
    lake.commit(commit_of(2, "a", words=1))
    lake.commit(commit_of(1, "b", words=2))
    assert lake.query("select project_id, word_index, text from words order by all").rows == [
        ("prj_1", 0, "b"),
        ("prj_1", 1, "b"),
        ("prj_2", 0, "a"),
    ]
    assert count(lake, "projects") == 2
    assert count(lake, "stage_runs") == 2
    assert lake.done("stg_1_a") is None
    assert lake.done("stg_1_b") is not None
    assert_sound(lake)


def test_going_back_to_an_old_key_is_a_commit_of_its_own(lake: Lake) -> None:
    for key in "aba":
        lake.commit(commit_of(1, key))
    assert lake.query("select distinct text from words").rows == [("a",)]
    assert count(lake, "words") == 3
    assert_sound(lake)


def test_a_rejection_replaces_a_project_and_retires_its_later_stages(lake: Lake) -> None:
    lake.commit(commit_of(1))
    lake.commit(commit_of(1, "later", stage="materialize", rows={"sentences": [sentence(1)]}))
    lake.commit(rejection_of(1, "strict", retires=(("materialize", "src_1"), ("replay", "src_1"))))
    assert [count(lake, t) for t in ("projects", "words", "sentences", "rejections", "stage_runs")] == [0, 0, 0, 1, 1]
    record = lake.done("stg_1_strict")
    assert record is not None
    assert record.status == "rejected"
    assert lake.done("stg_1_later") is None


def test_scopes_and_stages_do_not_touch_each_other(lake: Lake) -> None:
    lake.commit(commit_of(1))
    lake.commit(commit_of(1, "r", stage="replay", rows={"sentences": [sentence(1)]}))
    lake.commit(commit_of(2))
    assert [count(lake, t) for t in ("projects", "sentences")] == [2, 1]


def test_a_stage_without_rows_is_done_too(lake: Lake) -> None:
    lake.commit(commit_of(1, rows={}))
    assert lake.done("stg_1_a") is not None
    assert lake.query("select rows_out from stage_runs").rows == [(0,)]


BROKEN = [
    ({"rows": {"words": [word(1, 0, "\ud800")]}}, SchemaMismatch, "bad_text"),
    ({"rows": {"projects": [project(1)], "words": [word(1, 0) | {"start_us": "0"}]}}, SchemaMismatch, "wrong_type"),
    ({"rows": {"no_such": [{}]}}, SchemaMismatch, "unknown_table"),
    ({"rows": {"stage_runs": [{}]}}, SchemaMismatch, "unknown_table"),
    ({"status": "failed"}, SchemaMismatch, "value_not_allowed"),
    ({"stage": "../x"}, ConfigInvalid, "stage_name"),
    ({"artifacts": ("ab" * 32,)}, StorageFault, "artifact_missing"),
    ({"output_sha256": "ab" * 32}, StorageFault, "artifact_missing"),
]


@pytest.mark.parametrize(("change", "error", "code"), BROKEN, ids=[b[2] for b in BROKEN])
def test_a_bad_commit_changes_nothing_and_the_next_one_goes_through(
    lake: Lake, change: dict[str, Any], error: type[PipelineError], code: str
) -> None:
    lake.commit(commit_of(2))
    with pytest.raises(error) as caught:
        lake.commit(commit_of(1, **change))
    assert caught.value.code == code
    assert [v.version for v in lake.versions()] == [1]
    assert count(lake, "words") == 3
    lake.commit(commit_of(1))
    assert count(lake, "words") == 6


def test_no_file_of_a_commit_with_bad_text_is_left(lake: Lake) -> None:
    with pytest.raises(SchemaMismatch, match=r"words\.text"):
        lake.commit(commit_of(1, rows={"projects": [project(1)], "words": [word(1, 0, "\ud800")]}))
    assert data_files(lake) == []
    assert list((lake.root / "tmp").iterdir()) == []


def enter(lake: Lake, file: history.DataFile) -> None:
    with lake.ledger.writing() as con:
        history.add_files(con, history.next_version(con, 0, kind="commit"), [(file, {"other": file.rows})])


def test_the_same_file_twice_is_refused(lake: Lake) -> None:
    lake.commit(commit_of(1))
    file = lake.files(table="words")[0]
    for path in (file.path, "tables/words/copy.parquet"):
        with pytest.raises(AlreadyDone):
            enter(lake, history.DataFile(path, "words", 3, file.bytes, file.sha256, 1))
    assert count(lake, "words") == 3
    with lake.ledger.reading() as con:
        assert con.execute(sa.select(sa.func.count()).select_from(DATA_FILE).where(DATA_FILE.c.table_name == "words")).scalar_one() == 1


def test_the_digests_in_rows_are_kept_if_the_store_has_them(lake: Lake) -> None:
    key_frame = put(lake, b"a picture")
    row = project(1) | {"source_sha256": key_frame}
    lake.commit(commit_of(1, rows={"projects": [row]}))
    assert lake.gc(grace_s=0).removed == ()
    assert lake.store.read(key_frame) == b"a picture"


@pytest.mark.parametrize(("number", "error"), [(28, StorageFull), (5, StorageFault)])
@pytest.mark.parametrize("operation", ["write", "fsync", "rename", "fsync_folder", "ledger_begin", "ledger_commit"])
def test_no_acknowledgement_after_the_first_fault(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, operation: str, number: int, error: type[StorageFault]
) -> None:
    lake.commit(commit_of(1))

    def fail(op: str, path: str) -> None:
        if op == operation:
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(durable, "fault_point", fail)
    with pytest.raises(error):
        lake.commit(commit_of(2))
    monkeypatch.undo()
    for again in (commit_of(2), commit_of(3)):
        with pytest.raises(StorageFault, match="closed_after_fault"):
            lake.commit(again)
    reopened = Lake(lake.root)
    assert [v.version for v in reopened.versions()] == [1]
    assert_sound(reopened)
    reopened.commit(commit_of(2))
    assert count(reopened, "words") == 6


# -- failures


def failure(lake: Lake, **other: Any) -> str:
    fields: dict[str, Any] = {
        "stage": "replay",
        "subject": "src_1",
        "uri": "film1.mp4",
        "error_type": "ToolFailed",
        "code": "ffmpeg_died",
        "message": "ffmpeg ended with 137",
        "attempts": 1,
        "quarantined": False,
        "run_id": "run_1",
    }
    return lake.record_failure(**(fields | other))


def test_failures_are_rows_and_the_same_one_twice_is_one_row(lake: Lake) -> None:
    first = failure(lake)
    assert failure(lake, run_id="run_2") == first
    assert failure(lake, attempts=2, quarantined=True) != first
    assert lake.query("select failure_id = $1, attempts, quarantined from failures order by attempts", [first]).rows == [
        (True, 1, False),
        (False, 2, True),
    ]


def test_the_output_of_a_tool_need_not_be_text(lake: Lake) -> None:
    failure(lake, message="died: \udcff\u0000")
    assert lake.query("select message from failures").rows == [("died: \\udcff\u0000",)]


def test_a_failure_is_not_replaced_by_success(lake: Lake) -> None:
    failure(lake)
    lake.commit(commit_of(1))
    assert count(lake, "failures") == 1


# -- reading


@pytest.mark.parametrize("version", [None, 0])
def test_an_empty_lake_has_every_view_with_the_right_types(lake: Lake, version: int | None) -> None:
    con = lake.connect(version)
    for spec in TABLES:
        described = {row[0]: row[1] for row in con.execute(f'describe "{spec.name}"').fetchall()}
        assert described == {c.name: arrow.DUCKDB[c.type] for c in spec.all_columns}
        assert con.execute(f'select * from "{spec.name}"').fetchall() == []  # noqa: S608


def test_a_full_view_has_the_types_of_an_empty_one(lake: Lake) -> None:
    lake.commit(commit_of(1, rows={"sentences": [sentence(1)], "projects": [project(1)], "words": [word(1, 0)]}))
    empty, full = lake.connect(0), lake.connect()
    for name in ("sentences", "projects", "words", "stage_runs"):
        assert full.execute(f"describe {name}").fetchall() == empty.execute(f"describe {name}").fetchall()
        assert len(full.execute(f"select * from {name}").fetchall()) == 1  # noqa: S608
    assert full.execute("select shots, flags from sentences").fetchall() == [([0, 1], [])]


def test_any_version_can_be_opened_again(lake: Lake) -> None:
    lake.commit(commit_of(1, "a", words=1))
    lake.commit(commit_of(2, "a", words=2))
    lake.commit(commit_of(1, "b", words=5))
    assert [count(lake, "words", v) for v in (0, 1, 2, 3, None)] == [0, 1, 3, 7, 7]
    assert lake.query("select distinct text from words where project_id = 'prj_1'", version=2).rows == [("a",)]
    assert lake.scan("words", 1).num_rows == 1
    assert [v.version for v in lake.versions()] == [1, 2, 3]
    assert {(v.kind, v.stage, v.run_id) for v in lake.versions()} == {("commit", "invert", "run_1")}


@pytest.mark.parametrize("version", [-1, 2, 99])
def test_a_version_that_never_was_is_refused(lake: Lake, version: int) -> None:
    lake.commit(commit_of(1))
    with pytest.raises(ConfigInvalid, match="no_version"):
        lake.connect(version)


def test_an_open_connection_keeps_its_version(lake: Lake) -> None:
    lake.commit(commit_of(1, "a"))
    con = lake.connect()
    lake.commit(commit_of(1, "b", words=9))
    lake.compact()
    lake.gc()
    assert one(con, "select count(*) from words") == 3


def test_scan_is_sorted_and_typed(lake: Lake) -> None:
    for n in (3, 1, 2):
        lake.commit(commit_of(n, words=2))
    words = lake.scan("words")
    assert words.schema.equals(arrow.schema_of(TABLE["words"]))
    assert words["project_id"].to_pylist() == ["prj_1", "prj_1", "prj_2", "prj_2", "prj_3", "prj_3"]
    assert lake.scan("examples").equals(arrow.schema_of(TABLE["examples"]).empty_table())
    with pytest.raises(ConfigInvalid, match="no_table"):
        lake.scan("word")


def test_rows_have_equal_digests_in_any_order_of_commits(tmp_path: Path) -> None:
    digests = []
    for name, order in (("x", (1, 2, 3)), ("y", (3, 1, 2))):
        lake = Lake(tmp_path / name)
        for n in order:
            lake.commit(commit_of(n))
        digests.append(lake.scan("words")["row_digest"].to_pylist())
    assert digests[0] == digests[1]


def test_a_clock_that_jumps_back_changes_no_order_and_no_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digests = []
    for name, step in (("steady", 10**9), ("jumping", -3600 * 10**9)):
        clock = iter(range(2 * 10**18, 2 * 10**18 + 9 * step, step))
        monkeypatch.setattr("storage.lake.time.time_ns", lambda clock=clock: next(clock))
        lake = Lake(tmp_path / name)
        for key in "ab":
            lake.commit(commit_of(1, key))
        assert [v.version for v in lake.versions()] == [1, 2]
        assert [lake.scan("words", v)["text"].to_pylist()[0] for v in (1, 2)] == ["a", "b"]
        digests.append(lake.scan("words")["row_digest"].to_pylist())
    assert digests[0] == digests[1]


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_a_flipped_bit_is_found_before_a_query_answers(lake: Lake) -> None:
    lake.commit(commit_of(1))
    assert count(lake, "words") == 3
    flip(lake.root / lake.files(table="words")[0].path, 60)
    for reader in (lake, Lake(lake.root)):
        with pytest.raises(DigestMismatch, match="data_file_damaged"):
            reader.connect()
        with pytest.raises(DigestMismatch):
            reader.scan("words")


def test_a_missing_file_is_a_storage_fault(lake: Lake) -> None:
    lake.commit(commit_of(1))
    (lake.root / lake.files(table="words")[0].path).unlink()
    with pytest.raises(StorageFault, match="data_file_missing"):
        lake.connect()


def test_columns_that_an_older_file_lacks_are_null_in_the_view(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.commit(commit_of(1))
    old = TABLE["words"]
    from schemas.tables import TableSpec, col

    new = TableSpec(old.name, 2, old.doc, old.key, (*old.columns, col("speaker", "text", "who", null="unknown")))
    monkeypatch.setitem(TABLE, "words", new)
    monkeypatch.setattr("storage.views.TABLES", tuple(new if t.name == "words" else t for t in TABLES))
    lake.commit(commit_of(2, rows={"words": [word(2, 0) | {"speaker": "A"}]}))
    rows = lake.query("select project_id, word_index, speaker from words order by all").rows
    assert rows == [("prj_1", 0, None), ("prj_1", 1, None), ("prj_1", 2, None), ("prj_2", 0, "A")]
    assert lake.scan("words")["speaker"].to_pylist() == [None, None, None, "A"]
    monkeypatch.undo()
    with pytest.raises(SchemaMismatch, match="table_version"):
        lake.connect()


def test_threads_and_memory_can_be_set(lake: Lake) -> None:
    con = lake.connect(threads=1, memory_limit="512MB")
    assert one(con, "select current_setting('threads')") == 1
    assert one(con, "select current_setting('memory_limit')") == "488.2 MiB"
    with pytest.raises(ConfigInvalid, match="duckdb_setting"):
        lake.connect(memory_limit="lots")


@pytest.mark.parametrize(
    "sql",
    [
        "select * from read_text('/etc/hostname')",
        "select * from read_csv('{lake}/LAKE.json')",
        "select * from read_blob('{lake}/ledger.sqlite')",
        "select * from glob('/etc/*')",
        "select * from read_text('{lake}/tables/../LAKE.json')",
        "copy (select 1) to '{lake}/../out.csv'",
        "attach '{lake}/x.duckdb'",
        "install httpfs",
        "load '/tmp/x.duckdb_extension'",
        "set enable_external_access = true",
        "set allowed_directories = ['/']",
        "set lock_configuration = false",
    ],
)
def test_a_connection_reaches_nothing_but_the_tables(lake: Lake, sql: str) -> None:
    lake.commit(commit_of(1))
    con = lake.connect()
    assert one(con, "select count(*) from words") == 3
    with pytest.raises(duckdb.Error):
        con.execute(sql.format(lake=lake.root)).fetchall()


@pytest.mark.parametrize(
    "sql",
    [
        "copy (select 1) to '{lake}/tables/x.parquet'",
        "copy words to '{file}' (format parquet)",
        "attach '{lake}/tables/x.duckdb'",
        "export database '{lake}/tables/x'",
        "create table t as select 1",
        "drop view words",
        "explain analyze copy (select 1) to '{lake}/tables/x.parquet'",
        "select 1; copy (select 1) to '{lake}/tables/x.parquet'",
        "set threads = 1",
        "call pragma_version()",
        "",
        "selec 1",
    ],
)
def test_a_query_can_only_ask(lake: Lake, sql: str) -> None:
    lake.commit(commit_of(1))
    before = {p: p.read_bytes() for p in lake.root.rglob("*") if p.is_file()}
    with pytest.raises(ConfigInvalid):
        lake.query(sql.format(lake=lake.root, file=data_files(lake)[0]))
    assert {p: p.read_bytes() for p in lake.root.rglob("*") if p.is_file()} == before


def test_an_answer_names_its_columns(lake: Lake) -> None:
    lake.commit(commit_of(1))
    answer = lake.query("with w as (select * from words) select project_id, count(*) as n from w group by 1 having count(*) > $1", [2])
    assert answer.columns == ("project_id", "n")
    assert answer.rows == [("prj_1", 3)]


# -- the folder


def test_every_user_may_read_the_tables(lake: Lake) -> None:
    lake.commit(commit_of(1))
    for path in data_files(lake):
        assert path.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("make", ["file", "other folder", "missing"])
def test_what_is_no_lake_is_a_typed_error(tmp_path: Path, make: str) -> None:
    path = tmp_path / "x"
    if make == "file":
        path.write_text("")
    elif make == "other folder":
        path.mkdir()
        (path / "holiday.jpg").write_text("")
    with pytest.raises(ConfigInvalid):
        Lake(path, create=False)
    if make != "missing":
        with pytest.raises(ConfigInvalid, match="not_a_lake"):
            Lake(path)
        assert sorted(p.name for p in tmp_path.rglob("*")) == (["x"] if make == "file" else ["holiday.jpg", "x"])


def test_an_empty_folder_becomes_a_lake(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    Lake(tmp_path / "lake").commit(commit_of(1))
    assert orjson.loads((tmp_path / "lake" / "LAKE.json").read_bytes())["format"] == "workprint-lake.1"


@pytest.mark.parametrize(
    "marker", [b'{"format":"workprint-lake.2","lake_id":"x","ledger":"sqlite"}', b"[]", b"{", b'{"format":"workprint-lake.1"}']
)
def test_a_lake_of_another_release_is_a_typed_error(lake: Lake, marker: bytes) -> None:
    (lake.root / "LAKE.json").write_bytes(marker)
    with pytest.raises(SchemaMismatch):
        Lake(lake.root)


def test_a_lost_ledger_is_not_replaced_by_an_empty_one(lake: Lake) -> None:
    lake.commit(commit_of(1))
    (lake.root / "ledger.sqlite").unlink()
    with pytest.raises(StorageFault, match="ledger_missing"):
        Lake(lake.root)


def test_a_damaged_ledger_is_a_storage_fault(lake: Lake) -> None:
    lake.commit(commit_of(1))
    lake.ledger.close()  # moves the log into the file
    (lake.root / "ledger.sqlite").write_bytes(b"not a database at all" * 400)
    with pytest.raises(StorageFault, match="ledger_damaged"):
        Lake(lake.root)


def test_the_ledger_of_another_lake_is_refused(tmp_path: Path) -> None:
    one_, other = Lake(tmp_path / "one"), Lake(tmp_path / "other")
    for lake in (one_, other):
        lake.ledger.close()  # moves the log into the file
    shutil.copy(one_.root / "ledger.sqlite", other.root / "ledger.sqlite")
    with pytest.raises(SchemaMismatch, match="foreign_ledger"):
        Lake(other.root)


def test_a_lake_keeps_the_kind_of_its_ledger(lake: Lake) -> None:
    with pytest.raises(ConfigInvalid, match="ledger_kind"):
        Lake(lake.root, ledger_url="postgresql+psycopg://nobody@localhost/x")


def test_a_lake_can_be_moved(lake: Lake, tmp_path: Path) -> None:
    lake.commit(commit_of(1))
    lake.root.rename(tmp_path / "elsewhere")
    moved = Lake(tmp_path / "elsewhere", create=False)
    assert count(moved, "words") == 3
    assert_sound(moved)


def test_a_lake_with_a_quote_in_its_name(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "it's a [lake] 力学 *?")
    lake.commit(commit_of(1))
    assert count(lake, "words") == 3
    assert_sound(lake)


def test_a_lake_can_be_sent_to_another_process(lake: Lake) -> None:
    lake.commit(commit_of(1))
    assert count(pickle.loads(pickle.dumps(lake)), "words") == 3  # noqa: S301


def test_a_snapshot_needs_its_records(lake: Lake) -> None:
    manifest = {"schema_version": "snapshot.1", "project_id": "prj_1", "state_digest": "0" * 64, "shot_records": []}
    manifest |= {"film_record": put(lake, b"film"), "task_record": "ab" * 32}
    sha256 = lake.store.put_json(manifest, ArtifactKind.SNAPSHOT).sha256
    row = {"trajectory_id": "trj_1", "project_id": "prj_1", "snapshot_id": f"snp_{sha256}", "snapshot_sha256": sha256}
    row |= {"state_digest": "0" * 64, "first_call_index": 0}
    with pytest.raises(StorageFault, match="artifact_missing"):
        lake.commit(commit_of(1, rows={"snapshots": [row]}))


def test_files_are_listed_for_other_readers(lake: Lake) -> None:
    lake.commit(commit_of(1))
    files = lake.files(table="words")
    assert [(f.table, f.rows, f.schema_version, f.dead) for f in files] == [("words", 3, 1, ())]
    assert pa.parquet.read_table(lake.root / files[0].path).num_rows == 3
