"""Rows of the lake: they fit the table specs and say what happened."""

from __future__ import annotations

from typing import Any

import pytest

from materialize.rows import example_rows, trajectory_rows
from schemas.tables import TABLE
from schemas.trajectory import Outcome
from storage.arrow import finish_rows


def _rows(run: Any, outcome: Outcome = Outcome.DELIVERED) -> dict[str, list[dict[str, Any]]]:
    return trajectory_rows(run.trajectory(outcome), final_state=run.states[1], quality=0.75, trajectory_sha256="5" * 64)


def test_all_tables_of_a_trajectory_are_there(run: Any) -> None:
    assert {name: len(rows) for name, rows in _rows(run).items()} == {
        "trajectories": 1,
        "calls": 26,
        "blockers": 2,
        "artifacts": 1,
        "snapshots": 2,
        "verdicts": 1,
        "repairs": 2,
        "faults": 26,
    }


@pytest.mark.parametrize("outcome", list(Outcome))
def test_rows_pass_the_table_specs_with_unique_keys(run: Any, outcome: Outcome) -> None:
    for name, rows in (_rows(run, outcome) | {"examples": example_rows(run.examples())}).items():
        assert len(finish_rows(TABLE[name], rows, stage_key="stg_x", run_id="run_x")) == len(rows)


def test_the_trajectory_row_counts_and_orders_the_tool_calls(run: Any) -> None:
    row = _rows(run)["trajectories"][0]
    assert (row["calls"], row["orchestrator_calls"], row["refused_calls"], row["repairs"], row["quality"]) == (26, 14, 2, 2, 0.75)
    assert row["tool_sequence"][:4] == ["stitch_video", "segment_article", "plan_shots", "reflect_plan"]


def test_an_incomplete_run_has_no_film(run: Any) -> None:
    row = _rows(run, Outcome.INCOMPLETE)["trajectories"][0]
    assert (row["video_sha256"], row["manifest_sha256"], row["duration_us"]) == (None, None, None)


def test_a_call_row_has_arguments_or_content_never_both(run: Any) -> None:
    calls = _rows(run)["calls"]
    assert (calls[10]["arguments_json"], calls[10]["content_json"]) == ('{"shots": "all"}', None)
    assert (calls[2]["arguments_json"], calls[2]["content_json"]) == (None, '{"segments":[{"title":"Sky"}]}')


def test_a_refused_call_keeps_its_blockers(run: Any) -> None:
    blocker = _rows(run)["blockers"][0]
    assert (blocker["call_index"], blocker["code"], blocker["subject"], blocker["needs"]) == (
        0,
        "prerequisite_missing",
        "tool:stitch_video",
        ["renders"],
    )


def test_an_artifact_belongs_to_the_shot_whose_record_points_to_it(run: Any) -> None:
    artifact = _rows(run)["artifacts"][0]
    assert (artifact["subject"], artifact["call_index"], artifact["kind"]) == ("s001", 10, "narration")


def test_snapshots_are_listed_once_with_the_call_that_starts_in_them(empty_run: Any, build: Any) -> None:
    first, second = empty_run.snapshot_ids
    empty_run.say(build.orchestrator, build.done, tool="a")
    empty_run.say(build.orchestrator, build.done, tool="b")
    empty_run.calls[1] = empty_run.calls[1].model_copy(update={"snapshot_after": second})
    assert [(r["snapshot_id"], r["first_call_index"]) for r in _rows(empty_run)["snapshots"]] == [(first, 0), (second, 2)]


def test_a_repair_row_tells_where_it_was_found_mended_and_verified(run: Any) -> None:
    held, lost = _rows(run)["repairs"]
    assert (held["call_found"], held["call_mended"], held["call_verified"], held["outcome"]) == (15, 19, 23, "verified")
    assert (lost["code"], lost["mend"], lost["outcome"]) == ("render_black", "rerender", "not_verified")


def test_an_example_row_holds_exact_texts(run: Any) -> None:
    row = next(r for r in example_rows(run.examples()) if r["call_index"] == 10)
    assert row["completion_json"] == (
        '{"content":"","role":"assistant","tool_calls":[{"function":{"arguments":"{\\"shots\\": \\"all\\"}",'
        '"name":"synthesize_narration"},"id":"call_10","type":"function"}]}'
    )
    assert row["prompt_json"].startswith('[{"content":"You are the orchestrator.","role":"system"},')
