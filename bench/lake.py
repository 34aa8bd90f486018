"""Cost of the lake beside the bare engines on the same data in the same run: ``python bench/lake.py [--examples N] [--scale N] [--json]``.

``--scale N`` instead fills a lake with N examples and N calls (copies of some thousand with ids of their own) in files of 135,000 rows, and
asks the typical questions: for the first time on this machine (every byte of the tables is read and checked), through a new lake as the
next command does, through the same lake, and on an open connection.

Besides wall time the processor time of the lake's own side of commits and writes is given: it hardly moves with the load of the machine.

The bare side writes the same Arrow tables with pyarrow, makes them durable, or asks DuckDB about the same files directly: no validation,
no digests, no ledger. Prints medians. Takes about half a minute.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from schemas.artifact import ArtifactKind
from schemas.tables import TABLE, TableSpec
from storage import arrow, history
from storage.checked import SETTLED_S
from storage.journal import Journal
from storage.lake import Lake, StageCommit

SHAPE = {"sentences": 40, "words": 600, "shots": 30, "alignments": 60, "calls": 60, "snapshots": 45, "artifacts": 120, "verdicts": 30}
"""Rows of one finished project of about three minutes, besides its examples."""

EXAMPLES = 45
VOCABULARY = [f"w{n}" for n in range(8000)]


@cache
def prompts() -> list[str]:
    """Two thousand texts of about 6 KB; each use gets a beginning of its own."""
    rng = random.Random(1)  # noqa: S311
    return [" ".join(rng.choices(VOCABULARY, k=900)) for _ in range(2000)]


def value_of(rng: random.Random, spec: TableSpec, name: str, kind: str, allowed: tuple[str, ...] | None, n: int, project: str) -> Any:
    """A plausible value; keys count up, so that they are unique."""
    if name == "project_id":
        return project
    if kind == "int":
        return n
    if kind == "float":
        return rng.random()
    if kind == "bool":
        return n % 2 == 0
    if kind == "text_list":
        return rng.sample(VOCABULARY, 3)
    if kind == "int_list":
        return [n, n + 1]
    if allowed is not None:
        return allowed[n % len(allowed)]
    if name in spec.key:
        return f"{name}_{project}_{n}"
    if name.endswith("_json"):
        text = rng.choice(prompts()) if name == "prompt_json" else " ".join(rng.choices(VOCABULARY, k=40))
        return json.dumps([{"role": "user", "content": f"{project} {n} {text}"}])
    return " ".join(rng.choices(VOCABULARY, k=3))


def rows_of(rng: random.Random, table: str, count: int, project: str) -> list[dict[str, Any]]:
    """Rows that fit a table's spec."""
    spec = TABLE[table]
    out = []
    for n in range(count):
        row = {c.name: value_of(rng, spec, c.name, c.type, c.allowed, n, project) for c in spec.columns}
        if table == "snapshots":
            row["snapshot_id"] = f"snp_{'0' * 64}"
        out.append(row)
    return out


def project_commits(rng: random.Random, project: str, digest: str) -> list[StageCommit]:
    """The three stages of one project."""
    parts: dict[str, dict[str, int]] = {
        "invert": {"projects": 1, "storyboards": 1, **{t: SHAPE[t] for t in ("sentences", "words", "shots", "alignments")}},
        "replay": {"trajectories": 1, **{t: SHAPE[t] for t in ("calls", "artifacts", "verdicts")}},
        "materialize": {"examples": EXAMPLES},
    }
    return [
        StageCommit(
            stage,
            f"stg_{project}_{stage}",
            project,
            project,
            "done",
            digest,
            {t: rows_of(rng, t, n, project) for t, n in tables.items()},
            (digest,),
        )
        for stage, tables in parts.items()
    ]


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def median(work: Callable[[], object], times: int) -> float:
    return statistics.median(timed(work) for _ in range(times))


class Bare:
    """The same bytes made durable without any of our promises."""

    def __init__(self, root: Path) -> None:
        root.mkdir()
        self.root = root
        self.con = sqlite3.connect(root / "bare.sqlite", isolation_level=None)
        for sql in ("pragma journal_mode = wal", "pragma synchronous = full", "create table done (k text primary key)"):
            self.con.execute(sql)
        self.count = 0

    def commit(self, tables: dict[str, pa.Table]) -> None:
        for table in tables.values():
            self.count += 1
            path = self.root / f"{self.count}.parquet"
            pq.write_table(table, path, compression="zstd", compression_level=3)
            for target, flags in ((path, os.O_RDWR), (self.root, os.O_RDONLY)):
                fd = os.open(target, flags)
                os.fsync(fd)
                os.close(fd)
        self.con.execute("begin immediate")
        self.con.execute("insert into done values (?)", [str(self.count)])
        self.con.execute("commit")


def tables_of(commit: StageCommit) -> dict[str, pa.Table]:
    return {
        t: pa.Table.from_batches(
            [
                pa.RecordBatch.from_pylist(
                    [{**r, "stage_key": "k", "run_id": "r", "row_digest": "0" * 64} for r in rows], arrow.schema_of(TABLE[t])
                )
            ]
        )
        for t, rows in commit.rows.items()
    }


def bench(folder: Path, examples: int) -> list[tuple[str, float, float, str]]:
    """Rows of (what, ours, bare, unit)."""
    rng = random.Random(20261130)  # noqa: S311
    lake = Lake(folder / "lake")
    bare = Bare(folder / "bare")
    digest = lake.store.put_bytes(b"output", ArtifactKind.OTHER, "text/plain").sha256
    out: list[tuple[str, float, float, str]] = []

    ours, theirs, spent = [], [], []
    for n in range(8):
        commits = project_commits(rng, f"prj_{n}", digest)
        before = time.process_time()
        ours.append(timed(partial(_each, lake.commit, commits)))
        spent.append(time.process_time() - before)
        theirs.append(timed(partial(_each, bare.commit, map(tables_of, commits))))
    out.append(("commit one finished project (3 stages)", statistics.median(ours) * 1e3, statistics.median(theirs) * 1e3, "ms"))

    out.append(("its processor time", statistics.median(spent) * 1e3, float("nan"), "ms"))

    each = max(1, examples // 8)
    big = [bulk(n, each) for n in range(8)]
    our_s = timed(lambda: [lake.commit(c) for c in big])
    bare_s = timed(lambda: [bare.commit(tables_of(c)) for c in big])
    out.append((f"write {each * 8} examples", each * 8 / our_s, each * 8 / bare_s, "rows/s"))

    out.append(
        (
            "connect (after 32 small commits)",
            median(lambda: lake.connect().close(), 5) * 1e3,
            median(lambda: duckdb.connect().close(), 5) * 1e3,
            "ms",
        )
    )
    began = time.perf_counter()
    lake.compact()
    out.append(("compact the lake", (time.perf_counter() - began) * 1e3, float("nan"), "ms"))

    con, direct = lake.connect(), duckdb.connect()
    files = [str(lake.root / f.path) for f in lake.files(table="examples")]
    direct.execute(f"create view examples as select * from read_parquet({files!r})")  # noqa: S608
    for what, sql in (
        ("count and group examples by role", "select role, count(*), avg(prompt_tokens) from examples group by 1"),
        ("all examples of one project", "select * from examples where project_id = 'prj_b3' and role = 'critic'"),
        ("full scan of the prompts", "select sum(length(prompt_json)) from examples"),
    ):
        out.append((what, *(median(partial(_asked, c, sql), 5) * 1e3 for c in (con, direct)), "ms"))
    con.close()

    journal = Journal(folder / "journal")
    record = {"call": rows_of(rng, "calls", 1, "prj_0")[0]}
    raw = os.open(folder / "raw", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def append() -> None:
        os.write(raw, json.dumps(record).encode())
        os.fdatasync(raw)

    out.append(("append one call to the journal", median(lambda: journal.append(record), 50) * 1e3, median(append, 50) * 1e3, "ms"))
    payload = iter([os.urandom(20_000) for _ in range(100)])

    def write() -> None:
        path = bare.root / f"raw{time.perf_counter_ns()}"
        fd = os.open(path, os.O_WRONLY | os.O_CREAT)
        os.write(fd, next(payload))
        os.fsync(fd)
        os.close(fd)
        path.rename(path.with_suffix(".bin"))
        fd = os.open(bare.root, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)

    out.append(
        (
            "store a 20 kB artifact",
            median(lambda: lake.store.put_bytes(next(payload), ArtifactKind.OTHER, "x/y"), 40) * 1e3,
            median(write, 40) * 1e3,
            "ms",
        )
    )
    out.append(("ask the ledger whether a stage is done", median(lambda: lake.done("stg_prj_3_replay"), 30) * 1e3, float("nan"), "ms"))
    return out


def bulk(number: int, rows: int) -> StageCommit:
    """A commit of examples alone."""
    found = rows_of(random.Random(number), "examples", rows, f"prj_b{number}")  # noqa: S311
    return StageCommit("bulk", f"bulk_{number}", "s", f"bulk_{number}", "done", None, {"examples": found})


def written(folder: Path, count: int, each: int = 4500) -> None:
    """Print what writing so many examples takes, in commits of 4,500 (a hundred projects): wall and processor time, and memory."""
    lake = Lake(folder / "lake")
    wall = spent = 0.0
    for number in range(-(-count // each)):
        commit = bulk(number, min(each, count - number * each))  # a caller has its rows in memory too
        before = time.process_time()
        wall += timed(partial(lake.commit, commit))
        spent += time.process_time() - before
    size = sum(f.bytes for f in lake.files(table="examples")) / 1e9
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{count} examples written: {wall:.1f} s, processor time {spent:.1f} s, {size:.2f} GB, load {os.getloadavg()[0]:.0f}")
    print(f"largest memory, the rows of a commit included {memory:.2f} GB")


QUESTIONS = {
    "yield by stage": "select stage, status, count(*) from stage_runs group by all order by all",
    "blockers by tool": "select c.tool, b.code, count(*) n from blockers b join calls c using (trajectory_id, call_index) "
    "group by all order by n desc",
    "examples by role and split": "select role, split, count(*), avg(prompt_tokens) from examples group by all order by all",
    "the calls of one trajectory": "select call_index, role, tool, status from calls where trajectory_id = 'trj_1_77' order by call_index",
}


def filled(lake: Lake, rows: int) -> None:
    """Examples and calls, 36 a trajectory; one blocker for ten calls."""
    rng = random.Random(20261130)  # noqa: S311
    base = {t: rows_of(rng, t, n, "prj_0") for t, n in (("examples", 3600), ("calls", 3600), ("blockers", 360))}
    for table, found in base.items():
        for n, row in enumerate(found):
            each = 36 if table != "blockers" else 4
            row |= {"trajectory_id": f"_{n // each}", "project_id": f"_{n // each}", "call_index": n % each}
            if table == "examples":
                row["example_id"] = f"_{n}"
    tables = {t: arrow.table_of(TABLE[t], arrow.finish_rows(TABLE[t], found, stage_key="k", run_id="r")) for t, found in base.items()}
    for number in range(max(1, rows // 135_000)):
        made = {}
        for name, table in tables.items():
            copies = []
            for copy in range(min(rows, 135_000) // 3600 + 1):
                new = table
                for column, prefix in (("trajectory_id", "trj"), ("project_id", "prj"), ("example_id", "ex")):
                    if column in new.column_names:
                        values = pc.binary_join_element_wise(f"{prefix}_{number * 38 + copy}", new[column], "")
                        new = new.set_column(new.column_names.index(column), new.schema.field(column), values)
                copies.append(new)
            made[name] = arrow.sort_table(TABLE[name], pa.concat_tables(copies))
        files = lake.write_tables("bulk", made)
        with lake.ledger.writing() as con:
            version = history.next_version(con, 0, kind="commit")
            history.add_files(con, version, [(f, {"k": f.rows}) for f in files])
    for n in range(200):
        lake.commit(StageCommit("invert", f"stg_{n}", f"prj_{n}", f"s{n}", "done" if n % 9 else "rejected"))


def at_scale(folder: Path, rows: int) -> None:
    """Print what the typical questions take."""
    os.environ["WORKPRINT_CACHE"] = str(folder / "cache")
    began = time.perf_counter()
    lake = Lake(folder / "lake")
    filled(lake, rows)
    time.sleep(SETTLED_S + 0.1)
    size = sum(f.bytes for f in lake.files())
    print(f"{rows} examples and calls, {size / 1e9:.2f} GB in {len(lake.files())} files, filled in {time.perf_counter() - began:.0f} s")
    print(f"{'':<32}{'first, ms':>12}{'new lake, ms':>14}{'same lake, ms':>15}{'open connection, ms':>21}")
    con = lake.connect(verify=False)

    def anew(sql: str) -> None:
        Lake(lake.root, create=False).query(sql)

    for what, sql in QUESTIONS.items():
        first = timed(partial(anew, sql))
        new = median(partial(anew, sql), 3)
        lake.query(sql)
        same = median(partial(lake.query, sql), 3)
        opened = median(partial(_asked, con, sql), 5)
        print(f"{what:<32}{first * 1e3:>12.0f}{new * 1e3:>14.0f}{same * 1e3:>15.0f}{opened * 1e3:>21.0f}")
    con.close()
    print(f"largest memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


def _each(work: Callable[[Any], object], things: Iterable[Any]) -> None:
    for thing in things:
        work(thing)


def _asked(con: duckdb.DuckDBPyConnection, sql: str) -> None:
    con.execute(sql).fetchall()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=8000)
    parser.add_argument("--write", type=int, help="only write so many examples")
    parser.add_argument("--scale", type=int, help="ask the typical questions on so many examples")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench-lake"))
    try:
        if arguments.write:
            written(folder, arguments.write)
            return
        if arguments.scale:
            at_scale(folder, arguments.scale)
            return
        rows = bench(folder, arguments.examples)
    finally:
        shutil.rmtree(folder)
    if arguments.json:
        print(json.dumps([{"what": w, "ours": o, "bare": b if b == b else None, "unit": u} for w, o, b, u in rows]))
        return
    print(f"largest memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB, load {os.getloadavg()[0]:.0f}")
    print(f"{'':<42}{'lake':>12}{'bare':>12}  {'':<8}{'ratio':>7}")
    for what, our, theirs, unit in rows:
        ratio = our / theirs if unit == "ms" else theirs / our
        print(f"{what:<42}{our:>12.1f}{theirs:>12.1f}  {unit:<8}{ratio:>6.2f}x".replace("nanx", "   -").replace("nan", "  -"))


if __name__ == "__main__":
    main()
