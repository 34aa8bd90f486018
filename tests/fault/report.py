"""RELIABILITY.md from what the fault tests counted: ``python -m tests.fault.report FIGURES [PAGE]``.

FIGURES is the file that ``pytest tests/fault --figures FIGURES`` appended to. Of each test and size the last line counts. A figure
without a run behind it is not printed; tests that never ran are listed as such.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[2] / "RELIABILITY.md"

TESTS = {
    "R1": ("SIGKILL at random moments of the whole commit path", "1,000 kills; 0 lost, doubled, torn, dangling"),
    "R2": ("the command, killed cold and run again", "200 kills; rows as of a run that was never killed"),
    "R3": ("each write, fsync, rename of a commit cut by SIGKILL, power loss, EIO, ENOSPC", "all points, 0 unrecoverable"),
    "R4": ("the ledger's checkpoint cut short", "3 of 3 recover"),
    "R5": ("first failing sync", "0 acknowledged after it, 0 lost"),
    "R6": ("a disk that is really full, then freed", "typed, 0 lost, completes"),
    "R7": ("Ray workers killed", "50 kills over 1,000 items: 1,000 of each row"),
    "R8": ("the driver killed, a new run goes on", "5 kills; 0 lost or doubled, 0 finished stages executed again"),
    "R9": ("a finished run again", "0 executions, 0 rows, 0 versions"),
    "R10": ("order and engine", "identical rows"),
    "R11": ("poison: crash, hang, memory, garbage, no output", "5 in 200: 195 done, 5 quarantined with 5 codes, at most 3 attempts"),
    "R12": ("one key committed twice at once", "50 races, 1 commit each; second upkeep refused in under 1 s"),
    "R13": ("random operations and faults beside a dict", "200 runs of 50 steps, 0 divergences"),
    "R14": (
        "frozen lakes and recorded runs of every schema version",
        "all open with equal digests; 20 recorded runs come to the same verdicts",
    ),
    "R15": ("flipped bits, missing and orphan files", "200 of 200 flips and all files named, 0 silent repairs"),
    "R16": ("SIGKILL during garbage collection", "100 kills, 0 referenced objects removed"),
    "R17": ("a clock that jumps", "0 changed digests, order by version"),
    "R18": ("children that will not end", "ended within 2 s of the limit, 0 left"),
    "nodes": ("one of three Ray nodes dies in a run", "exactly the rows of an unharmed run"),
    "R19": ("readers during commits", "300 commits, 4 readers: 0 partial versions, 0 lock errors"),
    "writers": ("processes that commit at once, SQLite ledger", "4 x 200 and 16 x 100, nothing lost"),
    "bucket": ("machines that commit at once to a bucket, Postgres ledger", "nothing lost"),
    "submit": ("`ray job submit` with tokens, of the command and configs/cluster.yaml", "as a run here; the same job again does nothing"),
    "writers on Postgres": ("processes that commit at once, Postgres ledger", "4 x 200 and 16 x 100, nothing lost"),
}

HEAD = """# Reliability

What the fault tests counted, written by `python -m tests.fault.report` from the file that the tests themselves wrote; not edited by hand.

```
make test-fault                                            # the sizes of the targets; takes long on few cores
make test-cluster FIGURES=build/faults.jsonl               # adds Postgres, the bucket and `ray job submit`
.venv/bin/python -m pytest tests/fault -m "not full"       # what CI runs, with smaller counts
```

Every random test takes `--seed N` and prints it. *full* is the target's size, *gate* the size CI runs, *same* one size for both.

| | what is done to it | target | counted | size | seed | date | load |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""


def page(lines: list[dict[str, Any]]) -> str:
    """The page as Markdown."""
    latest: dict[tuple[str, str], dict[str, Any]] = {}
    for line in lines:
        latest[(line["id"], line["test"])] = line
    rows = []
    missing = []
    for name, (what, target) in TESTS.items():
        found = [line for (id, _), line in latest.items() if id == name]
        if any(line["size"] == "full" for line in found):
            found = [line for line in found if line["size"] == "full"]
        if not found:
            missing.append(name)
        for line in found:
            counted = ", ".join(f"{k.replace('_', ' ')} {_shown(v)}" for k, v in line["counts"].items())
            rows.append(f"| {name} | {what} | {target} | {counted} | {line['size']} | {line['seed']} | {line['date']} | {line['load']} |")
    text = HEAD + "\n".join(rows) + "\n"
    if missing:
        text += f"\nNot run for this page: {', '.join(missing)}.\n"
    if lines:
        machine = lines[-1]["machine"]
        versions = ", ".join(f"{k} {v}" for k, v in lines[-1]["versions"].items())
        text += f"\nMachine: {machine}; {versions}. Load is the number of processes that wanted a core.\n"
    return text


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def main(arguments: list[str]) -> int:
    """Write the page."""
    lines = [json.loads(line) for line in Path(arguments[0]).read_text().splitlines() if line.strip()]
    (Path(arguments[1]) if len(arguments) > 1 else PAGE).write_text(page(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
