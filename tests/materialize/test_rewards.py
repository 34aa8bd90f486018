"""Eq. 9 to 11, computed by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from materialize.config import RewardConfig
from materialize.rewards import (
    DeliveryChecks,
    critic_reward,
    final_quality,
    generator_reward,
    milestones,
    orchestrator_reward,
    potential,
    progress,
    repair_utility,
)
from schemas.errors import SchemaMismatch

CONFIG = RewardConfig(
    gamma=0.9, epsilon_p=0.1, alpha=0.4, lambda_p=0.25, q_min=0.6, audit_weight=0.25, milestones={"segments": 1, "assets": 3}
)
PASSED = DeliveryChecks(True, True, True, True, True)


@pytest.mark.parametrize(
    ("held", "phi"),
    [({}, 0.0), ({"segments": True}, 0.25), ({"assets": True}, 0.75), ({"segments": True, "assets": True}, 1.0), ({"other": True}, 0.0)],
)
def test_potential_is_the_weighted_share_of_milestones(held: dict[str, bool], phi: float) -> None:
    assert potential(held, CONFIG) == phi


@pytest.mark.parametrize(
    ("potentials", "expected"),
    [
        ([0.0], 0.0),
        ([0.0, 0.25], 0.9 * (0.9 * 0.25)),  # one call: gamma * 0.25 - 0, times 1 - epsilon
        ([0.0, 0.25, 1.0], 0.9 * (0.225 + 0.9 * (0.9 * 1.0 - 0.25))),  # 0.9 * (0.225 + 0.585)
        ([0.5, 0.25], 0.0),  # lost ground is clipped at 0
        ([0.0, 1.0, 0.0], 0.0),  # what is invalidated later gives nothing
    ],
)
def test_progress_of_a_branch(potentials: list[float], expected: float) -> None:
    assert progress(potentials, CONFIG) == pytest.approx(expected, abs=1e-12)


def test_standing_still_costs_progress_when_discounted() -> None:
    assert progress([0.0, 0.25, 0.25], CONFIG) == pytest.approx(0.9 * (0.9**2 * 0.25), abs=1e-12)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_progress_telescopes_to_the_discounted_end_minus_the_start(potentials: list[float]) -> None:
    raw = CONFIG.gamma ** (len(potentials) - 1) * potentials[-1] - potentials[0]
    assert progress(potentials, CONFIG) == pytest.approx(0.9 * min(1.0, max(0.0, raw)), abs=1e-9)


@pytest.mark.parametrize(("rule", "audit", "expected"), [(0.8, None, 0.8), (0.8, 0.4, 0.7), (0.0, 1.0, 0.25)])
def test_final_quality_blends_rule_and_audit(rule: float, audit: float | None, expected: float) -> None:
    assert final_quality(rule, audit, CONFIG) == pytest.approx(expected)


def test_a_delivered_branch_gets_the_delivery_credit_and_its_quality() -> None:
    reward = orchestrator_reward(PASSED, [0.0, 1.0], 0.8, 0.4, CONFIG)
    assert reward.value == pytest.approx(0.4 + 0.6 * 0.7)
    assert (reward.parts["g_del"], reward.parts["p"]) == (1.0, 0.0)


def test_rule_and_judge_scores_are_logged_apart() -> None:
    parts = orchestrator_reward(PASSED, [0.0, 1.0], 0.8, 0.4, CONFIG).parts
    assert (parts["Q_rule"], parts["Q_audit"], parts["Q_end"]) == (0.8, 0.4, pytest.approx(0.7))
    assert "Q_audit" not in orchestrator_reward(PASSED, [0.0, 1.0], 0.8, None, CONFIG).parts


def test_a_legal_stop_below_the_delivery_quality_is_premature() -> None:
    reward = orchestrator_reward(PASSED, [0.0, 0.25], 0.5, None, CONFIG)
    assert reward.value == pytest.approx(0.4 * 0.2025 - 0.25)
    assert (reward.parts["g_del"], reward.parts["p"]) == (0.0, 1.0)


@pytest.mark.parametrize("failing", ["termination", "schema", "prerequisite", "artifact", "loop"])
def test_any_failed_check_leaves_progress_only(failing: str) -> None:
    checks = DeliveryChecks(**{name: name != failing for name in ("termination", "schema", "prerequisite", "artifact", "loop")})
    reward = orchestrator_reward(checks, [0.0, 0.25], 0.9, None, CONFIG)
    assert reward.value == pytest.approx(0.4 * 0.2025)
    assert (reward.parts["g_del"], reward.parts["p"]) == (0.0, 0.0)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.floats(0.6, 1), st.floats(0, 1))
def test_no_failed_branch_reaches_a_delivered_one(potentials: list[float], good: float, any_quality: float) -> None:
    failed = orchestrator_reward(DeliveryChecks(True, True, True, False, True), potentials, any_quality, None, CONFIG)
    assert failed.value < orchestrator_reward(PASSED, potentials, good, None, CONFIG).value


FEATURES = {"schema_validity": 1.0, "grounding": 0.5, "coverage": 0.75, "usability": 0.0}


def test_a_generator_output_gets_its_weighted_features() -> None:
    assert generator_reward(FEATURES, valid_schema=True, config=CONFIG).value == pytest.approx(0.5625)


def test_an_invalid_schema_zeroes_every_generator_feature() -> None:
    reward = generator_reward(FEATURES, valid_schema=False, config=CONFIG)
    assert (reward.value, set(reward.parts.values())) == (0.0, {0.0})


@pytest.mark.parametrize("features", [{}, FEATURES | {"style": 1.0}, FEATURES | {"grounding": 1.1}, FEATURES | {"grounding": float("nan")}])
def test_features_outside_their_register_are_refused(features: dict[str, float]) -> None:
    with pytest.raises(SchemaMismatch):
        generator_reward(features, valid_schema=True, config=CONFIG)


@pytest.mark.parametrize(
    ("paired", "utility"),
    [([(0.9, 0.4)], 0.5), ([(0.9, 0.4), (0.5, 0.5)], 0.25), ([(0.0, 1.0)], -1.0), ([(0.7, 0.7)], 0.0)],
)
def test_repair_utility_is_the_mean_gain_over_the_empty_diagnosis(paired: list[tuple[float, float]], utility: float) -> None:
    assert repair_utility(paired) == pytest.approx(utility)


def test_repair_utility_needs_a_seed() -> None:
    with pytest.raises(SchemaMismatch, match="no_seeds"):
        repair_utility([])


def test_a_critic_output_gets_diagnosis_utility_and_verification_minus_what_was_not_needed() -> None:
    config = RewardConfig(diagnosis=0.3, repair=0.4, verification=0.3, unnecessary=0.2)
    reward = critic_reward(diagnosis=1.0, utility=0.5, verification=0.5, unnecessary=1.0, config=config)
    assert reward.value == pytest.approx(0.3 + 0.2 + 0.15 - 0.2)
    assert critic_reward(diagnosis=0, utility=-1, verification=0, unnecessary=0, config=config).value == pytest.approx(-0.4)


def test_milestones_are_read_off_the_state(run: Any) -> None:
    assert milestones(run.states[0], RewardConfig(milestones={"segments": 1, "delivery": 1, "script": 1})) == {
        "segments": False,
        "delivery": False,
        "script": True,
    }


def test_an_unknown_milestone_is_refused(run: Any) -> None:
    with pytest.raises(SchemaMismatch, match="applause"):
        milestones(run.states[0], RewardConfig(milestones={"applause": 1}))


@pytest.mark.parametrize(
    "bad", [{"milestones": {}}, {"milestones": {"segments": 0}}, {"gamma": 0}, {"epsilon_p": 0}, {"alpha": 1.5}, {"lambda_p": -1}]
)
def test_weights_outside_the_papers_bounds_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        RewardConfig(**bad)
