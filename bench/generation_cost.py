"""Calls and generated tokens per minute of finished film: the scripted editor's outputs as a chat model would have to write them.

    python -m bench.generation_cost [--lake LAKE] [--minutes 2 5 10] [--languages en zh] [--runs N] [--mistakes 0.1]

The paper counts tool calls and generated tokens per successful output minute, failed attempts included (3.1 and 2,377 for its trained
policy). With ``--lake`` the stored, delivered trajectories of a lake are counted; without, scripted runs on the toy production of the
tests (real planning tools, records without bytes) over a script of ordinary sentences, with a shot for every sentence, whose length in
minutes is the script's at 150 English words or 240 Chinese characters a minute. Every output is rendered with Qwen3's chat template
(tool calls in Hermes form, content as JSON) and counted to the end of its turn; the prompt is what the context cost, with tool schemas.
Prints Markdown tables; asserts nothing.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from bench.contexts import speaking
from materialize.config import MaterializeConfig
from materialize.tokens import TokenCounter, open_counter
from replay.config import PolicyConfig, ReplayConfig
from replay.contexts import orchestrator_calls
from replay.episode import run_episode
from replay.policies.scripted import ScriptedPolicy
from replay.runtime import Runtime
from schemas.contract import Role
from schemas.trajectory import Call, ObservationStatus, Provenance, Trajectory
from storage.lake import Lake
from tests.replay.doubles import pool_clip, suite
from tests.replay.toy import ToyCritic, storyboard, toy_registry, toy_task

PACE = {"en": 150, "zh": 240}
"""Words or characters a minute."""


@dataclass
class Cost:
    """What runs on one film cost."""

    minutes: float = 0.0
    runs: int = 0
    calls: int = 0
    refused: int = 0
    generated: Counter[str] = field(default_factory=Counter)
    """Tokens by role, and by role and kind."""
    prompts: dict[Role, list[int]] = field(default_factory=lambda: defaultdict(list))

    def add(self, trajectory: Trajectory, contexts: dict[str, Any], minutes: float, counter: TokenCounter) -> None:
        """Count one run."""
        self.minutes += minutes
        self.runs += 1
        self.calls += orchestrator_calls(trajectory.calls)
        for call in trajectory.calls:
            if call.output.provenance is Provenance.RUNTIME:
                continue
            self.refused += call.observation.status is ObservationStatus.REFUSED
            seen = contexts[call.context_sha256]
            found = counter.count(seen["messages"], seen["tools"], completion(call))
            kind = call.request.kind if call.request is not None else "tool call"
            self.generated[call.role.value] += found.completion
            self.generated[f"{call.role.value}: {kind}"] += found.completion
            self.prompts[call.role].append(found.prompt)


def completion(call: Call) -> dict[str, Any]:
    """The output as an assistant message; a call that nobody can read as the text it is."""
    output = call.output
    try:
        readable = output.tool is not None and isinstance(orjson.loads(output.arguments_json or "{}"), dict)
    except orjson.JSONDecodeError:
        readable = False
    if not readable:
        return {"role": "assistant", "content": output.text or output.arguments_json or ""}
    function = {"name": output.tool, "arguments": output.arguments_json or "{}"}
    return {"role": "assistant", "content": output.text, "tool_calls": [{"id": "c", "type": "function", "function": function}]}


def stored(lake: Lake) -> Iterator[tuple[str, Trajectory, dict[str, Any], float]]:
    """Delivered runs of a lake: the film, the trajectory, its contexts, its length in minutes."""
    con = lake.connect()
    rows = con.execute("select project_id, trajectory_sha256, duration_us from trajectories where outcome = 'delivered'").fetchall()
    con.close()
    for project, sha, duration in rows:
        trajectory = Trajectory.model_validate_json(lake.store.read(sha))
        contexts = {c.context_sha256: lake.store.read_json(c.context_sha256) for c in trajectory.calls}
        yield project[:12], trajectory, contexts, duration / 60e6


def played(minutes: int, language: str, seed: int, mistakes: float) -> tuple[Trajectory, dict[str, Any], float]:
    """A scripted run on a made film of about that length."""
    shots = 4
    while True:
        board = speaking(storyboard(shots, sentences_per_segment=8), language)
        said = len(board.script.split()) if language == "en" else len(board.script)
        if said / PACE[language] >= minutes:
            break
        shots += 4
    config = ReplayConfig(policy=PolicyConfig(mistake_rate=mistakes))
    task = toy_task(board).model_copy(update={"pool": tuple(pool_clip(n) for n in range(len(board.shots)))})
    with tempfile.TemporaryDirectory() as folder:
        run = Runtime(task, toy_registry(0), suite(Path(folder)))
        trajectory = run_episode(run, ScriptedPolicy(board, seed, config, ToyCritic()))
        contexts = {c.context_sha256: run.suite.store.read_json(c.context_sha256) for c in trajectory.calls}
    return trajectory, contexts, said / PACE[language]


def show(costs: dict[str, Cost]) -> None:
    """Print the tables."""
    print("| film | minutes | runs | calls a run | calls a minute | refused a run | tokens a minute | orchestrator | generator | critic |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, cost in costs.items():
        roles = [cost.generated[role.value] for role in Role]
        a_minute = [f"{n / cost.minutes:,.0f}" for n in (sum(roles), *roles)]
        calls = (f"{cost.calls / cost.runs:.1f}", f"{cost.calls / cost.minutes:.1f}", f"{cost.refused / cost.runs:.1f}")
        print("| " + " | ".join((name, f"{cost.minutes / cost.runs:.1f}", str(cost.runs), *calls, *a_minute)) + " |")
    print("\n| film | prompt tokens a call: orchestrator (median, largest) | generator | critic |")
    print("| --- | --- | --- | --- |")
    for name, cost in costs.items():
        cells = [f"{statistics.median(p):,.0f}, {max(p):,}" if (p := cost.prompts[role]) else "-" for role in Role]
        print("| " + " | ".join((name, *cells)) + " |")
    print("\n| film | tokens a minute, by what was written |")
    print("| --- | --- |")
    for name, cost in costs.items():
        kinds = [(kind.partition(": ")[2], n) for kind, n in cost.generated.most_common() if ": " in kind]
        print(f"| {name} | " + ", ".join(f"{kind} {n / cost.minutes:,.0f}" for kind, n in kinds) + " |")


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lake", type=Path)
    parser.add_argument("--minutes", type=int, nargs="*", default=[2, 5, 10])
    parser.add_argument("--languages", nargs="*", choices=sorted(PACE), default=sorted(PACE))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--mistakes", type=float, default=0.1)
    options = parser.parse_args()
    counter = open_counter(MaterializeConfig())
    if counter is None:
        raise SystemExit("no tokenizer configured")
    costs: dict[str, Cost] = defaultdict(Cost)
    if options.lake is not None:
        for film, trajectory, contexts, length in stored(Lake(options.lake)):
            costs[film].add(trajectory, contexts, length, counter)
    else:
        for language in options.languages:
            for minutes in options.minutes:
                for seed in range(options.runs):
                    trajectory, contexts, length = played(minutes, language, seed, options.mistakes)
                    costs[f"made, {language}, {minutes} minutes"].add(trajectory, contexts, length, counter)
    show(costs)


if __name__ == "__main__":
    main()
