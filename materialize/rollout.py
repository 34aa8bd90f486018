"""One rollout of somebody else's trainer: a recorded decision is restored, the agent acts in it, the frozen policy does the rest.

What every adapter (TRL, OpenEnv, verl) has in common, and nothing of any of them: how a row of a data set becomes a restored state, what an
agent reads after each of its calls, who answers for the other roles, and what the rollout is worth. Used by one thread at a time; any
number may be open at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from materialize.branches import Executor
from materialize.environment import Environment
from materialize.recorded import RecordedRuns
from materialize.rewards import Reward
from replay.policies.base import Policy
from schemas.canonical import canonical_text
from schemas.contract import Role
from schemas.errors import ConfigInvalid
from schemas.trajectory import Provenance, RoleContext, RoleOutput, Trajectory

OVER = canonical_text({"finished": True})
"""What an agent reads when there is nothing left to decide for it."""


class Rollout:
    """An agent at one recorded decision.

    At a decision of the orchestrator the agent makes calls (:meth:`call`), as many as it likes or as ``calls`` allows; contents that a call
    asks for are answered by the frozen policy, which also plays the run to its end: the reward is R^O of eq. 10. At a decision of the
    generator or the critic it gives one content (:meth:`say`), which is executed under the paired seeds as a candidate of a group is: the
    reward is R^G or R^C. An agent that does neither has given an output that nobody can read, and is rewarded for that.

    Args:
        runs: where decisions come from.
        seed: of the frozen policy.
    """

    def __init__(self, runs: RecordedRuns, seed: int = 0) -> None:
        self._runs, self._seed = runs, seed
        self._env: Environment | None = None
        self._policy: Policy | None = None
        self._start: tuple[Trajectory, int, RoleContext] | None = None
        self._left: int | None = None
        self._said: RoleOutput | None = None
        self._reward: Reward | None = None

    def reset(self, row: Mapping[str, Any], *, calls: int | None = None) -> RoleContext:
        """Restore the decision that a row names (:meth:`materialize.recorded.LakeRuns.find`).

        Args:
            calls: calls that the agent may make before the frozen policy plays on; without limit by default. With 1, rollouts of one row
                are a matched group of the paper.

        Raises:
            ConfigInvalid: the row names no decision, or one that cannot be restored.
            PipelineError: a fault of ours.
        """
        self.close()
        trajectory, index = self._runs.find(row)
        env = self._runs.bench(trajectory).open()
        try:
            context = env.restore(trajectory, index)
        except BaseException:
            env.close()
            raise
        self._env, self._start, self._left = env, (trajectory, index, context), calls
        self._policy = self._runs.continuation(trajectory)(self._seed)
        return context

    @property
    def role(self) -> Role:
        """Whose decision was restored."""
        return self._restored()[2].role

    @property
    def environment(self) -> Environment:
        """The environment core beneath.

        Raises:
            ConfigInvalid: nothing was restored yet, or the rollout is closed.
        """
        if self._env is None:
            raise ConfigInvalid("not_reset", "the rollout has no state", "call reset first")
        return self._env

    @property
    def tools(self) -> list[dict[str, Any]]:
        """Schemas of the tools offered to the agent, as OpenAI functions; none where a content is asked for."""
        return list(self._restored()[2].tools)

    @property
    def done(self) -> bool:
        """There is nothing left to decide for the agent."""
        return self._said is not None or self._left == 0 or self.environment.finished

    @property
    def made(self) -> int:
        """Calls made since the reset, by whomever."""
        return len(self.environment.branch)

    def call(self, tool: str | None, arguments: Mapping[str, Any] | str) -> str:
        """Execute one call of the orchestrator and what it asks for.

        Args:
            arguments: an object, or its text as the agent wrote it, which need not be JSON. Arguments that are None are left out.

        Returns:
            what the orchestrator reads next, as it stands in its next context.

        Raises:
            ConfigInvalid: the decision is not the orchestrator's.
            PipelineError: a fault of ours; the state is as before.
        """
        env = self.environment
        if self.role is not Role.ORCHESTRATOR:
            raise ConfigInvalid("not_a_call", f"the decision is a {self.role.value}'s, who gives content", "use say")
        if self.done:
            return OVER
        given = arguments if isinstance(arguments, str) else canonical_text({k: v for k, v in arguments.items() if v is not None})
        env.step(RoleOutput(role=Role.ORCHESTRATOR, tool=tool, arguments_json=given, provenance=Provenance.STUDENT, text_known=False))
        self._left = None if self._left is None else self._left - 1
        self._answer_contents(env)
        return OVER if self.done else env.context().messages[-1].content

    def say(self, text: str) -> None:
        """Give the content that the generator or the critic is asked for; text without a call at a decision of the orchestrator is an
        output that names no tool.

        Raises:
            PipelineError: a fault of ours.
        """
        if self.done:
            return
        if self.role is Role.ORCHESTRATOR:
            self.environment.step(RoleOutput(role=Role.ORCHESTRATOR, text=text, provenance=Provenance.STUDENT))
            self._left = 0
            return
        self._said = RoleOutput(role=self.role, text=text, provenance=Provenance.STUDENT)

    def reward(self) -> Reward:
        """What the rollout is worth, with its parts; the frozen policy plays the run to its end first. The same when asked again.

        Raises:
            PipelineError: a fault of ours. It is never part of a reward.
        """
        if self._reward is None:
            if not self.made and self._said is None:
                self.say("")
            self._reward = self._worth()
        return self._reward

    def _worth(self) -> Reward:
        env = self.environment
        if self._said is not None:
            trajectory, index, _ = self._restored()
            bench = self._runs.bench(trajectory)
            executor = Executor(bench, trajectory, index, self._runs.continuation(trajectory), self._runs.groups, bench.rewards)
            return executor.execute(self._said).reward
        self._left = 0
        while not env.finished:
            env.step(self._frozen().act(env.context()))
        return env.reward()

    def close(self) -> None:
        """Drop the state. May be called again."""
        if self._env is not None:
            self._env.close()
        self._env = self._policy = self._start = self._said = self._reward = self._left = None

    def __enter__(self) -> Rollout:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer_contents(self, env: Environment) -> None:
        while not env.finished and env.runtime.state.film.pending is not None:
            env.step(self._frozen().act(env.context()))

    def _frozen(self) -> Policy:
        assert self._policy is not None  # noqa: S101  set with the state
        return self._policy

    def _restored(self) -> tuple[Trajectory, int, RoleContext]:
        if self._start is None:
            raise ConfigInvalid("not_reset", "the rollout has no state", "call reset first")
        return self._start
