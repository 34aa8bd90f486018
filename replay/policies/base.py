"""What a policy is: something that answers a role context with a role output."""

from __future__ import annotations

from typing import Protocol

from schemas.trajectory import RoleContext, RoleOutput


class Policy(Protocol):
    """One decider for all three roles. It sees contexts and nothing else."""

    name: str
    """Recorded in the trajectory."""
    seed: int
    """Seed of its choices; 0 where it has none."""

    def act(self, context: RoleContext) -> RoleOutput:
        """Answer one context, in the role the context names.

        Raises:
            PipelineError: the policy itself could not be asked (an endpoint failed). A poor answer is never an exception.
        """
        ...
