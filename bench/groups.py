"""What the harness costs in group execution: ``python -m bench.groups LAKE [--sample 6] [-k 3]``.

Takes a seeded sample of the decisions of a lake made by ``workprint run``, executes the recorded output, seeded alternatives and mistakes
of each as ``workprint groups`` does, and adds up the time inside the tools' own work (engines, sandboxed processes, checks on bytes, the
judge's re-examination) apart from everything else: restoring, building contexts, deciding, committing calls and snapshots, rewards. Two
ways: with a store apart for each group, so that every product is made; and in the lake's store, where products of the recorded run are
found again. What a process opens once (the lake, engines) and putting the start of a group into a store apart are not counted. Nothing is
written into tables. Target: a harness share under 3 % where the tools do their work.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from materialize.branches import Executor
from materialize.config import GroupConfig
from materialize.environment import Bench
from materialize.groups import Decision, choose
from materialize.proposals import propose
from materialize.recorded import LakeRuns
from replay.suite import Suite


class Clock:
    """Seconds inside tool work, counted around every piece of it."""

    def __init__(self) -> None:
        self.spent = 0.0
        self.processor = 0.0

    def watch(self) -> Callable[[], None]:
        """Begin; returns what ends it."""
        bare = Suite.work
        clock = self

        def work(suite: Suite, allowance: Any, index: int, job: Any, retried: Any) -> Any:
            started, used = time.perf_counter(), time.process_time()
            try:
                return bare(suite, allowance, index, job, retried)
            finally:
                clock.spent += time.perf_counter() - started
                clock.processor += time.process_time() - used

        Suite.work = work  # type: ignore[method-assign]

        def end() -> None:
            Suite.work = bare  # type: ignore[method-assign]

        return end


def execute(runs: LakeRuns, decision: Decision, bench: Bench, config: GroupConfig) -> int:
    """One group; the number of calls of all its branches."""
    trajectory, index = runs.find({"trajectory_id": decision.trajectory_id, "call_index": decision.call_index})
    policy = runs.continuation(trajectory)
    with bench.open() as env:
        context = env.restore(trajectory, index)
    said = propose(context, trajectory.calls[index].output, [policy(n) for n in range(1, 9)], config.candidates, 0)
    executor = Executor(bench, trajectory, index, policy, config, runs.rewards)
    return sum(executor.execute(output).calls for output, _ in said)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lake", type=Path)
    parser.add_argument("--sample", type=int, default=6)
    parser.add_argument("-k", type=int, default=3)
    given = parser.parse_args()
    runs = LakeRuns.at(given.lake)
    rows = runs.lake.query(
        "select trajectory_id, project_id, call_index, role, tool from calls where provenance != 'runtime' and tool is not null "
        "and status != 'refused' order by all"
    ).rows
    config = GroupConfig(candidates=given.k)
    chosen = choose([Decision(str(t), str(p), int(i), str(r), str(tool)) for t, p, i, r, tool in rows], given.sample, 0, config)
    for decision in chosen:  # what a process opens once
        trajectory, _ = runs.find({"trajectory_id": decision.trajectory_id, "call_index": decision.call_index})
        runs.continuation(trajectory)(0)
    print("| products | groups | calls | wall s | in tools s | harness s | harness share | harness ms a call | of it processor ms |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, is_apart in (("all made", True), ("found in the lake where there", False)):
        clock, calls, wall, processor = Clock(), 0, 0.0, 0.0
        for decision in chosen:
            trajectory, index = runs.find({"trajectory_id": decision.trajectory_id, "call_index": decision.call_index})
            with tempfile.TemporaryDirectory(prefix="workprint-bench-") as folder:
                bench = runs.bench(trajectory).apart(Path(folder)) if is_apart else runs.bench(trajectory)
                with bench.open() as env:
                    env.restore(trajectory, index)
                end, started, used = clock.watch(), time.perf_counter(), time.process_time()
                calls += execute(runs, decision, bench, config)
                wall, processor = wall + time.perf_counter() - started, processor + time.process_time() - used
                end()
        processor -= clock.processor
        rest = wall - clock.spent
        figures = (f"{wall:.1f}", f"{clock.spent:.1f}", f"{rest:.1f}", f"{rest / wall:.1%}", f"{1000 * rest / calls:.1f}")
        print("| " + " | ".join((name, str(len(chosen)), str(calls), *figures, f"{1000 * processor / calls:.1f}")) + " |", flush=True)


if __name__ == "__main__":
    main()
