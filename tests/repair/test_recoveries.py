"""Failure-repair links of refusals, read off recorded calls."""

from __future__ import annotations

from typing import Any

import pytest

from repair.recoveries import Recovery, recoveries, recovery_rows
from schemas.artifact import ArtifactKind, ArtifactRef
from schemas.blocker import Blocker, BlockerCode
from schemas.canonical import sha256_bytes
from schemas.contract import Role
from schemas.trajectory import Call, Observation, ObservationStatus, Outcome, Provenance, RoleOutput, Trajectory

LACKS = Blocker(code=BlockerCode.PREREQUISITE_MISSING, subject="film", message="no renders", needs=("renders",), remedies=("render_shots",))
WRONG = Blocker(code=BlockerCode.MISSING_ARGUMENT, subject="argument:shots", message="shots is missing", remedies=("render_shots",))
BROKEN = Blocker(code=BlockerCode.CONTENT_CONTRACT_BROKEN, subject="content:mends", message="no such mend")
ASKED = ObservationStatus.CONTENT_REQUESTED


def call(index: int, tool: str | None, *blockers: Blocker, **fields: Any) -> Call:
    role = fields.pop("role", Role.ORCHESTRATOR)
    status = fields.pop("status", ObservationStatus.REFUSED if blockers else ObservationStatus.COMMITTED)
    made = fields.pop("made", ())
    return Call(
        call_index=index,
        role=role,
        tool=tool,
        tool_version=fields.pop("version", 1),
        context_sha256="0" * 64,
        output=RoleOutput(role=role, tool=tool, provenance=Provenance.SCRIPTED, reason=fields.pop("reason", "")),
        observation=Observation(status=status, tool=tool, blockers=blockers),
        snapshot_before=f"snp_{index}",
        snapshot_after=f"snp_{index + 1}",
        state_before=sha256_bytes(str(index).encode()),
        state_after=sha256_bytes(str(index + 1).encode()),
        orchestrator_call=fields.pop("orchestrator_call", index),
        artifacts=tuple(ArtifactRef(sha256=sha256_bytes(m), kind=ArtifactKind.RENDER, media_type="video/mp4", size_bytes=1) for m in made),
        **fields,
    )


def one(*calls: Call) -> Recovery:
    (found,) = recoveries(calls)
    return found


def test_what_was_lacking_is_produced_first() -> None:
    found = one(
        call(0, "stitch_video", LACKS),
        call(1, "render_shots", reason="the blocker names it", made=(b"a", b"b")),
        call(2, "inspect_quality", status=ASKED),
        call(3, "inspect_quality", role=Role.CRITIC, orchestrator_call=2),
        call(4, "stitch_video", made=(b"film",)),
    )
    assert (found.answered, found.mend_calls, found.diagnosis) == ("produced", (1, 4), "the blocker names it")
    assert found.verified is not None
    assert (found.verified.call_index, found.calls_spent, found.artifacts_made) == (4, 3, 3)


def test_the_same_call_set_right() -> None:
    found = one(call(0, "render_shots", WRONG), call(1, "render_shots"))
    assert (found.answered, found.mend_calls, found.calls_spent) == ("corrected", (1,), 1)


def test_a_refused_content_is_answered_by_the_next_one_of_its_request() -> None:
    found = one(
        call(0, "repair_shots", status=ASKED),
        call(1, "repair_shots", BROKEN, role=Role.CRITIC, orchestrator_call=0),
        call(2, "repair_shots", role=Role.CRITIC, orchestrator_call=0, status=ASKED),
        call(3, "repair_shots", role=Role.GENERATOR, orchestrator_call=0),
    )
    assert (found.answered, found.mend_calls, found.calls_spent) == ("corrected", (2,), 0)


def test_a_tool_that_does_not_exist_is_got_over_by_any_other() -> None:
    unknown = Blocker(code=BlockerCode.UNKNOWN_TOOL, subject="tool:cut", message="there is no tool 'cut'")
    found = one(call(0, "cut", unknown, version=None), call(1, "render_shots"))
    assert (found.answered, found.mend_calls) == ("corrected", (1,))


@pytest.mark.parametrize(
    ("later", "answered"),
    [
        ((), "open"),
        ((call(1, "stitch_video", LACKS),), "open"),
        ((call(1, "search_music"),), "avoided"),
        ((call(1, "render_shots"),), "avoided"),
    ],
)
def test_what_was_never_accepted_is_not_verified(later: tuple[Call, ...], answered: str) -> None:
    found = recoveries([call(0, "stitch_video", LACKS), *later])[0]
    assert (found.answered, found.verified) == (answered, None)


def test_rows_name_states_and_quality_before_and_after() -> None:
    calls = (call(0, "render_shots", WRONG, LACKS), call(1, "render_shots"))
    run = Trajectory(
        trajectory_id="trj_1",
        project_id="prj_1",
        policy="scripted",
        seed=0,
        budget=40,
        outcome=Outcome.INCOMPLETE,
        calls=calls,
        repairs=(),
        first_snapshot="snp_0",
        last_snapshot="snp_2",
        video=None,
        manifest=None,
        sandbox="bubblewrap",
        engines={},
        config_digest="0" * 64,
    )
    rows = recovery_rows(run, {"snp_0": 0.25, "snp_2": 0.5}.__getitem__)
    assert [(r["blocker_index"], r["code"], r["quality_before"], r["quality_after"]) for r in rows] == [
        (0, "missing_argument", 0.25, 0.5),
        (1, "prerequisite_missing", 0.25, 0.5),
    ]
    assert (rows[0]["state_before"], rows[0]["state_after"]) == (calls[0].state_before, calls[1].state_after)
