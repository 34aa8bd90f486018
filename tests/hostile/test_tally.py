"""The counts that SECURITY.md states are those of a run, and every one meets its target."""

from __future__ import annotations

import json

import pytest

from tests.hostile.tally import COUNTS, PAGE, ROWS, Tally, written

pytestmark = pytest.mark.hostile


def test_the_page_states_the_counts_of_the_run() -> None:
    counts = json.loads(COUNTS.read_text())
    assert PAGE.read_text() == written(PAGE.read_text(), counts), "run: python -m tests.hostile.tally"


def test_every_count_meets_its_target() -> None:
    rows = json.loads(COUNTS.read_text())["rows"]
    assert [(r["id"], r["what"], r["target"]) for r in rows] == [(r.name, r.what, r.target) for r in ROWS], "take the counts again"
    assert [r for r in rows if r["held"] != r["tried"] or r["held"] < r["target"]] == []


@pytest.mark.parametrize(
    ("outcomes", "counted"),
    [
        ({"[a]": "passed", "[b]": "passed"}, (2, 2, 0)),
        ({"[a]": "passed", "[b]": "failed"}, (2, 1, 0)),
        ({"[a]": "passed", "[b]": "skipped"}, (1, 1, 1)),
        ({}, (0, 0, 0)),
    ],
)
def test_a_case_that_fails_or_is_skipped_did_not_hold(outcomes: dict[str, str], counted: tuple[int, int, int]) -> None:
    tally = Tally()
    for name, outcome in outcomes.items():
        for phase in ("passed", outcome, "passed"):
            tally.note(f"tests/hostile/test_manifests.py::test_a_codec_that_is_not_listed_is_refused{name}", phase, [])
    (row,) = [r for r in tally.as_json()["rows"] if r["id"] == "S9"]
    assert (row["tried"], row["held"], row["skipped"]) == counted
