"""The environment core as an OpenEnv server (openenv 0.10): one recorded decision a session, any number of sessions over one lake.

``reset`` takes what names a decision (see LakeRuns.find of materialize.recorded), ``seed`` for the frozen policy, and ``calls``, the number
of calls the agent may make. ``step`` takes a tool call, or the content that a generator or critic is asked for. The observation that ends
the episode carries the reward. Imports OpenEnv only when an application is asked for; OpenEnv brings an older ``mcp`` than the MCP server
needs, so the two live in environments of their own.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from materialize.adapters.frameworks import module
from materialize.recorded import RecordedRuns
from materialize.rollout import Rollout
from schemas.canonical import canonical_text
from schemas.contract import Role, shown_schema
from schemas.errors import ConfigInvalid

NAME = "workprint"


def application(runs: RecordedRuns, *, sessions: int = 8) -> Any:
    """A FastAPI application that serves decisions over WebSocket and HTTP, as OpenEnv's clients speak.

    Args:
        sessions: episodes that may be open at once; each has a thread and a state of its own.

    Raises:
        EngineMissing: the package ``openenv`` is not installed.
    """
    server: Any = module("openenv", "openenv.core.env_server")
    environment, action, observation = _classes(runs, server)
    return server.create_fastapi_app(environment, action, observation, max_concurrent_envs=sessions, env_name=NAME)


def _classes(runs: RecordedRuns, server: Any) -> tuple[Any, Any, Any]:
    """The environment with its action and observation, as subclasses of OpenEnv's."""

    class WorkprintAction(server.Action):  # type: ignore[misc]  # its base is known at run time only
        """One output of the agent: a tool call, or a content."""

        tool: str | None = Field(default=None, description="the tool to call; none gives a content, or text without a call")
        arguments: dict[str, Any] = Field(default_factory=dict, description="arguments of the call")
        content: str = Field(default="", description="JSON text that a generator or critic was asked for")

    class WorkprintObservation(server.Observation):  # type: ignore[misc]  # likewise
        """What the agent reads."""

        role: str = Field(description="whose decision it is: orchestrator, generator or critic")
        messages: list[dict[str, str]] = Field(default_factory=list, description="after a reset: the whole context of the decision")
        tools: list[dict[str, Any]] = Field(default_factory=list, description="after a reset: schemas of the tools offered")
        text: str = Field(description="what is to be read next")

    class WorkprintEnvironment(server.Environment):  # type: ignore[misc]  # likewise
        """A recorded decision of a film's production."""

        SUPPORTS_CONCURRENT_SESSIONS = True

        def __init__(self) -> None:
            super().__init__()
            self._rollout: Rollout | None = None
            self._state = server.State()

        def reset(
            self, seed: int | None = None, episode_id: str | None = None, calls: int | None = None, **row: Any
        ) -> WorkprintObservation:
            self.close()
            rollout = Rollout(runs, seed or 0)
            context = rollout.reset(row, calls=calls)
            self._rollout, self._state = rollout, server.State(episode_id=episode_id, step_count=0, **row)
            shown = context.visible()
            return WorkprintObservation(
                role=context.role.value,
                messages=shown["messages"],
                tools=[shown_schema(tool) for tool in shown["tools"]],
                text=context.messages[-1].content,
            )

        def step(self, action: WorkprintAction, timeout_s: float | None = None, **_: Any) -> WorkprintObservation:
            if self._rollout is None:
                raise ConfigInvalid("not_reset", "the environment has no state", "call reset first")
            rollout = self._rollout
            text = canonical_text({"finished": True})
            if action.tool is not None and rollout.role is Role.ORCHESTRATOR:
                text = rollout.call(action.tool, action.arguments)
            else:
                rollout.say(action.content)
            self._state.step_count += 1
            if not rollout.done:
                return WorkprintObservation(role=rollout.role.value, text=text)
            reward = rollout.reward()
            return WorkprintObservation(
                role=rollout.role.value, text=text, done=True, reward=reward.value, metadata={"parts": dict(reward.parts)}
            )

        @property
        def state(self) -> Any:
            return self._state

        def close(self) -> None:
            if self._rollout is not None:
                self._rollout.close()
                self._rollout = None

    for made in (WorkprintAction, WorkprintObservation):
        made.model_rebuild(_types_namespace={"Any": Any})
    return WorkprintEnvironment, WorkprintAction, WorkprintObservation
