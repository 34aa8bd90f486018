"""Rewards of candidate outputs: eq. 9 to 11 of WeVisCut (arXiv 2610.38352, Appendix A.2), with every weight in the configuration.

Pure arithmetic over what execution has shown. Owns the formulas; how candidates are executed and which may be compared is not decided
here. Rule scores and judge scores stay apart in the parts, so that either can be read alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from materialize.config import RewardConfig
from replay import facts
from schemas.contract import Fact
from schemas.errors import SchemaMismatch
from schemas.state import ProductionState


@dataclass(frozen=True, slots=True)
class Reward:
    """One reward and the parts it was computed from, each by the name it has in the formula."""

    value: float
    parts: dict[str, float]


@dataclass(frozen=True, slots=True)
class DeliveryChecks:
    """What must hold before a delivery counts: the run ended in time, every output fitted its schema, prerequisites and artifacts were
    there, and no loop was cut off."""

    termination: bool
    schema: bool
    prerequisite: bool
    artifact: bool
    loop: bool

    @property
    def all(self) -> bool:
        """A legal stop."""
        return self.termination and self.schema and self.prerequisite and self.artifact and self.loop


def milestones(state: ProductionState, config: RewardConfig) -> dict[str, bool]:
    """I_k(s): which milestones hold in a state. Read off the state, so repetition counts once and later invalidation takes it back.

    Raises:
        SchemaMismatch: the configuration names a milestone that is no fact.
    """
    known = {f.value for f in Fact}
    unknown = sorted(set(config.milestones) - known)
    if unknown:
        raise SchemaMismatch(
            "unknown_milestone", f"{unknown[0]!r} is no fact of the production state", f"allowed: {', '.join(sorted(known))}"
        )
    return {name: facts.holds(Fact(name), state) for name in config.milestones}


def potential(held: Mapping[str, bool], config: RewardConfig) -> float:
    """Phi(s) of eq. 9: weighted share of the milestones that hold, 0 to 1."""
    return math.fsum(w for name, w in config.milestones.items() if held.get(name)) / math.fsum(config.milestones.values())


def progress(potentials: Sequence[float], config: RewardConfig) -> float:
    """F of eq. 9: the progress of a branch, 0 to 1 - epsilon_p.

    Args:
        potentials: Phi of the state before the scored call, then after every call until the branch ends. One value: no call was made.
    """
    total = math.fsum(config.gamma**step * (config.gamma * after - before) for step, (before, after) in enumerate(pairwise(potentials)))
    return (1 - config.epsilon_p) * min(1.0, max(0.0, total))


def final_quality(rule: float, audit: float | None, config: RewardConfig) -> float:
    """Q_end: rule score blended with the render audit; the rule score where no audit was sampled. All in 0..1."""
    _within("rule", rule)
    if audit is None:
        return rule
    _within("audit", audit)
    return (1 - config.audit_weight) * rule + config.audit_weight * audit


def orchestrator_reward(
    checks: DeliveryChecks, potentials: Sequence[float], rule: float, audit: float | None, config: RewardConfig
) -> Reward:
    """R^O of eq. 10.

    Args:
        checks: what the finished branch passed.
        potentials: as for :func:`progress`.
        rule: Q_rule of the final state.
        audit: Q_audit, None when none was sampled.
    """
    quality = final_quality(rule, audit, config)
    delivered = checks.all and quality >= config.q_min
    premature = checks.all and not delivered
    forward = progress(potentials, config)
    value = (config.alpha + (1 - config.alpha) * quality) if delivered else config.alpha * forward
    value -= config.lambda_p * premature
    parts = {
        "g_del": float(delivered),
        "p": float(premature),
        "F": forward,
        "Q_end": quality,
        "Q_rule": rule,
        "phi_start": potentials[0],
        "phi_end": potentials[-1],
    }
    if audit is not None:
        parts["Q_audit"] = audit
    return Reward(value, parts)


def generator_reward(features: Mapping[str, float], *, valid_schema: bool, config: RewardConfig) -> Reward:
    """R^G of eq. 10. An invalid schema sets every feature to zero.

    Args:
        features: f_k^G in 0..1, one for each weight of ``config.generator``.

    Raises:
        SchemaMismatch: features and weights differ, or a feature is out of range.
    """
    if set(features) != set(config.generator):
        raise SchemaMismatch("generator_features", f"expected {', '.join(sorted(config.generator))}, got {', '.join(sorted(features))}")
    parts = {}
    for name, value in features.items():
        _within(name, value)
        parts[name] = value if valid_schema else 0.0
    return Reward(math.fsum(config.generator[name] * value for name, value in parts.items()), parts)


def repair_utility(paired: Sequence[tuple[float, float]]) -> float:
    """U_repair of eq. 11, -1 to 1: mean over paired seeds of quality after the repair that a diagnosis asks for, minus quality after the
    repair of the empty diagnosis.

    Args:
        paired: for each seed (quality with the diagnosis, quality with the empty one), in 0..1.

    Raises:
        SchemaMismatch: no seed, or a quality out of range.
    """
    if not paired:
        raise SchemaMismatch("no_seeds", "repair utility needs at least one paired seed")
    for with_diagnosis, without in paired:
        _within("quality with the diagnosis", with_diagnosis)
        _within("quality with the empty diagnosis", without)
    return math.fsum(a - b for a, b in paired) / len(paired)


def critic_reward(*, diagnosis: float, utility: float, verification: float, unnecessary: float, config: RewardConfig) -> Reward:
    """R^C of eq. 10.

    Args:
        diagnosis: f_diag in 0..1.
        utility: U_repair in -1..1, see :func:`repair_utility`.
        verification: f_verify in 0..1.
        unnecessary: f_unnecessary in 0..1, subtracted.

    Raises:
        SchemaMismatch: a feature out of range.
    """
    _within("diagnosis", diagnosis)
    _within("utility", utility, low=-1.0)
    _within("verification", verification)
    _within("unnecessary", unnecessary)
    value = config.diagnosis * diagnosis + config.repair * utility + config.verification * verification - config.unnecessary * unnecessary
    return Reward(value, {"f_diag": diagnosis, "U_repair": utility, "f_verify": verification, "f_unnecessary": unnecessary})


def _within(name: str, value: float, low: float = 0.0) -> None:
    if not low <= value <= 1.0:
        raise SchemaMismatch("feature_range", f"{name} is {value}, expected {low:g} to 1")
