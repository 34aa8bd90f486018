"""Faults in stored runs through the commands: restored, found, told apart, mended, recorded; and failed runs finished by the teacher."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evaluation.rft import CHECKS, first_failure
from jobs.cli import app
from media.command import Sandbox
from repair.config import FaultConfig
from repair.fault_kinds import EXECUTION_KINDS, INFRASTRUCTURE_KINDS, KINDS
from repair.injection import draw_kinds
from replay.suite import Suite
from schemas.trajectory import Outcome
from tests.conftest import ROOT
from tests.repair.runs import Stored, ask, run, stored_run

GATE = ("render_black", "narration_silent", "narration_quiet", "delivery_shifted", "timeline_slot_short", "missing_argument", "time_out")


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory, sandbox: Sandbox, suite: Suite) -> Stored:
    music = suite.config.mix.music_folder
    assert music is not None
    return stored_run(tmp_path_factory.mktemp("stored"), sandbox, music)


def test_the_draw_takes_every_kind_once_before_any_comes_again() -> None:
    config = FaultConfig(kinds=GATE, count=len(GATE), seed=3)
    assert sorted(draw_kinds(config)) == sorted(GATE)
    assert len(draw_kinds(FaultConfig(count=len(KINDS), seed=1))) == len(set(draw_kinds(FaultConfig(count=len(KINDS), seed=1))))
    assert draw_kinds(config) != draw_kinds(config.model_copy(update={"seed": 4}))


@pytest.fixture(scope="module")
def injected(stored: Stored) -> list[dict[str, Any]]:
    """Twenty-one faults of seven kinds in three runs."""
    assert stored.base.outcome is Outcome.DELIVERED
    argv = ("--kinds", ",".join(GATE), "--count", str(len(GATE)), "--runs", "3", "--seed", "1")
    reports: list[dict[str, Any]] = run(stored, "inject", *argv)
    return reports


@pytest.mark.slow
def test_every_injected_fault_is_found_located_and_recovered_from(injected: list[dict[str, Any]]) -> None:
    faults = [f for r in injected for f in r["faults"]]
    assert len(faults) >= 18
    assert {f["kind"] for f in faults} == set(GATE)
    assert [f for f in faults if not f["recovered"]] == []
    assert [f for f in faults if not f["located"]] == []
    assert {r["outcome"] for r in injected} == {"delivered"}


@pytest.mark.slow
def test_the_kept_prefix_is_the_bases_own(stored: Stored, injected: list[dict[str, Any]]) -> None:
    for report in injected:
        assert report["base_trajectory_id"] == stored.base.trajectory_id
        kept = ask(stored, "select state_after from calls where trajectory_id = :id order by call_index", id=report["trajectory_id"])
        assert [r["state_after"] for r in kept][: report["kept_calls"]] == [
            c.state_after for c in stored.base.calls[: report["kept_calls"]]
        ]


@pytest.mark.slow
def test_causes_are_rows_and_link_to_their_repairs(stored: Stored, injected: list[dict[str, Any]]) -> None:
    (row,) = ask(
        stored,
        """select count(*) faults, count(*) filter (level = 'infrastructure') broken, count(*) filter (level = 'plan') planned,
           bool_and(recovered) recovered from faults where base_trajectory_id is not null""",
    )
    assert row["faults"] == sum(len(r["faults"]) for r in injected)
    assert (row["broken"], row["recovered"]) == (3, True)
    assert row["planned"] >= 2, "a call is spoiled only where the fault makes sense"
    rows = ask(
        stored,
        """select f.kind, r.code, r.mend, r.outcome, r.call_failed = f.call_struck failed, r.call_found, r.call_mended, r.call_verified,
           r.score_before, r.score_after,
           r.artifact_before = f.artifact_sha256 same, r.artifact_after from faults f join repairs r
           on r.trajectory_id = f.trajectory_id and r.injected_fault = f.fault_id where f.kind = 'render_black'""",
    )
    assert rows
    for link in rows:
        assert (link["code"], link["mend"], link["outcome"], link["same"]) == ("render_black", "rerender", "verified", True)
        assert link["failed"], "the call that the fault struck made the faulty artifact"
        assert link["call_found"] < link["call_mended"] < link["call_verified"]
        assert link["score_before"] < link["score_after"]
        assert link["artifact_after"] is not None


@pytest.mark.slow
def test_refusals_are_links_too(stored: Stored, injected: list[dict[str, Any]]) -> None:
    rows = ask(
        stored,
        """select f.kind, r.code, r.answered, r.call_index, r.call_verified, r.calls_spent, r.quality_before, r.quality_after,
           r.state_before <> r.state_after changed
           from recoveries r join faults f on f.trajectory_id = r.trajectory_id and f.fault_id = r.injected_fault""",
    )
    assert len(rows) >= 2
    for row in rows:
        assert (row["kind"], row["code"], row["answered"], row["changed"]) == ("missing_argument", "missing_argument", "corrected", True)
        assert row["call_index"] < row["call_verified"]
        assert row["calls_spent"] >= 1
        assert row["quality_before"] < row["quality_after"] <= 1
    (links,) = ask(stored, "select (select count(*) from blockers) blockers, (select count(*) from recoveries) links")
    assert links["blockers"] == links["links"]


@pytest.mark.slow
def test_what_a_mend_costs_is_summed_up(stored: Stored, injected: list[dict[str, Any]]) -> None:
    costs = {(r["mend"], r["code"]): r for r in ask(stored, "from mends")}
    assert {m for m, _ in costs} >= {"remix", "renarrate", "rerender", "retime"}
    assert all(r["seconds"] > 0 and r["calls"] >= 1 for (m, _), r in costs.items() if m != "accept")
    assert costs["renarrate", "narration_loudness"]["artifacts"] >= 1
    for report in injected:
        rows = ask(stored, "select call_index i, wall_us from timings where trajectory_id = :id", id=report["trajectory_id"])
        assert {r["i"] for r in rows if r["wall_us"] is None} == set(range(report["kept_calls"]))
        assert len(rows) == report["calls"]


@pytest.mark.slow
def test_the_queries_of_the_docs_answer(stored: Stored, injected: list[dict[str, Any]]) -> None:
    page = (ROOT / "docs" / "repair.md").read_text("utf-8")
    mends, refusals = (part.split("```")[0].strip() for part in page.split("```sql")[1:])
    rows = ask(stored, mends)
    assert {r["kind"] for r in rows} >= {"render_black", "narration_silent", "delivery_shifted", "timeline_slot_short"}
    assert all(r["calls_spent"] >= 2 and r["score_after"] > r["score_before"] for r in rows if r["mend"] != "accept")
    answered = ask(stored, refusals)
    assert {(r["code"], r["answered"]) for r in answered} >= {("missing_argument", "corrected")}
    assert all(r["calls"] >= 1 and r["gained"] > 0 for r in answered)


@pytest.mark.slow
def test_break_downs_are_failures_and_in_no_call(stored: Stored, injected: list[dict[str, Any]]) -> None:
    rows = ask(stored, "select error_type, code, quarantined from failures where stage = 'inject'")
    assert {r["error_type"] for r in rows} == {"LimitExceeded"}
    assert not any(r["quarantined"] for r in rows)
    assert ask(stored, "select count(*) n from calls where observation_json like '%time_out%' or content_json like '%time_out%'") == [
        {"n": 0}
    ]


@pytest.mark.slow
def test_the_same_request_adds_nothing(stored: Stored, injected: list[dict[str, Any]]) -> None:
    before = ask(stored, "select count(*) n from trajectories")
    argv = ("--kinds", ",".join(GATE), "--count", str(len(GATE)), "--runs", "1", "--seed", "1")
    again = run(stored, "inject", stored.base.trajectory_id, *argv)
    assert again[0]["trajectory_id"] == injected[0]["trajectory_id"]
    assert ask(stored, "select count(*) n from trajectories") == before


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("inject", "--kinds", "render_pink"), "no fault kind 'render_pink'"),
        (("inject", "trj_nobody"), "no stored trajectory begins with 'trj_nobody'"),
        (("rft", "trj_nobody"), "no stored trajectory begins with 'trj_nobody'"),
        (("quality", "trj_nobody"), "no stored trajectory or project begins with 'trj_nobody'"),
    ],
)
def test_a_wrong_request_is_refused_with_a_reason(stored: Stored, argv: tuple[str, ...], message: str) -> None:
    result = CliRunner().invoke(app, [*argv, "--lake", str(stored.lake)])
    assert result.exit_code != 0
    assert message in str(result.exception)


def test_quality_is_computed_again_from_what_is_stored(stored: Stored) -> None:
    (found,) = run(stored, "quality", stored.base.trajectory_id)
    assert found["agrees"]
    assert found["weights"] == {
        "plan_coverage": 0.353,
        "spotlight_decoration_coverage": 0.186,
        "inspection_coverage": 0.179,
        "plan_hygiene": 0.144,
        "completion": 0.081,
        "efficiency": 0.057,
    }
    assert found["rule"] == pytest.approx(sum(found["weights"][k] * v for k, v in found["features"].items()), abs=1e-6)
    assert found["quality"] == pytest.approx(0.7 * found["rule"] + 0.3 * found["audit"], abs=1e-6)


@pytest.mark.slow
def test_failed_runs_are_finished_by_the_teacher_and_admitted(stored: Stored, injected: list[dict[str, Any]], tmp_path: Path) -> None:
    settings = tmp_path / "config.yaml"
    settings.write_text("materialize: {tokenizer: none}\n")
    rows = run(stored, "rft", "--assisted-quota", "1", "--config", str(settings))
    by_id = {r["student_trajectory_id"]: r for r in rows}
    assert set(by_id) == {stored.base.trajectory_id, *(r["trajectory_id"] for r in injected)}
    own = by_id[stored.base.trajectory_id]
    assert first_failure(stored.base) is None
    assert (own["provenance"], own["failure_call"], own["trajectory_id"]) == ("scripted", None, stored.base.trajectory_id)
    assert (own["replayed"], own["failed_checks"], own["admitted"]) == (True, [], True)
    assisted = [by_id[r["trajectory_id"]] for r in injected]
    assert {r["provenance"] for r in assisted} == {"teacher_assisted"}
    assert all(r["replayed"] and r["failed_checks"] == [] and r["quality"] >= 0.8 for r in assisted)
    assert sum(r["admitted"] for r in assisted) == 1
    assert {r["reason"] for r in assisted if not r["admitted"]} <= {"quota", "repeats an admitted run"}
    (kept,) = [r for r in assisted if r["admitted"]]
    calls = ask(stored, "select call_index, provenance, status from calls where trajectory_id = :id order by 1", id=kept["trajectory_id"])
    assert {c["provenance"] for c in calls if c["call_index"] >= kept["failure_call"]} == {"teacher"}
    assert not any(c["status"] == "refused" for c in calls if c["call_index"] >= kept["failure_call"])
    assert ask(stored, "select count(*) > 0 b from examples where trajectory_id = :id", id=kept["trajectory_id"]) == [{"b": True}]
    assert ask(stored, "select count(*) n, count(distinct trajectory_id) d from trajectories")[0]["n"] == len(
        {r["trajectory_id"] for r in rows} | set(by_id)
    )


def test_the_eight_checks_are_the_papers() -> None:
    assert CHECKS == ("schema", "prerequisite", "artifact_reference", "render", "duration", "narration", "lint", "black_frame")


def test_levels_are_disjoint() -> None:
    assert not set(EXECUTION_KINDS) & set(INFRASTRUCTURE_KINDS)
