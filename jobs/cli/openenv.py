"""``workprint openenv``: recorded decisions of a lake, served to OpenEnv clients."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

from jobs.cli.options import DEFAULT_LAKE, LakeOption


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("openenv")(openenv)


def openenv(
    lake: LakeOption = DEFAULT_LAKE,
    host: Annotated[str, typer.Option(help="Address to listen on. Anybody who reaches it can execute tools.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8000,
    sessions: Annotated[int, typer.Option(min=1, max=1024, help="Episodes that may be open at once.")] = 8,
) -> None:
    """Serve the recorded decisions of a lake as an OpenEnv environment.

    A client resets to a decision (trajectory_id and call_index, or a snapshot_id), makes calls, and gets the reward with the last
    observation. The lake's tables are only read; products of the episodes go into its artifact store. Needs openenv 0.10 in the
    environment, which cannot be together with the extra 'mcp'.

    Examples:

      workprint openenv --lake lake --port 8000

      workprint query "select trajectory_id, call_index from calls where role = 'orchestrator' limit 5" --lake lake

    Ends with ctrl-C.
    """
    from jobs.questions import open_lake
    from materialize.adapters.openenv import application
    from materialize.recorded import LakeRuns

    served = application(LakeRuns(open_lake(lake)), sessions=sessions)
    import_module("uvicorn").run(served, host=host, port=port, log_level="warning")
