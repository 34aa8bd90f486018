"""Candidates executed: each from the same restored state, each continued by the same frozen policy with the same paired seeds.

Owns what is measured of a branch for the reward of its role (eq. 9 to 11) and where a branch ends: the orchestrator's when the run ends,
a generator's when the tool call that asked has closed, a critic's when the next inspection is due. Formulas live in materialize.rewards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from evaluation.shingles import words
from materialize.config import GroupConfig, RewardConfig
from materialize.environment import SCHEMA_CODES, Bench, Environment
from materialize.rewards import Reward, critic_reward, generator_reward, repair_utility
from repair.inspect import examine, verdicts
from replay.policies.base import Policy
from replay.runtime import Runtime
from replay.suite import Allowance
from schemas.contract import Role
from schemas.state import ProductionState
from schemas.trajectory import Call, ObservationStatus, RoleContext, RoleOutput, Trajectory

Continuation = Callable[[int], Policy]
"""Gives the frozen policy for a seed; equal seeds give equal policies."""

CRITIC_CALLS = 8
"""Orchestrator calls a critic's branch may take until the next inspection."""

DIAGNOSES = frozenset({"inspection", "repair_request"})

INSPECTION = "inspect_quality"
EXAMINE_S = 900.0
"""Time limit of one re-examination, seconds."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault that a re-examination sees, apart from anything a critic said."""

    subject: str
    code: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class Measured:
    """A re-examination of a state: quality 0 to 1, and what was found."""

    quality: float
    findings: tuple[Finding, ...]


Measure = Callable[[Runtime], Measured]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One candidate, executed under all paired seeds."""

    reward: Reward
    calls: int
    """Calls of all its branches."""
    first: Call
    """The output itself, executed. Paired seeds are those of what continues it, so it is the same in every branch."""

    @property
    def refused(self) -> bool:
        """The output itself was refused."""
        return _is_refused(self.first)


def reexamine(runtime: Runtime) -> Measured:
    """All structured checks and the judge over the present artifacts: Q of eq. 11. No critic has a say in it.

    Raises:
        PipelineError: an artifact could not be measured.
    """
    state = runtime.state

    def look(env: Any) -> Measured:
        report = examine(state, state.film.shot_order, env)
        found = verdicts(report, {f.defect_id: f.severity for f in report.findings})
        quality = math.fsum(v.score for v in found) / len(found) if found else 0.0
        return Measured(quality, tuple(Finding(f.subject, f.code.value, f.severity == "error") for f in report.findings))

    return runtime.suite.work(Allowance(INSPECTION, EXAMINE_S), len(runtime.calls), look, [])


class Executor:
    """Executes candidates of one decision.

    Args:
        measure: re-examines a state; the structured checks on the bytes by default.
    """

    def __init__(
        self,
        bench: Bench,
        trajectory: Trajectory,
        call_index: int,
        continuation: Continuation,
        config: GroupConfig,
        rewards: RewardConfig,
        measure: Measure = reexamine,
    ) -> None:
        self._bench, self._trajectory, self._index = bench, trajectory, call_index
        self._continuation, self._config, self._rewards, self._measure = continuation, config, rewards, measure

    def execute(self, output: RoleOutput) -> Outcome:
        """Execute one candidate under every paired seed; its reward is the mean over them.

        Raises:
            PipelineError: a fault of ours. It is never part of a reward.
        """
        branches = [self._branch(output, seed) for seed in self._config.seeds]
        if output.role is Role.CRITIC:
            return self._critic([b for b in branches], output)
        value = math.fsum(b.reward.value for b in branches) / len(branches)
        parts = {name: math.fsum(b.reward.parts.get(name, 0.0) for b in branches) / len(branches) for name in branches[0].reward.parts}
        return Outcome(Reward(value, parts), sum(b.calls for b in branches), branches[0].first)

    def _branch(self, output: RoleOutput, seed: int) -> _Branch:
        with self._bench.open() as env:
            context = env.restore(self._trajectory, self._index)
            policy = self._continuation(seed)
            codes = {b.code for b in env.step(output).blockers}
            first = env.branch[0]
            if output.role is Role.ORCHESTRATOR:
                while not env.finished:
                    env.step(policy.act(env.context()))
                return _Branch(env.reward(), len(env.branch), first)
            if output.role is Role.GENERATOR:
                features = self._generator(env, context, output, policy, seed)
                return _Branch(
                    generator_reward(features, valid_schema=not codes & SCHEMA_CODES, config=self._rewards), len(env.branch), first
                )
            before = self._before() if _is_diagnosis(context) else Measured(0.0, ())
            after = self._mended(env, policy, before) if not _is_refused(first) and _is_diagnosis(context) else before
            return _Branch(Reward(0.0, {}), len(env.branch), first, before, after, context)

    def _generator(self, env: Environment, context: RoleContext, output: RoleOutput, policy: Policy, seed: int) -> Mapping[str, float]:
        refused = _is_refused(env.branch[0])
        usable = 0.0
        if not refused:
            owner = env.branch[0].orchestrator_call
            while not env.finished and env.runtime.state.film.pending is not None:
                env.step(policy.act(env.context()))
            closing = [c for c in env.branch if c.orchestrator_call == owner][-1]
            usable = float(closing.observation.status is ObservationStatus.COMMITTED and not closing.observation.blockers)
        return {
            "schema_validity": 0.0 if refused and {b.code for b in env.branch[0].observation.blockers} & SCHEMA_CODES else 1.0,
            "grounding": grounding(context, output),
            "coverage": coverage(context, output),
            "usability": usable,
        }

    def _before(self) -> Measured:
        with self._bench.open() as env:
            env.restore(self._trajectory, self._index)
            return self._measure(env.runtime) if _is_rendered(env.runtime.state) else Measured(0.0, ())

    def _mended(self, env: Environment, policy: Policy, before: Measured) -> Measured:
        """The state when the next inspection is due, examined; that is what the frozen repair executor made of the diagnosis."""
        started = env.runtime.orchestrator_calls
        while not env.finished and env.runtime.orchestrator_calls - started < CRITIC_CALLS:
            asked = env.context()
            answer = policy.act(asked)
            if asked.role is Role.ORCHESTRATOR and answer.tool in (INSPECTION, "stitch_video"):
                break
            env.step(answer)
        return self._measure(env.runtime) if _is_rendered(env.runtime.state) else Measured(0.0, before.findings)

    def _critic(self, branches: Sequence[_Branch], output: RoleOutput) -> Outcome:
        features = [critic_features(b, output) for b in branches]
        utility = repair_utility([(b.after.quality, b.before.quality) for b in branches if b.after and b.before])
        mean = {name: math.fsum(f[name] for f in features) / len(features) for name in features[0]}
        reward = critic_reward(**mean, utility=utility, config=self._rewards)
        parts = {
            **reward.parts,
            "Q_repaired": math.fsum(b.after.quality for b in branches if b.after) / len(branches),
            "Q_empty": math.fsum(b.before.quality for b in branches if b.before) / len(branches),
        }
        return Outcome(Reward(reward.value, parts), sum(b.calls for b in branches), branches[0].first)


@dataclass(frozen=True, slots=True)
class _Branch:
    reward: Reward
    calls: int
    first: Call
    before: Measured | None = None
    after: Measured | None = None
    context: RoleContext | None = None


def critic_features(branch: _Branch, output: RoleOutput) -> dict[str, float]:
    """f_diag, f_verify and f_unnecessary, each 0 to 1; all 0 for a refused output.

    - A repair request is diagnosed right as far as the faults that a re-examination sees as errors are named by it; it is verified as far
      as the ones it named are gone afterwards; and mends of mere warnings, other than accepting them, are unnecessary.
    - Judgements are right as far as errors are confirmed; confirming a warning as an error is unnecessary, and verification is agreement on
      all findings.
    - Other contents (severity, reflection) are right when they are accepted.
    """
    none = {"diagnosis": 0.0, "verification": 0.0, "unnecessary": 0.0}
    if _is_refused(branch.first) or branch.before is None or branch.after is None or branch.context is None:
        return none
    value = orjson.loads(output.text)
    errors = {(f.subject, f.code) for f in branch.before.findings if f.is_error}
    left = {(f.subject, f.code) for f in branch.after.findings if f.is_error}
    evidence = branch.context.view["request"]["evidence"]
    if "mends" in value:
        known = {d["defect_id"]: d for d in evidence.get("defects", ()) if "defect_id" in d}
        named = [(known[m["defect_id"]], m["mend"]) for m in value["mends"] if m["defect_id"] in known]
        mended = {(d["subject"], d["code"]) for d, mend in named if mend != "accept"}
        idle = sum(1 for d, mend in named if mend != "accept" and d["severity"] == "warning")
        return {
            "diagnosis": len(mended & errors) / len(errors) if errors else float(not mended),
            "verification": len(mended - left) / len(mended) if mended else float(not errors),
            "unnecessary": idle / len(named) if named else 0.0,
        }
    if "judgements" in value:
        said = {(j["subject"], j["code"]): j for j in value["judgements"]}
        confirmed = {k for k, j in said.items() if j["confirmed"] and j["severity"] == "error"}
        seen = {(f.subject, f.code) for f in branch.before.findings}
        agreed = sum(1 for k, j in said.items() if j["confirmed"] == (k in seen))
        return {
            "diagnosis": len(confirmed & errors) / len(errors) if errors else float(not confirmed),
            "verification": agreed / len(said) if said else float(not errors),
            "unnecessary": len(confirmed - errors) / len(said) if said else 0.0,
        }
    return {**none, "diagnosis": 1.0, "verification": 1.0}


def grounding(context: RoleContext, output: RoleOutput) -> float:
    """Share of the different words of an output's texts that stand in what its author was shown; 1 for an output without words, 0 for one
    that is no JSON."""
    shown = set(words(context.messages[-1].content))
    try:
        said = {w for text in _texts(orjson.loads(output.text)) for w in words(text)}
    except orjson.JSONDecodeError:
        return 0.0
    return len(said & shown) / len(said) if said else 1.0


def coverage(context: RoleContext, output: RoleOutput) -> float:
    """Share of the subjects asked about (shots, segments, sentences, defects or findings of the evidence) that the output speaks of; 1 when
    the request names none, 0 for an output that is no JSON."""
    try:
        value = orjson.loads(output.text)
    except orjson.JSONDecodeError:
        return 0.0
    evidence = context.view["request"]["evidence"]
    for rows, name in (("shots", "shot_id"), ("defects", "defect_id"), ("segments", "segment")):
        asked = {str(r[name]) for r in evidence.get(rows, ()) if isinstance(r, dict) and name in r}
        if asked:
            said = {str(v) for item in _items(value) for v in (item.get(name),) if v is not None}
            return len(asked & said) / len(asked)
    sentences = [r for r in evidence.get("sentences", ()) if "text" in r]
    if sentences and isinstance(value, dict):
        total = sum(int(i.get("sentences", 0)) for i in _items(value) if isinstance(i.get("sentences"), int))
        return min(1.0, total / len(sentences))
    return 1.0


def _items(value: Any) -> list[dict[str, Any]]:
    lists = [v for v in value.values() if isinstance(v, list)] if isinstance(value, dict) else []
    return [i for items in lists for i in items if isinstance(i, dict)]


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [t for k, v in value.items() if k not in ("shot_id", "template", "spotlight") for t in _texts(v)]
    return [t for v in value for t in _texts(v)] if isinstance(value, list) else []


def _is_refused(call: Call) -> bool:
    return call.observation.status is ObservationStatus.REFUSED


def _is_diagnosis(context: RoleContext) -> bool:
    """What is asked for leads to repairs. Of other contents (severity, reflection) the repair utility is 0."""
    return context.view["request"]["kind"] in DIAGNOSES


def _is_rendered(state: ProductionState) -> bool:
    return bool(state.shots) and all(s.render is not None for s in state.shots.values())
