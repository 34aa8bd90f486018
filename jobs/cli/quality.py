"""``workprint quality``: the final quality of stored runs, computed again."""

from __future__ import annotations

from typing import Annotated

import typer

from jobs.cli.exits import Exit, print_json
from jobs.cli.options import DEFAULT_LAKE, JsonOption, LakeOption


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("quality")(quality)


def quality(
    target: Annotated[str, typer.Argument(help="Beginning of a project's or a trajectory's id.")],
    lake: LakeOption = DEFAULT_LAKE,
    as_json: JsonOption = False,
) -> None:
    """Compute the final quality of runs again: six rule features with the paper's weights, blended with the audit of rendered graphics.

    Reads stored calls, verdicts and the final state; executes nothing. Definitions: docs/repair.md.

    Examples:

      workprint quality prj_3f0a --lake lake

      workprint quality trj_52bf --lake lake --json | jq '.[0].features'

    Exit status: 0, or 4 if a stored quality is not what is computed now.
    """
    from jobs.scoring import score

    found = score(lake, target)
    if as_json:
        print_json([s.as_json() for s in found])
    else:
        for s in found:
            q = s.quality
            audit = "no audit" if q.audit is None else f"audit {q.audit:.3f}"
            note = "" if s.agrees else f", stored {s.stored:.6f}"
            typer.echo(f"{s.trajectory_id}  {s.outcome}  quality {q.end:.6f} (rules {q.rule:.6f}, {audit}{note})")
            for name, value in q.features.items():
                typer.echo(f"    {name:32} {value:.6f}")
    raise typer.Exit(Exit.OK if all(s.agrees for s in found) else Exit.PARTIAL)
