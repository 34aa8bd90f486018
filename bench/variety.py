"""How differently one real project is made under many seeds: tool sequences, scopes, inspection points, orders, answers to blockers.

    python -m bench.variety [--seeds 100] [--shots 4] [--spotlights] [--faults]
    python -m bench.variety --toy 1000

Plays scripted runs on one small project with real engines (flite speech, 180 lines), all in one store, so that later seeds find most
products made. With ``--toy``, so many runs of the scripted policy over fifty projects of 4 to 20 shots with the toy's tools (real contracts
and requests, products without bytes, two defects each): the policy's own variety for 1,000 trajectories, as ``workprint dataset variety``
reports it. Prints what came out; asserts nothing.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections import Counter
from itertools import pairwise
from pathlib import Path

import duckdb
import orjson
import pyarrow as pa

from evaluation.variety import variety
from materialize.config import MaterializeConfig
from materialize.examples import materialize
from materialize.rows import trajectory_rows
from media.sandbox import open_sandbox
from repair.links import link
from replay.episode import run_episode
from replay.policies.scripted import ScriptedPolicy
from schemas.contract import Role
from schemas.tables import TABLE
from schemas.trajectory import Call, ObservationStatus, Outcome, Trajectory
from storage.arrow import finish_rows, table_of
from tests.replay.small_film import FAULTS, SmallFilm
from tests.replay.toy import ToyCritic, storyboard, toy_runtime

PROJECTS = 50
"""Projects of the toy runs."""


def own(trajectory: Trajectory) -> list[Call]:
    """The orchestrator's calls."""
    return [c for c in trajectory.calls if c.orchestrator_call == c.call_index]


def scope_of(call: Call) -> str:
    """What kind of scope a call asked for: all, missing, some shots; '-' where it takes none, '?' where nobody could read it."""
    try:
        arguments = orjson.loads(call.output.arguments_json or "{}")
    except orjson.JSONDecodeError:
        return "?"
    scope = arguments.get("shots", arguments.get("segments"))
    return "-" if scope is None else str(scope) if scope in ("all", "missing") else "some"


def answers(calls: list[Call]) -> list[str]:
    """For every refusal, the tool that was called next."""
    return [
        f"{a.tool} {a.observation.blockers[0].code.value} -> {b.tool}"
        for a, b in pairwise(calls)
        if a.observation.status is ObservationStatus.REFUSED
    ]


def toy(count: int) -> None:
    """The variety report of ``count`` toy runs."""
    con = duckdb.connect()
    rows: dict[str, list[dict[str, object]]] = {n: [] for n in ("trajectories", "calls", "blockers", "repairs", "examples", "projects")}
    config, known = MaterializeConfig(tokenizer="none"), set[str]()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            project = number % PROJECTS
            board = storyboard(4 + project % 17).model_copy(update={"project_id": f"prj_{project:03d}"})
            runtime = toy_runtime(Path(folder), board, errors=2)
            suite = runtime.suite
            run = run_episode(runtime, ScriptedPolicy(board, number, suite.config, ToyCritic()), link=link)
            run = run.model_copy(update={"project_id": board.project_id, "trajectory_id": f"trj_{number:05d}"})
            final = suite.snapshots.load(run.last_snapshot)
            made = trajectory_rows(run, final_state=final, quality=1.0, trajectory_sha256="0" * 64)
            done = materialize(run, board, suite.store, suite.snapshots, config, None, known=frozenset(known))
            known |= {e.example_id for e in done.output}
            made |= {"examples": done.rows["examples"]}
            made |= {"projects": [{"project_id": board.project_id}] if number < PROJECTS else []}
            for name, kept in rows.items():
                kept += made[name]
    projects = rows.pop("projects")
    con.register("projects", pa.Table.from_pylist(projects))
    for name, kept in rows.items():
        con.register(name, table_of(TABLE[name], finish_rows(TABLE[name], kept, stage_key="stg_x", run_id="run_x")))
    found = variety(con)
    print(f"\n{found.trajectories} toy runs of {found.projects} projects, {found.per_trajectory:.1f} examples a run\n")
    print(f"| what | different in {found.sample} runs | the commonest in |\n| --- | --- | --- |")
    for name, s in found.spreads.items():
        if name != "repairs":  # the toy's mends are not linked to defects
            print(f"| {name} | {s.expected:.0f} | {s.top_share:.0%} of the runs |")


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--shots", type=int, default=4)
    parser.add_argument("--spotlights", action="store_true", help="a graphic on some shots: slower")
    parser.add_argument("--faults", action="store_true", help="two faults in every run, so that something has to be mended")
    parser.add_argument("--toy", type=int, default=0, metavar="RUNS", help="so many runs with the toy's tools instead")
    options = parser.parse_args()
    if options.toy:
        toy(options.toy)
        return
    sequences: Counter[tuple[str | None, ...]] = Counter()
    scoped: Counter[tuple[tuple[str | None, str], ...]] = Counter()
    produced: Counter[tuple[str | None, ...]] = Counter()
    looks: Counter[tuple[int, ...]] = Counter()
    answered: Counter[str] = Counter()
    blockers: Counter[str] = Counter()
    lengths: list[int] = []
    delivered = repairs = 0
    with tempfile.TemporaryDirectory() as folder:
        every = 3 if options.spotlights else 99
        faults = FAULTS if options.faults else None
        film = SmallFilm(Path(folder), open_sandbox(), shots=options.shots, spotlight_every=every, faults=faults)
        place = Path(folder) / "run"
        place.mkdir()
        for seed in range(options.seeds):
            trajectory, _ = film.play(place, seed)
            calls = own(trajectory)
            done = [c for c in calls if c.observation.status is not ObservationStatus.REFUSED]
            delivered += trajectory.outcome is Outcome.DELIVERED
            sequences[tuple(c.tool for c in calls)] += 1
            scoped[tuple((c.tool, scope_of(c)) for c in done)] += 1
            produced[tuple(dict.fromkeys(c.tool for c in done))] += 1
            looks[tuple(n for n, c in enumerate(done) if c.tool == "inspect_quality")] += 1
            answered.update(answers(calls))
            blockers.update(b.code.value for c in trajectory.calls if c.role is Role.ORCHESTRATOR for b in c.observation.blockers[:1])
            repairs += sum(c.tool == "repair_shots" for c in done)
            lengths.append(len(calls))
            print(f"seed {seed}: {trajectory.outcome.value}, {len(calls)} calls, {len(sequences)} sequences so far", flush=True)
    print("\n| what | count |\n| --- | --- |")
    rows: dict[str, object] = {
        "seeds": options.seeds,
        "delivered": delivered,
        "distinct tool sequences": len(sequences),
        "most frequent sequence": max(sequences.values()),
        "distinct sequences with scopes, refusals left out": len(scoped),
        "distinct orders of first use": len(produced),
        "distinct places of inspections": len(looks),
        "distinct answers to a refusal": len(answered),
        "kinds of blockers": len(blockers),
        "repair calls": repairs,
        "calls a run, fewest, median, most": f"{min(lengths)}, {statistics.median(lengths):.0f}, {max(lengths)}",
    }
    for name, value in rows.items():
        print(f"| {name} | {value} |")
    print("\nblockers: " + ", ".join(f"{code} {count}" for code, count in blockers.most_common()))


if __name__ == "__main__":
    main()
