"""``workprint run`` and ``workprint status``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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

    The first ctrl-C (or SIGTERM, which schedulers send) ends a run in order: no further project is started, those under way are given 25
    seconds (run.stop_s) to end the stage they are in, the report is written, and the exit status is 130. The second one ends it at once.
    Either way the same command goes on later: what was committed, and every call of a replay, is kept.

    Examples:

      workprint run talk.mp4 --lake lake

      workprint run videos/ "more/*.webm" manifest.csv --lake lake --config cluster

      workprint run configs/local.yaml --lake lake

    Exit status: 0 every source became a delivered project, 1 every source failed, 3 every source was refused, 4 some did not go through,
    130 the run was stopped before every source had its turn.
    """
    from jobs.batch import run_batch

    with told_when_stopped():
        report = run_batch(sources, lake, config, engine, quiet=quiet or as_json)
    if as_json:
        print_json(report.as_json())
    else:
        report.print()
    raise typer.Exit(exit_of(report.counts()))


def demo(lake: LakeOption = DEFAULT_LAKE, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Run the whole job on a real lecture film of 203 seconds, offline, with three faults put in on purpose to be found and mended.

    The film is 'Physicsworks' (MIT OpenCourseWare 8.01, Walter Lewin), CC BY 3.0; 'workprint fetch demo-video' brings it.

    Examples:

      workprint demo --lake demo/lake
    """
    from jobs.demo import DEMO_ATTRIBUTION, run_demo

    typer.echo(f"The film: {DEMO_ATTRIBUTION}", err=True)
    with told_when_stopped():
        report = run_demo(lake, config, quiet=as_json)
    if as_json:
        print_json(report.as_json())
    else:
        report.print()
    raise typer.Exit(exit_of(report.counts()))


@contextmanager
def told_when_stopped() -> Iterator[None]:
    """Say what is left of a run that was ended at once."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("stopped; what was finished is kept, run the same command again to continue", err=True)
        raise typer.Exit(Exit.STOPPED) from None


def exit_of(counts: dict[str, int]) -> Exit:
    """Exit status of a run whose sources became this."""
    if counts.get("stopped", 0):
        return Exit.STOPPED
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
