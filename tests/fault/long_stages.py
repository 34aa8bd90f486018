"""``python -m tests.fault.long_stages LAKE COUNT ENGINE STAGE_S STOP_S``: a batch of light projects whose second stage takes its time.

ENGINE is "local", "ray", or "ray actors": then the stage asks an engine in an actor before and after it sleeps.

Ends as ``workprint run --json`` does: with the report, and its exit status.
"""

from __future__ import annotations

import sys
from pathlib import Path

from jobs import cli
from jobs.batch import run_groups
from jobs.cli.batch import exit_of, told_when_stopped
from jobs.cli.exits import print_json
from tests.fault.light import config_of, light_groups, light_work


@cli.app.command("long-stages")
def long_stages(lake: Path, count: int, engine: str, stage_s: float, stop_s: float, show: bool = False) -> None:
    """As the command does it, with work of our own."""
    engine, _, actors = engine.partition(" ")
    groups = light_groups(range(count), dict.fromkeys(range(count), f"{'reads' if actors else 'sleep'}{stage_s}"))
    ray = {"cpus_per_project": 1, "network": "machine", "actors": {"ocr": {"cpus": 0}} if actors else {}}
    config = config_of(engine=engine, stop_s=stop_s, window=2, ray=ray)
    with told_when_stopped():
        report = run_groups(groups, lake, config, quiet=not show, work=light_work)
    if not show:
        print_json(report.as_json())
    raise SystemExit(exit_of(report.counts()))


if __name__ == "__main__":
    sys.argv.insert(1, "long-stages")
    cli.main()
