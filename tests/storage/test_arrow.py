"""Rows to Arrow and Parquet: types come from the spec, and what cannot be stored is named."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors import SchemaMismatch
from schemas.tables import TABLE, TABLES, TableSpec, col
from storage import arrow
from tests.storage.lakes import project, sentence, word


def table(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    spec = TABLE[name]
    return arrow.table_of(spec, arrow.finish_rows(spec, rows, stage_key="stg_1", run_id="run_1"))


@pytest.mark.parametrize("spec", TABLES, ids=lambda s: s.name)
def test_an_empty_table_has_every_column_with_its_type(spec: TableSpec) -> None:
    empty = arrow.table_of(spec, [])
    assert empty.schema.equals(arrow.schema_of(spec))
    assert pa.null() not in empty.schema.types
    assert not any(pa.types.is_list(t) and t.value_type == pa.null() for t in empty.schema.types)


def test_all_null_and_all_empty_columns_keep_their_types() -> None:
    t = table("sentences", [sentence(1, flags=[], shots=[], confidence=None)])
    assert t.schema.field("confidence").type == pa.float64()
    assert t.schema.field("flags").type == pa.list_(pa.string())
    assert t.schema.field("shots").type == pa.list_(pa.int64())


def test_shards_of_different_content_have_one_schema(shared: Path, tmp_path: Path) -> None:
    spec = TableSpec(
        "shards", 1, "", ("id",), (col("id", "text", ""), col("tags", "text_list", ""), col("score", "float", "", null="none"))
    )
    for shard in sorted((shared / "cases" / "shards").glob("*.jsonl")):
        rows = [{k: v for k, v in json.loads(line).items() if k != "shots"} for line in shard.read_text().splitlines()]
        finished = arrow.finish_rows(spec, rows, stage_key="s", run_id="r")
        (tmp_path / f"{shard.stem}.parquet").write_bytes(arrow.parquet_bytes(arrow.table_of(spec, finished)))
    schemas = [pq.read_schema(p) for p in sorted(tmp_path.iterdir())]
    assert len(schemas) == 3
    assert all(s.equals(schemas[0]) for s in schemas)
    rows = duckdb.connect().execute("select id, tags, score from read_parquet($1) order by id", [f"{tmp_path}/*.parquet"]).fetchall()
    assert rows == [("a", [], None), ("b", ["x"], 0.5)]


@pytest.mark.parametrize("text", ["line\u2028sep\r\n\ttab", "nul \u0000 byte", "bidi \u202e and zero\u200bwidth", "力学", "\U0001f3ac", ""])
def test_text_survives_parquet_and_duckdb(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(arrow.parquet_bytes(table("words", [word(1, 0, text)])))
    assert arrow.conform(arrow.read_parquet(path), TABLE["words"])["text"].to_pylist() == [text]
    assert duckdb.connect().execute("select text from read_parquet($1)", [str(path)]).fetchall() == [(text,)]


BAD = [
    ("words", word(1, 0, "lone \ud800 surrogate"), "bad_text", "words.text of row 1"),
    ("sentences", sentence(1, flags=["ok", "\udfff"]), "bad_text", "sentences.flags of row 1"),
    ("words", word(1, 2**63), "bad_value", "words.word_index of row 1"),
    ("words", word(1, 2**70), "bad_value", "words.word_index of row 1"),
    ("words", word(1, 0) | {"confidence": float("nan")}, "bad_value", "words.confidence of row 1"),
    ("words", word(1, 0) | {"confidence": float("inf")}, "bad_value", "words.confidence of row 1"),
    ("sentences", sentence(1, shots=[0, None]), "bad_value", "sentences.shots of row 1"),
    ("sentences", sentence(1, shots=[True]), "bad_value", "sentences.shots of row 1"),
    ("sentences", sentence(1, flags=[1]), "bad_value", "sentences.flags of row 1"),
    ("projects", project(1) | {"split": "test"}, "value_not_allowed", "projects.split"),
    ("projects", project(1) | {"title": None}, "null_value", "projects.title"),
    ("projects", project(1) | {"titel": "x"}, "unknown_column", "titel"),
]


@pytest.mark.parametrize(("name", "row", "code", "where"), BAD, ids=[f"{b[3]} {b[2]} {i}" for i, b in enumerate(BAD)])
def test_a_value_that_cannot_be_stored_is_named(name: str, row: dict[str, Any], code: str, where: str) -> None:
    good = {"words": word(9, 9), "sentences": sentence(9), "projects": project(9)}[name]
    with pytest.raises(SchemaMismatch, match=where) as caught:
        table(name, [good, row])
    assert caught.value.code == code


def test_a_key_twice_in_one_commit_is_refused() -> None:
    with pytest.raises(SchemaMismatch, match="duplicate_key"):
        table("words", [word(1, 0), word(1, 1), word(1, 0)])


def test_whole_numbers_in_float_columns_have_one_digest() -> None:
    a, b = (table("projects", [project(1) | {"narration_share": v}])["row_digest"].to_pylist() for v in (1, 1.0))
    assert a == b


def test_rows_in_any_order_give_equal_bytes() -> None:
    rows = [word(n, i) for n in (2, 1) for i in (1, 0)]
    one, other = (bytes(arrow.parquet_bytes(table("words", r))) for r in (rows, rows[::-1]))
    assert one == other
    back = pq.read_table(io.BytesIO(one)).select(["project_id", "word_index"]).to_pylist()
    assert [(r["project_id"], r["word_index"]) for r in back] == [("prj_1", 0), ("prj_1", 1), ("prj_2", 0), ("prj_2", 1)]


def test_rows_of_one_project_lie_together_where_the_key_does_not_say_so() -> None:
    assert arrow.sort_columns(TABLE["examples"]) == ["project_id", "example_id"]
    assert arrow.sort_columns(TABLE["words"]) == ["project_id", "word_index"]


def test_files_carry_page_checksums_a_page_index_and_zstd(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(arrow.parquet_bytes(table("words", [word(1, i, f"text {i}") for i in range(3000)])))
    column = pq.read_metadata(path).row_group(0).column(2)
    assert column.compression == "ZSTD"
    assert column.has_column_index
    data = bytearray(path.read_bytes())
    data[column.data_page_offset + 200] ^= 1
    path.write_bytes(data)
    with pytest.raises(OSError, match=r"(?i)checksum|crc"):
        arrow.conform(arrow.read_parquet(path), TABLE["words"])


def test_columns_that_an_older_file_lacks_are_null(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(arrow.parquet_bytes(table("words", [word(1, 0)]).drop_columns(["confidence", "shot_index"])))
    back = arrow.conform(arrow.read_parquet(path), TABLE["words"])
    assert back.schema.equals(arrow.schema_of(TABLE["words"]))
    assert back["shot_index"].to_pylist() == [None]
