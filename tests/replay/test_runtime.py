"""Stepping: what is committed, what is refused, what is given up, and how a run ends, fails and goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from replay.episode import run_episode, trajectory_of
from replay.policies.recorded import RecordedPolicy
from replay.registry import Registry
from replay.runtime import MAX_PARTS, Runtime
from replay.state import film_change
from replay.tool import Product, Refusal
from schemas.artifact import ArtifactKind, ArtifactRef
from schemas.blocker import BlockerCode
from schemas.contract import Fact, Role
from schemas.errors import ConfigInvalid, DigestMismatch, LimitExceeded, SchemaMismatch, StorageFault, ToolFailed
from schemas.trajectory import InjectedFault, ObservationStatus, Outcome, Provenance, RoleOutput
from storage.journal import Journal
from tests.replay.doubles import (
    SEGMENTS,
    TinyTool,
    ask,
    call,
    content,
    contract,
    music_tool,
    planned,
    ref,
    refused,
    registry,
    runtime,
    stitch_tool,
    suite,
    task,
)


def test_a_call_that_needs_content_waits_for_the_other_role(folder: Path) -> None:
    run = runtime(folder)
    observation = run.step(call("segment_article", max_sentences=3))
    assert observation.status is ObservationStatus.CONTENT_REQUESTED
    assert observation.changed == ("film.pending",)
    assert run.context().role is Role.GENERATOR
    run.step(content(SEGMENTS))
    assert run.context().role is Role.ORCHESTRATOR
    assert run.state.film.pending is None
    assert [(c.role.value, c.orchestrator_call) for c in run.calls] == [("orchestrator", 0), ("generator", 0)]


def test_a_refused_call_is_recorded_and_changes_nothing(folder: Path) -> None:
    run = runtime(folder)
    before = (run.state_digest, run.snapshot_id)
    run.step(call("stitch_video"))
    (only,) = run.calls
    assert (only.state_before, only.snapshot_before) == (only.state_after, only.snapshot_after) == before
    assert only.changes == ()


def test_a_call_that_nobody_can_parse_is_recorded_as_far_as_json_allows(folder: Path) -> None:
    run = runtime(folder, journal=Journal(folder / "journal"))
    run.step(RoleOutput(role=Role.ORCHESTRATOR, text="half a \ud800 pair", provenance=Provenance.STUDENT))
    assert run.calls[0].output.text == "half a ? pair"


def test_an_answer_refused_too_often_gives_the_call_up(folder: Path) -> None:
    run = runtime(folder, content_attempts=2)
    start = run.state_digest
    run.step(call("segment_article", max_sentences=3))
    waiting = run.state_digest
    for attempt in (1, 2):
        context = run.context()
        assert context.request is not None
        assert (context.request.attempt, run.state_digest) == (attempt, waiting)
        assert run.step(content("nonsense")).blockers[0].code is BlockerCode.UNPARSABLE_OUTPUT
    assert run.state_digest == start
    last = run.calls[-1]
    assert (last.output.provenance, last.observation.blockers[0].code) == (Provenance.RUNTIME, BlockerCode.CONTENT_CONTRACT_BROKEN)
    assert last.observation.changed == ("film.pending",)
    context = run.context()
    assert context.role is Role.ORCHESTRATOR
    assert context.view["latest"]["blockers"][0]["remedies"] == ["segment_article"]


def test_a_later_request_gets_its_attempts_anew(folder: Path) -> None:
    run = runtime(folder, content_attempts=2)
    run.step(call("segment_article", max_sentences=3))
    run.step(content("nonsense"))
    run.step(content(SEGMENTS))
    run.step(call("plan_shots", segments="all"))
    context = run.context()
    assert context.request is not None
    assert context.request.attempt == 1


def test_the_wrong_role_may_not_answer(folder: Path) -> None:
    run = runtime(folder)
    run.step(call("segment_article", max_sentences=3))
    assert run.step(call("stitch_video")).blockers[0].code is BlockerCode.ROLE_MISMATCH
    assert run.step(content(SEGMENTS, role=Role.CRITIC)).blockers[0].code is BlockerCode.ROLE_MISMATCH


def test_an_orchestrator_who_never_speaks_uses_up_the_budget(folder: Path) -> None:
    run = runtime(folder, budget=3)
    for _ in range(3):
        run.step(content("{}"))
    assert (run.finished, run.orchestrator_calls, run.outcome) == (True, 3, Outcome.INCOMPLETE)


def test_an_orchestrator_in_a_generators_turn_uses_up_the_answers_not_the_budget(folder: Path) -> None:
    run = runtime(folder, content_attempts=2)
    run.step(call("segment_article", max_sentences=3))
    for _ in range(2):
        run.step(call("stitch_video"))
    assert (run.state.film.pending, run.orchestrator_calls) == (None, 1)
    assert [c["tool"] for c in run.context().view["calls"]] == ["segment_article"]


def test_a_product_refused_after_its_content_lets_the_author_try_again(folder: Path) -> None:
    tries: list[int] = []

    def execute(state: Any, given: Any, env: Any) -> Product | Refusal:
        tries.append(len(given))
        return refused() if len(tries) == 1 else Product((film_change("ranked_defects", ["d1"]),), {})

    run = runtime(folder, music_tool(executing=execute))
    run.step(call("search_music"))
    waiting = run.state_digest
    assert run.step(content({"query": "calm"})).blockers[0].code is BlockerCode.PRODUCT_REJECTED
    assert run.state_digest == waiting
    assert run.step(content({"query": "gay"})).status is ObservationStatus.COMMITTED
    assert run.state.film.ranked_defects == ("d1",)


def test_delivery_ends_the_run_and_nothing_is_recorded_after_it(folder: Path) -> None:
    run = planned(runtime(folder))
    observation = run.step(call("stitch_video"))
    assert observation.finished
    assert (run.finished, run.outcome) == (True, Outcome.DELIVERED)
    count = len(run.calls)
    after = run.step(call("stitch_video"))
    assert (after.status, after.blockers[0].code, len(run.calls)) == (ObservationStatus.REFUSED, BlockerCode.WRONG_STAGE_ORDER, count)


def test_the_last_call_is_followed_by_a_delivery_attempt_of_the_runtime(folder: Path) -> None:
    run = planned(runtime(folder, budget=3))
    observation = run.step(call("plan_shots", segments="missing"))
    assert observation.finished
    assert (run.calls[-1].tool, run.calls[-1].output.provenance) == ("stitch_video", Provenance.RUNTIME)
    assert (run.outcome, run.orchestrator_calls) == (Outcome.DELIVERED, 3)


def test_an_attempt_that_cannot_deliver_leaves_an_incomplete_run_with_the_reasons(folder: Path) -> None:
    run = runtime(folder, budget=1)
    run.step(call("plan_shots", segments="all"))
    last = run.calls[-1].observation
    assert [b.code.value for b in last.blockers] == ["delivery_incomplete", "prerequisite_missing"]
    assert last.blockers[0].needs == ("segments",)
    assert (last.finished, run.outcome) == (True, Outcome.INCOMPLETE)
    assert run.step(call("segment_article", max_sentences=3)).blockers[0].code is BlockerCode.BUDGET_EXHAUSTED


def test_the_last_call_may_finish_its_content_first(folder: Path) -> None:
    run = runtime(folder, budget=1)
    assert not run.step(call("segment_article", max_sentences=3)).finished
    assert run.step(content(SEGMENTS)).finished
    assert run.outcome is Outcome.DELIVERED


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        (ToolFailed("crash", "gone"), 2),
        (LimitExceeded("wall", "too slow"), 2),
        (StorageFault("disk", "broken"), 1),
        (KeyError("bug"), 1),
    ],
    ids=["tool", "limit", "storage", "bug"],
)
def test_a_fault_of_ours_propagates_and_leaves_the_state_alone(folder: Path, error: Exception, tries: int) -> None:
    seen: list[Path] = []

    def execute(state: Any, given: Any, env: Any) -> Product:
        assert not list(env.workdir.iterdir())
        (env.workdir / "half").write_text("made")
        seen.append(env.workdir)
        raise error

    run = runtime(folder, TinyTool(contract("fail"), executing=execute))
    before = (run.state_digest, len(run.calls))
    with pytest.raises(ToolFailed if isinstance(error, KeyError) else type(error)):
        run.step(call("fail"))
    assert (run.state_digest, len(run.calls)) == before
    assert len(set(seen)) == tries
    assert not any(p.exists() for p in seen)


def test_a_fault_that_passes_is_retried_noted_and_never_observed(folder: Path) -> None:
    seen: list[int] = []

    def execute(state: Any, given: Any, env: Any) -> Product:
        seen.append(1)
        if len(seen) == 1:
            raise ToolFailed("flaky", "gone for a moment")
        return Product((), {"ok": True})

    run = runtime(folder, TinyTool(contract("flaky"), executing=execute))
    assert run.step(call("flaky")).results == {"ok": True}
    assert [(r.tool, r.error["code"]) for r in run.retried] == [("flaky", "flaky")]
    assert "flaky for" not in run.calls[0].model_dump_json()


def test_a_product_over_its_byte_limit_is_a_fault_of_ours(folder: Path) -> None:
    big = ArtifactRef(sha256="0" * 64, kind=ArtifactKind.RENDER, media_type="video/mp4", size_bytes=11)
    tool = TinyTool(contract("big", max_output_bytes=10), executing=lambda _s, _g, _e: Product((), {}, artifacts=(big,)))
    with pytest.raises(LimitExceeded):
        runtime(folder, tool).step(call("big"))


def test_a_tool_that_asks_for_ever_is_stopped(folder: Path) -> None:
    tool = music_tool()
    tool.needing = lambda _s, _a, _g, _e: ask()
    run = runtime(folder, tool)
    run.step(call("search_music"))
    for _ in range(MAX_PARTS):
        run.step(content({"query": "calm"}))
    with pytest.raises(ToolFailed, match="asks_for_ever"):
        run.step(content({"query": "calm"}))


def test_changes_that_do_not_fit_the_state_are_a_fault_of_the_tool(folder: Path) -> None:
    tool = TinyTool(contract("wrong"), executing=lambda _s, _g, _e: Product((film_change("nonsense", 1),), {}))
    with pytest.raises(SchemaMismatch):
        runtime(folder, tool).step(call("wrong"))


def test_injected_faults_are_recorded_with_the_call(folder: Path) -> None:
    fault = InjectedFault(fault_id="f1", kind="black_render", subject="film", detail="put in")

    def put_in(index: int, tool: str, product: Product, env: Any, state: Any) -> tuple[Product, tuple[InjectedFault, ...]]:
        return Product((film_change("ranked_defects", [f"{tool} {index}"]),), product.results), (fault,)

    run = runtime(folder, TinyTool(contract("make")), fault_filter=put_in)
    run.step(call("make"))
    assert run.calls[0].faults == (fault,)
    assert run.state.film.ranked_defects == ("make 0",)


def drive(run: Runtime, stop_after: int = 99) -> Runtime:
    """A fixed little run with refusals and contents in it."""
    outputs = [
        call("stitch_video"),
        call("segment_article", max_sentences=3),
        content("nonsense"),
        content(SEGMENTS),
        call("plan_shots", segments="all"),
        content("nonsense"),
        content("nonsense"),
        content("nonsense"),
        call("stitch_video"),
    ]
    index = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 7, 9: 8}
    while not run.finished and len(run.calls) < stop_after:
        run.step(outputs[index[len(run.calls)]])
    return run


@pytest.mark.parametrize("stop", range(1, 11))
def test_a_run_goes_on_where_its_journal_ends(folder: Path, stop: int) -> None:
    for name in ("a", "b"):
        (folder / name).mkdir()
    whole = drive(runtime(folder / "a"))
    first = Journal(folder / "b" / "journal")
    drive(runtime(folder / "b", journal=first), stop_after=stop)
    first.close()
    second = Journal(folder / "b" / "journal")
    resumed = runtime(folder / "b", journal=second)
    assert len(resumed.calls) in (stop, stop + 1)  # the call that gives up follows its refusal at once
    drive(resumed)
    assert [c.digest() for c in resumed.calls] == [c.digest() for c in whole.calls]
    assert trajectory_of(resumed, "x", 0) == trajectory_of(whole, "x", 0)


def test_contexts_and_snapshots_lost_with_the_power_are_made_again_from_the_journal(folder: Path) -> None:
    journal = Journal(folder / "journal")
    before = drive(runtime(folder, journal=journal), stop_after=3)
    journal.close()
    lost = {c.context_sha256 for c in before.calls} | {c.snapshot_after.removeprefix("snp_") for c in before.calls}
    for name in lost:
        (before.suite.store.root / name[:2] / name).write_bytes(b"torn")
    resumed = runtime(folder, journal=Journal(folder / "journal"))
    assert all(resumed.suite.store.read(name) for name in lost)


def test_a_delivery_attempt_that_a_kill_prevented_is_made_on_resumption(folder: Path) -> None:
    journal = Journal(folder / "journal")
    run = planned(runtime(folder, budget=3, journal=journal))
    run.settle = lambda: None  # type: ignore[method-assign]  # killed right after the journal line
    run.step(call("plan_shots", segments="missing"))
    journal.close()
    resumed = runtime(folder, budget=3, journal=Journal(folder / "journal"))
    assert not resumed.finished
    trajectory = run_episode(resumed, RecordedPolicy(trajectory_of(resumed, "none", 0)))
    assert (trajectory.outcome, trajectory.calls[-1].output.provenance) == (Outcome.DELIVERED, Provenance.RUNTIME)


@pytest.mark.parametrize("change", [{"budget": 7}, {"shot_repairs": 9}, {"start": task("Another script.")}])
def test_a_journal_of_another_run_is_refused(folder: Path, change: dict[str, Any]) -> None:
    journal = Journal(folder / "journal")
    runtime(folder, journal=journal)
    with pytest.raises(ConfigInvalid) as caught:
        runtime(folder, journal=journal, **change)
    assert caught.value.code == "journal_mismatch"


def test_a_journal_that_folds_to_another_state_is_refused(folder: Path) -> None:
    journal = Journal(folder / "journal")
    run = runtime(folder, journal=journal)
    run.step(call("segment_article", max_sentences=3))
    wrong = run.calls[0].model_copy(update={"call_index": 1, "changes": (), "state_after": "0" * 64})
    journal.append({"kind": "call", "call": wrong.model_dump(mode="json")})
    with pytest.raises(DigestMismatch):
        runtime(folder, journal=journal)


def test_every_snapshot_restored_and_stepped_gives_the_same_digests_and_contexts(folder: Path) -> None:
    run = drive(runtime(folder))
    fresh = suite(folder)
    for k, recorded in enumerate(run.calls):
        if recorded.output.provenance is Provenance.RUNTIME:
            continue
        again = Runtime(recorded.snapshot_before, registry(), fresh, history=run.calls[:k])
        visible = again.context().visible()
        assert fresh.store.put_json(visible, ArtifactKind.CONTEXT).sha256 == recorded.context_sha256
        again.step(recorded.output)
        assert again.calls[k] == recorded


def test_a_history_that_does_not_lead_to_the_state_is_refused(folder: Path) -> None:
    run = drive(runtime(folder))
    with pytest.raises(ConfigInvalid) as caught:
        Runtime(run.first_snapshot, registry(), suite(folder), history=run.calls[:4])
    assert caught.value.code == "history_mismatch"


def test_a_recording_leads_through_the_same_states(folder: Path) -> None:
    for name in ("a", "b"):
        (folder / name).mkdir()
    original = trajectory_of(drive(runtime(folder / "a")), "by hand", 0)
    replayed = run_episode(runtime(folder / "b"), RecordedPolicy(original))
    assert [c.state_after for c in replayed.calls] == [c.state_after for c in original.calls]
    assert replayed.outcome is Outcome.DELIVERED


def test_a_run_that_leaves_its_recording_says_so(folder: Path) -> None:
    run = drive(runtime(folder), stop_after=4)
    short = RecordedPolicy(trajectory_of(run, "by hand", 0))
    with pytest.raises(ConfigInvalid) as caught:
        run_episode(run, short)
    assert caught.value.code == "recording_left"


def test_an_old_version_of_a_tool_still_finishes_an_open_call(folder: Path) -> None:
    old, new = music_tool(), music_tool()
    new.contract = new.contract.model_copy(update={"version": 2})
    run = Runtime(task(), Registry([old, stitch_tool()]), suite(folder))
    run.step(call("search_music"))
    later = Runtime(run.snapshot_id, Registry([new, old, stitch_tool()]), run.suite, history=run.calls)
    assert later.step(content({"query": "calm"})).status is ObservationStatus.COMMITTED
    assert later.calls[-1].tool_version == 1


def test_ids_of_trajectories_come_from_what_happened(folder: Path) -> None:
    run = drive(runtime(folder))
    one, two = trajectory_of(run, "x", 1), trajectory_of(run, "x", 2)
    assert one.trajectory_id == trajectory_of(run, "x", 1).trajectory_id != two.trajectory_id


def test_the_delivered_film_is_named_only_while_it_is_current(folder: Path) -> None:
    run = planned(runtime(folder))
    assert trajectory_of(run, "x", 0).video is None
    run.step(call("stitch_video"))
    assert trajectory_of(run, "x", 0).video == ref("film", ArtifactKind.VIDEO)
    assert Fact.DELIVERY in stitch_tool().contract.produces
