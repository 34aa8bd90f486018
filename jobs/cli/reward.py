"""``workprint reward``: where a reward comes from."""

from __future__ import annotations

from typing import Annotated

import typer

from jobs.cli.exits import print_json
from jobs.cli.options import DEFAULT_LAKE, JsonOption, LakeOption

reward = typer.Typer(
    no_args_is_help=True,
    help="""
Ask where the reward of a candidate comes from.

Examples:

  workprint reward explain grp_1b2c3d4e5f60718293a4b5c6.0 --lake lake
""",
)


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.add_typer(reward, name="reward")


@reward.callback()
def _group() -> None:
    pass


@reward.command("explain")
def explain(
    candidate: Annotated[str, typer.Argument(help="GROUP.INDEX, as 'workprint groups' prints it.")],
    lake: LakeOption = DEFAULT_LAKE,
    as_json: JsonOption = False,
) -> None:
    """Show the parts of a candidate's reward, each by its name in the formula, and what its group held fixed.

    Examples:

      workprint reward explain grp_1b2c3d4e5f60718293a4b5c6.0 --lake lake

      workprint reward explain grp_1b2c3d4e5f60718293a4b5c6.2 --lake lake --json | jq .parts
    """
    from jobs.grouping import explain as explained

    found = explained(lake, candidate)
    if as_json:
        print_json(found)
        return
    for name in ("role", "tool", "origin", "refused", "calls", "status", "reward", "advantage"):
        typer.echo(f"{name:12} {found[name]}")
    typer.echo("\nparts")
    for name, value in found["parts"].items():
        typer.echo(f"  {name:18} {value:.6f}")
    typer.echo("\nheld fixed")
    for name, value in found["matched_key"].items():
        typer.echo(f"  {name:18} {value}")
    output = found["output"]
    typer.echo(f"\noutput\n  {output.get('tool') or ''} {output.get('arguments_json') or output.get('text', '')[:600]}")
