"""Which outputs become examples, with which prompt and completion."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from materialize.config import MaterializeConfig
from materialize.examples import CONTENT_KINDS, materialize
from replay.contents import CONTENTS
from schemas.canonical import canonical_text
from schemas.errors import DigestMismatch, SchemaMismatch, StorageFault
from schemas.example import ExampleKind
from schemas.trajectory import Outcome, Provenance

NO_SPLIT = MaterializeConfig(tokenizer="none", validation_share=0, held_out_share=0)


def test_a_whole_run_gives_these_examples_in_call_order(run: Any) -> None:
    assert [(e.call_index, e.role.value, e.kind.value) for e in run.examples()] == [
        (1, "orchestrator", "blocker_recovery"),
        (2, "generator", "segments"),
        (3, "orchestrator", "tool_call"),
        (5, "generator", "shot_plan"),
        (6, "orchestrator", "tool_call"),
        (7, "critic", "plan_reflection"),
        (8, "orchestrator", "tool_call"),
        (9, "generator", "queries"),
        (10, "orchestrator", "tool_call"),
        (11, "orchestrator", "tool_call"),
        (12, "generator", "slots"),
        (13, "orchestrator", "tool_call"),
        (14, "generator", "music_query"),
        (15, "orchestrator", "tool_call"),
        (16, "critic", "localization"),
        (17, "orchestrator", "tool_call"),
        (18, "critic", "severity"),
        (19, "orchestrator", "tool_call"),
        (20, "critic", "repair_request"),
        (21, "orchestrator", "tool_call"),
        (22, "critic", "repair_request"),
        (23, "orchestrator", "tool_call"),
        (24, "critic", "verification"),
        (25, "orchestrator", "tool_call"),
    ]


def test_every_content_contract_has_an_example_kind() -> None:
    assert set(CONTENT_KINDS) == set(CONTENTS)


def test_every_kind_of_example_occurs_in_the_whole_run(run: Any) -> None:
    assert {e.kind for e in run.examples()} == set(ExampleKind)


def test_prompt_and_tools_are_the_bytes_of_the_context_artifact(run: Any) -> None:
    for example in run.examples():
        stored = run.store.read(example.context_sha256)
        assert stored == f'{{"messages":{canonical_text(list(example.prompt))},"tools":{example.tools_json}}}'.encode()


def test_generator_and_critic_see_no_tools(run: Any) -> None:
    assert {e.tools_json for e in run.examples() if e.role.value != "orchestrator"} == {"[]"}


def test_an_orchestrator_completion_is_one_tool_call_with_the_exact_arguments_text(run: Any) -> None:
    example = next(e for e in run.examples() if e.call_index == 10)
    assert example.completion == {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {"id": "call_10", "type": "function", "function": {"name": "synthesize_narration", "arguments": '{"shots": "all"}'}}
        ],
    }


def test_a_generator_completion_is_its_exact_text(run: Any) -> None:
    example = next(e for e in run.examples() if e.kind is ExampleKind.QUERIES)
    assert example.completion == {"role": "assistant", "content": '{"queries":[{"shot_id":"s001","query":"stars"}]}'}


def test_nothing_a_policy_did_not_see_is_in_an_example(run: Any, build: Any) -> None:
    trajectory = run.trajectory()
    assert build.canary in canonical_text(trajectory.model_dump(mode="json"))
    assert build.canary not in "".join(e.canonical().decode() for e in run.examples())


@pytest.mark.parametrize("provenance", [Provenance.SCRIPTED_MISTAKE, Provenance.RUNTIME])
def test_outputs_that_nobody_should_imitate_are_left_out_even_when_accepted(empty_run: Any, build: Any, provenance: Provenance) -> None:
    empty_run.say(build.orchestrator, build.done, tool="stitch_video", provenance=provenance)
    assert empty_run.examples() == ()


def test_a_tool_call_that_was_never_committed_gives_no_example(empty_run: Any, build: Any) -> None:
    empty_run.say(build.orchestrator, build.asked, tool="plan_shots")
    empty_run.say(build.generator, build.asked, tool="plan_shots", kind="shot_plan", text="{}")
    empty_run.say(build.generator, build.refused, tool="plan_shots", kind="shot_plan", text="{}")
    assert empty_run.examples() == ()


def test_a_call_that_the_runtime_gave_up_gives_no_example_and_the_next_one_is_a_recovery(empty_run: Any, build: Any) -> None:
    empty_run.say(build.orchestrator, build.asked, tool="plan_shots")
    empty_run.say(build.generator, build.asked, tool="plan_shots", kind="shot_plan", text="{}")
    empty_run.say(build.generator, build.refused, tool="plan_shots", kind="shot_plan", text="{}")
    empty_run.say(build.generator, build.done, tool="plan_shots", blocked=True, provenance=Provenance.RUNTIME)
    empty_run.say(build.orchestrator, build.done, tool="search_music")
    assert [(e.call_index, e.kind) for e in empty_run.examples()] == [(4, ExampleKind.BLOCKER_RECOVERY)]


def test_outputs_of_an_incomplete_run_are_kept_but_not_verified(run: Any) -> None:
    assert {e.verified for e in run.examples(outcome=Outcome.INCOMPLETE)} == {False}


def test_a_repair_that_did_not_hold_is_not_verified(run: Any) -> None:
    repairs = {e.call_index: e.verified for e in run.examples() if e.kind is ExampleKind.REPAIR_REQUEST}
    assert repairs == {20: True, 22: False}


def test_ids_are_stable_over_two_materializations(run: Any) -> None:
    first, second = run.examples(), run.examples()
    assert [e.example_id for e in first] == [e.example_id for e in second]
    assert len({e.example_id for e in first}) == len(first)


def test_equal_outputs_of_two_projects_have_two_ids(make_run: Any) -> None:
    one, two = make_run("prj_one").examples(), make_run("prj_two").examples()
    assert [e.context_sha256 for e in one] == [e.context_sha256 for e in two]
    assert not {e.example_id for e in one} & {e.example_id for e in two}


def test_an_exact_duplicate_is_dropped(empty_run: Any, build: Any) -> None:
    empty_run.say(build.orchestrator, build.asked, tool="retrieve_visuals")
    for _ in range(2):
        empty_run.say(build.generator, build.done, tool="retrieve_visuals", kind="queries", text="{}", user="same")
    assert [(e.call_index, e.role.value) for e in empty_run.examples()] == [(0, "orchestrator"), (1, "generator")]


def test_examples_known_from_another_trajectory_are_left_out(run: Any) -> None:
    first = run.examples()
    assert run.examples(known=frozenset(e.example_id for e in first[:5])) == first[5:]


def test_licence_and_attribution_come_from_the_source(run: Any) -> None:
    example = run.examples()[0]
    assert (example.licence, example.attribution) == ("CC-BY-3.0", "Walter Lewin")


def test_a_source_without_licence_is_unknown_not_free(run: Any, build: Any) -> None:
    board = build.storyboard("prj_one", licence=None)
    out = materialize(run.trajectory(), board, run.store, run.snapshots, NO_SPLIT, None).output
    assert out[0].licence == "unknown"


def test_a_storyboard_of_another_project_is_refused(run: Any, build: Any) -> None:
    with pytest.raises(SchemaMismatch, match="project_mismatch"):
        materialize(run.trajectory(), build.storyboard("prj_two"), run.store, run.snapshots, NO_SPLIT, None)


def test_an_unknown_content_kind_is_an_error_not_a_gap(empty_run: Any, build: Any) -> None:
    empty_run.say(build.generator, build.done, tool="x", kind="haiku", text="{}")
    with pytest.raises(SchemaMismatch, match="haiku"):
        empty_run.examples()


def test_a_missing_context_is_a_storage_fault(run: Any) -> None:
    run.calls[1] = run.calls[1].model_copy(update={"context_sha256": "7" * 64})
    with pytest.raises(StorageFault):
        run.examples()


def test_a_missing_snapshot_is_named(run: Any) -> None:
    run.calls[1] = run.calls[1].model_copy(update={"snapshot_before": "snp_" + "7" * 64})
    with pytest.raises(DigestMismatch, match="snapshot_missing"):
        run.examples()


def test_the_deep_check_compares_the_restored_state(run: Any) -> None:
    deep = NO_SPLIT.model_copy(update={"check_snapshots": True})
    assert len(run.examples(deep)) == 24
    run.calls[1] = run.calls[1].model_copy(update={"state_before": "7" * 64})
    with pytest.raises(DigestMismatch, match="snapshot_state"):
        run.examples(deep)


def test_a_context_with_more_than_messages_and_tools_is_refused(run: Any) -> None:
    from schemas.artifact import ArtifactKind

    sha = run.store.put_bytes(b'{"messages":[],"tools":[],"view":{}}', ArtifactKind.CONTEXT, "application/json").sha256
    run.calls[1] = run.calls[1].model_copy(update={"context_sha256": sha})
    with pytest.raises(SchemaMismatch, match="context_shape"):
        run.examples()


def test_the_stage_result_names_the_contexts_it_refers_to(run: Any, build: Any) -> None:
    done = materialize(run.trajectory(), build.storyboard("prj_one"), run.store, run.snapshots, NO_SPLIT, None)
    assert set(done.artifacts) == {e.context_sha256 for e in done.output}
    assert [r["example_id"] for r in done.rows["examples"]] == [e.example_id for e in done.output]
    assert orjson.loads(done.rows["examples"][0]["completion_json"]) == done.output[0].completion
