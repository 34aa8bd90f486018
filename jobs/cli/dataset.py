"""``workprint dataset``: what the examples of a lake are worth as a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jobs.cli.exits import Exit, print_json
from jobs.cli.options import DEFAULT_LAKE, ConfigOption, JsonOption, LakeOption

dataset = typer.Typer(
    no_args_is_help=True,
    help="""
Ask how varied the examples of a lake are, and whether splits leak into one another.

Examples:

  workprint dataset variety --lake lake

  workprint dataset leakage --lake lake
""",
)


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


@dataset.command("leakage")
def leakage(
    lake: LakeOption = DEFAULT_LAKE,
    config: ConfigOption = None,
    benchmark: Annotated[list[Path] | None, typer.Option(help="Text that must not be trained on; repeat for several.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Tell what one split could give away of another: near-duplicates, and runs of twelve words in common.

    Near-duplicates are found by key frames, sound and narration. Projects with words in common are left out by every export.

    Examples:

      workprint dataset leakage --lake lake

      workprint dataset leakage --lake lake --benchmark scripts.txt --json

    Exit status: 0 clean, 4 near-duplicates lie in different splits.
    """
    from jobs.quality import leakage_of

    found = leakage_of(lake, config, benchmark or [])
    if as_json:
        print_json(found.as_json())
    else:
        typer.echo("projects   " + ", ".join(f"{name} {count}" for name, count in found.projects.items()))
        typer.echo(f"kin        {len(found.kin)} pairs, {len(found.across)} of them in different splits")
        for k in found.across:
            typer.echo(f"  {k.first}  {k.second}  picture {k.picture:.0%}, sound {k.sound:.0%}, narration {k.text:.0%}")
        typer.echo(f"words      {len(found.overlaps)} training projects share twelve words in a row with the benchmark")
        for o in found.overlaps:
            typer.echo(f"  {o.project_id}  {o.held_out}  {o.grams} runs")
    raise typer.Exit(Exit.OK if found.clean else Exit.PARTIAL)
