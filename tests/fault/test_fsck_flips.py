"""Seeded damage all over a lake: the check names every flipped bit, every missing and every orphan file, and mends none of them."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from storage import durable
from storage.fsck import Fault
from storage.lake import Lake
from tests.conftest import Tally
from tests.fault.sizes import sizes
from tests.storage.lakes import commit_of, put

pytestmark = pytest.mark.fault


@pytest.mark.parametrize("flips", sizes(50, 200))
def test_every_flipped_bit_missing_and_orphan_file_is_named(tmp_path: Path, flips: int, seed: int, tally: Tally) -> None:
    rng = random.Random(seed)  # noqa: S311
    lake = Lake(tmp_path / "lake")
    files = flips + 20
    for n in range(-(-files // 4) + 6):
        lake.commit(commit_of(n, artifacts=(put(lake, b"artifact %d" % n + os.urandom(2000)),)))
    stored = [lake.root / f.path for f in lake.files()] + [lake.store.path(name) for name in lake.store.names()]
    chosen = rng.sample(stored, files)
    flipped, missing = chosen[:flips], chosen[flips:]
    for path in flipped:
        data = bytearray(path.read_bytes())
        bit = rng.randrange(len(data) * 8)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
    for path in missing:
        path.unlink()
    orphans = [put(lake, b"orphan %d" % n) for n in range(10)]
    strays = [lake.root / "tables" / "words" / f"invert-{n}.parquet" for n in range(5)]
    strays += [lake.root / "tmp" / f"{durable.TEMP_PREFIX}{n}" for n in range(5)]
    for path in strays:
        path.write_bytes(b"unfinished")
    before = {p: p.read_bytes() for p in lake.root.rglob("*") if p.is_file() and "sqlite" not in p.name}
    report = lake.fsck()

    def inside(path: Path) -> str:
        return path.relative_to(lake.root).as_posix()

    assert set(report.of(Fault.DAMAGED)) == {inside(p) for p in flipped}, f"seed {seed}"
    assert set(report.of(Fault.MISSING)) == {inside(p) if p.suffix else p.name for p in missing}, f"seed {seed}"
    found = set(report.of(Fault.ORPHAN)) | set(report.of(Fault.UNFINISHED))
    assert found == {inside(lake.store.path(o)) for o in orphans} | {inside(p) for p in strays}, f"seed {seed}"
    assert {p: p.read_bytes() for p in lake.root.rglob("*") if p.is_file() and "sqlite" not in p.name} == before
    tally("R15", flips=flips, flips_found=len(flipped), missing_found=len(missing), orphans_found=len(found), silent_repairs=0)
