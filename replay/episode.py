"""One episode: a policy and a runtime take turns until the run is over, and what happened becomes a trajectory."""

from __future__ import annotations

from collections.abc import Callable

from replay import facts
from replay.contexts import prompts_digest
from replay.policies.base import Policy
from replay.runtime import Runtime
from schemas.canonical import Sha256, derive_id, digest_of
from schemas.contract import Fact
from schemas.trajectory import ObservationStatus, Trajectory
from schemas.verdict import RepairLink

Note = Callable[[str], None]


def run_episode(
    runtime: Runtime,
    policy: Policy,
    note: Note = lambda _text: None,
    *,
    config_digest: Sha256 | None = None,
    link: Callable[[Trajectory], tuple[RepairLink, ...]] | None = None,
) -> Trajectory:
    """Let a policy act until the run is over.

    Args:
        note: gets a line for a person after every call; never recorded.
        config_digest: digest of the settings that decided the run; the replay settings' own by default.
        link: finds the failure-repair links of the finished run (repair.links.link).

    Returns:
        the trajectory, delivered or incomplete. It always ends: calls are bounded by the budget, answers by the attempts allowed.

    Raises:
        PipelineError: a fault of ours. The runtime's journal holds everything before it, so the run can go on later.
    """
    runtime.settle()
    while not runtime.finished:
        context = runtime.context()
        observation = runtime.step(policy.act(context))
        note(_line(runtime, context.role.value, observation.tool, observation.status))
    runtime.suite.store.sync()
    trajectory = trajectory_of(runtime, policy.name, policy.seed, config_digest=config_digest)
    return trajectory if link is None else trajectory.model_copy(update={"repairs": link(trajectory)})


def trajectory_of(runtime: Runtime, policy: str, seed: int, *, config_digest: Sha256 | None = None) -> Trajectory:
    """The trajectory of a runtime's calls so far. Its id comes from content: what was decided, in which state, and what became of it."""
    suite, calls = runtime.suite, runtime.calls
    delivered = facts.holds(Fact.DELIVERY, runtime.state)
    delivery = runtime.state.film.delivery if delivered else None
    digest = config_digest or suite.config.digest()
    content = [
        runtime.state.film.task.project_id,
        policy,
        seed,
        runtime.budget,
        digest,
        runtime.first_snapshot,
        runtime.registry.digest(),
        [[c.output.digest(), c.state_after] for c in calls],
    ]
    engines = {name: _text(value) for name, value in suite.engines.versions().items()}
    return Trajectory(
        trajectory_id=derive_id("trajectory", content),
        project_id=runtime.state.film.task.project_id,
        policy=policy,
        seed=seed,
        budget=runtime.budget,
        outcome=runtime.outcome,
        calls=calls,
        repairs=(),
        first_snapshot=runtime.first_snapshot,
        last_snapshot=runtime.snapshot_id,
        video=delivery.video if delivery else None,
        manifest=delivery.manifest if delivery else None,
        sandbox=suite.sandbox.name,
        engines={**engines, "prompts": prompts_digest()[:12], "tools": runtime.registry.digest()[:12]},
        config_digest=digest,
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else digest_of(value)[:12]


def _line(runtime: Runtime, role: str, tool: str | None, status: ObservationStatus) -> str:
    used = f"{runtime.orchestrator_calls} of {runtime.budget}"
    if status is ObservationStatus.REFUSED:
        last = next((c for c in reversed(runtime.calls) if c.observation.blockers), None)
        why = f": {last.observation.blockers[0].message}" if last else ""
        return f"call {used}: {role} {tool or 'nothing'} refused{why}"
    if status is ObservationStatus.CONTENT_REQUESTED:
        return f"call {used}: {tool} asks for content"
    return f"call {used}: {tool} done"
