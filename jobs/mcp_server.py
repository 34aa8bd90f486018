"""The production toolchain as an MCP server over stdio: one process, one episode, recorded like any other run.

The only module that imports mcp (the extra ``mcp``). A server sees calls and nothing else of the agent, so its words are marked
unknown. Tool schemas are the canonical ones, in their fixed order; arguments are judged by the runtime, whose blockers are the answer,
not by the protocol.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import orjson

from jobs.episodes import Episode
from replay.outside import OutsideSession
from schemas.errors import EngineMissing
from schemas.trajectory import Trajectory

POLICY = "mcp"
"""Recorded as the policy of the run; the client's own name is not told to a server in a way to rely on."""


def serve(episode: Episode, record: Path, finished: Callable[[Trajectory], None] = lambda _t: None) -> None:
    """Serve one episode on standard input and output until the client goes.

    Args:
        record: file that always holds the trajectory up to the last call, as canonical JSON.
        finished: gets the trajectory at the end, delivered or not.

    Raises:
        EngineMissing: the package ``mcp`` is not installed.
    """
    try:
        import anyio
        import mcp_types as types
        from mcp.server.lowlevel import Server
        from mcp.server.stdio import stdio_server
    except ImportError as error:
        raise EngineMissing("mcp_missing", "the MCP server needs the package mcp", "pip install 'workprint[mcp]'") from error

    def committed() -> None:
        _write(episode, record)

    session = OutsideSession(episode.runtime, committed)
    turn = anyio.Lock()

    async def list_tools(_context: object, _params: object) -> types.ListToolsResult:
        tools = [types.Tool(name=t.name, description=t.description, input_schema=t.schema) for t in session.tools()]
        return types.ListToolsResult(tools=tools)

    async def call_tool(_context: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        async with turn:
            told = await anyio.to_thread.run_sync(session.call, params.name, params.arguments)
        return types.CallToolResult(content=[types.TextContent(type="text", text=told.text)], is_error=told.is_error)

    server = Server(
        "workprint",
        version=version("workprint"),
        instructions=session.instructions(),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )

    async def run() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    _write(episode, record)
    try:
        anyio.run(run)
    finally:
        episode.runtime.suite.store.sync()
        finished(_write(episode, record))


def _write(episode: Episode, record: Path) -> Trajectory:
    trajectory = episode.trajectory(POLICY)
    record.write_bytes(orjson.dumps(trajectory.model_dump(mode="json"), option=orjson.OPT_SORT_KEYS))
    return trajectory
