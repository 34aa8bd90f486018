"""What the runtime itself costs a call: validation, context, snapshot, journal.

    python -m bench.runtime [--shots 16 120 300] [--runs N]
    python -m bench.runtime --real [--height 360] [--film-shots 6]

Plays scripted runs on the toy production of the tests, whose tools make records without bytes, and takes the time spent inside tools off.
With ``--real`` it plays one small film with real engines (flite, templates, ffmpeg, inspection) in an empty store and says which share of
the wall time was not a tool's. Prints a table; asserts nothing.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import replay.runtime as runtime_module
from media.sandbox import open_sandbox
from repair.faults import FaultPlan
from replay.config import ReplayConfig
from replay.policies.scripted import ScriptedPolicy
from replay.runtime import Runtime
from replay.suite import Suite
from schemas.canonical import canonical_text
from storage.journal import Journal
from tests.replay.doubles import pool_clip, suite
from tests.replay.small_film import FAULTS, SmallFilm
from tests.replay.toy import ToyCritic, storyboard, toy_registry, toy_task


class Clock:
    """Sums the time spent in named parts."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with its time added to ``name``."""

        def run(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self.spent[name] = self.spent.get(name, 0.0) + time.perf_counter() - start

        return run


class TimedSuite(Suite):
    """A suite that knows how long its tools worked."""

    def work(self, *args: Any, **kwargs: Any) -> Any:
        """As :meth:`Suite.work`, timed."""
        return CLOCK.timed("tools", super().work)(*args, **kwargs)


CLOCK = Clock()


def one_run(folder: Path, shots: int, seed: int) -> tuple[list[float], list[int], dict[str, float]]:
    """Milliseconds a call (without tools), characters of each context, and seconds by part."""
    board = storyboard(shots, sentences_per_segment=8)
    task = toy_task(board).model_copy(update={"pool": tuple(pool_clip(n) for n in range(shots))})
    base = suite(folder)
    timed = TimedSuite(base.store, base.snapshots, base.sandbox, base.engines, base.config, base.scratch)
    journal = Journal(folder / "journal")
    CLOCK.spent.clear()
    parts = Clock()
    journal.append = parts.timed("journal", journal.append)  # type: ignore[method-assign]
    timed.snapshots.save = parts.timed("snapshot", timed.snapshots.save)  # type: ignore[method-assign]
    built = runtime_module.build_context
    runtime_module.build_context = parts.timed("context", built)
    policy = ScriptedPolicy(board, seed, ReplayConfig(), ToyCritic())
    run = Runtime(task, toy_registry(seed % 3), timed, journal=journal)
    costs: list[float] = []
    sizes: list[int] = []
    try:
        while not run.finished:
            inside, calls = CLOCK.spent.get("tools", 0.0), len(run.calls)
            start = time.perf_counter()
            context = run.context()
            looked = time.perf_counter() - start
            output = policy.act(context)
            sizes.append(len(canonical_text(context.visible())))
            start = time.perf_counter()
            run.step(output)
            spent = time.perf_counter() - start + looked - (CLOCK.spent.get("tools", 0.0) - inside)
            costs += [spent * 1000 / (len(run.calls) - calls)] * (len(run.calls) - calls)
    finally:
        runtime_module.build_context = built
        journal.close()
    return costs, sizes, parts.spent


def real_run(height: int, shots: int) -> None:
    """One film with real engines; prints where its wall time went."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        film = SmallFilm(root, open_sandbox(), shots=shots, render={"height": height, "preset": "veryfast"}, faults=FAULTS)
        place = root / "run"
        place.mkdir()
        base, parts = film.suite(place), Clock()
        timed = TimedSuite(base.store, base.snapshots, base.sandbox, base.engines, base.config, base.scratch)
        CLOCK.spent.clear()
        journal = Journal(place / "journal")
        journal.append = parts.timed("journal", journal.append)  # type: ignore[method-assign]
        timed.snapshots.save = parts.timed("snapshots", timed.snapshots.save)  # type: ignore[method-assign]
        built = runtime_module.build_context
        runtime_module.build_context = parts.timed("contexts", built)
        policy = film.policy(4)
        start = time.perf_counter()
        try:
            run = Runtime(film.task, film.registry, timed, journal=journal, fault_filter=FaultPlan(film.repair.faults))
            while not run.finished:
                run.step(parts.timed("policy", policy.act)(run.context()))
            parts.timed("closing sync", timed.store.sync)()
        finally:
            runtime_module.build_context = built
            journal.close()
        wall = time.perf_counter() - start
        tools = CLOCK.spent["tools"]
        rest = wall - tools - parts.spent["policy"]
        named = sum(v for k, v in parts.spent.items() if k != "policy")
        print(f"{len(run.calls)} calls, {run.outcome.value}, {shots} shots, {height} lines, load {os.getloadavg()[0]:.1f}\n")
        print("| part | s | share |\n| --- | --- | --- |")
        rows = {"all": wall, "tools": tools, "policy": parts.spent["policy"], "harness": rest}
        rows |= {f"of it {k}": v for k, v in parts.spent.items() if k != "policy"} | {"of it checks and the rest": rest - named}
        for name, value in rows.items():
            print(f"| {name} | {value:.3f} | {100 * value / wall:.2f} % |")


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--real", action="store_true", help="one film with real engines")
    parser.add_argument("--height", type=int, default=360)
    parser.add_argument("--film-shots", type=int, default=6)
    parser.add_argument("--shots", type=int, nargs="*", default=[16, 120, 300])
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    if options.real:
        real_run(options.height, options.film_shots)
        return
    print(
        f"{'shots':>6} {'calls':>6} {'median ms':>10} {'p95 ms':>8} {'context':>8} {'snapshot':>9} {'journal':>8} {'largest context':>16}"
    )
    for shots in options.shots:
        costs: list[float] = []
        sizes: list[int] = []
        parts: dict[str, float] = {}
        for seed in range(options.runs):
            with tempfile.TemporaryDirectory() as folder:
                cost, size, spent = one_run(Path(folder), shots, seed)
            costs += cost
            sizes += size
            parts = {k: parts.get(k, 0.0) + v for k, v in spent.items()}
        mean = {k: 1000 * v / len(costs) for k, v in parts.items()}
        p95 = statistics.quantiles(costs, n=20)[-1]
        print(
            f"{shots:>6} {len(costs):>6} {statistics.median(costs):>10.2f} {p95:>8.2f} {mean['context']:>8.2f} {mean['snapshot']:>9.2f} "
            f"{mean['journal']:>8.2f} {max(sizes):>10} chars"
        )


if __name__ == "__main__":
    main()
