"""Tokens of every role context of scripted runs, with Qwen3's own tokenizer and chat template, beside what the whole state would cost.

    python -m bench.contexts [--shots 16 120 300] [--languages en zh] [--runs N]

Plays scripted runs on the toy production of the tests (real planning tools, records without bytes) over a script of ordinary sentences,
and counts what a model would be given: rendered messages and tool schemas. ``whole state`` is the same state as plain JSON, which a later
context does not show. Prints a Markdown table; asserts nothing.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections import defaultdict
from pathlib import Path

from materialize.config import MaterializeConfig
from materialize.tokens import TokenCounter, open_counter
from replay.config import ReplayConfig
from replay.policies.scripted import ScriptedPolicy
from replay.runtime import Runtime
from schemas.canonical import canonical_text
from schemas.contract import Role
from schemas.storyboard import Storyboard
from tests.replay.doubles import pool_clip, suite
from tests.replay.toy import ToyCritic, spoken, storyboard, toy_registry, toy_task

LINES = {
    "en": (
        "A pendulum is a weight on a string, and it has kept time for four hundred years.",
        "The period depends on the length of the string, and not on the weight that hangs from it.",
        "Let us measure ten swings, so that the error of my hand is divided by ten.",
        "A heavier ball makes no difference either, although many people expect one.",
        "Nobody believes it until he has seen a professor swing through the lecture hall.",
    ),
    "zh": (
        "单摆就是一根绳子上的一个重物，四百年来人们一直用它来计时。",
        "周期取决于绳子的长度，而与挂在上面的重量没有关系。",
        "我们来测量十次摆动，这样我手上的误差就会除以十。",
        "换一个更重的球也没有区别，尽管很多人以为会有。",
        "直到看见教授在教室里荡来荡去，大家才肯相信。",
    ),
}


def speaking(board: Storyboard, language: str) -> Storyboard:
    """The film with ordinary sentences."""
    return spoken(board, LINES[language], language)


def one_run(folder: Path, board: Storyboard, seed: int, counter: TokenCounter) -> tuple[dict[Role, list[int]], int]:
    """Tokens of every context by role; and of the whole state at the end."""
    task = toy_task(board).model_copy(update={"pool": tuple(pool_clip(n) for n in range(len(board.shots)))})
    policy = ScriptedPolicy(board, seed, ReplayConfig(), ToyCritic())
    run = Runtime(task, toy_registry(seed % 3), suite(folder))
    tokens: dict[Role, list[int]] = defaultdict(list)
    while not run.finished:
        context = run.context()
        seen = context.visible()
        tokens[context.role].append(counter.count_text(counter.render(seen["messages"], seen["tools"])))
        run.step(policy.act(context))
    return tokens, counter.count_text(canonical_text(run.state.model_dump(mode="json")))


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shots", type=int, nargs="*", default=[16, 120, 300])
    parser.add_argument("--languages", nargs="*", choices=sorted(LINES), default=sorted(LINES))
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    counter = open_counter(MaterializeConfig())
    if counter is None:
        raise SystemExit("no tokenizer configured")
    print("| shots | language | role | contexts | first | median | 95th percentile | largest | whole state |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for shots in options.shots:
        for language in options.languages:
            board = speaking(storyboard(shots, sentences_per_segment=8), language)
            tokens: dict[Role, list[int]] = defaultdict(list)
            first: dict[Role, int] = {}
            whole = 0
            for seed in range(options.runs):
                with tempfile.TemporaryDirectory() as folder:
                    found, whole = one_run(Path(folder), board, seed, counter)
                for role, counts in found.items():
                    tokens[role] += counts
                    first.setdefault(role, counts[0])
            for role in Role:
                counts = tokens[role]
                p95 = round(statistics.quantiles(counts, n=20, method="inclusive")[-1]) if len(counts) > 1 else counts[0]
                row = (shots, language, role.value, len(counts), first[role], round(statistics.median(counts)), p95, max(counts), whole)
                print("| " + " | ".join(f"{v:,}" if isinstance(v, int) else v for v in row) + " |")


if __name__ == "__main__":
    main()
