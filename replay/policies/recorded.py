"""Replays the outputs of a trajectory, call by call."""

from __future__ import annotations

from schemas.errors import ConfigInvalid
from schemas.trajectory import Provenance, RoleContext, RoleOutput, Trajectory


class RecordedPolicy:
    """Gives at every call index the output recorded there. The runtime's own calls are made by the runtime again.

    Args:
        trajectory: the recording. On the same task, tools, settings and engines it leads through equal state digests.
    """

    name = "recorded"

    def __init__(self, trajectory: Trajectory) -> None:
        self.seed = trajectory.seed
        self._outputs = {c.call_index: c.output for c in trajectory.calls if c.output.provenance is not Provenance.RUNTIME}

    def act(self, context: RoleContext) -> RoleOutput:
        """The recorded output.

        Raises:
            ConfigInvalid: the run has left the recording: there is no output at this index, or it is another role's.
        """
        output = self._outputs.get(context.call_index)
        if output is None:
            raise ConfigInvalid(
                "recording_left", f"the recording has no output for call {context.call_index}", "replay it on the task it was made on"
            )
        return output
