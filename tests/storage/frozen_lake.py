"""Makes the frozen lake of today's schema: ``python -m tests.storage.frozen_lake NAME`` writes ``tests/storage/frozen/NAME.tar``.

Run it once for each release that changes a table, a record or the ledger, before the change; what it wrote is never made again. Every table
gets a row, some commits are replaced, one is compacted, so that every kind of ledger row occurs.
"""

from __future__ import annotations

import io
import json
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from schemas.artifact import ArtifactKind
from schemas.canonical import digest_of
from schemas.tables import TABLES, Column, TableSpec
from storage.durable import write_file
from storage.lake import Lake, StageCommit

OLD = 22
"""A version in the middle of its history: before the compaction and the last replacements."""

FROZEN = Path(__file__).resolve().parent / "frozen"


def value_of(column: Column, spec: TableSpec, n: int) -> Any:
    """A literal value that depends on the column and a number alone."""
    if column.null is not None and n % 2:
        return None
    match column.type:
        case "int":
            return n
        case "float":
            return n / 4
        case "bool":
            return n % 2 == 0
        case "text_list":
            return [f"{column.name}{n}"]
        case "int_list":
            return [n, n + 1]
    if column.allowed is not None:
        return column.allowed[n % len(column.allowed)]
    if column.name.endswith("_json"):
        return "{}"
    return f"{column.name}_{n}"


def rows_of(spec: TableSpec, numbers: range) -> list[dict[str, Any]]:
    """Rows of one table."""
    return [{c.name: value_of(c, spec, n) for c in spec.columns} for n in numbers]


def make(root: Path) -> None:
    """Fill a lake with every table."""
    lake = Lake(root)
    sha = lake.store.put_bytes(b"a frozen artifact", ArtifactKind.OTHER, "text/plain").sha256
    record = lake.store.put_json({"record": 1}, ArtifactKind.OTHER).sha256
    manifest = {"schema_version": "snapshot.1", "project_id": "prj_1", "state_digest": "0" * 64, "film_record": record}
    snapshot = lake.store.put_json(manifest | {"task_record": record, "shot_records": [["s001", record]]}, ArtifactKind.SNAPSHOT).sha256
    for step, numbers in enumerate((range(1, 3), range(3, 6), range(3, 5))):
        for spec in TABLES:
            if spec.name in ("stage_runs", "failures") or (step and spec.name not in ("words", "examples")):
                continue
            rows = rows_of(spec, numbers)
            if spec.name == "snapshots":
                rows = [row | {"snapshot_id": f"snp_{snapshot}", "snapshot_sha256": snapshot} for row in rows]
            scope = f"{spec.name}_{min(step, 1)}"  # the third step replaces the second
            lake.commit(StageCommit("frozen", f"stg_{spec.name}_{step}", "prj_1", scope, "done", sha, {spec.name: rows}, (sha,), "run_1"))
        if step == 0:
            lake.record_failure(
                stage="frozen", subject="prj_1", uri="u", error_type="E", code="c", message="m", attempts=1, quarantined=True, run_id="r"
            )
        if step == 1:
            lake.compact()
    lake.ledger.close()


def digest_of_rows(lake: Lake, table: str, columns: list[str], version: int | None = None) -> str:
    """Digest of a table's rows, over the columns it had then."""
    return digest_of([[row[c] for c in columns] for row in lake.scan(table, version).to_pylist()])


def expectation(lake: Lake) -> dict[str, Any]:
    """What has to be read from it for good: every table in the newest version, and rows of an older one."""
    tables = {}
    for spec in TABLES:
        columns = [c.name for c in spec.all_columns]
        tables[spec.name] = {"version": spec.version, "columns": columns, "rows": lake.scan(spec.name).num_rows}
        tables[spec.name]["digest"] = digest_of_rows(lake, spec.name, columns)
    return {"tables": tables, "old_version": OLD, "old_words": digest_of_rows(lake, "words", tables["words"]["columns"], OLD)}


def main(arguments: list[str]) -> int:
    """Write the archive and what to expect of it."""
    (name,) = arguments
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "lake"
        make(root)
        write_file(FROZEN / f"{name}.json", json.dumps(expectation(Lake(root)), sort_keys=True).encode())
        for path in (root / "tmp", root / "artifacts" / "tmp"):
            path.mkdir(exist_ok=True)
        with io.BytesIO() as buffer:
            with tarfile.open(fileobj=buffer, mode="w:xz") as archive:
                archive.add(root, arcname="lake")
            write_file(FROZEN / f"{name}.tar", buffer.getvalue())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
