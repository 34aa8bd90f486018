"""``workprint masks``: which tokens of an example are trained."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jobs.cli.exits import print_json
from jobs.cli.options import DEFAULT_LAKE, JsonOption, LakeOption


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("masks")(masks)


def masks(
    example: Annotated[str, typer.Argument(help="Example id, or the beginning of one.")],
    lake: LakeOption = DEFAULT_LAKE,
    template: Annotated[str, typer.Option(help="Chat template: qwen3, or a folder with tokenizer.json.")] = "qwen3",
    html: Annotated[Path | None, typer.Option("-o", "--html", help="Write a page instead.", metavar="FILE.html")] = None,
    whole: Annotated[bool, typer.Option("--whole", help="Show all of the prompt in the terminal, not only its ends.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show which tokens of one example are trained: rendered by a chat template, trained text in green, the rest in grey.

    Examples:

      workprint masks exa_3f0a --lake lake

      workprint masks exa_3f0a --lake lake --template ./Qwen3-8B -o mask.html
    """
    from jobs.masks import show_mask, write_page

    if html is None:
        found = show_mask(lake, example, template, whole=whole, quiet=as_json)
    else:
        found = write_page(lake, example, template, html)
    if as_json:
        print_json(found)
    elif html is not None:
        typer.echo(str(html))
