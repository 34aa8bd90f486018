"""Exact time and content-derived ids."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from schemas.canonical import canonical_bytes, derive_id, digest_of, stage_key
from schemas.time import Rate, Span


@pytest.mark.parametrize(
    ("num", "den", "frame", "us"),
    [(30, 1, 1, 33_333), (30, 1, 3, 100_000), (30_000, 1001, 30_000, 1_001_000_000), (24_000, 1001, 1, 41_708), (15, 1, 3045, 203_000_000)],
)
def test_frame_and_time_convert_both_ways(num: int, den: int, frame: int, us: int) -> None:
    rate = Rate(num=num, den=den)
    assert rate.us_at(frame) == us
    assert rate.frame_at(us) == frame


def test_rate_is_kept_in_lowest_terms() -> None:
    assert Rate(num=60, den=2) == Rate(num=30, den=1)


@pytest.mark.parametrize(("a", "b", "shared"), [((0, 10), (10, 20), 0), ((0, 10), (5, 20), 5), ((0, 10), (2, 3), 1)])
def test_ranges_are_half_open(a: tuple[int, int], b: tuple[int, int], shared: int) -> None:
    assert Span(start_us=a[0], end_us=a[1]).overlap_us(Span(start_us=b[0], end_us=b[1])) == shared


def test_range_may_not_run_backwards() -> None:
    with pytest.raises(ValidationError):
        Span(start_us=2, end_us=1)


def test_canonical_bytes_do_not_depend_on_key_order() -> None:
    assert canonical_bytes({"b": 1, "a": [2.0, "é"]}) == '{"a":[2.0,"é"],"b":1}'.encode()


def test_lone_surrogate_is_refused() -> None:
    with pytest.raises(TypeError):
        canonical_bytes({"text": "lone \ud800"})


def test_kinds_keep_equal_content_apart() -> None:
    assert derive_id("project", "x") != derive_id("example", "x")


def test_known_digest() -> None:
    assert digest_of({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


@pytest.mark.parametrize("changed", [("b", 1, "c", ("i",)), ("a", 2, "c", ("i",)), ("a", 1, "d", ("i",)), ("a", 1, "c", ("j",))])
def test_stage_key_changes_with_each_part(changed: tuple[str, int, str, tuple[str, ...]]) -> None:
    assert stage_key(*changed) != stage_key("a", 1, "c", ("i",))
