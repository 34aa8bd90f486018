"""Exact frames."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.timing import Wish, lay_out
from schemas.time import Rate

R30 = Rate(num=30, den=1)


def spans(wishes: list[Wish], *, low: int = 0, high: int = 10**12, rate: Rate = R30) -> list[tuple[int, int]]:
    return [(s.start_frame, s.frames) for s in lay_out(wishes, rate, gap_us=250_000, min_us=low, max_us=high).slots]


def test_a_narrated_shot_gets_what_its_voice_needs() -> None:
    assert spans([Wish("s001", 1_000_000, 2_000_000)]) == [(0, 70)]  # 80 + 2000 + 250 ms


def test_a_planned_length_is_followed_a_little_way() -> None:
    assert spans([Wish("s001", 2_600_000, 2_000_000)]) == [(0, 78)]
    assert spans([Wish("s001", 9_000_000, 2_000_000)]) == [(0, 91)]  # 2.33 s + 0.7 s


def test_a_silent_shot_keeps_its_planned_length() -> None:
    assert spans([Wish("s001", 1_500_000, None)]) == [(0, 45)]


def test_borders_are_rounded_from_the_running_sum() -> None:
    wishes = [Wish(f"s{i:03d}", 3_377_000, None) for i in range(40)]
    found = spans(wishes)
    assert [s for s, _ in found[1:4]] == [101, 203, 304]
    assert sum(n for _, n in found) == round(40 * 3.377 * 30)


def test_silence_and_breath_shrink_alike_to_reach_the_upper_bound() -> None:
    wishes = [Wish("s001", 4_000_000, None), Wish("s002", 4_000_000, 2_000_000)]
    assert spans(wishes, high=5_000_000) == [(0, 70), (70, 80)]


def test_shots_grow_towards_their_plan_to_reach_the_lower_bound() -> None:
    wishes = [Wish("s001", 9_000_000, 2_000_000), Wish("s002", 2_000_000, None)]
    layout = lay_out(wishes, R30, gap_us=250_000, min_us=8_000_000, max_us=20_000_000)
    assert (layout.total_frames, layout.is_feasible) == (240, True)
    assert layout.slots[1].frames == 60


def test_narration_that_is_too_long_is_laid_out_and_said_to_be_infeasible() -> None:
    layout = lay_out([Wish("s001", 1_000_000, 5_000_000)], R30, gap_us=250_000, min_us=0, max_us=3_000_000)
    assert (layout.total_frames, layout.is_feasible) == (160, False)


@pytest.mark.parametrize("rate", [R30, Rate(num=30000, den=1001), Rate(num=24000, den=1001)])
def test_the_ten_thousandth_cut_is_still_the_nearest_frame(rate: Rate) -> None:
    lengths = [333_667 + 7919 * n % 5_000_000 for n in range(10_000)]
    slots = lay_out([Wish(f"s{n}", length, None) for n, length in enumerate(lengths)], rate, gap_us=0, min_us=0, max_us=10**12).slots
    total = sum(lengths)
    assert total > 6 * 3600 * 1_000_000
    assert slots[-1].start_frame + slots[-1].frames == rate.frame_at(total)
    assert abs(rate.us_at(rate.frame_at(total)) - total) <= rate.us_at(1) // 2 + 1


@pytest.mark.parametrize(
    "rate", [Rate(num=24, den=1), Rate(num=25, den=1), R30, Rate(num=30000, den=1001), Rate(num=24000, den=1001), Rate(num=60000, den=1001)]
)
@given(
    st.lists(st.tuples(st.integers(200_000, 20_000_000), st.one_of(st.none(), st.integers(100_000, 20_000_000))), min_size=1, max_size=60)
)
def test_slots_are_back_to_back_and_never_drift(rate: Rate, shots: list[tuple[int, int | None]]) -> None:
    layout = lay_out([Wish(f"s{i:03d}", t, n) for i, (t, n) in enumerate(shots)], rate, gap_us=250_000, min_us=0, max_us=10**12)
    at = 0
    for slot, (_, narration) in zip(layout.slots, shots, strict=True):
        assert slot.start_frame == at
        assert slot.frames >= 1
        if narration is not None:
            assert slot.narration_offset_us + narration <= rate.us_at(slot.frames) + rate.us_at(1)
        at += slot.frames
    assert layout.total_frames == at
