"""The fold of changes into states."""

from __future__ import annotations

import pytest

from replay.state import apply, drop_shot, film_change, initial, normal, put_shot, shot_change
from schemas.errors import SchemaMismatch
from schemas.state import Change, PlannedShot, ProductionState, Segment, ShotRecord
from tests.replay.doubles import task


def shot(sid: str, query: str = "sea") -> ShotRecord:
    planned = PlannedShot(segment=0, script_start=0, script_end=5, text="Tea", visual_query=query, target_duration_us=1_000_000)
    return ShotRecord(shot_id=sid, planned=planned)


def two_shots() -> ProductionState:
    return apply(initial(task()), [put_shot(shot("s001")), put_shot(shot("s002")), film_change("shot_order", ["s001", "s002"])])


def test_a_film_field_is_assigned_from_its_json() -> None:
    segment = Segment(index=0, title="All", script_start=0, script_end=9)
    state = apply(initial(task()), normal([film_change("segments", (segment,))]))
    assert state.film.segments == (segment,)


def test_records_no_change_touched_are_shared_by_identity() -> None:
    before = two_shots()
    after = apply(before, [shot_change("s002", "repairs_used", 1)])
    assert after.shots["s001"] is before.shots["s001"]
    assert after.film is before.film
    assert (before.shots["s002"].repairs_used, after.shots["s002"].repairs_used) == (0, 1)


def test_no_changes_give_the_same_state() -> None:
    state = two_shots()
    assert apply(state, []) is state


def test_a_shot_is_removed_together_with_its_place_in_the_order() -> None:
    state = apply(two_shots(), [drop_shot("s001"), film_change("shot_order", ["s002"])])
    assert list(state.shots) == ["s002"]


def test_shots_stand_in_film_order_whatever_the_order_of_changes() -> None:
    state = apply(initial(task()), [put_shot(shot("s002")), put_shot(shot("s001")), film_change("shot_order", ["s001", "s002"])])
    assert list(state.shots) == ["s001", "s002"]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ([film_change("colour", "red")], "unknown_field"),
        ([film_change("task", None)], "unknown_field"),
        ([film_change("plan_reflected", "perhaps")], "bad_change"),
        ([shot_change("s009", "repairs_used", 1)], "unknown_shot"),
        ([shot_change("s001", "shot_id", "s007")], "unknown_field"),
        ([shot_change("s001", "planned", {"segment": 0})], "bad_change"),
        ([Change(subject="s003", field="record", value=shot("s004").model_dump(mode="json"))], "bad_change"),
        ([drop_shot("s009")], "unknown_shot"),
        ([drop_shot("s001")], "order_mismatch"),
        ([put_shot(shot("s003"))], "order_mismatch"),
        ([film_change("shot_order", ["s001", "s001"])], "order_mismatch"),
        ([film_change("shot_order", ["s001"])], "order_mismatch"),
    ],
)
def test_a_change_that_makes_no_sense_is_a_fault_of_the_tool(changes: list[Change], code: str) -> None:
    with pytest.raises(SchemaMismatch) as caught:
        apply(two_shots(), changes)
    assert caught.value.code == code


def test_normal_form_is_what_a_journal_gives_back() -> None:
    (change,) = normal([Change(subject="film", field="shot_order", value=("s001", "s002"))])
    assert change.value == ["s001", "s002"]


def test_a_value_json_cannot_hold_is_refused() -> None:
    with pytest.raises(SchemaMismatch) as caught:
        normal([Change(subject="film", field="shot_order", value=object())])
    assert caught.value.code == "change_not_json"
