"""Crews: results in order, faults at once, and processors lent only while every thread waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from media import crew
from media.crew import Crew, away, result


@pytest.fixture
def lent() -> Iterator[list[list[Any]]]:
    """What was waited for at every moment that processors were lent."""
    seen: list[list[Any]] = []

    def lend(answers: Sequence[Any]) -> None:
        seen.append(list(answers))
        time.sleep(0.01)

    crew.lend_with(lend)
    yield seen
    crew.lend_with(None)


def test_results_come_in_the_order_of_the_items() -> None:
    def slower_first(n: int) -> int:
        time.sleep(0.02 * (3 - n))
        return n

    with Crew(3) as threads:
        assert threads.gather(slower_first, range(3)) == [0, 1, 2]


def test_after_a_fault_the_rest_is_not_begun() -> None:
    begun: list[int] = []

    def work(n: int) -> None:
        begun.append(n)
        raise ValueError(n)

    with Crew(1) as threads, pytest.raises(ValueError, match="0"):
        threads.gather(work, range(50))
    assert len(begun) < 50


def test_a_thread_that_is_away_lends(lent: list[list[Any]]) -> None:
    def ask() -> str:
        with away("an answer"):
            time.sleep(0.1)
        return "heard"

    with Crew(1) as threads:
        assert result(threads.submit(ask)) == "heard"
    assert lent
    assert lent[0] == ["an answer"]


def test_a_thread_that_waits_for_one_that_is_away_lends(lent: list[list[Any]]) -> None:
    def ask() -> None:
        with away("an answer"):
            time.sleep(0.1)

    with Crew(1) as inner, Crew(1) as outer:
        result(outer.submit(lambda: result(inner.submit(ask))))
    assert lent


def test_nothing_is_lent_while_one_thread_computes(lent: list[list[Any]]) -> None:
    over = threading.Event()

    def ask() -> None:
        with away("an answer"):
            over.wait()

    def compute() -> None:
        time.sleep(0.2)
        over.set()

    with Crew(2) as threads:
        computing = threads.submit(compute)
        asking = threads.submit(ask)
        result(computing)
        assert lent == []
        result(asking)


def test_a_fault_of_one_that_was_away_is_raised(lent: list[list[Any]]) -> None:
    def ask() -> None:
        with away("an answer"):
            time.sleep(0.05)
            raise OSError("gone")

    with Crew(1) as threads, pytest.raises(OSError, match="gone"):
        result(threads.submit(ask))
    assert lent
