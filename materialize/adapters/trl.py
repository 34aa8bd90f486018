"""The environment core as TRL's ``environment_factory`` (GRPOTrainer of TRL 1.16), and as a reward function for single contents.

TRL makes one instance for each rollout, calls ``reset(**row)`` with the dataset's row, offers the instance's public methods as tools, and
asks ``get_reward()`` at the end. All members of a group get the same row, so all start from the same recorded state. Does not import TRL.

    runs = LakeRuns.at("lake")
    trainer = GRPOTrainer(..., environment_factory=environment_class(runs))              # rows of the orchestrator
    trainer = GRPOTrainer(..., reward_funcs=content_reward(runs))                        # rows of generator and critic

Rows name a recorded decision (:meth:`materialize.recorded.LakeRuns.find`); other columns do not matter.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from materialize.recorded import RecordedRuns
from materialize.rollout import Rollout
from schemas.canonical import canonical_text
from schemas.contract import ArgSpec, Role, ToolContract
from schemas.errors import ConfigInvalid

_TYPES: dict[str, type] = {"string": str, "integer": int, "boolean": bool}


class TrlEnvironment:
    """One rollout. Its tools are put on the subclass that :func:`environment_class` makes."""

    _runs: RecordedRuns
    _calls: int | None

    def __init__(self) -> None:
        self._rollout = Rollout(self._runs)

    def reset(self, **row: Any) -> None:
        """Restore the state that a row names.

        Raises:
            ConfigInvalid: the row names none, or no decision of the orchestrator.
        """
        self._rollout.reset(row, calls=self._calls)
        if self._rollout.role is not Role.ORCHESTRATOR:
            role = self._rollout.role.value
            self._rollout.close()
            raise ConfigInvalid("row", f"call {row.get('call_index')} is a {role}'s", "take rows with role = 'orchestrator'")

    def get_reward(self) -> float:
        """R^O of eq. 10 of what was done since the reset; the frozen policy plays the run to its end first."""
        return self._rollout.reward().value

    def __del__(self) -> None:
        rollout = getattr(self, "_rollout", None)
        if rollout is not None:
            rollout.close()


def environment_class(runs: RecordedRuns, *, calls: int | None = None) -> type[TrlEnvironment]:
    """A class for ``environment_factory``: a public, typed, documented method for every tool.

    Args:
        calls: calls a rollout may make before the frozen policy plays on; 1 makes the matched groups of the paper.
    """
    methods = {c.name: _method(c) for c in runs.registry.contracts()}
    return type("WorkprintEnvironment", (TrlEnvironment,), {"_runs": runs, "_calls": calls, **methods})


def content_reward(runs: RecordedRuns) -> Callable[..., list[float]]:
    """A function for ``reward_funcs``: R^G or R^C of one content for each row. Columns of the data set name the decisions."""

    def workprint_reward(prompts: Sequence[Any], completions: Sequence[Any], **columns: Any) -> list[float]:
        rewards = []
        for place, completion in enumerate(completions):
            row = {name: values[place] for name, values in columns.items() if isinstance(values, list) and len(values) == len(completions)}
            text = completion if isinstance(completion, str) else str(completion[-1].get("content") or "")
            with Rollout(runs) as rollout:
                rollout.reset(row)
                rollout.say(text)
                rewards.append(rollout.reward().value)
        return rewards

    return workprint_reward


def _method(contract: ToolContract) -> Callable[..., str]:
    args = sorted(contract.args, key=lambda a: a.name)

    def method(self: TrlEnvironment, **arguments: Any) -> str:
        return self._rollout.call(contract.name, arguments)

    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [own, *(_parameter(a) for a in args)]
    method.__name__ = contract.name
    method.__qualname__ = f"WorkprintEnvironment.{contract.name}"
    method.__doc__ = _doc(contract, args)
    method.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # functions take one; typeshed does not know
    method.__annotations__ = {a.name: _TYPES[a.type] for a in args}
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
