"""Trajectories to records for on-policy distillation (Guided-OPD, Appendix A.1): every turn of a teacher or a student, and its prefix.

Owns which calls become records and what each carries: whose turn it was, the chance beta_n that it was the teacher's (eq. 6), and the token
fields where the endpoint gave them. Refused outputs are records too: the states that a student gets itself into are the point.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from materialize.rows import Row, reply_columns
from replay.chat.config import TurnConfig
from replay.policies.mixed import teacher_share
from schemas.canonical import canonical_text
from schemas.contract import Role
from schemas.errors import SchemaMismatch
from schemas.example import Split
from schemas.reply import read_reply
from schemas.storyboard import Storyboard
from schemas.trajectory import Call, Provenance, Trajectory
from storage.artifacts import ArtifactStore

OWNERS = frozenset({Provenance.TEACHER, Provenance.STUDENT})


def distillation_rows(trajectory: Trajectory, storyboard: Storyboard, store: ArtifactStore, split: Split) -> list[Row]:
    """Rows of table ``distillation`` of one trajectory, in call order; none for a run that neither teacher nor student took part in.

    Raises:
        SchemaMismatch: a stored reply cannot be read by this release.
        StorageFault, DigestMismatch: a context or a reply is missing or damaged.
    """
    if not any(c.output.provenance in OWNERS for c in trajectory.calls):
        return []
    turns = _turns(trajectory, store)
    return [
        _row(trajectory, storyboard, call, store, split, turns)
        for call in trajectory.calls
        if call.output.provenance in OWNERS and call.output.text_known
    ]


def _row(t: Trajectory, board: Storyboard, call: Call, store: ArtifactStore, split: Split, turns: TurnConfig | None) -> Row:
    context = store.read_json(call.context_sha256)
    reply = None if call.output.reply is None else read_reply(store.read(call.output.reply), f"call {call.call_index}")
    return {
        "trajectory_id": t.trajectory_id,
        "project_id": t.project_id,
        "call_index": call.call_index,
        "role": call.role.value,
        "turn_owner": call.output.provenance.value,
        "beta": None if turns is None else teacher_share(turns),
        "update": None if turns is None else turns.update,
        "status": call.observation.status.value,
        "split": split.value,
        "licence": board.source.licence or "unknown",
        "attribution": board.source.attribution,
        "snapshot_id": call.snapshot_before,
        "context_sha256": call.context_sha256,
        "prompt_json": canonical_text(context["messages"]),
        "tools_json": canonical_text(context["tools"]),
        "completion_json": canonical_text(_completion(call)),
        **reply_columns(reply),
    }


def _completion(call: Call) -> dict[str, Any]:
    """The assistant message as authored, even one that names no tool or breaks its JSON."""
    output = call.output
    if call.role is not Role.ORCHESTRATOR or output.tool is None:
        return {"role": "assistant", "content": output.text}
    function = {"name": output.tool, "arguments": output.arguments_json or ""}
    return {
        "role": "assistant",
        "content": output.text,
        "tool_calls": [{"id": f"call_{call.call_index}", "type": "function", "function": function}],
    }


def _turns(trajectory: Trajectory, store: ArtifactStore) -> TurnConfig | None:
    """How turns were dealt out, from the run's stored settings; None for a run of one model alone, or where the settings are gone."""
    if trajectory.policy != "mixed" or not store.has(trajectory.config_digest):
        return None
    try:
        return TurnConfig.model_validate(store.read_json(trajectory.config_digest)["replay"]["policy"]["turns"])
    except (KeyError, TypeError, ValidationError) as error:
        raise SchemaMismatch("turns", f"the settings of {trajectory.trajectory_id} do not say how turns were dealt out") from error
