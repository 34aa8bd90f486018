"""Reads tool calls out of ATIF trajectories (Agent Trajectory Interchange Format, 1.0 to 1.8) of any agent.

Owns the parts of the format that say what was called; unknown members are passed over, for agents add their own. Sub-agents' calls stand
where their trajectories are named. Nothing in a recording is trusted: names and arguments are judged by the runtime.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import orjson

from schemas.errors import ConfigInvalid

MOST_BYTES = 256 * 1024 * 1024
MOST_STEPS = 200_000
"""Steps that are read, those of a sub-agent as often as it is named: a few names can stand for more steps than there is time."""
_DEEPEST = 8
"""Sub-agents of sub-agents that are followed."""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One tool call of a recording."""

    name: str
    arguments: dict[str, Any]


def read_calls(path: Path) -> tuple[str, list[RecordedCall]]:
    """Name of the agent and its tool calls, in order.

    Raises:
        ConfigInvalid: the file is too large, no JSON, or no ATIF trajectory; says which member is wrong.
    """
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise _not_atif(path, f"it holds {size} bytes, at most {MOST_BYTES} are read")
    try:
        root = orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError as error:
        raise _not_atif(path, f"it is no JSON ({error})") from error
    if not isinstance(root, dict) or not str(root.get("schema_version", "")).upper().startswith("ATIF"):
        raise _not_atif(path, "'schema_version' does not start with ATIF")
    agent = root.get("agent")
    name = str(agent.get("name", "unknown")) if isinstance(agent, dict) else "unknown"
    return name[:80], list(_calls(root, path, 0, count()))


def _calls(root: dict[str, Any], path: Path, depth: int, read: Iterator[int]) -> Iterator[RecordedCall]:
    steps = root.get("steps")
    if not isinstance(steps, list):
        raise _not_atif(path, "'steps' is no list")
    inner = {str(t.get("trajectory_id")): t for t in _list(root, "subagent_trajectories", path, "") if isinstance(t, dict)}
    for place, step in enumerate(steps):
        if next(read) >= MOST_STEPS:
            raise _not_atif(path, f"it holds more than {MOST_STEPS} steps, those of sub-agents counted as often as they are named")
        if not isinstance(step, dict):
            raise _not_atif(path, f"'steps[{place}]' is no object")
        if step.get("is_copied_context") is True:
            continue
        for at, call in enumerate(_list(step, "tool_calls", path, f"steps[{place}].")):
            name = call.get("function_name") if isinstance(call, dict) else None
            if not isinstance(name, str) or not name:
                raise _not_atif(path, f"'steps[{place}].tool_calls[{at}].function_name' is no name")
            yield RecordedCall(name, _arguments(call.get("arguments")))
        if depth < _DEEPEST:
            for named in _named(step):
                if named in inner:
                    yield from _calls(inner[named], path, depth + 1, read)


def _list(owner: dict[str, Any], member: str, path: Path, where: str) -> list[Any]:
    """A member that may be left out or null."""
    value = owner.get(member)
    if value is not None and not isinstance(value, list):
        raise _not_atif(path, f"'{where}{member}' is no list")
    return value or []


def _arguments(value: Any) -> dict[str, Any]:
    """Arguments as an object; text that holds one is read, anything else stands under a name no tool knows."""
    if isinstance(value, str):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            return {"arguments": value}
    if value is None:
        return {}
    return value if isinstance(value, dict) else {"arguments": value}


def _named(step: dict[str, Any]) -> Iterator[str]:
    """Ids of the sub-trajectories that a step's observation names."""
    observation = step.get("observation")
    results = observation.get("results") if isinstance(observation, dict) else None
    for result in results if isinstance(results, list) else ():
        refs = result.get("subagent_trajectory_ref") if isinstance(result, dict) else None
        for ref in refs if isinstance(refs, list) else ():
            if isinstance(ref, dict) and ref.get("trajectory_id") is not None:
                yield str(ref["trajectory_id"])


def _not_atif(path: Path, why: str) -> ConfigInvalid:
    return ConfigInvalid("not_atif", f"{path} is no ATIF trajectory: {why}", "name a trajectory file that Harbor's validator accepts")
