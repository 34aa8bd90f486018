"""``workprint inject``: faults put in on purpose, their causes stored."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jobs.cli.exits import Exit, print_json
from jobs.cli.options import DEFAULT_LAKE, LARGEST, ConfigOption, JsonOption, LakeOption

if TYPE_CHECKING:
    from jobs.again import Report


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("inject")(inject)


def inject(
    target: Annotated[
        str | None,
        typer.Argument(help="Beginning of a trajectory's or project's id in the lake, or a storyboard.json. None: every stored run."),
    ] = None,
    lake: LakeOption = DEFAULT_LAKE,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Folder for the film of a storyboard.", metavar="DIR")] = None,
    source: Annotated[Path | None, typer.Option(help="The storyboard's video, if it is not where the storyboard says.")] = None,
    kinds: Annotated[str | None, typer.Option(help="Kinds of faults, with commas between; all by default. See docs/repair.md.")] = None,
    count: Annotated[int, typer.Option(min=1, max=16, help="Faults of one run.")] = 3,
    runs: Annotated[int, typer.Option(min=1, max=10_000, help="New runs of every stored one, each with the next seed.")] = 1,
    seed: Annotated[int, typer.Option(min=-LARGEST, max=LARGEST, metavar="N", help="Seed of the draw.")] = 0,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Spoil products and calls of stored runs on purpose, and see them found, diagnosed and mended.

    A run, whoever decided it, is taken up again from the snapshot before the first call that a drawn fault strikes; the scripted policy
    goes on from there. Real bytes are spoiled; the cause of each fault is a row of table 'faults', what was done about it rows of 'repairs'
    and 'recoveries'. A storyboard is produced afresh into a folder.

    Examples:

      workprint inject --lake lake --count 3 --runs 10

      workprint inject trj_3f0a --lake lake --kinds render_black,narration_silent --seed 7 --json

      workprint query "select kind, count(*) n, avg(recovered::int) from faults group by kind" --lake lake

      workprint inject talk/storyboard.json -o film --kinds delivery_silent

    Exit status: 0 every fault was recovered from, 4 some were not.
    """
    from jobs.again import inject_into_lake, inject_into_storyboard
    from jobs.single import printer
    from repair.config import fault_config

    faults = fault_config(tuple(k for k in (kinds or "").split(",") if k), count, seed)
    if target is not None and target.endswith(".json"):
        reports = [inject_into_storyboard(Path(target), out, source, faults, config, quiet=as_json)]
    else:
        reports = inject_into_lake(lake, target, faults, runs, config, printer(as_json))
    if as_json:
        print_json([r.as_json() for r in reports])
    else:
        _print(reports)
    everything = all(o.recovered for r in reports for o in r.found)
    raise typer.Exit(Exit.OK if everything else Exit.PARTIAL)


def _print(reports: list[Report]) -> None:
    for report in reports:
        t = report.trajectory
        typer.echo(f"{t.trajectory_id}  {t.outcome.value}, {len(t.calls)} calls, {report.kept_calls} of them kept")
        for o in report.found:
            became = "recovered" if o.recovered else "not recovered"
            typer.echo(f"  {o.fault.kind:24} {o.fault.subject:16} found as {o.code or '-':24} {'; '.join(o.mends) or '-':16} {became}")
    found = [o for r in reports for o in r.found]
    typer.echo(f"\n{len(found)} faults in {len(reports)} runs, {sum(o.recovered for o in found)} recovered")
