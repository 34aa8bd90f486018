"""fsck: every seeded fault is found and called by its name, and nothing is changed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import sqlalchemy as sa

from schemas.artifact import ArtifactKind
from storage import history
from storage.fsck import Fault
from storage.journal import Journal
from storage.lake import Lake
from storage.ledger import DATA_FILE
from tests.storage.lakes import commit_of, data_files, put

SEED = 20261130


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path / "lake")
    for n in range(4):
        lake.commit(commit_of(n, artifacts=(put(lake, b"artifact %d" % n * 50),)))
    return lake


def tree(lake: Lake) -> dict[Path, bytes]:
    return {p: p.read_bytes() for p in lake.root.rglob("*") if p.is_file() and not p.name.endswith("-shm")}


def test_a_sound_lake_has_no_findings(lake: Lake) -> None:
    report = lake.fsck()
    assert report.findings == ()
    assert (report.data_files, report.artifacts) == (12, 4)
    assert report.is_sound


def test_every_flipped_bit_is_found_and_none_is_repaired(lake: Lake) -> None:
    rng = random.Random(SEED)  # noqa: S311
    targets = data_files(lake) + [lake.store.path(n) for n in lake.store.names()]
    for number in range(50):
        path = rng.choice(targets)
        whole = path.read_bytes()
        flipped = bytearray(whole)
        bit = rng.randrange(len(whole) * 8)
        flipped[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(flipped)
        report = lake.fsck()
        assert report.of(Fault.DAMAGED) == (path.relative_to(lake.root).as_posix(),), f"seed {SEED}, flip {number}"
        assert not report.is_sound
        assert path.read_bytes() == flipped
        path.write_bytes(whole)
    assert lake.fsck().findings == ()


def test_every_missing_file_is_found(lake: Lake) -> None:
    artifacts = [lake.store.path(n) for n in lake.store.names()]
    for path in data_files(lake) + artifacts:
        whole = path.read_bytes()
        path.unlink()
        subject = path.name if path in artifacts else path.relative_to(lake.root).as_posix()
        assert lake.fsck().of(Fault.MISSING) == (subject,)
        path.write_bytes(whole)


def test_every_orphan_is_found_and_is_legal(lake: Lake) -> None:
    expected = {put(lake, b"orphan %d" % n) for n in range(10)}
    paths = {f"artifacts/{n[:2]}/{n}" for n in expected}
    for n in range(10):
        path = lake.root / "tables" / "words" / f"invert-{n}.parquet"
        path.write_bytes(b"never committed")
        paths.add(path.relative_to(lake.root).as_posix())
    (lake.root / "tmp" / ".tmp-1-x").write_bytes(b"half")
    report = lake.fsck()
    assert set(report.of(Fault.ORPHAN)) == paths
    assert report.of(Fault.UNFINISHED) == ("tmp/.tmp-1-x",)
    assert report.is_sound


@pytest.mark.parametrize("size", [0, 10])
def test_a_cut_file_is_damaged(lake: Lake, size: int) -> None:
    path = data_files(lake)[0]
    path.write_bytes(path.read_bytes()[:size])
    report = lake.fsck()
    assert [(f.fault, f.subject) for f in report.findings] == [(Fault.DAMAGED, path.relative_to(lake.root).as_posix())]
    assert report.findings[0].detail.startswith(f"{size} bytes instead of ")


def test_a_missing_record_of_a_snapshot_is_found(lake: Lake) -> None:
    records = {name: put(lake, name.encode()) for name in ("film", "task", "shot")}
    manifest = {"schema_version": "snapshot.1", "project_id": "prj_9", "state_digest": "0" * 64, "film_record": records["film"]}
    manifest |= {"task_record": records["task"], "shot_records": [["s001", records["shot"]]]}
    sha256 = lake.store.put_json(manifest, ArtifactKind.SNAPSHOT).sha256
    row = {"trajectory_id": "trj_9", "project_id": "prj_9", "snapshot_id": f"snp_{sha256}", "snapshot_sha256": sha256}
    lake.commit(commit_of(9, stage="replay", rows={"snapshots": [row | {"state_digest": "0" * 64, "first_call_index": 0}]}))
    assert lake.fsck().findings == ()
    lake.store.path(records["shot"]).unlink()
    assert lake.fsck().of(Fault.MISSING) == (records["shot"],)


def test_a_doubled_key_is_found(lake: Lake) -> None:
    twin = commit_of(1, "twin", scope="another scope", rows=commit_of(1).rows)
    lake.commit(twin)  # the same project committed under two scopes: a mistake of the caller
    report = lake.fsck()
    assert set(report.of(Fault.DUPLICATE_KEY)) == {"projects", "words"}
    assert not report.is_sound


def test_a_ledger_that_counts_wrongly_is_found(lake: Lake) -> None:
    path = lake.files(table="words")[0].path
    with lake.ledger.writing() as con:
        history.next_version(con, 0, kind="commit")
        con.execute(sa.update(DATA_FILE).where(DATA_FILE.c.path == path).values(rows=7))
    assert lake.fsck().of(Fault.WRONG_ROWS) == (path,)


def test_a_ledger_with_damaged_pages_is_found(lake: Lake) -> None:
    path = lake.root / "ledger.sqlite"
    lake.ledger.close()  # moves the log into the file
    data = bytearray(path.read_bytes())
    for page in range(4, len(data) // 4096):
        data[page * 4096 : page * 4096 + 64] = b"\xff" * 64
    path.write_bytes(data)
    report = lake.fsck()
    assert not report.is_sound
    assert report.of(Fault.LEDGER)


def test_a_broken_journal_is_found_and_other_files_there_are_left_alone(lake: Lake) -> None:
    folder = lake.root / "journals"
    with Journal(folder / "stg_1") as journal:
        for n in range(3):
            journal.append({"call": n})
    (folder / "notes.txt").write_text("not a journal")
    assert lake.fsck().findings == ()
    (folder / "stg_1").write_bytes((folder / "stg_1").read_bytes().replace(b'"call":0', b'"call":9'))
    assert lake.fsck().of(Fault.DAMAGED) == ("journals/stg_1",)


def test_it_changes_nothing(lake: Lake) -> None:
    data_files(lake)[0].write_bytes(b"")
    data_files(lake)[1].unlink()
    put(lake, b"orphan")
    before = tree(lake)
    lake.fsck()
    assert tree(lake) == before
