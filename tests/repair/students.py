"""Students behind a loopback endpoint: they repeat what a recorded run said, and blunder where they are told to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from schemas.contract import Role
from schemas.trajectory import Call, Trajectory
from tests.media.servers import Reply

STUDENT = {"name": "chat", "student": {"model": "tiny"}}

PROSE = "I would cut faster here."


def reply(text: str = "", tool: str | None = None, arguments: str = "{}") -> Reply:
    """A model's answer: words, or a tool call."""
    calls = [] if tool is None else [{"id": "c", "type": "function", "function": {"name": tool, "arguments": arguments}}]
    message = {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}
    return Reply(json.dumps({"model": "tiny", "choices": [{"message": message, "finish_reason": "stop"}]}).encode())


def repeated(calls: Sequence[Call]) -> list[Reply]:
    """What was said, as a model's answers."""
    return [reply(c.output.text, c.output.tool, c.output.arguments_json or "{}") for c in calls]


def blundering(run: Trajectory, blunders: Mapping[int, Reply]) -> list[Reply]:
    """The answers of a run, with others before those of some calls."""
    script = repeated(run.calls)
    for index in sorted(blunders, reverse=True):
        script.insert(index, blunders[index])
    return script


def first(run: Trajectory, role: Role, tool: str) -> int:
    """Index of the first call of a role for a tool."""
    return next(c.call_index for c in run.calls if c.role is role and c.tool == tool)
