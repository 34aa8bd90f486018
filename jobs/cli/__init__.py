"""The ``workprint`` command. Every command has examples in its help; ``--json`` output is stable and described in docs/cli.md."""

from __future__ import annotations

import errno
import sys
from typing import Annotated

import typer

from jobs.cli import about, agents, audit, batch, data, dataset, groups, inject, lake, masks, openenv, quality, reward, rft, single, studio
from jobs.cli import explain as explaining
from jobs.cli.exits import Exit, explain
from schemas.errors import PipelineError

app = typer.Typer(
    name="workprint",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""
Turn finished narrated videos into [bold]executable trajectories[/bold]:
training data for agents that edit video.

A run takes each video through four stages into a lake of Parquet files:

  [bold]invert[/bold]       what is said and shown, what each shot is for
  [bold]replay[/bold]       produced again by real tools, every call recorded
  [bold]repair[/bold]       faults found, diagnosed, mended, verified
  [bold]materialize[/bold]  training examples of three roles

First steps:

  workprint doctor                  what this machine can and cannot do
  workprint demo                    the whole job on a real lecture film
  workprint run talk.mp4            the whole job on your video
  workprint query "from projects"   ask the lake in SQL
  workprint export sft -o sft       a dataset that TRL loads unchanged

Exit status: 0 all good, 1 our fault (the message says what to do),
2 wrong usage or configuration, 3 input refused, 4 partial, 130 stopped.
""",
)

batch.register(app)
single.register(app)
data.register(app)
lake.register(app)
agents.register(app)
masks.register(app)
dataset.register(app)
groups.register(app)
openenv.register(app)
reward.register(app)
about.register(app)
inject.register(app)
rft.register(app)
quality.register(app)
audit.register(app)
studio.register(app)
explaining.register(app)

PANELS = {
    "The whole job": ("run", "demo", "status", "report", "explain"),
    "One video, no lake": ("invert", "replay", "verify"),
    "Ask": ("query", "sql", "versions", "dataset"),
    "Datasets": ("export", "masks"),
    "Repair and groups": ("inject", "rft", "quality", "groups", "reward"),
    "Other agents": ("tools", "mcp", "openenv", "import"),
    "Trust": ("audit", "fsck", "doctor", "studio"),
    "Upkeep": ("lake", "compact", "gc", "fetch"),
}
"""Headings of ``workprint --help`` and the commands under each."""


def _arrange() -> None:
    """Put every command under its heading, in the order of :data:`PANELS`."""
    panels = {name: panel for panel, names in PANELS.items() for name in names}
    order = list(panels)
    for registered in (app.registered_commands, app.registered_groups):
        for info in registered:
            info.rich_help_panel = panels[info.name or ""]
    app.registered_commands.sort(key=lambda info: order.index(info.name or ""))


_arrange()


def _version(show: bool) -> None:
    if show:
        from importlib.metadata import version

        typer.echo(f"workprint {version('workprint')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")] = False,
) -> None:
    pass


def main() -> None:
    """Entry point: typed errors become one readable line and an exit status."""
    try:
        app()
    except PipelineError as error:
        code = explain(error, as_json="--json" in sys.argv)
        sys.exit(code)
    except OSError as error:
        if error.errno != errno.ENOSPC or error.filename is not None:  # a full lake is told as StorageFull, with what was written
            raise
        sys.stdout = sys.stderr  # so that nothing is written there once more at the end
        typer.echo(f"standard output cannot be written: {error}; free space on its device, or send it elsewhere", err=True)
        sys.exit(Exit.FAULT)
