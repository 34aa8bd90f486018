"""``workprint run`` and ``workprint status``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jobs.cli.exits import Exit, print_json
from jobs.cli.options import DEFAULT_LAKE, ConfigOption, JsonOption, LakeOption


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("run")(run)
    app.command("demo")(demo)
    app.command("status")(status)


def run(
    sources: Annotated[
        list[str],
        typer.Argument(help="Videos, folders, globs, manifests (CSV, JSONL, Parquet), or one configuration file that names sources."),
    ],
    lake: LakeOption = DEFAULT_LAKE,
    config: ConfigOption = None,
    engine: Annotated[str | None, typer.Option("--engine", help="ray or local; overrides the configuration.")] = None,
    as_json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Take finished videos through all stages into a lake.

    Work that the lake already holds is not done again; a changed setting redoes only what it affects. A run that was stopped goes on
    where it was. Bad inputs are recorded with a reason and the rest goes on.

    Examples:

      workprint run talk.mp4 --lake lake

      workprint run videos/ "more/*.webm" manifest.csv --lake lake --config cluster

      workprint run configs/local.yaml --lake lake

    Exit status: 0 every source became a delivered project, 3 every source was refused, 4 some were.
    """
    from jobs.batch import run_batch

    report = run_batch(sources, lake, config, engine, quiet=quiet or as_json)
    if as_json:
        print_json(report.as_json())
    else:
        report.print()
    raise typer.Exit(_exit_of(report.counts()))


def demo(lake: LakeOption = DEFAULT_LAKE, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Run the whole job on a real lecture film of 203 seconds, offline, with three faults put in on purpose to be found and mended.

    The film is 'Physicsworks' (MIT OpenCourseWare 8.01, Walter Lewin), CC BY 3.0; 'workprint fetch demo-video' brings it.

    Examples:

      workprint demo --lake demo/lake
    """
    from jobs.demo import DEMO_ATTRIBUTION, run_demo

    typer.echo(f"The film: {DEMO_ATTRIBUTION}", err=True)
    report = run_demo(lake, config, quiet=as_json)
    if as_json:
        print_json(report.as_json())
    else:
        report.print()
    raise typer.Exit(_exit_of(report.counts()))


def _exit_of(counts: dict[str, int]) -> Exit:
    total = sum(counts.values())
    if counts.get("delivered", 0) == total and total:
        return Exit.OK
    if counts.get("rejected", 0) == total:
        return Exit.REFUSED
    if counts.get("failed", 0) == total:
        return Exit.FAULT
    return Exit.PARTIAL


def status(lake: LakeOption = DEFAULT_LAKE, as_json: JsonOption = False) -> None:
    """Show the latest run, the funnel from sources to examples, and what was refused or failed.

    Works from another shell while a run is going.

    Examples:

      workprint status --lake lake

      workprint status --lake lake --json
    """
    from jobs.status import read_status

    found = read_status(Path(lake))
    if as_json:
        print_json(found.as_json())
    else:
        found.print()
