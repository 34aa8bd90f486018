"""The environment core as a SkyRL environment (skyrl 0.4, skyrl-gym's BaseTextEnv): one recorded decision an episode.

SkyRL hands texts back and forth and renders no tools, so the tools of the restored decision are put into its system text as the policy's
own template writes them, and calls are read from what the policy wrote. Rows are those of ``workprint export rl --to skyrl``; in the
process that trains, before training begins:

    from materialize.adapters.skyrl import register

    register("/data/lake", tokenizer="Qwen/Qwen3-8B")

Imports skyrl_gym only then.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

from materialize.adapters.frameworks import module
from materialize.adapters.written import answer_of, first_call, with_tools
from materialize.recorded import LakeRuns, RecordedRuns
from materialize.rollout import Rollout
from schemas.contract import Role, shown_schema

NAME = "workprint"
"""``env_class`` of exported rows."""


def register(lake: str, *, tokenizer: str, calls: int | None = None, seed: int = 0, name: str = NAME) -> None:
    """Make the environment known to skyrl_gym in this process; in a Ray task, call it there.

    Args:
        lake: place of the lake; opened once a process.
        tokenizer: name or folder of the policy's tokenizer; its template says how tools are shown.
        calls: calls the policy may make before the frozen policy plays on; 1 makes the matched groups of the paper.
        seed: of the frozen policy.
        name: the ``env_class`` of the rows.

    Raises:
        EngineMissing: skyrl_gym is not installed.
    """
    given = {"lake": lake, "tokenizer": tokenizer, "calls": calls, "seed": seed}
    module("skyrl", "skyrl_gym").register(id=name, entry_point="materialize.adapters.skyrl:environment", kwargs=given)


def environment(
    env_config: Any = None,
    extras: dict[str, Any] | None = None,
    *,
    lake: str | RecordedRuns,
    tokenizer: Any,
    calls: int | None = None,
    seed: int = 0,
) -> Any:
    """One episode, as ``skyrl_gym.make`` asks for it.

    Args:
        env_config: SkyRL's; not used.
        extras: the row without prompt, and ``max_turns``.
        lake, tokenizer, calls, seed: as for :func:`register`; the runs or a loaded tokenizer themselves will do.

    Raises:
        EngineMissing: skyrl_gym is not installed.
        ConfigInvalid: there is no lake.
    """
    runs = LakeRuns.at(lake) if isinstance(lake, str) else lake
    shown_by = _tokenizer(tokenizer) if isinstance(tokenizer, str) else tokenizer
    return _environment_class()(Rollout(runs, seed), dict(extras or {}), shown_by, calls)


@cache
def _environment_class() -> Any:
    """The environment as a subclass of SkyRL's."""
    base: Any = module("skyrl", "skyrl_gym.envs.base_text_env")

    class WorkprintEnv(base.BaseTextEnv):  # type: ignore[misc]  # its base is known at run time only
        """A recorded decision of a film's production."""

        def __init__(self, rollout: Rollout, row: dict[str, Any], tokenizer: Any, calls: int | None) -> None:
            super().__init__()
            self._rollout, self._row, self._tokenizer, self._calls = rollout, row, tokenizer, calls
            self._tools: list[dict[str, Any]] = []
            self._parts: dict[str, float] = {}
            self.max_turns = row.get("max_turns") or 0

        def init(self, prompt: Any) -> tuple[list[dict[str, str]], dict[str, Any]]:
            """Restore the decision and show it with its tools; the row's prompt is the same text without them.

            Raises:
                ConfigInvalid: the row names no decision, or the template cannot show tools.
            """
            shown = self._rollout.reset(self._row, calls=self._calls).visible()
            self._tools = [shown_schema(tool) for tool in shown["tools"]]
            return with_tools(self._tokenizer, shown["messages"], self._tools), {"role": self._rollout.role.value}

        def step(self, action: str) -> dict[str, Any]:
            """Execute what the policy wrote; the last step brings the reward.

            Raises:
                PipelineError: a fault of ours. It is never a reward.
            """
            self.turns += 1
            rollout = self._rollout
            call = first_call(action, self._tools) if rollout.role is Role.ORCHESTRATOR else None
            if call is not None:
                answer = rollout.call(*call)
                if not rollout.done and not 0 < self.max_turns <= self.turns:
                    return {"observations": [{"role": "tool", "content": answer}], "reward": 0.0, "done": False, "metadata": {}}
            elif not rollout.made:
                rollout.say(answer_of(action))
            reward = rollout.reward()
            self._parts = {"reward": reward.value, **reward.parts}
            return {"observations": [], "reward": reward.value, "done": True, "metadata": {"parts": dict(reward.parts)}}

        def get_metrics(self) -> dict[str, Any]:
            """The reward and its parts, which SkyRL averages."""
            return dict(self._parts)

        def close(self) -> None:
            self._rollout.close()

    return WorkprintEnv


@lru_cache(maxsize=4)
def _tokenizer(name: str) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(name)
