"""The environment core as TRL's ``environment_factory`` (GRPOTrainer of TRL 1.16): the orchestrator calls tools, the frozen rest is played.

TRL makes one instance for each rollout, calls ``reset(**row)`` with the dataset's row, offers the instance's public methods as tools, and
asks ``get_reward()`` at the end. All members of a group get the same row, so all start from the same recorded state. Content that a tool
asks of the generator or the critic is answered by the given policy, which also plays the rest of the run when the episode ends. Does not
import TRL.

    factory = environment_class(bench, content=make_policy)
    trainer = GRPOTrainer(..., environment_factory=factory)

The row needs ``trajectory_sha256`` and ``call_index`` (columns of the tables trajectories and calls).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from materialize.environment import Bench, Environment
from replay.policies.base import Policy
from schemas.canonical import canonical_text
from schemas.contract import ArgSpec, Role, ToolContract
from schemas.errors import ConfigInvalid
from schemas.trajectory import Provenance, RoleOutput

_TYPES: dict[str, type] = {"string": str, "integer": int, "boolean": bool}


class TrlEnvironment:
    """One rollout. Its tools are put on the subclass that :func:`environment_class` makes."""

    _bench: Bench
    _content: Callable[[], Policy]

    def __init__(self) -> None:
        self._env: Environment | None = None
        self._policy = self._content()

    def reset(self, **row: Any) -> None:
        """Restore the state that a row names.

        Raises:
            ConfigInvalid: the row names none, or no decision of the orchestrator.
        """
        if not {"trajectory_sha256", "call_index"} <= set(row):
            raise ConfigInvalid(
                "row", "a row needs 'trajectory_sha256' and 'call_index'", "make rows from the tables trajectories and calls"
            )
        self._close()
        env = self._bench.open()
        context = env.restore(self._bench.trajectory(row["trajectory_sha256"]), int(row["call_index"]))
        if context.role is not Role.ORCHESTRATOR:
            env.close()
            raise ConfigInvalid("row", f"call {row['call_index']} is a {context.role.value}'s", "take rows with role = 'orchestrator'")
        self._env = env

    def get_reward(self) -> float:
        """R^O of eq. 10 of what was done since the reset; the frozen policy plays the run to its end first."""
        env = self._open()
        while not env.finished:
            env.step(self._policy.act(env.context()))
        return env.reward().value

    def _call(self, tool: str, arguments: dict[str, Any]) -> str:
        """Execute one tool call and what it asks for; what the orchestrator reads next, as text."""
        env = self._open()
        given = {name: value for name, value in arguments.items() if value is not None}
        output = RoleOutput(
            role=Role.ORCHESTRATOR, tool=tool, arguments_json=canonical_text(given), provenance=Provenance.STUDENT, text_known=False
        )
        env.step(output)
        while not env.finished and env.runtime.state.film.pending is not None:
            env.step(self._policy.act(env.context()))
        return env.context().messages[-1].content if not env.finished else canonical_text({"finished": True})

    def _open(self) -> Environment:
        if self._env is None:
            raise ConfigInvalid("not_reset", "the environment has no state", "call reset first")
        return self._env

    def _close(self) -> None:
        if self._env is not None:
            self._env.close()
            self._env = None

    def __del__(self) -> None:
        self._close()


def environment_class(bench: Bench, content: Callable[[], Policy]) -> type[TrlEnvironment]:
    """A class for ``environment_factory``: a public, typed, documented method for every tool of the bench's registry.

    Args:
        content: makes the frozen policy that answers content requests and plays the run to its end.
    """
    methods = {c.name: _method(c) for c in bench.registry.contracts()}
    return type("WorkprintEnvironment", (TrlEnvironment,), {"_bench": bench, "_content": staticmethod(content), **methods})


def _method(contract: ToolContract) -> Callable[..., str]:
    args = sorted(contract.args, key=lambda a: a.name)

    def method(self: TrlEnvironment, **arguments: Any) -> str:
        return self._call(contract.name, arguments)

    ordered = [a for a in args if a.required] + [a for a in args if not a.required]
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [own, *(_parameter(a) for a in ordered)]
    method.__name__ = contract.name
    method.__qualname__ = f"WorkprintEnvironment.{contract.name}"
    method.__doc__ = _doc(contract, ordered)
    method.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # functions take one; typeshed does not know
    method.__annotations__ = {a.name: _TYPES[a.type] for a in ordered}
    return method


def _parameter(arg: ArgSpec) -> inspect.Parameter:
    default = inspect.Parameter.empty if arg.required else None
    return inspect.Parameter(arg.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=_TYPES[arg.type])


def _doc(contract: ToolContract, args: list[ArgSpec]) -> str:
    """A Google docstring, from which TRL takes descriptions and choices."""
    lines = [contract.summary]
    if args:
        lines += ["", "Args:"]
        for a in args:
            choices = f" (choices: {canonical_text(list(a.enum))})" if a.enum is not None else ""
            lines.append(f"    {a.name}: {a.description}{choices}")
    return "\n".join(lines)
