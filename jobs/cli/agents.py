"""``workprint mcp`` and ``import``: somebody else's agent in the editing room, live or recorded."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobs.cli.exits import Exit, print_json
from jobs.cli.options import DEFAULT_LAKE, ConfigOption, JsonOption, LakeOption

if TYPE_CHECKING:
    from jobs.outside import Asked


def _begin(
    record: Annotated[Path, typer.Option(help="File that receives the trajectory.", dir_okay=False)],
    snapshot: Annotated[str | None, typer.Option(help="Recorded state of the lake to start from (table snapshots).")] = None,
    lake: LakeOption = DEFAULT_LAKE,
    storyboard: Annotated[
        Path | None,
        typer.Option(help="Start a production of this storyboard.json instead; no lake is needed.", exists=True, dir_okay=False),
    ] = None,
    source: Annotated[
        Path | None, typer.Option(help="The source video, if it is not where the storyboard says.", exists=True, dir_okay=False)
    ] = None,
    budget: Annotated[
        int | None, typer.Option(help="Orchestrator calls in all, those before the snapshot included.", min=1, max=50)
    ] = None,
    config: ConfigOption = None,
) -> Asked:
    """The options that say where an episode begins and where it is written."""
    from jobs.outside import Asked

    return Asked(record, snapshot, lake, storyboard, source, budget, config)


def _episode(command: Callable[..., None]) -> Callable[..., None]:
    """A command with the options of :func:`_begin`, which it gets as its first argument, beside its own."""
    begin = inspect.signature(_begin, locals={"Asked": None}, eval_str=True).parameters
    own = list(inspect.signature(command, locals={"Asked": None}, eval_str=True).parameters.values())[1:]
    shown = [*(p for p in own if p.default is p.empty), *begin.values(), *(p for p in own if p.default is not p.empty)]

    @wraps(command)
    def run(**given: Any) -> None:
        asked = _begin(**{name: given.pop(name) for name in begin})
        command(asked, **given)

    del run.__wrapped__  # whoever looks for the signature shall find this one
    run.__annotations__ = {p.name: p.annotation for p in shown}
    run.__signature__ = inspect.Signature([p.replace(kind=p.KEYWORD_ONLY) for p in shown])  # type: ignore[attr-defined]  # read by inspect
    return run


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("mcp")(mcp)
    app.command("import")(import_run)


@_episode
def mcp(asked: Asked) -> None:
    """Offer the production tools to an outside agent over MCP, on standard input and output. One process is one episode.

    The agent sees the orchestrator's tools with their canonical schemas, 'look', and 'give_content' for what a tool asks to have written.
    Everything it calls is checked, executed and recorded as in any other run; its own words are not seen and are marked unknown. The
    record is rewritten after every call.
    An episode from a lake is added to the lake's tables when the client goes. Needs the extra 'mcp'.

    Examples:

      workprint mcp --snapshot snp_3f0a... --lake lake --record run.json

      workprint mcp --storyboard talk/storyboard.json --record run.json

    In a client's settings: {"command": "workprint", "args": ["mcp", "--snapshot", "snp_3f0a...", "--record", "run.json"]}
    """
    from jobs.outside import serve_episode

    serve_episode(asked)


@_episode
def import_run(
    asked: Asked,
    recording: Annotated[Path, typer.Argument(help="An ATIF trajectory of another agent, as JSON.", exists=True, dir_okay=False)],
    as_json: JsonOption = False,
) -> None:
    """Read an ATIF trajectory and execute its calls again where they name our tools.

    Calls of other tools are counted and left out. Where a tool asks for content, the recording's 'give_content' calls answer.
    Calls that our runtime refuses are kept with their blockers. With a lake and a snapshot the run is added to the lake's tables.

    Examples:

      workprint import run.atif.json --snapshot snp_3f0a... --lake lake --record run.json

    Exit status: 0 delivered, 4 incomplete.
    """
    from jobs.outside import import_recording

    report = import_recording(recording, asked)
    if as_json:
        print_json(report.as_json())
    else:
        report.print()
    raise typer.Exit(Exit.OK if report.delivered else Exit.PARTIAL)
