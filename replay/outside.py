"""Somebody else's agent at the desk: an episode driven by plain tool calls, one at a time, with text for answers.

Owns what an agent that is no policy of ours is told and how its calls become role outputs. Knows no protocol; jobs.mcp_server speaks
one. The agent plays all three roles: where a tool asks for content, it answers with ``give_content``. Its own words between calls are
never seen, so they are marked unknown.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from replay.contexts import prompt
from replay.runtime import Runtime
from schemas.contract import Role
from schemas.errors import PipelineError
from schemas.trajectory import ObservationStatus, Provenance, RoleOutput

LOOK = "look"
GIVE_CONTENT = "give_content"

_LOOK_SCHEMA: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
_GIVE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"content": {"type": "string", "description": "one JSON object, as text, that fits the schema of the open request"}},
    "required": ["content"],
}


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """One tool as an outside agent sees it."""

    name: str
    description: str
    schema: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Told:
    """What the agent is told after a call."""

    text: str
    is_error: bool = False
    fault: PipelineError | None = None
    """What failed on our side, where something did: then the call is not part of the run."""


class OutsideSession:
    """One episode at one runtime.

    Args:
        committed: called after every call that was recorded, refused ones included.
    """

    def __init__(self, runtime: Runtime, committed: Callable[[], None] = lambda: None) -> None:
        self._runtime = runtime
        self._committed = committed
        runtime.settle()

    def instructions(self) -> str:
        """How to work here: the orchestrator's own prompt, and what an agent without turns of its own needs to know."""
        needs = "\n".join(f"- {c.name}: {', '.join(f.value for f in c.needs) or 'nothing'}" for c in self._runtime.registry.contracts())
        return (
            prompt(Role.ORCHESTRATOR)[1].replace("{needs}", needs)
            + f"\n\nStart with '{LOOK}', which shows the task and costs nothing. Some tools ask for written content first: answer with "
            + f"'{GIVE_CONTENT}' until the tool is done."
        )

    def tools(self) -> list[OfferedTool]:
        """The orchestrator's tools in their canonical form and order, then the two of this desk."""
        found = [t["function"] for t in self._runtime.registry.schemas()]
        return [
            *(OfferedTool(f["name"], f["description"], f["parameters"]) for f in found),
            OfferedTool(GIVE_CONTENT, "Answer the open request of a tool that asked for content.", _GIVE_SCHEMA),
            OfferedTool(LOOK, "Show what there is and whose turn it is. Costs no call and is not recorded.", _LOOK_SCHEMA),
        ]

    def call(self, name: str, arguments: Mapping[str, Any] | None) -> Told:
        """Make one call.

        Returns:
            the context after it, or what was wrong. A fault of ours is told as such; nothing is recorded then and the call may be repeated.
        """
        if name == LOOK:
            return Told(self._view())
        if self._runtime.finished:
            return Told("The run is over; nothing is recorded any more.", is_error=True)
        try:
            observation = self._runtime.step(self._output(name, arguments or {}))
        except PipelineError as error:
            told = f"A fault of the workshop, not of your call ({error.code}): {error.message} Nothing has changed; try again."
            return Told(told, is_error=True, fault=error)
        self._committed()
        return Told(self._view(), is_error=observation.status is ObservationStatus.REFUSED)

    def _output(self, name: str, arguments: Mapping[str, Any]) -> RoleOutput:
        if name == GIVE_CONTENT:
            pending = self._runtime.state.film.pending
            content = arguments.get("content")
            text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
            role = Role.ORCHESTRATOR if pending is None else pending.request.role
            return RoleOutput(role=role, text=text, provenance=Provenance.OUTSIDE)
        return RoleOutput(
            role=Role.ORCHESTRATOR,
            tool=name,
            arguments_json=json.dumps(dict(arguments), ensure_ascii=False),
            provenance=Provenance.OUTSIDE,
            text_known=False,
        )

    def _view(self) -> str:
        if self._runtime.finished:
            last = self._runtime.calls[-1].observation
            told = "".join(f"\n- {b.code.value} {b.subject}: {b.message}" for b in last.blockers)
            return f"The run is over: {self._runtime.outcome.value}.{told}"
        context = self._runtime.context()
        text = "\n\n".join(m.content for m in context.messages if m.role == "user")
        if context.request is None:
            return text
        return f"{prompt(context.role)[1]}\n\n{text}\n\nAnswer with '{GIVE_CONTENT}'."
