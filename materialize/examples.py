"""Trajectory to examples: one for each role output worth learning, with the context it was authored under.

Owns which outputs become examples and what they teach. The prompt is the context artifact and nothing else: reasons, injected
faults, storyboard answers and later states are never read here. Writes nothing; rows are committed by the caller.

An output becomes an example when a model (or the scripted editor) authored it, the runtime accepted it, and the tool call it
belongs to was committed in the end. Deliberate mistakes, refused outputs, outputs of the runtime itself and calls that came to
nothing do not. What they looked like stays visible in the ``calls`` table and in the prompts of the outputs that followed them.
"""

from __future__ import annotations

from typing import Any, Protocol

import orjson

from materialize.config import MaterializeConfig
from materialize.rows import example_rows
from materialize.splits import split_of
from materialize.tokens import TokenCounter
from schemas.canonical import Sha256, canonical_bytes, canonical_text, derive_id
from schemas.contract import Role
from schemas.errors import DigestMismatch, SchemaMismatch
from schemas.example import Example, ExampleKind, Split
from schemas.stage import Done
from schemas.state import ProductionState
from schemas.storyboard import Storyboard
from schemas.trajectory import Call, ObservationStatus, Outcome, Provenance, Trajectory

CONTENT_KINDS: dict[str, ExampleKind] = {
    "segments": ExampleKind.SEGMENTS,
    "shot_plan": ExampleKind.SHOT_PLAN,
    "plan_reflection": ExampleKind.PLAN_REFLECTION,
    "queries": ExampleKind.QUERIES,
    "music_query": ExampleKind.MUSIC_QUERY,
    "fills": ExampleKind.SLOTS,
    "inspection": ExampleKind.LOCALIZATION,
    "severity": ExampleKind.SEVERITY,
    "repair_request": ExampleKind.REPAIR_REQUEST,
}
"""Content contract (replay.contents.CONTENTS) to what its examples teach. An inspection that answers a repair is a verification."""

_NOT_AUTHORED = frozenset({Provenance.SCRIPTED_MISTAKE, Provenance.RUNTIME})


class ContextStore(Protocol):
    """The part of storage.artifacts.ArtifactStore that is needed."""

    def read(self, sha256: Sha256) -> bytes:
        """Verified bytes."""
        ...

    def has(self, sha256: Sha256) -> bool:
        """Whether the bytes are there."""
        ...


class StateStore(Protocol):
    """The part of storage.snapshots.SnapshotStore that is needed."""

    def load(self, snapshot_id: str) -> ProductionState:
        """The state of a snapshot."""
        ...

    def digest(self, state: ProductionState) -> Sha256:
        """Digest of a state."""
        ...


def materialize(
    trajectory: Trajectory,
    storyboard: Storyboard,
    store: ContextStore,
    snapshots: StateStore,
    config: MaterializeConfig,
    counter: TokenCounter | None,
    *,
    split: Split | None = None,
    known: frozenset[str] = frozenset(),
) -> Done[tuple[Example, ...]]:
    """Examples of one trajectory, in call order, with the rows of table ``examples``. Of outputs that are equal under equal contexts the
    first is kept.

    Args:
        trajectory: the run. Outputs of an incomplete run are kept with ``verified=False``.
        storyboard: gives licence and attribution; none of its content is read.
        store: where the context artifacts lie.
        snapshots: only read when ``config.check_snapshots``.
        config: split shares, tokenizer, checks.
        counter: counts tokens; None leaves the counts empty.
        split: as decided for the project (materialize.kinship); the one of its own hash when None.
        known: example ids that other trajectories of this project have already given; they are left out.

    Raises:
        SchemaMismatch: trajectory and storyboard are of different projects, a content kind has no example kind, or an accepted
            output is not what its contract says.
        DigestMismatch, StorageFault: a context or a snapshot is missing or damaged.
    """
    if storyboard.project_id != trajectory.project_id:
        raise SchemaMismatch(
            "project_mismatch",
            f"trajectory is of {trajectory.project_id}, storyboard of {storyboard.project_id}",
            "pass both of one project",
        )
    split = split or split_of(trajectory.project_id, config)
    chains = _Chains(trajectory)
    seen: set[tuple[Sha256, str]] = set()
    out: list[Example] = []
    for call in trajectory.calls:
        kind = chains.kind(call)
        if kind is None:
            continue
        completion = completion_of(call)
        example_id = derive_id("example", [trajectory.project_id, call.context_sha256, completion, kind.value])
        same = (call.context_sha256, canonical_text(completion))
        if same in seen or example_id in known:
            continue
        seen.add(same)
        context = _read_context(store, call)
        _check_snapshot(store, snapshots, call, deep=config.check_snapshots)
        counts = counter.count(context["messages"], context["tools"], completion) if counter is not None else None
        out.append(
            Example(
                example_id=example_id,
                project_id=trajectory.project_id,
                trajectory_id=trajectory.trajectory_id,
                call_index=call.call_index,
                role=call.role,
                kind=kind,
                provenance=call.output.provenance,
                licence=storyboard.source.licence or "unknown",
                attribution=storyboard.source.attribution,
                split=split,
                config_digest=trajectory.config_digest,
                verified=chains.verified(call),
                snapshot_id=call.snapshot_before,
                context_sha256=call.context_sha256,
                prompt=tuple(context["messages"]),
                tools_json=canonical_text(context["tools"]),
                completion=completion,
                prompt_tokens=counts.prompt if counts else None,
                completion_tokens=counts.completion if counts else None,
            )
        )
    examples = tuple(out)
    contexts = tuple(dict.fromkeys(e.context_sha256 for e in examples))
    return Done(examples, {"examples": example_rows(examples)}, contexts)


def completion_of(call: Call) -> dict[str, Any]:
    """The assistant message of a call: text for generator and critic, one tool call with its exact arguments text for the orchestrator.

    Raises:
        SchemaMismatch: an orchestrator output without a tool or without arguments that are a JSON object.
    """
    output = call.output
    if call.role is not Role.ORCHESTRATOR:
        return {"role": "assistant", "content": output.text}
    if output.tool is None or output.arguments_json is None or not _is_object(output.arguments_json):
        raise SchemaMismatch("accepted_output", f"call {call.call_index} was accepted but names no tool with arguments as a JSON object")
    function = {"name": output.tool, "arguments": output.arguments_json}
    return {
        "role": "assistant",
        "content": output.text,
        "tool_calls": [{"id": f"call_{call.call_index}", "type": "function", "function": function}],
    }


class _Chains:
    """The calls of a trajectory, grouped by the orchestrator call they belong to."""

    def __init__(self, trajectory: Trajectory) -> None:
        self._trajectory = trajectory
        self._calls = {c.call_index: c for c in trajectory.calls}
        self._committed = {c.orchestrator_call for c in trajectory.calls if _is_product(c)}
        owner = {c.call_index: c.orchestrator_call for c in trajectory.calls}
        self._verifying = {owner.get(r.call_verified) for r in trajectory.repairs if r.call_verified is not None}
        self._failed_mends = {owner.get(r.call_mended) for r in trajectory.repairs if r.outcome != "verified"}

    def kind(self, call: Call) -> ExampleKind | None:
        """What the call's output teaches; None when it is no example."""
        refused = call.observation.status is ObservationStatus.REFUSED
        if refused or call.output.provenance in _NOT_AUTHORED or call.orchestrator_call not in self._committed:
            return None
        if call.role is Role.ORCHESTRATOR:
            before = self._calls.get(call.call_index - 1)
            answers_refusal = before is not None and bool(before.observation.blockers)
            return ExampleKind.BLOCKER_RECOVERY if answers_refusal else ExampleKind.TOOL_CALL
        content = call.request.kind if call.request else ""
        kind = CONTENT_KINDS.get(content)
        if kind is None:
            raise SchemaMismatch(
                "content_kind", f"call {call.call_index} answers a request for {content!r}, which no example kind is known for"
            )
        if kind is ExampleKind.LOCALIZATION and call.orchestrator_call in self._verifying:
            return ExampleKind.VERIFICATION
        return kind

    def verified(self, call: Call) -> bool:
        """The run delivered, and a repair that was asked for here was verified by a later inspection."""
        if self._trajectory.outcome is not Outcome.DELIVERED:
            return False
        is_repair = call.request is not None and call.request.kind == "repair_request"
        return not (is_repair and call.orchestrator_call in self._failed_mends)


def _is_product(call: Call) -> bool:
    """The call ended a tool call with a product. An open call that the runtime gave up is closed by a commit with blockers."""
    return call.observation.status is ObservationStatus.COMMITTED and not call.observation.blockers


def _read_context(store: ContextStore, call: Call) -> dict[str, Any]:
    data = store.read(call.context_sha256)
    context: dict[str, Any] = orjson.loads(data)
    if set(context) != {"messages", "tools"} or canonical_bytes(context) != data:
        raise SchemaMismatch(
            "context_shape", f"context {call.context_sha256} of call {call.call_index} is not the canonical JSON of messages and tools"
        )
    return context


def _check_snapshot(store: ContextStore, snapshots: StateStore, call: Call, *, deep: bool) -> None:
    if not store.has(call.snapshot_before.removeprefix("snp_")):
        raise DigestMismatch("snapshot_missing", f"snapshot {call.snapshot_before} of call {call.call_index} is not in the artifact store")
    if deep and snapshots.digest(snapshots.load(call.snapshot_before)) != call.state_before:
        raise DigestMismatch(
            "snapshot_state", f"snapshot {call.snapshot_before} does not restore the state that call {call.call_index} began in"
        )


def _is_object(text: str) -> bool:
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False
