"""``workprint explain``: why a source was admitted or refused."""

from __future__ import annotations

from typing import Annotated

import typer

from jobs.cli.exits import print_json
from jobs.cli.options import DEFAULT_LAKE, ConfigOption, JsonOption, LakeOption


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("explain")(explain)


def explain(
    project: Annotated[
        str,
        typer.Argument(help="Project id or the beginning of one, uri or file name of a source (refused ones too), or a storyboard.json."),
    ],
    lake: LakeOption = DEFAULT_LAKE,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say in words and figures why a source was admitted or refused.

    Every figure stands beside its threshold, every shot beside its confidences; then come the words at borders that may be wrong.
    Thresholds are those of the configuration, so another one shows what it would have decided.

    Examples:

      workprint explain prj_3f2a --lake lake

      workprint explain broken.mp4 --lake lake

      workprint explain talk/storyboard.json --config strict.yaml --json | jq '.doubtful_borders'

    Exit status: 0 told (whatever the verdict), 2 nothing or more than one thing has this name.
    """
    from jobs.verdicts import explain_named

    found = explain_named(project, lake, config)
    if as_json:
        print_json(found.as_json())
    else:
        for line in found.lines():
            typer.echo(line)
