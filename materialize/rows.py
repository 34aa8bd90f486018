"""Rows of the lake for a trajectory and its examples. Pure: values in, row dicts out; the committer adds provenance and writes.

Every row fits its spec in schemas.tables. Ids and digests come from the trajectory; nothing here depends on a clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from repair.outcomes import fault_rows
from schemas.artifact import ArtifactRef
from schemas.canonical import Sha256, canonical_text
from schemas.contract import Role
from schemas.example import Example
from schemas.reply import ModelReply
from schemas.state import Change, ProductionState
from schemas.trajectory import Call, ObservationStatus, Outcome, Trajectory

Row = dict[str, Any]


def trajectory_rows(
    trajectory: Trajectory, *, final_state: ProductionState, quality: float, trajectory_sha256: Sha256
) -> dict[str, list[Row]]:
    """Rows of trajectories, calls, blockers, artifacts, snapshots, verdicts, repairs and faults.

    Args:
        trajectory: the run.
        final_state: state of ``trajectory.last_snapshot``; gives the length of the delivered film.
        quality: final quality of the rule features, 0 to 1 (evaluation.quality).
        trajectory_sha256: artifact that holds the trajectory as canonical JSON.
    """
    return {
        "trajectories": [_trajectory_row(trajectory, final_state, quality, trajectory_sha256)],
        "calls": [_call_row(trajectory, c) for c in trajectory.calls],
        "blockers": [row for c in trajectory.calls for row in _blocker_rows(trajectory, c)],
        "artifacts": _artifact_rows(trajectory),
        "snapshots": _snapshot_rows(trajectory),
        "verdicts": _verdict_rows(trajectory),
        "repairs": _repair_rows(trajectory),
        "faults": fault_rows(trajectory, final_state),
    }


def timing_rows(trajectory: Trajectory, spent_us: Mapping[int, int]) -> list[Row]:
    """Rows of table ``timings``: one a call, null where its time is not known."""
    return [
        {
            "trajectory_id": trajectory.trajectory_id,
            "project_id": trajectory.project_id,
            "call_index": call.call_index,
            "wall_us": spent_us.get(call.call_index),
        }
        for call in trajectory.calls
    ]


def reply_columns(reply: ModelReply | None) -> Row:
    """What an endpoint gave beside its text: model, settings, token ids, log probabilities. All null without a reply."""
    if reply is None:
        return dict.fromkeys(("model", "sampling_json", "prompt_token_ids", "completion_token_ids", "logprobs_json"))
    return {
        "model": reply.model,
        "sampling_json": canonical_text(reply.sampling),
        "prompt_token_ids": None if reply.prompt_token_ids is None else list(reply.prompt_token_ids),
        "completion_token_ids": None if reply.completion_token_ids is None else list(reply.completion_token_ids),
        "logprobs_json": None if reply.logprobs is None else canonical_text([p.logprob for p in reply.logprobs]),
    }


def example_rows(examples: Iterable[Example]) -> list[Row]:
    """Rows of table ``examples``."""
    return [
        {
            "example_id": e.example_id,
            "project_id": e.project_id,
            "trajectory_id": e.trajectory_id,
            "call_index": e.call_index,
            "role": e.role.value,
            "kind": e.kind.value,
            "provenance": e.provenance.value,
            "licence": e.licence,
            "attribution": e.attribution,
            "split": e.split.value,
            "config_digest": e.config_digest,
            "verified": e.verified,
            "snapshot_id": e.snapshot_id,
            "context_sha256": e.context_sha256,
            "prompt_json": canonical_text(list(e.prompt)),
            "tools_json": e.tools_json,
            "completion_json": canonical_text(e.completion),
            "prompt_tokens": e.prompt_tokens,
            "completion_tokens": e.completion_tokens,
        }
        for e in examples
    ]


def _trajectory_row(t: Trajectory, final: ProductionState, quality: float, sha: Sha256) -> Row:
    orchestrator = [c for c in t.calls if c.role is Role.ORCHESTRATOR]
    delivery = final.film.delivery
    delivered = t.outcome is Outcome.DELIVERED
    return {
        "trajectory_id": t.trajectory_id,
        "project_id": t.project_id,
        "policy": t.policy,
        "seed": t.seed,
        "outcome": t.outcome.value,
        "calls": len(t.calls),
        "orchestrator_calls": len(orchestrator),
        "refused_calls": sum(c.observation.status is ObservationStatus.REFUSED for c in t.calls),
        "repairs": len(t.repairs),
        "quality": quality,
        "duration_us": delivery.duration_us if delivered and delivery else None,
        "trajectory_sha256": sha,
        "video_sha256": t.video.sha256 if delivered and t.video else None,
        "manifest_sha256": t.manifest.sha256 if delivered and t.manifest else None,
        "sandbox": t.sandbox,
        "tool_sequence": [c.output.tool for c in orchestrator if c.output.tool is not None],
    }


def _call_row(t: Trajectory, c: Call) -> Row:
    is_tool_call = c.role is Role.ORCHESTRATOR
    return {
        "trajectory_id": t.trajectory_id,
        "project_id": t.project_id,
        "call_index": c.call_index,
        "role": c.role.value,
        "tool": c.tool,
        "tool_version": c.tool_version,
        "arguments_json": c.output.arguments_json if is_tool_call else None,
        "content_json": None if is_tool_call else c.output.text,
        "status": c.observation.status.value,
        "provenance": c.output.provenance.value,
        "observation_json": canonical_text(c.observation.model_dump(mode="json")),
        "changed": list(c.observation.changed),
        "context_sha256": c.context_sha256,
        "prompt_sha256": c.prompt_sha256,
        "snapshot_before": c.snapshot_before,
        "snapshot_after": c.snapshot_after,
        "state_before": c.state_before,
        "state_after": c.state_after,
        "prompt_tokens": c.output.usage.get("prompt_tokens"),
        "completion_tokens": c.output.usage.get("completion_tokens"),
        "cost_microusd": c.output.usage.get("cost_microusd"),
        "reply_sha256": c.output.reply,
    }


def _blocker_rows(t: Trajectory, c: Call) -> list[Row]:
    return [
        {
            "trajectory_id": t.trajectory_id,
            "project_id": t.project_id,
            "call_index": c.call_index,
            "blocker_index": i,
            "code": b.code.value,
            "subject": b.subject,
            "message": b.message,
            "needs": list(b.needs),
            "remedies": list(b.remedies),
        }
        for i, b in enumerate(c.observation.blockers)
    ]


def _artifact_rows(t: Trajectory) -> list[Row]:
    rows: dict[tuple[str, str], Row] = {}
    for call in t.calls:
        for ref in call.artifacts:
            for subject in _subjects(ref, call.changes):
                rows.setdefault(
                    (ref.sha256, subject),
                    {
                        "project_id": t.project_id,
                        "sha256": ref.sha256,
                        "kind": ref.kind.value,
                        "media_type": ref.media_type,
                        "size_bytes": ref.size_bytes,
                        "subject": subject,
                        "trajectory_id": t.trajectory_id,
                        "call_index": call.call_index,
                    },
                )
    return list(rows.values())


def _subjects(ref: ArtifactRef, changes: Iterable[Change]) -> list[str]:
    """Subjects whose records a call made point to an artifact; 'film' when no record does."""
    found = dict.fromkeys(c.subject for c in changes if _mentions(c.value, ref.sha256))
    return list(found) or ["film"]


def _mentions(value: Any, sha256: Sha256) -> bool:
    if isinstance(value, dict):
        return value.get("sha256") == sha256 or any(_mentions(v, sha256) for v in value.values())
    if isinstance(value, list | tuple):
        return any(_mentions(v, sha256) for v in value)
    return False


def _snapshot_rows(t: Trajectory) -> list[Row]:
    first: dict[str, tuple[str, int]] = {}
    for c in t.calls:
        first.setdefault(c.snapshot_before, (c.state_before, c.call_index))
    if t.calls:
        last = t.calls[-1]
        first.setdefault(last.snapshot_after, (last.state_after, last.call_index + 1))
    return [
        {
            "trajectory_id": t.trajectory_id,
            "project_id": t.project_id,
            "snapshot_id": snapshot_id,
            "snapshot_sha256": snapshot_id.removeprefix("snp_"),
            "state_digest": digest,
            "first_call_index": index,
        }
        for snapshot_id, (digest, index) in first.items()
    ]


def _verdict_rows(t: Trajectory) -> list[Row]:
    return [
        {
            "trajectory_id": t.trajectory_id,
            "project_id": t.project_id,
            "call_index": c.call_index,
            "subject": v.subject,
            "passed": v.passed,
            "score": v.score,
            "judge": v.judge,
            "defects_json": canonical_text([d.model_dump(mode="json") for d in v.defects]),
        }
        for c in t.calls
        for v in c.verdicts
    ]


def _repair_rows(t: Trajectory) -> list[Row]:
    makers: dict[str, int] = {}
    for call in t.calls:
        for ref in call.artifacts:
            makers.setdefault(ref.sha256, call.call_index)
    return [
        {
            "trajectory_id": t.trajectory_id,
            "project_id": t.project_id,
            "defect_id": r.defect.defect_id,
            "code": r.defect.code.value,
            "subject": r.defect.subject,
            "cause": r.diagnosis.cause,
            "mend": r.diagnosis.mend.value,
            "call_failed": makers.get(r.artifact_before or ""),
            "call_found": r.call_found,
            "call_mended": r.call_mended,
            "call_verified": r.call_verified,
            "artifact_before": r.artifact_before,
            "artifact_after": r.artifact_after,
            "score_before": r.score_before,
            "score_after": r.score_after,
            "outcome": r.outcome,
            "injected_fault": r.injected_fault,
            "mend_calls": list(r.mend_calls),
            "calls_spent": r.calls_spent,
            "artifacts_made": r.artifacts_made,
        }
        for r in t.repairs
    ]
