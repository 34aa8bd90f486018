"""The six rule features and the blend, with values computed by hand."""

from __future__ import annotations

from typing import Any

import pytest

from evaluation.quality import (
    WEIGHTS,
    audit_score,
    completion,
    efficiency,
    inspection_coverage,
    plan_coverage,
    plan_hygiene,
    rule_quality,
    spotlight_decoration_coverage,
)
from repair.findings import found
from repair.inspect import shot_seen
from replay import lineage
from schemas.contract import Role
from schemas.state import Delivery, ProductionState
from schemas.trajectory import Call, Observation, ObservationStatus, Outcome, Provenance, RoleOutput, Trajectory
from schemas.verdict import DefectCode, Verdict
from tests.repair.film import TEXTS, decoration, film, invented, music, planned, task


def call(index: int, role: Role = Role.ORCHESTRATOR, provenance: Provenance = Provenance.SCRIPTED, **fields: Any) -> Call:
    return Call(
        call_index=index,
        role=role,
        tool="x",
        tool_version=1,
        context_sha256="0" * 64,
        output=RoleOutput(role=role, provenance=provenance),
        observation=Observation(status=ObservationStatus.COMMITTED, tool="x"),
        snapshot_before="snp",
        snapshot_after="snp",
        state_before="0" * 64,
        state_after="0" * 64,
        orchestrator_call=index,
        **fields,
    )


def run(*calls: Call, budget: int = 40) -> Trajectory:
    return Trajectory(
        trajectory_id="trj_1",
        project_id="prj_repair",
        policy="scripted",
        seed=0,
        budget=budget,
        outcome=Outcome.DELIVERED,
        calls=calls,
        repairs=(),
        first_snapshot="snp",
        last_snapshot="snp",
        video=None,
        manifest=None,
        sandbox="bubblewrap",
        engines={},
        config_digest="0" * 64,
    )


def inspected(state: ProductionState, *shots: str) -> ProductionState:
    seen = {sid: state.shots[sid].model_copy(update={"inspected": shot_seen(state, sid)}) for sid in shots}
    return state.model_copy(update={"shots": {**state.shots, **seen}})


def delivered(state: ProductionState) -> ProductionState:
    delivery = Delivery(
        video=invented("film"), manifest=invented("manifest"), duration_us=12_000_000, loudness_lufs=-16.0,
        inputs_digest=lineage.delivery_inputs(state),
    )  # fmt: skip
    return state.model_copy(update={"film": state.film.model_copy(update={"delivery": delivery})})


def perfect() -> ProductionState:
    state = film(music=music(invented("music")), spotlight=1, decoration=decoration(invented("card"), {"title": "x"}))
    return delivered(inspected(state, "s001", "s002", "s003"))


def test_weights_are_those_of_the_paper() -> None:
    assert list(WEIGHTS.values()) == [0.353, 0.186, 0.179, 0.144, 0.081, 0.057]
    assert sum(WEIGHTS.values()) == pytest.approx(1.0)


def test_a_shortest_perfect_run_scores_one() -> None:
    got = rule_quality(run(*[call(i) for i in range(10)]), perfect())
    assert got.features == dict.fromkeys(WEIGHTS, 1.0)
    assert (got.rule, got.audit, got.end) == (1.0, None, 1.0)


def test_plan_coverage_is_the_share_of_carried_characters() -> None:
    assert plan_coverage(film()) == 1.0
    gone = planned(1, text="", script_end=len(TEXTS[0]) + 1)
    # 57, 55 and 53 characters with 9, 10 and 8 spaces inside: 48 + 44 + 45 without white space
    sizes = [sum(1 for c in t if not c.isspace()) for t in TEXTS]
    assert plan_coverage(film(plans=[planned(0), gone, planned(2)])) == pytest.approx((sizes[0] + sizes[2]) / sum(sizes))


def test_shots_out_of_order_halve_plan_coverage() -> None:
    assert plan_coverage(film(plans=[planned(1), planned(0), planned(2)])) == 0.5


def test_spotlight_coverage_counts_graphics_without_errors() -> None:
    card = decoration(invented("card"), {"title": "x"})
    good = film(spotlight=1, decoration=card)
    wrong = found(DefectCode.SPOTLIGHT_TEXT_WRONG, "s002", "", 0, 1, artifact=card.ref.sha256).defect()
    marked = {**good.shots, "s002": good.shots["s002"].model_copy(update={"open_defects": (wrong,)})}
    assert spotlight_decoration_coverage(film()) == 1.0
    assert spotlight_decoration_coverage(film(spotlight=1)) == 0.0
    assert spotlight_decoration_coverage(good) == 1.0
    assert spotlight_decoration_coverage(good.model_copy(update={"shots": marked})) == 0.0


def test_inspection_coverage_forgets_what_changed_since() -> None:
    state = inspected(film(), "s001", "s003")
    assert inspection_coverage(state) == pytest.approx(2 / 3)
    other = state.shots["s003"].model_copy(update={"narration": state.shots["s001"].narration})
    assert inspection_coverage(state.model_copy(update={"shots": {**state.shots, "s003": other}})) == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("update", "share"),
    [
        ({}, 1.0),
        ({"visual_query": "Pendulum in a lecture  HALL"}, 2 / 3),  # that of the shot before
        ({"target_duration_us": 400_000}, 2 / 3),
        ({"target_duration_us": 21_000_000}, 2 / 3),
        ({"target_duration_us": 1_000_000}, 2 / 3),  # 43 letters in a second
    ],
)
def test_plan_hygiene_counts_well_formed_shots(update: dict[str, Any], share: float) -> None:
    assert plan_hygiene(film(plans=[planned(0), planned(1, **update), planned(2)])) == pytest.approx(share)


def test_completion_is_the_mean_over_nine_milestones() -> None:
    state = film()  # everything but music and delivery
    assert completion(state) == pytest.approx(7 / 9)
    bare = state.shots["s003"].model_copy(update={"render": None})
    assert completion(state.model_copy(update={"shots": {**state.shots, "s003": bare}})) == pytest.approx((6 + 2 / 3) / 9)


def test_a_film_without_a_music_library_neither_lacks_nor_has_music() -> None:
    silent = film(task=task(music_library=""))  # everything but delivery
    assert completion(silent) == pytest.approx(7 / 8)
    assert completion(delivered(silent)) == 1.0
    assert efficiency(run(*[call(i) for i in range(8)]), delivered(silent)) == 1.0
    assert efficiency(run(*[call(i) for i in range(9)], budget=40), delivered(silent)) == pytest.approx(31 / 32)


@pytest.mark.parametrize(("calls", "value"), [(10, 1.0), (11, 29 / 30), (25, 0.5), (40, 0.0), (45, 0.0)])
def test_efficiency_counts_calls_beyond_the_shortest_run(calls: int, value: float) -> None:
    assert efficiency(run(*[call(i) for i in range(calls)]), perfect()) == pytest.approx(value)


def test_only_orchestrator_calls_of_a_policy_count() -> None:
    calls = [call(i) for i in range(10)]
    calls += [call(10, Role.CRITIC), call(11, Role.GENERATOR), call(12, provenance=Provenance.RUNTIME)]
    assert efficiency(run(*calls), perfect()) == 1.0


def test_efficiency_of_an_incomplete_run_is_scaled_down() -> None:
    assert efficiency(run(call(0)), film()) == pytest.approx(7 / 9)


def test_the_audit_is_the_mean_of_the_last_judged_verdicts() -> None:
    def verdicts(call_index: int, **scores: float) -> Call:
        rows = tuple(
            Verdict(subject=s, passed=True, score=v, defects=(), judge="structured" if s == "s003" else "embedded")
            for s, v in scores.items()
        )
        return call(call_index, Role.CRITIC, verdicts=rows)

    trajectory = run(verdicts(0, s001=0.2, s002=0.6, s003=0.1), verdicts(1, s001=0.8))
    assert audit_score(trajectory) == pytest.approx(0.7)
    assert audit_score(run()) is None


def test_the_blend_is_that_of_the_paper() -> None:
    seen = call(10, Role.CRITIC, verdicts=(Verdict(subject="s002", passed=True, score=0.5, defects=(), judge="embedded"),))
    got = rule_quality(run(*[call(i) for i in range(10)], seen), perfect(), audit_weight=0.4)
    assert (got.rule, got.audit) == (1.0, 0.5)
    assert got.end == pytest.approx(0.6 * 1.0 + 0.4 * 0.5)


def test_the_rule_score_is_the_weighted_sum() -> None:
    state = inspected(film(), "s001")
    got = rule_quality(run(*[call(i) for i in range(9)]), state)
    assert got.features["inspection_coverage"] == pytest.approx(1 / 3, abs=1e-6)
    assert got.features["completion"] == pytest.approx(7 / 9, abs=1e-6)
    expected = 0.353 + 0.186 + 0.179 / 3 + 0.144 + 0.081 * 7 / 9 + 0.057 * 7 / 9
    assert got.rule == pytest.approx(expected, abs=1e-5)
