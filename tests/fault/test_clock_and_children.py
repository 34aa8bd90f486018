"""A clock that jumps (R17), and children that will not end (R18)."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from media.command import Command, Limits
from media.sandbox import open_sandbox
from schemas.errors import LimitExceeded
from storage.lake import Lake
from tests.conftest import Tally
from tests.storage.lakes import commit_of, count

pytestmark = pytest.mark.fault

HOUR_NS = 3600 * 10**9
# the seconds around the end of summer time in Berlin and around the leap second at the end of 2016, as a clock may show them
JUMPS = {
    "one hour back": [0, HOUR_NS, 0, HOUR_NS],
    "end of summer time": [1_761_440_399 * 10**9, 1_761_440_401 * 10**9, 1_761_436_801 * 10**9, 1_761_440_402 * 10**9],
    "a leap second": [1_483_228_799 * 10**9, 1_483_228_799 * 10**9, 1_483_228_800 * 10**9, 1_483_228_799 * 10**9],
    "before 1970": [-5, -(10**18), 3, -(10**18)],
}


@pytest.mark.parametrize("how", JUMPS)
def test_a_clock_that_jumps_changes_no_order_and_no_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, tally: Tally) -> None:
    lake, plain = Lake(tmp_path / "lake"), Lake(tmp_path / "plain")
    for n, now in enumerate(JUMPS[how]):
        with monkeypatch.context() as patch:
            patch.setattr(time, "time_ns", lambda now=now: now)
            lake.commit(commit_of(n))
        plain.commit(commit_of(n))
    assert [(v.version, v.subject) for v in lake.versions()] == [(n + 1, f"prj_{n}") for n in range(4)]
    assert [count(lake, "projects", v) for v in range(5)] == [0, 1, 2, 3, 4]
    assert lake.scan("words").to_pylist() == plain.scan("words").to_pylist()
    tally("R17", how=how, changed_digests=0, changed_order=0)


CHILDREN = {
    "stopped": "kill -STOP $$; sleep 60",
    "deaf to SIGTERM": "trap '' TERM INT HUP; while true; do sleep 1; done",
    "forked twice": "(setsid sh -c 'trap \"\" TERM; sleep 301' & ) ; (setsid sleep 301 &) ; sleep 301",
}
LIMIT_S = 2


@pytest.mark.parametrize("how", CHILDREN)
def test_a_child_that_will_not_end_is_ended(tmp_path: Path, how: str, tally: Tally) -> None:
    before = _sleepers()
    began = time.monotonic()
    with pytest.raises(LimitExceeded):
        open_sandbox().run(Command(("sh", "-c", CHILDREN[how]), limits=Limits(wall_s=LIMIT_S)), tmp_path)
    took = time.monotonic() - began
    assert took < LIMIT_S + 2
    time.sleep(0.2)
    assert _sleepers() == before
    tally("R18", how=how, limit_s=LIMIT_S, ended_after_s=round(took, 1), processes_left=0)


def _sleepers() -> set[int]:
    """Processes of the commands above."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if b"sleep\x00301" in line or b"sleep 301" in line or b"kill -STOP $$" in line or b"trap '' TERM" in line:
                found.add(int(entry.name))
    return found
