"""A stage over its time: told at once, and after a call that must not be broken into."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from jobs import guard
from jobs.config import LimitsConfig
from jobs.guard import guarded, undisturbed
from jobs.progress import EventLog
from schemas.errors import LimitExceeded


def test_what_is_told_during_a_call_that_must_not_be_broken_into_is_heard_at_its_end(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events", "key")
    reached = []

    def call() -> None:
        with undisturbed():
            end = time.monotonic() + 20
            while not guard._unheard and time.monotonic() < end:
                time.sleep(0.05)
            reached.append("the end of the call")
        reached.append("what comes after it")

    with guarded(LimitsConfig(replay_s=0.1), log, may_die=False):
        log.write("stage_started", stage="replay")
        with pytest.raises(LimitExceeded, match="stage_timeout"):
            call()
        log.write("finished", status="failed")
    assert reached == ["the end of the call"]
