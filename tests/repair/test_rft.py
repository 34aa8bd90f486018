"""Admission of repaired runs: the first failure, each of the eight checks on real bytes, provenance, quotas, the hard-case pool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from evaluation.rft import Case, Failure, RftConfig, decide, failed_checks, first_failure, rft_row
from repair.fault_kinds import KINDS
from repair.findings import found
from repair.spoil import SPOILERS
from replay.state import apply, film_change, shot_change
from schemas.artifact import ArtifactKind, ArtifactRef
from schemas.blocker import Blocker, BlockerCode
from schemas.canonical import sha256_bytes
from schemas.contract import Role
from schemas.state import ProductionState
from schemas.trajectory import Call, Observation, ObservationStatus, Outcome, Provenance, RoleOutput, Trajectory
from schemas.verdict import DefectCode, Verdict
from tests.repair.conftest import SPOTLIGHT, Studio
from tests.repair.film import invented

BLACK = sha256_bytes(b"black")


def call(index: int, tool: str = "render_shots", *codes: BlockerCode, author: Provenance = Provenance.STUDENT, **fields: Any) -> Call:
    blockers = tuple(Blocker(code=c, subject="film", message="no") for c in codes)
    return Call(
        call_index=index,
        role=Role.ORCHESTRATOR,
        tool=tool,
        tool_version=1,
        context_sha256="0" * 64,
        output=RoleOutput(role=Role.ORCHESTRATOR, tool=tool, provenance=author),
        observation=Observation(
            status=ObservationStatus.REFUSED if blockers else ObservationStatus.COMMITTED, tool=tool, blockers=blockers
        ),
        snapshot_before=f"snp_{index}",
        snapshot_after=f"snp_{index + 1}",
        state_before="0" * 64,
        state_after="0" * 64,
        orchestrator_call=index,
        **fields,
    )


def run(calls: Sequence[Call], name: str = "trj_1", project: str = "prj_1", outcome: Outcome = Outcome.DELIVERED) -> Trajectory:
    return Trajectory(
        trajectory_id=name,
        project_id=project,
        policy="chat tiny",
        seed=0,
        budget=40,
        outcome=outcome,
        calls=tuple(calls),
        repairs=(),
        first_snapshot="snp_0",
        last_snapshot="snp_9",
        video=None,
        manifest=None,
        sandbox="bubblewrap",
        engines={},
        config_digest="0" * 64,
    )


def made_black(index: int) -> Call:
    ref = ArtifactRef(sha256=BLACK, kind=ArtifactKind.RENDER, media_type="video/mp4", size_bytes=1)
    return call(index, artifacts=(ref,))


def found_black(index: int) -> Call:
    defect = found(DefectCode.RENDER_BLACK, "s001", "all black", 1, 0, artifact=BLACK).defect()
    verdict = Verdict(subject="s001", passed=False, score=0.4, defects=(defect,), judge="structured")
    return call(index, "inspect_quality", verdicts=(verdict,))


REFUSED = BlockerCode.PREREQUISITE_MISSING


@pytest.mark.parametrize(
    ("calls", "outcome", "expected"),
    [
        ([call(0), call(1)], Outcome.DELIVERED, None),
        ([call(0), call(1, "stitch_video", REFUSED), call(2)], Outcome.DELIVERED, (1, "blocker", "prerequisite_missing")),
        ([call(0), made_black(1), found_black(2)], Outcome.DELIVERED, (1, "defect", "render_black")),  # the maker, not the finder
        ([call(0, "x", REFUSED), made_black(1), found_black(2)], Outcome.DELIVERED, (0, "blocker", "prerequisite_missing")),
        ([made_black(0), call(1, "x", REFUSED), found_black(2)], Outcome.DELIVERED, (0, "defect", "render_black")),
        ([call(0), call(1)], Outcome.INCOMPLETE, (1, "incomplete", "incomplete")),
    ],
)
def test_the_first_failure_is_the_call_that_failed(calls: list[Call], outcome: Outcome, expected: tuple[Any, ...] | None) -> None:
    seen = first_failure(run(calls, outcome=outcome))
    assert (None if seen is None else (seen.call_index, seen.kind, seen.code)) == expected


@pytest.fixture(scope="module")
def delivered(studio: Studio) -> ProductionState:
    return studio.do(studio.state, "stitch_video", {})


def checks(studio: Studio, state: ProductionState, suffix: Sequence[Call] = ()) -> tuple[str, ...]:
    return failed_checks(run([call(0)]), suffix, state, studio.env)


def test_a_sound_film_passes_all_eight(studio: Studio, delivered: ProductionState) -> None:
    assert checks(studio, delivered, [call(0), call(1)]) == ()


@pytest.mark.parametrize(
    ("code", "check"),
    [
        (BlockerCode.MISSING_ARGUMENT, "schema"),
        (BlockerCode.UNPARSABLE_OUTPUT, "schema"),
        (BlockerCode.PREREQUISITE_MISSING, "prerequisite"),
        (BlockerCode.UNRESOLVED_REFERENCE, "artifact_reference"),
    ],
)
def test_a_refusal_in_the_suffix_fails_its_check(studio: Studio, delivered: ProductionState, code: BlockerCode, check: str) -> None:
    assert checks(studio, delivered, [call(0), call(1, "render_shots", code)]) == (check,)


def test_a_film_that_was_not_delivered_fails_its_prerequisites(studio: Studio) -> None:
    assert checks(studio, studio.state) == ("prerequisite",)


def test_a_reference_to_nothing_is_not_looked_at_further(studio: Studio, delivered: ProductionState) -> None:
    render = delivered.shots["s001"].render
    assert render is not None
    gone = render.model_copy(update={"ref": invented("gone", ArtifactKind.RENDER)})
    assert "artifact_reference" in checks(studio, apply(delivered, [shot_change("s001", "render", gone)]))


@pytest.mark.parametrize(
    ("kind", "check"),
    [
        ("render_wrong_size", "render"),
        ("render_no_graphic", "render"),
        ("render_wrong_length", "duration"),
        ("narration_silent", "narration"),
        ("decoration_blank", "lint"),
        ("render_black", "black_frame"),
        ("delivery_black", "black_frame"),
        ("delivery_silent", "narration"),
    ],
)
def test_a_fault_in_the_bytes_fails_its_check(studio: Studio, delivered: ProductionState, kind: str, check: str) -> None:
    spec = KINDS[kind]
    spoiled = SPOILERS[kind](delivered, "film" if spec.on_film else SPOTLIGHT, studio.env)
    assert spoiled is not None
    change = film_change(spec.field, spoiled.value) if spec.on_film else shot_change(SPOTLIGHT, spec.field, spoiled.value)
    assert check in checks(studio, apply(delivered, [change]))


def case(name: str, quality: float = 0.9, *, code: str | None = "render_black", project: str = "prj_1", **fields: Any) -> Case:
    """A run of a student, and the teacher's continuation where it failed."""
    failure = None if code is None else Failure(0, "defect", code, "s001", "")
    author = Provenance.STUDENT if code is None else Provenance.TEACHER
    learned = run([call(0, author=author)], fields.pop("learned", f"{name}_learned"), project)
    return Case(run([call(0)], name, project), failure, learned, True, fields.pop("failed", ()), quality)


def outcome(cases: list[Case], **settings: Any) -> list[tuple[bool, bool, str]]:
    return [(d.admitted, d.pooled, d.reason) for d in decide(cases, RftConfig(**settings))]


def test_a_project_gives_no_more_than_its_quota_best_first() -> None:
    cases = [case("a", 0.81), case("b", 0.95), case("c", 0.9), case("d", 0.85, project="prj_2"), case("e", 0.82, code=None)]
    assert outcome(cases, assisted_quota=1, student_quota=1) == [
        (False, False, "quota"),
        (True, False, "admitted"),
        (False, False, "quota"),
        (True, False, "admitted"),
        (True, False, "admitted"),
    ]


def test_what_is_not_good_enough_goes_into_the_pool() -> None:
    failed = case("a", failed=("black_frame",))
    assert outcome([failed, case("b", 0.7)]) == [(False, True, "failed black_frame"), (False, True, "quality 0.7 below 0.8")]


def test_a_run_that_two_students_lead_to_is_learned_once() -> None:
    assert outcome([case("a", learned="t"), case("b", learned="t")]) == [
        (True, False, "admitted"),
        (False, False, "repeats an admitted run"),
    ]


def test_the_pool_takes_failures_of_each_class_in_turn_up_to_its_cap() -> None:
    cases = [*(case(f"a{n}", 0.1) for n in range(5)), case("b", 0.1, code="unknown_tool"), case("c", 0.1, code="narration_silent")]
    pooled = [c.student.trajectory_id for c, d in zip(cases, outcome(cases, pool=4), strict=True) if d[1]]
    assert pooled == ["a0", "a1", "b", "c"]


@pytest.mark.parametrize(
    ("authors", "code", "expected"),
    [
        ((Provenance.STUDENT,), None, "student"),
        ((Provenance.OUTSIDE,), None, "student"),
        ((Provenance.STUDENT, Provenance.TEACHER), None, "teacher_assisted"),
        ((Provenance.STUDENT, Provenance.TEACHER), "render_black", "teacher_assisted"),
        ((Provenance.SCRIPTED, Provenance.RUNTIME), None, "scripted"),
    ],
)
def test_provenance_says_who_authored_what_is_learned(authors: tuple[Provenance, ...], code: str | None, expected: str) -> None:
    learned = run([call(n, author=a) for n, a in enumerate(authors)])
    failure = None if code is None else Failure(0, "defect", code, "s001", "")
    one = Case(learned, failure, learned, True, (), 0.9)
    (decision,) = decide([one], RftConfig(eta=0.25))
    assert one.provenance == expected
    row = rft_row(decision, RftConfig(eta=0.25))
    assert (row["provenance"], row["mixing"]) == (expected, 0.25)
