"""The fault studio: put drawn faults into a stored trajectory and let a policy go on from there.

Owns the choice of the restore point: the run is taken up again from the snapshot before the first call that a drawn fault strikes, with
the calls before it as its history. Everything before keeps its bytes. Where a fault strikes is decided by seed, kinds, count and the
recorded calls, so the same request gives the same run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from repair.config import FaultConfig
from repair.fault_kinds import KINDS, PLAN_KINDS
from repair.faults import FaultPlan, FaultSpec
from repair.findings import FILM
from repair.links import link
from repair.plan_faults import FaultyPolicy
from replay.episode import run_episode
from replay.policies.base import Policy
from replay.registry import Registry
from replay.runtime import Runtime
from replay.suite import Retried, Suite
from schemas.canonical import Sha256, digest_of
from schemas.errors import ConfigInvalid
from schemas.state import ProductionState
from schemas.trajectory import Call, InjectedFault, Trajectory


class NothingToStrike(ConfigInvalid):
    """No drawn fault can strike a trajectory: it makes nothing that the fault would spoil."""


@dataclass(frozen=True, slots=True)
class Injected:
    """A run with faults in it, and what was put in."""

    trajectory: Trajectory
    base: Trajectory
    kept_calls: int
    """Calls of the base that are this run's history."""
    broken_down: tuple[InjectedFault, ...]
    """Infrastructure faults that struck; no trajectory holds them."""
    retried: tuple[Retried, ...]
    spent_us: dict[int, int]
    """Clock time of the calls after the history, by index."""


def draw_kinds(config: FaultConfig) -> tuple[str, ...]:
    """The kinds of one run, ``config.count`` of them, every kind once before any comes again; all kinds where none are named."""
    kinds = sorted(config.kinds or tuple(KINDS), key=lambda k: digest_of([config.seed, "kind", k]))
    return tuple(kinds[n % len(kinds)] for n in range(config.count))


def named(config: FaultConfig, state: ProductionState, taken: Iterable[str] = ()) -> tuple[str, ...]:
    """The execution-level and infrastructure faults of one run, by kind and subject, in a film of these shots; none on a taken subject."""
    drawn = [k for k in draw_kinds(config) if k not in PLAN_KINDS]
    part = FaultConfig(kinds=tuple(dict.fromkeys(drawn)), count=len(drawn), seed=config.seed)
    return tuple(f"{s.kind}@{s.subject}" for s in FaultPlan(part).drawn(state, taken))


def inject(
    base: Trajectory,
    config: FaultConfig,
    policy: Policy,
    registry: Registry,
    suite: Suite,
    *,
    own: FaultConfig | None = None,
    digest: Callable[[FaultConfig], Sha256] | None = None,
    note: Callable[[str], None] = lambda _text: None,
) -> Injected:
    """Run a stored trajectory once more from where the first drawn fault strikes.

    Args:
        policy: decides from there on; its plan-level outputs are spoiled where that was drawn.
        own: the faults that the base itself was made with; they keep striking where they struck.
        digest: names the settings of a run with these faults (``Trajectory.config_digest``); the replay settings' own by default.

    Raises:
        NothingToStrike: nothing that was drawn can strike this trajectory.
        ConfigInvalid: nothing was drawn.
        PipelineError: a fault of ours.
    """
    if config.count < 1:
        raise ConfigInvalid("no_faults", "no fault was asked for", "give --count")
    taken = [f.subject for c in base.calls for f in c.faults]
    specs = named(config, suite.snapshots.load(base.last_snapshot), taken)
    struck = (own or FaultConfig(seed=config.seed)).model_copy(update={"explicit": (*(own.explicit if own else ()), *specs)})
    plan = FaultPlan(struck)
    at_plan = tuple(k for k in draw_kinds(config) if k in PLAN_KINDS)
    faulty = FaultyPolicy(policy, FaultConfig(kinds=at_plan, count=len(at_plan), seed=config.seed))
    cut = _first_struck(base.calls, [FaultSpec(*s.split("@", 1)) for s in specs], faulty)
    if cut is None:
        raise NothingToStrike("nothing_to_strike", "no drawn fault can strike this trajectory", "draw other kinds, or another seed")
    history = base.calls[:cut]
    start = history[-1].snapshot_after if history else base.first_snapshot
    runtime = Runtime(start, registry, suite, budget=base.budget, history=history, fault_filter=plan)
    if policy.name != base.policy:
        faulty.name = f"{base.policy}+{policy.name}"
    made = run_episode(runtime, faulty, note, config_digest=None if digest is None else digest(struck), link=link)
    return Injected(made, base, cut, tuple(plan.broken_down), tuple(runtime.retried), runtime.spent_us)


def _first_struck(calls: Sequence[Call], specs: Sequence[FaultSpec], faulty: FaultyPolicy) -> int | None:
    """Index of the first orchestrator call that a fault strikes."""
    struck = [call.orchestrator_call for call in calls if any(_makes(call, spec) for spec in specs)][:1]
    turns = [c.call_index for c in calls if c.call_index == c.orchestrator_call]
    struck += [turns[t] for t in faulty.turns if t < len(turns)]
    return min(struck, default=None)


def _makes(call: Call, spec: FaultSpec) -> bool:
    kind = KINDS[spec.kind]
    record = FILM if kind.on_film else spec.subject
    return any(c.subject == record and c.field == kind.field and c.value is not None for c in call.changes)
