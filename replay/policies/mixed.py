"""Teacher and student in one run, turn by turn (paper, Appendix A.1): before every call a coin says whose it is.

The coin of a call depends on the seed and the call's index alone, so a resumed run gives every turn to the same owner. Ownership is
recorded as the provenance of the output.
"""

from __future__ import annotations

import math

from replay.chat.config import TurnConfig
from replay.policies.base import Policy
from schemas.canonical import digest_of
from schemas.trajectory import Provenance, RoleContext, RoleOutput


def teacher_share(turns: TurnConfig) -> float:
    """Chance that a turn is the teacher's: beta_start (1 + cos(pi min(n / T_decay, 1))) / 2, eq. 6 of the paper. From 0 to 1."""
    return turns.beta_start * (1 + math.cos(math.pi * min(turns.update / turns.decay_updates, 1.0))) / 2


class MixedPolicy:
    """Gives each turn to teacher or student.

    Args:
        teacher: takes a turn with the chance of :func:`teacher_share`. Its outputs are recorded as the teacher's, whatever they call
            themselves.
        student: takes the other turns.
        seed: of the coin.
    """

    name = "mixed"

    def __init__(self, teacher: Policy, student: Policy, turns: TurnConfig, seed: int) -> None:
        self.seed = seed
        self._teacher = teacher
        self._student = student
        self._share = teacher_share(turns)

    def act(self, context: RoleContext) -> RoleOutput:
        """The output of whoever has the turn.

        Raises:
            PipelineError: as the owner's own ``act``.
        """
        if teacher_turn(self._share, self.seed, context.call_index):
            return self._teacher.act(context).model_copy(update={"provenance": Provenance.TEACHER})
        return self._student.act(context).model_copy(update={"provenance": Provenance.STUDENT})


def teacher_turn(share: float, seed: int, call_index: int) -> bool:
    """Whether the coin gives this call to the teacher."""
    drawn = int(digest_of(["turn", seed, call_index])[:13], 16) / 16**13
    return drawn < share
