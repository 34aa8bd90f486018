"""The environment core as an agent loop of verl (0.9.1): one recorded decision a sample, with the state on the loop and not on its tools.

verl makes and releases a tool around every single call, so a tool cannot hold a state; this loop restores the decision that a sample names,
gives the model the recorded context with the full tool schemas (verl itself would shorten them), executes what the model writes, and sets
``reward_score``. Name it in the file of ``rollout.agent.agent_loop_config_path``:

    - name: workprint
      _target_: materialize.adapters.verl.agent_loop
      lake: /data/lake

and in every sample: ``agent_name`` "workprint", and in ``extra_info`` what names a decision (see LakeRuns.find of materialize.recorded).
``rollout.multi_turn.format`` says how calls are written (hermes for Qwen3, qwen3_coder for Qwen3.5 and later). Imports verl only when a
loop is made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, TypeVar
from uuid import uuid4

from materialize.adapters.frameworks import module
from materialize.recorded import LakeRuns, RecordedRuns
from materialize.rollout import Rollout
from schemas.contract import Role, shown_schema

T = TypeVar("T")


def agent_loop(lake: str | RecordedRuns, calls: int | None = None, seed: int = 0, **given: Any) -> Any:
    """A loop for one sample, as verl's workers ask for it.

    Args:
        lake: place of the lake; opened once a process. Or the runs themselves.
        calls: calls the model may make before the frozen policy plays on; 1 makes the matched groups of the paper.
        seed: of the frozen policy.
        given: what verl gives to every loop.

    Raises:
        EngineMissing: verl, or something its agent loops need, is not installed.
        ConfigInvalid: there is no lake.
    """
    runs = LakeRuns.at(lake) if isinstance(lake, str) else lake
    return _loop_class()(runs, calls, seed, **given)


@cache
def _loop_class() -> Any:
    """The loop as a subclass of verl's."""
    base: Any = module("verl", "verl.experimental.agent_loop.agent_loop")
    parsers: Any = module("verl", "verl.experimental.agent_loop.tool_parser")
    schemas: Any = module("verl", "verl.tools.schemas")
    timing: Any = module("verl", "verl.utils.profiler")

    class WorkprintAgentLoop(base.AgentLoopBase):  # type: ignore[misc]  # its base is known at run time only
        """One recorded decision, decided by the model."""

        def __init__(self, runs: RecordedRuns, calls: int | None, seed: int, **given: Any) -> None:
            given.pop("tools", None)  # verl's own; the decision brings its tools
            super().__init__(**given)
            self._runs, self._calls, self._seed = runs, calls, seed
            self._parser = parsers.ToolParser.get_tool_parser(self.rollout_config.multi_turn.format, self.tokenizer)

        async def run(self, sampling_params: dict[str, Any], priority: int = 0, **sample: Any) -> Any:
            rollout = Rollout(self._runs, self._seed)
            try:
                return await self._run(rollout, sampling_params, int(priority), sample)
            finally:
                await _aside(rollout.close)

        async def _run(self, rollout: Rollout, sampling: dict[str, Any], priority: int, sample: Mapping[str, Any]) -> Any:
            row = {**sample, **(sample.get("extra_info") or {})}
            context = await _aside(partial(rollout.reset, row, calls=self._calls))
            shown = context.visible()
            messages: list[dict[str, Any]] = list(shown["messages"])
            tools = [shown_schema(tool) for tool in shown["tools"]] or None
            known = [schemas.OpenAIFunctionToolSchema.model_validate(tool) for tool in tools or ()]
            if self._parser.stop_token_ids and tools:
                sampling = {**sampling, "stop_token_ids": [*(sampling.get("stop_token_ids") or ()), *self._parser.stop_token_ids]}
            ids = await self.ct_build_initial_tokens(messages, tools=tools)
            mask: list[int] = []
            logprobs: list[float] = []
            metrics: dict[str, Any] = {}
            extra: dict[str, Any] = {}
            request, turns, limit = uuid4().hex, 1, self.rollout_config.response_length
            while True:
                with timing.simple_timer("generate_sequences", metrics):
                    made = await self.server_manager.generate(
                        request_id=request, prompt_ids=ids, sampling_params=sampling, priority=priority
                    )
                turns, extra = turns + 1, extra or dict(made.extra_fields)
                given = logprobs if logprobs or made.log_probs else None
                merged, mask, given = await self.ct_merge_assistant_token(
                    ids, made.token_ids, mask, given, assistant_logprobs=made.log_probs or None
                )
                ids, logprobs = merged.token_ids, given or []
                text, said = await self._parser.extract_tool_calls(made.token_ids, known)
                if rollout.role is not Role.ORCHESTRATOR or not said:
                    if not rollout.made:
                        await _aside(rollout.say, self.tokenizer.decode(made.token_ids, skip_special_tokens=True))
                    break
                with timing.simple_timer("tool_calls", metrics):
                    answer = await _aside(rollout.call, said[0].name, said[0].arguments)
                if rollout.done:
                    break
                before = [*messages, _assistant(text, said[0])]
                messages = [*before, _answer(answer, said[0])]
                merged, longer, given = await self.ct_merge_context_msg(before, messages, ids, mask, logprobs or None, tools=tools)
                if len(longer) >= limit:
                    break
                ids, mask, logprobs, turns = merged.token_ids, longer, given or [], turns + 1
            with timing.simple_timer("compute_score", metrics):
                reward = await _aside(rollout.reward)
            begin = len(ids) - len(mask)
            return base.AgentLoopOutput(
                prompt_ids=ids[:begin],
                response_ids=ids[begin:][:limit],
                response_mask=mask[:limit],
                response_logprobs=logprobs[:limit] or None,
                reward_score=reward.value,
                num_turns=turns,
                metrics=metrics,
                extra_fields={**extra, "reward_parts": dict(reward.parts), "turn_scores": [], "tool_rewards": []},
            )

    return WorkprintAgentLoop


async def _aside(work: Callable[..., T], *given: Any) -> T:
    """Do blocking work on another thread."""
    return await asyncio.get_running_loop().run_in_executor(None, work, *given)


def _assistant(text: str, call: Any) -> dict[str, Any]:
    """The assistant message of a call, its arguments as the model wrote them."""
    message: dict[str, Any] = {"role": "assistant", "content": text or ""}
    function = {"name": call.name, "arguments": call.arguments}
    return {**message, "tool_calls": [{"type": "function", "function": function, **_named("id", call)}]}


def _answer(text: str, call: Any) -> dict[str, Any]:
    return {"role": "tool", "content": text, **_named("tool_call_id", call)}


def _named(key: str, call: Any) -> dict[str, Any]:
    name = getattr(call, "tool_call_id", None)
    return {} if name is None else {key: name}
