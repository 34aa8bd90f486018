"""The environment core as a task of Inspect AI (0.3.285): one recorded decision a sample, executed rewards as scores.

Samples are rows of ``workprint export benchmark --to hf`` or ``export rl`` for any consumer. A setup step restores the decision and gives
Inspect its tools; any solver or agent that uses the tools of its state will do, Inspect's ``generate`` by default. The scorer executes what
stands in the transcript again, so that a saved log can be scored again. Imports inspect_ai only when a task is asked for.

    inspect eval workprint/edit -T rows=benchmark -T lake=/data/lake --model openai/gpt-5-mini
"""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Any

from materialize.adapters.frameworks import module
from materialize.adapters.starts import read_starts, reward_of
from materialize.recorded import LakeRuns, RecordedRuns
from materialize.rollout import Rollout
from schemas.canonical import canonical_text
from schemas.contract import shown_schema


def make_task(
    lake: str | RecordedRuns,
    rows: str | Path,
    split: str | None = None,
    calls: int | None = None,
    seed: int = 0,
    messages: int | None = 200,
) -> Any:
    """A task with one sample for each exported row.

    Args:
        lake: place of the lake; opened once a process. Or the runs themselves.
        rows: the exported folder.
        split: only rows of this split.
        calls: calls the model may make before the frozen policy plays on; without limit by default.
        seed: of the frozen policy.
        messages: messages after which Inspect ends a sample; it is scored as it stands.

    Raises:
        EngineMissing: inspect_ai is not installed.
        ConfigInvalid: there is no lake, or no such rows.
    """
    inspect_ai, dataset, model, solver = (module("inspect", f"inspect_ai{part}") for part in ("", ".dataset", ".model", ".solver"))
    runs = LakeRuns.at(lake) if isinstance(lake, str) else lake
    spoken = {"system": model.ChatMessageSystem, "user": model.ChatMessageUser, "assistant": model.ChatMessageAssistant}
    samples = [
        dataset.Sample(
            id=start.ident, input=[spoken[role](content=content) for role, content in start.prompt], target="", metadata={"row": start.row}
        )
        for start in read_starts(rows, split)
    ]
    setup, cleanup = _restoring(runs, calls, seed)
    return inspect_ai.Task(
        dataset=dataset.MemoryDataset(samples, name="workprint", location=str(rows)),
        setup=setup,
        solver=solver.generate(tool_calls="loop"),
        cleanup=cleanup,
        scorer=_scorer(runs, calls, seed),
        message_limit=messages,
    )


def __getattr__(name: str) -> Any:
    # edit: the task that Inspect's command line finds by this project's entry point, through the module workprint
    if name == "edit":
        return _edit()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@cache
def _edit() -> Any:
    def edit(lake: str, rows: str, split: str | None = None, calls: int | None = None, seed: int = 0, messages: int | None = 200) -> Any:
        return make_task(lake, rows, split, calls, seed, messages)

    edit.__doc__, edit.__module__ = "Decide in recorded states of a lake.", "workprint"  # Inspect names tasks by their module
    return module("inspect", "inspect_ai").task(name="edit")(edit)


def _restoring(runs: RecordedRuns, calls: int | None, seed: int) -> tuple[Any, Any]:
    """The step that restores a sample's decision and offers its tools, and what drops the state again."""
    tool, solver, anyio = (module("inspect", name) for name in ("inspect_ai.tool", "inspect_ai.solver", "anyio"))
    to_thread = anyio.to_thread
    opened: dict[str, Rollout] = {}

    async def restore(state: Any, generate: Any) -> Any:
        rollout = Rollout(runs, seed)
        opened[state.uuid] = rollout
        await to_thread.run_sync(partial(rollout.reset, state.metadata["row"], calls=calls))
        state.tools = [_tool(tool, shown_schema(schema)["function"], rollout, to_thread) for schema in rollout.tools]
        return state

    async def drop(state: Any) -> None:
        rollout = opened.pop(state.uuid, None)
        if rollout is not None:
            await to_thread.run_sync(rollout.close)

    return solver.solver(name="workprint_restore")(lambda: restore)(), drop


def _tool(tool: Any, function: dict[str, Any], rollout: Rollout, to_thread: Any) -> Any:
    """A tool with the schema of the contract; its result is what the next context says, uncut."""
    name, parameters = function["name"], function["parameters"]

    async def execute(**kwargs: Any) -> str:
        return str(await to_thread.run_sync(rollout.call, name, kwargs))

    properties = {key: tool.ToolParam(**spec) for key, spec in parameters.get("properties", {}).items()}
    told = tool.ToolParams(properties=properties, required=parameters.get("required", []), additionalProperties=None)
    return tool.ToolDef(execute, name=name, description=function["description"], parameters=told, max_output=0).as_tool()


def _scorer(runs: RecordedRuns, calls: int | None, seed: int) -> Any:
    scorer, anyio = module("inspect", "inspect_ai.scorer"), module("inspect", "anyio")
    to_thread = anyio.to_thread

    async def score(state: Any, target: Any) -> Any:
        said = [m for m in state.messages[len(state.input) if isinstance(state.input, list) else 1 :] if m.role == "assistant"]
        made = [(call.function, canonical_text(call.arguments)) for m in said for call in m.tool_calls or ()]
        text = said[-1].text if said else ""
        reward = await to_thread.run_sync(partial(reward_of, runs, state.metadata["row"], made, text, calls=calls, seed=seed))
        return scorer.Score(value=reward.value, answer=text, metadata={"parts": dict(reward.parts)})

    return scorer.scorer(metrics=[scorer.mean(), scorer.stderr()], name="workprint_reward")(lambda: score)()
