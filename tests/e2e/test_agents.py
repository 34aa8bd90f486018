"""Outside agents on a real production: an MCP client of the official SDK, a recording of another harness, a chat model on Ray."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from jobs.cli import app
from media.assets import asset
from media.command import Command, Limits
from media.sandbox import open_sandbox
from schemas.contract import Role
from schemas.errors import EngineMissing
from schemas.trajectory import Call, Outcome, Provenance, Trajectory
from storage.lake import Lake
from tests.media.servers import Reply, serve

pytestmark = pytest.mark.slow

CONFIG = """
inversion:
  asr: {model: whisper-tiny-en}
replay:
  budget: 40
  speech: {engine: flite}
  retrieval: {embedder: hashing}
  render: {height: 180, preset: ultrafast}
  policy: {seed: 3, mistake_rate: 0.0}
materialize: {validation_share: 0.0, held_out_share: 0.0}
run: {engine: local}
"""


@dataclass(frozen=True)
class Room:
    """A lake with one finished production."""

    video: Path
    lake: Path
    config: Path
    trajectory: Trajectory

    def ask(self, sql: str) -> list[dict[str, Any]]:
        result = CliRunner().invoke(app, ["query", sql, "--lake", str(self.lake), "--json"])
        assert result.exit_code == 0, result.output
        rows: list[dict[str, Any]] = json.loads(result.stdout)
        return rows


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Room:
    try:
        film = asset("demo-video")
    except EngineMissing as e:
        pytest.skip(f"the demo film is not here: {e.next_step}")
    root = tmp_path_factory.mktemp("agents")
    cut = ("ffmpeg", "-nostdin", "-v", "error", "-ss", "128", "-i", "/in/film", "-t", "16", "-c", "copy", "/out/talk.mkv")
    open_sandbox().run(Command(cut, inputs={"film": film}, outputs=("talk.mkv",), limits=Limits(wall_s=60)), root)
    (root / "config.yaml").write_text(CONFIG)
    args = ["run", str(root / "talk.mkv"), "--lake", str(root / "lake"), "--config", str(root / "config.yaml"), "--json"]
    result = CliRunner().invoke(app, args)
    assert result.exit_code == 0, result.output
    lake = Lake(root / "lake")
    con = lake.connect()
    (sha,) = con.execute("select trajectory_sha256 from trajectories").fetchall()[0]
    con.close()
    return Room(root / "talk.mkv", root / "lake", root / "config.yaml", Trajectory.model_validate_json(lake.store.read(sha)))


def tail(trajectory: Trajectory) -> tuple[Call, ...]:
    """The calls from the timeline on: enough for an agent to finish the film."""
    first = next(c.call_index for c in trajectory.calls if c.tool == "compose_timeline")
    return trajectory.calls[first:]


def as_tool_call(call: Call) -> tuple[str, dict[str, Any]]:
    if call.role is Role.ORCHESTRATOR:
        return str(call.output.tool), json.loads(call.output.arguments_json or "{}")
    return "give_content", {"content": call.output.text}


def test_an_mcp_client_finishes_the_film_from_a_snapshot(room: Room, tmp_path: Path) -> None:
    mcp = pytest.importorskip("mcp", reason="the MCP SDK is not installed (pip install 'workprint[mcp]')")
    calls = tail(room.trajectory)
    record = tmp_path / "run.json"
    options = ["--lake", str(room.lake), "--snapshot", calls[0].snapshot_before, "--config", str(room.config), "--record", str(record)]
    server = mcp.StdioServerParameters(command=str(Path(sys.executable).with_name("workprint")), args=["mcp", *options])

    async def drive() -> list[Any]:
        async with mcp.Client(server, read_timeout_seconds=300) as client:
            listed = await client.list_tools()
            results = [await client.call_tool("look", {})]
            for call in calls:
                name, arguments = as_tool_call(call)
                results.append(await client.call_tool(name, arguments))
            return [[t.name for t in listed.tools], *results]

    names, look, *results = asyncio.run(drive())
    assert names[-2:] == ["give_content", "look"]
    assert "stitch_video" in names
    assert look.content[0].text.startswith("# Task")
    assert [bool(r.is_error) for r in results] == [False] * len(calls)
    assert results[-1].content[0].text == "The run is over: delivered."
    recorded = Trajectory.model_validate_json(record.read_bytes())
    assert (recorded.policy, recorded.outcome) == ("mcp", Outcome.DELIVERED)
    assert [c.state_after for c in recorded.calls] == [c.state_after for c in room.trajectory.calls]
    assert {c.output.provenance for c in recorded.calls[-len(calls) :]} == {Provenance.OUTSIDE}
    rows = room.ask("select trajectory_id, outcome from trajectories where policy = 'mcp'")
    assert rows == [{"trajectory_id": recorded.trajectory_id, "outcome": "delivered"}]


@pytest.mark.parametrize("version", ["2024-11-05", "2025-11-25"])
def test_a_client_of_an_older_protocol_is_served_in_its_own(room: Room, tmp_path: Path, version: str) -> None:
    pytest.importorskip("mcp", reason="the MCP SDK is not installed (pip install 'workprint[mcp]')")
    start = tail(room.trajectory)[0].snapshot_before
    options = ["--lake", str(room.lake), "--snapshot", start, "--config", str(room.config), "--record", str(tmp_path / "run.json")]
    hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "by hand", "version": "1"}}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "stitch_video", "arguments": {}}},
    ]
    command = [str(Path(sys.executable).with_name("workprint")), "mcp", *options]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        answers = []
        for message in messages:
            server.stdin.write(json.dumps(message) + "\n")
            server.stdin.flush()
            if "id" in message:
                answers.append(json.loads(server.stdout.readline()))
        server.stdin.close()
        assert server.wait(60) == 0
    assert [a["id"] for a in answers] == [1, 2, 3]
    assert answers[0]["result"]["protocolVersion"] == version
    assert {t["name"] for t in answers[1]["result"]["tools"]} >= {"stitch_video", "give_content", "look"}
    assert answers[2]["result"]["isError"] is True
    assert "prerequisite_missing" in answers[2]["result"]["content"][0]["text"]


def test_a_recording_of_another_harness_is_executed_again(room: Room, tmp_path: Path) -> None:
    calls = [("web_search", {"q": "work"}), ("stitch_video", {}), *map(as_tool_call, tail(room.trajectory)), ("stitch_video", {})]
    steps = []
    for n, (name, args) in enumerate(calls, 1):
        made = {"tool_call_id": f"c{n}", "function_name": name, "arguments": args}
        steps.append({"step_id": n, "source": "agent", "message": "", "tool_calls": [made]})
    agent = {"name": "other", "version": "2"}
    atif = tmp_path / "run.atif.json"
    atif.write_text(json.dumps({"schema_version": "ATIF-v1.7", "session_id": "s", "agent": agent, "steps": steps}))
    record = tmp_path / "run.json"
    start = tail(room.trajectory)[0].snapshot_before
    options = ["--lake", str(room.lake), "--snapshot", start, "--config", str(room.config), "--record", str(record), "--json"]
    result = CliRunner().invoke(app, ["import", str(atif), *options])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert (report["outcome"], report["refused"], report["left_out"], report["after_the_end"]) == ("delivered", 1, {"web_search": 1}, 1)
    recorded = Trajectory.model_validate_json(record.read_bytes())
    assert recorded.policy == "atif other"
    assert recorded.calls[-1].state_after == room.trajectory.calls[-1].state_after


def test_a_chat_model_produces_the_film_through_ray(room: Room, tmp_path: Path) -> None:
    replies = []
    for call in room.trajectory.calls:
        message: dict[str, Any] = {"role": "assistant", "content": call.output.text}
        if call.output.tool:
            function = {"name": call.output.tool, "arguments": call.output.arguments_json}
            message["tool_calls"] = [{"id": "c", "type": "function", "function": function}]
        usage = {"prompt_tokens": 100, "completion_tokens": 10}
        replies.append(Reply(json.dumps({"model": "m", "choices": [{"message": message}], "usage": usage}).encode()))
    with serve([Reply(b"busy", 503), *replies]) as server:
        config = tmp_path / "chat.yaml"
        text = CONFIG.replace("policy: {seed: 3, mistake_rate: 0.0}", "policy: {name: chat, student: {model: m}}")
        endpoint = f"{{student: {{endpoint_url: '{server.url}', prompt_price: 1000000}}}}"
        config.write_text(text.replace("run: {engine: local}", f"run: {{engine: ray, endpoints: {endpoint}}}"))
        lake = tmp_path / "lake"
        result = CliRunner().invoke(app, ["run", str(room.video), "--lake", str(lake), "--config", str(config), "--json"])
        assert result.exit_code == 0, result.output
        assert len(server.requests) == len(replies) + 1
    chat = Room(room.video, lake, config, room.trajectory)
    assert chat.ask("select policy, outcome from trajectories") == [{"policy": "chat m", "outcome": "delivered"}]
    (totals,) = chat.ask(
        "select sum(prompt_tokens) p, sum(completion_tokens) c, sum(cost_microusd) d, count(reply_sha256) n, "
        "count(distinct provenance) o, any_value(provenance) who from calls"
    )
    n = len(replies)
    assert totals == {"p": 100 * n, "c": 10 * n, "d": 100 * n, "n": n, "o": 1, "who": "student"}
    states = [r["state_after"] for r in chat.ask("select state_after from calls order by call_index")]
    assert states == [c.state_after for c in room.trajectory.calls]
