"""The commands that look after a lake, and the snippets of docs/lake.md."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from typer.testing import CliRunner, Result

from jobs.cli import app
from schemas.artifact import ArtifactKind
from storage.lake import Lake
from tests.storage.lakes import commit_of, data_files, put, rejection_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Three projects, one of them replaced; an orphan."""
    lake = Lake(tmp_path / "lake")
    for n in range(3):
        lake.commit(commit_of(n))
    lake.commit(commit_of(1, "b", words=5))
    put(lake, b"orphan", ArtifactKind.OTHER)
    return lake


def run(lake: Lake, *arguments: str, text: str | None = None, status: int = 0) -> Result:
    result = CliRunner().invoke(app, [*arguments, "--lake", str(lake.root)], input=text, catch_exceptions=True)
    assert result.exit_code == status or (status == 2 and result.exception is not None), result.output
    return result


def test_fsck_is_content_with_a_sound_lake(lake: Lake) -> None:
    found = json.loads(run(lake, "fsck", "--json").stdout)
    assert (found["sound"], found["data_files"], found["artifacts"]) == (True, 12, 1)
    assert [f["fault"] for f in found["findings"]] == ["orphan"]


def test_fsck_names_damage_and_fails(lake: Lake) -> None:
    path = data_files(lake)[0]
    path.write_bytes(path.read_bytes()[:-1])
    assert path.name in run(lake, "fsck", status=4).stdout


def test_compact_and_gc(lake: Lake) -> None:
    assert json.loads(run(lake, "compact", "--json").stdout)["files_after"] == 3
    dry = json.loads(run(lake, "gc", "--keep-versions", "1", "--grace-hours", "0", "--dry-run", "--json").stdout)
    assert (len(dry["removed"]), dry["versions_given_up"]) == (1, 0)
    done = json.loads(run(lake, "gc", "--keep-versions", "1", "--grace-hours", "0", "--json").stdout)
    assert (len(done["removed"]), done["versions_given_up"]) == (13, 6)
    assert len(data_files(lake)) == 3


def test_versions_and_time_travel(lake: Lake) -> None:
    rows = json.loads(run(lake, "versions", "--limit", "2", "--json").stdout)
    assert [(r["version"], r["subject"], r["stage"]) for r in rows] == [(3, "prj_2", "invert"), (4, "prj_1", "invert")]
    for version, words in (("2", 6), ("3", 9), ("4", 11)):
        assert json.loads(run(lake, "query", "select count(*) n from words", "--at", version, "--json").stdout) == [{"n": words}]


def test_the_shell_answers_what_comes_through_a_pipe(lake: Lake) -> None:
    text = "select count(*) as n,\n ';' as t from words; select 1 as one;\nfrom projects select project_id order by 1 limit 1"
    out = run(lake, "sql", "--json", text=text).stdout
    decoder, at, found = json.JSONDecoder(), 0, []
    while at < len(out):
        value, at = decoder.raw_decode(out, at)
        found.append(value)
        at += len(out[at:]) - len(out[at:].lstrip())
    assert found == [[{"n": 11, "t": ";"}], [{"one": 1}], [{"project_id": "prj_0"}]]


@pytest.mark.parametrize("text", ["drop view words;", "copy words to '/tmp/x.csv';", "select nonsense from words;", "selec 1;"])
def test_the_shell_refuses_anything_but_a_question(lake: Lake, text: str) -> None:
    run(lake, "sql", text=text, status=2)


def test_the_shell_knows_tables_and_columns(lake: Lake) -> None:
    out = run(lake, "sql", text=".tables\n.schema words\n.quit\nselect 1;\n").stdout
    assert "funnel" in out
    assert "word_index" in out
    assert "1" not in out.splitlines()[-1]


def test_the_funnel_adds_up(lake: Lake) -> None:
    def source(n: int, project: str | None, key: str) -> dict[str, object]:
        return {
            "source_key": key,
            "uri": f"film{n}.mp4",
            "source_sha256": None,
            "size_bytes": 1,
            "project_id": project,
            "is_duplicate": False,
        }

    rows = [source(0, "prj_0", "src_0"), source(1, "prj_1", "src_1"), source(1, "prj_1", "src_1b"), source(2, "prj_2", "src_2")]
    rows += [source(5, "prj_5", "src_5"), source(6, "prj_6", "src_6"), source(7, None, "src_7"), source(8, "prj_8", "src_8")]
    lake.commit(commit_of(90, stage="intake", rows={"sources": rows}))
    lake.commit(rejection_of(7, rows={"rejections": [rejection_of(7).rows["rejections"][0] | {"source_key": "src_7"}]}))
    lake.commit(rejection_of(5))
    for subject in ("prj_6", "prj_1"):  # the second has been done since
        lake.record_failure(stage="invert", subject=subject, uri="u", error_type="E", code="c", message="m", attempts=3, quarantined=True,
                            run_id="r")  # fmt: skip
    (row,) = json.loads(run(lake, "query", "from funnel", "--json").stdout)
    seen = {k: row[k] for k in ("sources", "duplicates", "rejected", "lost", "waiting", "projects", "quarantined")}
    assert seen == {"sources": 8, "duplicates": 1, "rejected": 2, "lost": 1, "waiting": 1, "projects": 3, "quarantined": 1}
    assert row["sources"] == sum(row[k] for k in ("duplicates", "rejected", "lost", "waiting", "projects"))


def test_an_export_needs_its_package_and_an_empty_folder(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    for to, out, code in (("csv", "new", "no_format"), ("delta", "full", "not_empty"), ("ducklake", "new", "ducklake_missing")):
        result = CliRunner().invoke(app, ["lake", "export", "--to", to, "-o", str(tmp_path / out), "--lake", str(lake.root)])
        if to == "ducklake" and importlib.util.find_spec("duckdb_extension_ducklake"):
            continue
        assert f"[{code}]" in str(result.exception)


def test_a_delta_export_is_read_by_delta(lake: Lake, tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake", reason="the Delta writer is not installed (pip install 'deltalake>=1.6')")
    out = tmp_path / "delta"
    found = json.loads(run(lake, "lake", "export", "--to", "delta", "-o", str(out), "--json").stdout)
    assert (found["rows"]["words"], found["rows"]["projects"], found["rows"]["examples"]) == (11, 3, 0)
    table = deltalake.DeltaTable(str(out / "words"))
    assert len(table.to_pyarrow_table()) == 11
    assert len(deltalake.DeltaTable(str(out / "examples")).to_pyarrow_table()) == 0


def test_a_ducklake_export_is_read_by_ducklake(lake: Lake, tmp_path: Path) -> None:
    extension = pytest.importorskip("duckdb_extension_ducklake", reason="DuckDB's ducklake extension is not here (make test-cluster)")
    out = tmp_path / "ducklake"
    found = json.loads(run(lake, "lake", "export", "--to", "ducklake", "-o", str(out), "--json").stdout)
    assert (found["rows"]["words"], found["rows"]["projects"], found["rows"]["examples"]) == (11, 3, 0)
    con = duckdb.connect()
    (file,) = Path(extension.__file__).parent.rglob("ducklake.duckdb_extension")
    con.execute(f"load '{file}'").fetchall()
    con.execute(f"attach 'ducklake:{out}/catalog.ducklake' as other (read_only)").fetchall()
    for table, count in (("words", 11), ("projects", 3), ("examples", 0)):
        assert len(con.execute(f"from other.{table}").fetchall()) == count
    assert len(con.execute("from ducklake_snapshots('other')").fetchall()) == 2  # the empty catalogue, and the copy
    con.close()
    assert run(lake, "fsck").exit_code == 0  # nothing of the lake was given away


SNIPPETS = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "lake.md").read_text("utf-8"), re.S)


@pytest.mark.parametrize("number", range(len(SNIPPETS)))
def test_a_snippet_of_the_page_runs(lake: Lake, number: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SNIPPETS[number]],
        cwd=lake.root.parent,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ["[{'stage': 'invert', 'n': 3}]", "11 11 11"][number]
