"""Splits by project."""

from __future__ import annotations

import pytest

from materialize.config import MaterializeConfig
from materialize.splits import split_of
from schemas.errors import ConfigInvalid
from schemas.example import Split

CONFIG = MaterializeConfig(validation_share=0.1, held_out_share=0.2, split_seed=0)
PROJECTS = [f"prj_{i:05d}" for i in range(4000)]


@pytest.mark.parametrize(
    ("project", "split"),
    [
        ("prj_00005", Split.TRAIN),
        ("prj_00006", Split.HELD_OUT),
        ("prj_00012", Split.VALIDATION),
        ("prj_00014", Split.TRAIN),
        ("prj_00015", Split.HELD_OUT),
        ("prj_00018", Split.VALIDATION),
    ],
)
def test_a_project_keeps_its_split_for_ever(project: str, split: Split) -> None:
    assert split_of(project, CONFIG) is split


def test_shares_are_kept_within_two_points() -> None:
    splits = [split_of(p, CONFIG) for p in PROJECTS]
    assert splits.count(Split.HELD_OUT) / len(splits) == pytest.approx(0.2, abs=0.02)
    assert splits.count(Split.VALIDATION) / len(splits) == pytest.approx(0.1, abs=0.02)


def test_another_seed_gives_another_assignment() -> None:
    other = CONFIG.model_copy(update={"split_seed": 1})
    assert [split_of(p, CONFIG) for p in PROJECTS] != [split_of(p, other) for p in PROJECTS]


def test_a_larger_validation_share_moves_no_held_out_project() -> None:
    wider = CONFIG.model_copy(update={"validation_share": 0.3})
    held = {p for p in PROJECTS if split_of(p, CONFIG) is Split.HELD_OUT}
    assert held == {p for p in PROJECTS if split_of(p, wider) is Split.HELD_OUT}


def test_near_duplicates_share_a_split() -> None:
    assert len({split_of(p, CONFIG, duplicate_group="prj_00000") for p in PROJECTS[:200]}) == 1


def test_the_first_member_of_a_group_keeps_its_split_when_others_join() -> None:
    assert all(split_of(p, CONFIG, duplicate_group=p) is split_of(p, CONFIG) for p in PROJECTS[:200])


def test_a_pinned_project_goes_where_it_is_told() -> None:
    pinned = CONFIG.model_copy(update={"pinned": {"prj_00000": "held_out"}})
    assert split_of("prj_00000", pinned) is Split.HELD_OUT
    assert split_of("prj_00001", pinned, duplicate_group="prj_00000") is Split.HELD_OUT


def test_no_shares_means_all_for_training() -> None:
    none = MaterializeConfig(validation_share=0, held_out_share=0)
    assert {split_of(p, none) for p in PROJECTS} == {Split.TRAIN}


def test_shares_that_leave_nothing_to_train_on_are_refused() -> None:
    with pytest.raises(ConfigInvalid, match="split_shares"):
        split_of("prj_1", MaterializeConfig(validation_share=0.5, held_out_share=0.5))
