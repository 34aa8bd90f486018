"""A lake beside a plain dict: whatever is committed, replaced, failed, compacted and collected in whatever order, both say the same."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import seed as hypothesis_seed
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from schemas.errors import AlreadyDone, StorageFault
from storage import durable
from storage.lake import Lake
from tests.conftest import Tally
from tests.fault.forks import Points, failing
from tests.storage.lakes import assert_sound, commit_of, put

PROJECTS = st.integers(0, 3)
KEYS = st.sampled_from("ab")


class LakeBesideADict(RuleBasedStateMachine):
    """``live`` maps a project to its configuration; ``past`` keeps the dict of every version."""

    @initialize()
    def begin(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="lake-model"))
        self.lake = Lake(self.root / "lake")
        self.live: dict[int, str] = {}
        self.past: dict[int, dict[int, str]] = {0: {}}
        self.artifacts: set[str] = set()

    def _artifact(self, n: int, key: str) -> str:
        return put(self.lake, f"{n}{key}".encode())

    def _commit(self, n: int, key: str) -> int:
        return self.lake.commit(commit_of(n, key, words=1 + "ab".index(key), artifacts=(self._artifact(n, key),)))

    @rule(n=PROJECTS, key=KEYS)
    def commit(self, n: int, key: str) -> None:
        if self.live.get(n) == key:
            with pytest.raises(AlreadyDone):
                self._commit(n, key)
            return
        version = self._commit(n, key)
        assert version not in self.past
        self.live[n] = key
        self.past[version] = dict(self.live)

    @rule(n=PROJECTS, key=KEYS, at=st.integers(0, 24))
    def crash(self, n: int, key: str, at: int) -> None:
        before = durable.fault_point
        durable.fault_point = Points(failing(5), at)
        try:
            version = self._commit(n, key)
            self.live[n] = key
            self.past[version] = dict(self.live)
        except StorageFault:
            pass  # nothing was acknowledged, and up to the transaction nothing is true
        except AlreadyDone:
            assert self.live.get(n) == key
        except OSError:  # at 'committed': true, and not acknowledged
            version = self.lake.versions()[-1].version
            self.live[n] = key
            self.past[version] = dict(self.live)
        finally:
            durable.fault_point = before
        self.lake = Lake(self.lake.root)

    @rule()
    def reopen(self) -> None:
        self.lake = Lake(self.lake.root, create=False)

    @rule()
    def compact(self) -> None:
        for version in self.lake.compact().versions:
            self.past[version] = dict(self.live)

    @rule(keep=st.none() | st.integers(1, 3))
    def collect(self, keep: int | None) -> None:
        self.lake.gc(grace_s=0, keep_versions=keep)
        there = {v.version for v in self.lake.versions()}
        self.past = {v: s for v, s in self.past.items() if v in there or v == 0}

    @rule(data=st.data())
    def look_back(self, data: st.DataObject) -> None:
        version = data.draw(st.sampled_from(sorted(self.past)))
        self._agrees(self.past[version], version if version else 0)

    @precondition(lambda self: hasattr(self, "lake"))
    @invariant()
    def agrees(self) -> None:
        self._agrees(self.live, None)

    def _agrees(self, expected: dict[int, str], version: int | None) -> None:
        rows = self.lake.scan("words", version).to_pylist()
        seen: dict[int, list[str]] = {}
        for row in rows:
            seen.setdefault(int(row["project_id"][4:]), []).append(row["text"])
        assert seen == {n: [key] * (1 + "ab".index(key)) for n, key in expected.items()}
        for n, key in expected.items():
            if version is None:
                assert self.lake.done(f"stg_{n}_{key}") is not None

    def teardown(self) -> None:
        if hasattr(self, "lake"):
            assert_sound(self.lake)
            shutil.rmtree(self.root)


@pytest.mark.slow
@pytest.mark.fault
@pytest.mark.parametrize(("examples", "steps"), [pytest.param(12, 15, id="gate"), pytest.param(200, 50, id="full", marks=pytest.mark.full)])
def test_a_lake_and_a_dict_say_the_same(examples: int, steps: int, seed: int, tally: Tally) -> None:
    machine = hypothesis_seed(seed)(LakeBesideADict)
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples, stateful_step_count=steps, deadline=None, database=None, suppress_health_check=list(HealthCheck)
        ),
    )
    tally("R13", runs=examples, steps_each=steps, divergences=0)
