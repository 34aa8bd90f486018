"""The environment core as a taskset of verifiers (0.4, the v1 interface; prime-rl reads the same): one recorded decision a task.

    vf-eval workprint --env.taskset.rows rl --env.taskset.task.lake /data/lake -m MODEL

``rows`` is what ``workprint export rl`` or ``export benchmark`` wrote. Tools are served by one server for all rollouts of an evaluation;
what a rollout did lies in verifiers' state channel, so the server may forget a rollout and restore it. The reward executes what stands in
the trace again, so that a saved trace can be scored again. The chat loop is verifiers' own without a shell (``null``).

verifiers finds classes by the names of their modules, and starts the tool server by ``python -m``; so the classes are attributes of this
module, made when one is first asked for. Imports verifiers only then.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

from pydantic import Field

from materialize.adapters.frameworks import module
from materialize.adapters.starts import read_starts, reward_of
from materialize.recorded import LakeRuns
from materialize.rollout import Rollout
from schemas.canonical import canonical_text
from schemas.contract import shown_schema
from schemas.errors import ConfigInvalid, PipelineError

KEPT = 64
"""Rollouts that the tool server keeps open; others are restored when they go on."""


BROKEN = "The environment failed. Stop here; this attempt does not count."

NAMES = (
    "WorkprintHarness",
    "WorkprintState",
    "WorkprintToolsetConfig",
    "WorkprintTaskConfig",
    "WorkprintConfig",
    "WorkprintData",
    "WorkprintToolset",
    "WorkprintTask",
    "WorkprintTaskset",
)
"""Classes of this module."""


def __getattr__(name: str) -> Any:
    if name in NAMES:
        return classes()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@cache
def classes() -> dict[str, Any]:
    """The classes by name, as subclasses of verifiers'.

    Raises:
        EngineMissing: verifiers is not installed.
    """
    vf: Any = module("verifiers", "verifiers.v1")
    types: Any = module("verifiers", "mcp.types")
    null: Any = module("verifiers", "verifiers.v1.harnesses.null")

    class WorkprintHarness(null.NullHarness):  # type: ignore[misc]  # its base is known at run time only
        """verifiers' chat loop with our tools only; being exported, it is the default of this taskset."""

    class WorkprintState(vf.State):  # type: ignore[misc]  # likewise
        """What a rollout did so far."""

        name: str = ""
        row: dict[str, Any] = Field(default_factory=dict)
        said: list[tuple[str, str]] = Field(default_factory=list)
        fault: str | None = None

    class WorkprintToolsetConfig(vf.SharedToolsetConfig):  # type: ignore[misc]  # likewise
        """Where the tool server finds its decisions; filled from the task's knobs."""

        lake: str = ""
        calls: int | None = None
        seed: int = 0

    class WorkprintTaskConfig(vf.TaskConfig):  # type: ignore[misc]  # likewise
        """Knobs under ``--env.taskset.task``."""

        lake: str = ""
        """Place of the lake."""
        calls: int | None = None
        """Calls the agent may make before the frozen policy plays on; 1 makes the matched groups of the paper."""
        seed: int = 0
        """Of the frozen policy."""

    class WorkprintConfig(vf.TasksetConfig):  # type: ignore[misc]  # likewise
        """Knobs under ``--env.taskset``."""

        rows: Path = Path("rl")
        """Folder that ``workprint export rl`` or ``export benchmark`` wrote."""
        split: str | None = None
        """Only rows of this split."""
        tools: vf.SharedToolsetConfig = vf.SharedToolsetConfig()
        """Where the tool server runs."""
        task: WorkprintTaskConfig = WorkprintTaskConfig()

    class WorkprintData(vf.TaskData):  # type: ignore[misc]  # likewise
        """A start, and the decision that is restored."""

        row: dict[str, Any]

    class WorkprintToolset(vf.Toolset[WorkprintToolsetConfig, WorkprintState]):  # type: ignore[misc]  # likewise
        """The tools of the restored decision, with the schemas of their contracts, in their order and without a prefix."""

        TOOL_PREFIX = None

        async def setup(self) -> None:
            self._runs = await asyncio.to_thread(LakeRuns.at, self.config.lake)
            self._open: OrderedDict[str, tuple[threading.Lock, Rollout]] = OrderedDict()
            self._lock = threading.Lock()

        def register(self, mcp: Any) -> None:
            """Answer for a catalogue that differs from rollout to rollout."""
            mcp.list_tools = self._with_state(self.list_tools)
            mcp.call_tool = self._with_state(self.call_tool)

        async def list_tools(self) -> list[Any]:
            functions = [shown_schema(tool)["function"] for tool in await asyncio.to_thread(self._offered)]
            return [types.Tool(name=f["name"], description=f["description"], input_schema=f["parameters"]) for f in functions]

        async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
            state = self.state
            try:
                if state.fault is not None:
                    raise ConfigInvalid("broken", state.fault)
                text = canonical_text(arguments)
                answer = await asyncio.to_thread(self._call, name, text)
            except PipelineError as error:
                state.fault = str(error)
                return types.CallToolResult(content=[types.TextContent(type="text", text=BROKEN)], is_error=True)
            state.said = [*state.said, (name, text)]
            return types.CallToolResult(content=[types.TextContent(type="text", text=answer)])

        def _offered(self) -> list[dict[str, Any]]:
            lock, rollout = self._rollout()
            with lock:
                return rollout.tools

        def _call(self, name: str, arguments: str) -> str:
            lock, rollout = self._rollout()
            with lock:
                return rollout.call(name, arguments)

        def _rollout(self) -> tuple[threading.Lock, Rollout]:
            """The caller's rollout: the one that is open, or its calls executed again. Its own lock is what it is used under."""
            state = self.state
            with self._lock:
                if state.name in self._open:
                    self._open.move_to_end(state.name)
                    return self._open[state.name]
                forgotten = [self._open.popitem(last=False)[1]] if len(self._open) >= KEPT else []
            for lock, old in forgotten:
                with lock:
                    old.close()
            rollout = Rollout(self._runs, self.config.seed)
            rollout.reset(state.row, calls=self.config.calls)
            for name, arguments in state.said:
                rollout.call(name, arguments)
            with self._lock:
                return self._open.setdefault(state.name, (threading.Lock(), rollout))

    class WorkprintTask(vf.Task[WorkprintData, WorkprintState, WorkprintTaskConfig]):  # type: ignore[misc]  # likewise
        """A recorded decision of a film's production."""

        async def setup(self, trace: Any, runtime: Any) -> None:
            trace.state.name, trace.state.row = trace.id, dict(self.data.row)

        @vf.reward(weight=1.0)  # type: ignore[untyped-decorator]  # likewise
        async def workprint(self, trace: Any) -> float:
            """R^O, R^G or R^C of eq. 10 of what the trace holds.

            Raises:
                RuntimeError: the tool server failed, or the trace has several branches. Neither is ever a reward.
            """
            if trace.state.fault is not None:
                raise RuntimeError(trace.state.fault)
            if len(trace.branches) != 1:
                raise RuntimeError(f"a reward needs one branch, the trace has {len(trace.branches)}")
            said = [n.message for n in trace.branches[0].nodes if n.sampled and n.message.role == "assistant"]
            calls = [(call.name, call.arguments) for message in said for call in message.tool_calls or ()]
            text = (said[-1].content or "") if said else ""
            knobs = self.config
            runs = await asyncio.to_thread(LakeRuns.at, knobs.lake)
            reward = await asyncio.to_thread(partial(reward_of, runs, self.data.row, calls, text, calls=knobs.calls, seed=knobs.seed))
            for name, value in reward.parts.items():
                trace.record_metric(name, float(value))
            return reward.value

    class WorkprintTaskset(vf.Taskset[WorkprintTask, WorkprintConfig]):  # type: ignore[misc]  # likewise
        """Rows of an export."""

        @classmethod
        def toolsets(cls, config: WorkprintConfig) -> list[Any]:
            knobs = config.task
            lake = str(Path(knobs.lake).expanduser().absolute())  # the server runs in a folder of its own
            return [WorkprintToolset(WorkprintToolsetConfig(**config.tools.model_dump(), lake=lake, calls=knobs.calls, seed=knobs.seed))]

        def load(self) -> Iterator[WorkprintTask]:
            """The tasks.

            Raises:
                ConfigInvalid: there are no such rows.
            """
            for start in read_starts(self.config.rows, self.config.split):
                data = WorkprintData(id=start.ident, name=start.ident, prompt=start.messages, row=start.row)
                yield WorkprintTask(data, self.config.task)

    made = (
        WorkprintHarness,
        WorkprintState,
        WorkprintToolsetConfig,
        WorkprintTaskConfig,
        WorkprintConfig,
        WorkprintData,
        WorkprintToolset,
        WorkprintTask,
        WorkprintTaskset,
    )
    for one in made:
        one.__module__, one.__qualname__ = _MODULE, one.__name__
    return {one.__name__: one for one in made}


_MODULE = "materialize.adapters.verifiers"
"""This module by its name, also where it is run as a script."""

if __name__ == "__main__":
    __getattr__("WorkprintToolset").run()
