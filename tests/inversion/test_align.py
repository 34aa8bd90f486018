"""Words dealt out to shots: exact, ordered, complete, fast."""

from __future__ import annotations

from itertools import combinations_with_replacement, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inversion.align import CLAUSE, PLAIN, SENTENCE, assign, border_bonus_us, misfit_us
from schemas.time import Span

Case = tuple[list[Span], list[int], list[Span], int]


def spans(*pairs: tuple[int, int]) -> list[Span]:
    return [Span(start_us=a, end_us=b) for a, b in pairs]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    length = draw(st.sampled_from([20, 60, 400]))
    points = sorted(draw(st.sets(st.integers(0, length), max_size=12)))
    touching = draw(st.booleans())
    words = spans(*pairwise(points)) if touching else spans(*zip(points[::2], points[1::2], strict=False))
    end = draw(st.integers(length // 2 + 1, length + 10))
    cuts = sorted(draw(st.sets(st.integers(1, end - 1), max_size=3)))
    strength = draw(st.lists(st.sampled_from([PLAIN, PLAIN, CLAUSE, SENTENCE]), min_size=len(words) + 1, max_size=len(words) + 1))
    return words, strength, spans(*pairwise([0, *cuts, end])), draw(st.sampled_from([0, 3, 10, 40]))


def brute_force(words: list[Span], strength: list[int], shots: list[Span], snap: int) -> int:
    """Cheapest cost over every way of dealing out."""
    inside = [w for w in words if w.start_us < shots[-1].end_us]
    starts, ends = [w.start_us for w in inside], [w.end_us for w in inside]
    best: int | None = None
    for cuts in combinations_with_replacement(range(len(inside) + 1), len(shots) - 1):
        edges = [0, *cuts, len(inside)]
        cost = 0
        for j, shot in enumerate(shots):
            cost += sum(misfit_us(starts[k], ends[k], shot.start_us, shot.end_us) for k in range(edges[j], edges[j + 1]))
            if j:
                cost -= border_bonus_us(starts, ends, edges[j], strength[edges[j]], shot.start_us, snap)
        best = cost if best is None else min(best, cost)
    assert best is not None
    return best


@given(cases())
@settings(max_examples=400)
def test_the_optimum_equals_brute_force(case: Case) -> None:
    assert assign(*case).cost_us == brute_force(*case)


@given(cases())
def test_every_word_is_in_exactly_one_shot_in_order(case: Case) -> None:
    words, _, shots, _ = case
    found = assign(*case)
    assert found.edges[0] == 0
    assert list(found.edges) == sorted(found.edges)
    assert len(found.edges) == len(shots) + 1
    for k, word in enumerate(words):
        shot = found.shot_of(k)
        if word.start_us >= shots[-1].end_us:
            assert shot is None
        else:
            assert shot is not None
            assert found.edges[shot] <= k < found.edges[shot + 1]


def test_a_word_goes_to_the_shot_that_holds_more_of_it() -> None:
    words = spans((0, 400), (1_000, 1_500))
    assert assign(words, [PLAIN] * 3, spans((0, 1_300), (1_300, 2_000)), 0).edges == (0, 2, 2)
    assert assign(words, [PLAIN] * 3, spans((0, 1_200), (1_200, 2_000)), 0).edges == (0, 1, 2)


@pytest.mark.parametrize(("cut", "first_of_second_shot"), [(2_150_000, 1), (2_260_000, 2)])
def test_a_cut_within_the_tolerance_snaps_to_the_sentence_border(cut: int, first_of_second_shot: int) -> None:
    words = spans((1_000_000, 1_900_000), (2_000_000, 2_300_000), (2_300_000, 2_900_000))
    found = assign(words, [SENTENCE, SENTENCE, PLAIN, SENTENCE], spans((0, cut), (cut, 4_000_000)), 200_000)
    assert found.edges[1] == first_of_second_shot


def test_a_word_far_before_the_cut_is_not_pulled_over_for_a_sentence_border() -> None:
    words = spans((1_000_000, 1_150_000), (2_400_000, 2_900_000))
    found = assign(words, [SENTENCE, PLAIN, SENTENCE], spans((0, 2_000_000), (2_000_000, 4_000_000)), 200_000)
    assert found.edges == (0, 1, 2)


def test_a_flash_of_a_shot_inside_a_word_holds_no_word() -> None:
    found = assign(spans((0, 1_000)), [SENTENCE, SENTENCE], spans((0, 300), (300, 340), (340, 2_000)), 0)
    assert found.edges == (0, 0, 0, 1)


def test_words_after_the_last_frame_have_no_shot() -> None:
    found = assign(spans((0, 900), (1_100, 1_900), (2_100, 2_500)), [SENTENCE] * 4, spans((0, 1_000), (1_000, 2_000)), 0)
    assert [found.shot_of(k) for k in range(3)] == [0, 1, None]


def test_confidence_is_high_in_a_pause_and_even_in_the_middle_of_a_word() -> None:
    words = spans((0, 1_000_000), (3_000_000, 4_000_000))
    assert assign(words, [PLAIN] * 3, spans((0, 2_000_000), (2_000_000, 5_000_000)), 0).confidence == (1.0, 1.0)
    first, second = assign(words, [PLAIN] * 3, spans((0, 3_500_000), (3_500_000, 5_000_000)), 0).confidence
    assert first == second == 0.5


def test_no_words_give_empty_shots() -> None:
    assert assign([], [SENTENCE], spans((0, 5), (5, 9)), 100).edges == (0, 0, 0)
