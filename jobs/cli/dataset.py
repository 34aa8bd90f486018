"""``workprint dataset``: what the examples of a lake are worth as a data set."""

from __future__ import annotations

from typing import Annotated

import typer

from jobs.cli.exits import print_json
from jobs.cli.options import DEFAULT_LAKE, JsonOption, LakeOption

dataset = typer.Typer(no_args_is_help=True, help="Ask how varied the examples of a lake are, and whether splits leak into one another.")


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.add_typer(dataset, name="dataset")


@dataset.command("variety")
def variety(
    lake: LakeOption = DEFAULT_LAKE,
    sample: Annotated[int, typer.Option(min=1, help="Number of trajectories that expected figures are for.")] = 1000,
    as_json: JsonOption = False,
) -> None:
    """Count different tool sequences, argument shapes, blockers, repairs and context lengths for 1,000 trajectories.

    Examples:

      workprint dataset variety --lake lake

      workprint dataset variety --lake lake --json | jq .near_duplicates

    A lake with fewer trajectories is reported at its own size; nothing is extrapolated.
    """
    from jobs.quality import variety_of

    found = variety_of(lake, sample)
    if as_json:
        print_json(found.as_json())
        return
    typer.echo(f"{found.trajectories} trajectories of {found.projects} projects; different things for {found.sample} trajectories:\n")
    for name, s in found.spreads.items():
        typer.echo(f"  {name:28} {s.expected:10.1f}   {s.kinds} in all, the commonest in {s.top_share:.0%}")
    typer.echo("\nexamples by role and kind:\n")
    for name, count in found.yields.items():
        typer.echo(f"  {name:32} {count:8d}")
    low, mean, high = found.per_project
    typer.echo(
        f"\n  a project {mean:.1f} ({low} to {high}), a trajectory {found.per_trajectory:.1f}, near-duplicates {found.near_duplicates}"
    )
    for role, (a, b, c) in found.lengths.items():
        typer.echo(f"  prompt tokens, {role:14} {a:7d} {b:7d} {c:7d}   (5 %, median, 95 %)")
