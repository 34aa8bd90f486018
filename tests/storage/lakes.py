"""Rows and commits for lake tests: small, literal, and told apart by a number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from schemas.artifact import ArtifactKind
from storage.lake import Lake, StageCommit


def project(n: int, language: str = "en") -> dict[str, Any]:
    return {
        "project_id": f"prj_{n}",
        "uri": f"film{n}.mp4",
        "title": f"Film {n}",
        "language": language,
        "licence": "CC0",
        "attribution": None,
        "source_sha256": f"{n:064x}",
        "duration_us": 1_000_000 + n,
        "width": 320,
        "height": 240,
        "shots": 2,
        "sentences": 1,
        "words": 3,
        "narration_share": 0.5,
        "split": "train",
        "engines_json": "{}",
    }


def word(n: int, index: int, text: str = "word") -> dict[str, Any]:
    return {
        "project_id": f"prj_{n}",
        "word_index": index,
        "text": text,
        "start_us": index * 10,
        "end_us": index * 10 + 9,
        "confidence": None,
        "timing": "aligned",
        "sentence_index": 0,
        "shot_index": 0,
    }


def sentence(n: int, **other: Any) -> dict[str, Any]:
    return {
        "project_id": f"prj_{n}",
        "sentence_index": 0,
        "text": "a b c",
        "start_us": 0,
        "end_us": 30,
        "language": "en",
        "confidence": None,
        "shots": [0, 1],
        "flags": [],
    } | other


def commit_of(n: int, key: str = "a", words: int = 3, artifacts: tuple[str, ...] = (), **other: Any) -> StageCommit:
    """The inversion of project ``n`` under configuration ``key``: one project row, some words."""
    fields: dict[str, Any] = {
        "stage": "invert",
        "stage_key": f"stg_{n}_{key}",
        "subject": f"prj_{n}",
        "scope": f"src_{n}",
        "status": "done",
        "rows": {"projects": [project(n)], "words": [word(n, i, key) for i in range(words)]},
        "artifacts": artifacts,
        "run_id": "run_1",
    }
    return StageCommit(**(fields | other))


def rejection_of(n: int, key: str = "a", **other: Any) -> StageCommit:
    row = {"source_key": f"src_{n}", "uri": f"film{n}.mp4", "code": "no_audio", "detail": "no audio stream", "source_sha256": None}
    return commit_of(n, key, **({"status": "rejected", "rows": {"rejections": [row]}} | other))


def put(lake: Lake, data: bytes, kind: ArtifactKind = ArtifactKind.OTHER) -> str:
    return lake.store.put_bytes(data, kind, "application/octet-stream").sha256


def count(lake: Lake, table: str, version: int | None = None) -> int:
    return int(lake.scan(table, version).num_rows)


def one(con: duckdb.DuckDBPyConnection, sql: str) -> Any:
    return con.execute(sql).fetchall()[0][0]


def data_files(lake: Lake) -> list[Path]:
    return sorted((lake.root / "tables").glob("*/*.parquet"))


def assert_sound(lake: Lake) -> None:
    """Nothing lost, doubled, torn or dangling, and every stage that is done has all its rows."""
    report = lake.fsck()
    assert report.is_sound, report.findings
    runs = lake.scan("stage_runs").to_pylist()
    done = {(r["subject"], r["stage"]): r["rows_out"] for r in runs if r["status"] == "done"}
    keys = {r["stage_key"] for r in runs}
    rows: dict[tuple[str, str], int] = {}
    for table in ("projects", "words", "sentences"):
        for row in lake.scan(table).to_pylist():
            assert row["stage_key"] in keys
            rows[(row["project_id"], "invert")] = rows.get((row["project_id"], "invert"), 0) + 1
    assert rows == {k: n for k, n in done.items() if n and k[1] == "invert"}
