"""``workprint mcp`` and ``import``: somebody else's agent in the editing room, live or recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jobs.cli.exits import Exit, print_json
from jobs.cli.options import DEFAULT_LAKE, ConfigOption, JsonOption, LakeOption

SnapshotOption = Annotated[str | None, typer.Option(help="Recorded state of the lake to start from (table snapshots).")]
StoryboardOption = Annotated[
    Path | None,
    typer.Option(help="Start a production of this storyboard.json instead; no lake is needed.", exists=True, dir_okay=False),
]
SourceOption = Annotated[
    Path | None, typer.Option(help="The source video, if it is not where the storyboard says.", exists=True, dir_okay=False)
]
BudgetOption = Annotated[int | None, typer.Option(help="Orchestrator calls in all, those before the snapshot included.", min=1, max=50)]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("mcp")(mcp)
    app.command("import")(import_run)


def mcp(
    record: Annotated[Path, typer.Option(help="File that receives the trajectory; rewritten after every call.", dir_okay=False)],
    snapshot: SnapshotOption = None,
    lake: LakeOption = DEFAULT_LAKE,
    storyboard: StoryboardOption = None,
    source: SourceOption = None,
    budget: BudgetOption = None,
    config: ConfigOption = None,
) -> None:
    """Offer the production tools to an outside agent over MCP, on standard input and output. One process is one episode.

    The agent sees the orchestrator's tools with their canonical schemas, 'look', and 'give_content' for what a tool asks to have written.
    Everything it calls is checked, executed and recorded as in any other run; its own words are not seen and are marked unknown.
    An episode from a lake is added to the lake's tables when the client goes. Needs the extra 'mcp'.

    Examples:

      workprint mcp --snapshot snp_3f0a... --lake lake --record run.json

      workprint mcp --storyboard talk/storyboard.json --record run.json

    In a client's settings: {"command": "workprint", "args": ["mcp", "--snapshot", "snp_3f0a...", "--record", "run.json"]}
    """
    from jobs.outside import Asked, serve_episode

    serve_episode(Asked(record, snapshot, lake, storyboard, source, budget, config))


def import_run(
    recording: Annotated[Path, typer.Argument(help="An ATIF trajectory of another agent, as JSON.", exists=True, dir_okay=False)],
    record: Annotated[Path, typer.Option(help="File that receives the trajectory.", dir_okay=False)],
    snapshot: SnapshotOption = None,
    lake: LakeOption = DEFAULT_LAKE,
    storyboard: StoryboardOption = None,
    source: SourceOption = None,
    budget: BudgetOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read an ATIF trajectory and execute its calls again where they name our tools.

    Calls of other tools are counted and left out. Where a tool asks for content, the recording's 'give_content' calls answer.
    Calls that our runtime refuses are kept with their blockers. With a lake and a snapshot the run is added to the lake's tables.

    Examples:

      workprint import run.atif.json --snapshot snp_3f0a... --lake lake --record run.json

    Exit status: 0 delivered, 4 incomplete.
    """
    from jobs.outside import Asked, import_recording

    report = import_recording(recording, Asked(record, snapshot, lake, storyboard, source, budget, config))
    if as_json:
        print_json(report.as_json())
    else:
        report.print()
    raise typer.Exit(Exit.OK if report.delivered else Exit.PARTIAL)
