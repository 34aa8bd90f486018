"""How differently one real project is made under many seeds: tool sequences, scopes, inspection points, orders, answers to blockers.

    python -m bench.variety [--seeds 100] [--shots 4] [--spotlights] [--faults]

Plays scripted runs on one small project with real engines (flite speech, 180 lines), all in one store, so that later seeds find most
products made. Prints what came out; asserts nothing.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections import Counter
from itertools import pairwise
from pathlib import Path

import orjson

from media.sandbox import open_sandbox
from schemas.contract import Role
from schemas.trajectory import Call, ObservationStatus, Outcome, Trajectory
from tests.replay.small_film import FAULTS, SmallFilm


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


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--shots", type=int, default=4)
    parser.add_argument("--spotlights", action="store_true", help="a graphic on some shots: slower")
    parser.add_argument("--faults", action="store_true", help="two faults in every run, so that something has to be mended")
    options = parser.parse_args()
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
