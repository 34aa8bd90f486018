"""The tools of observe-reflect-repair through the runtime: scopes, what a critic may answer, acceptance of warnings."""

from __future__ import annotations

from typing import Any

import pytest

from repair.findings import found
from repair.inspect import shot_seen, unseen
from repair.mending import in_scope, offers
from repair.registry import full_registry
from repair.spoil import SPOILERS, spoiled_voice
from replay import facts
from replay.runtime import Runtime
from replay.state import apply, film_change, shot_change
from schemas.blocker import BlockerCode
from schemas.canonical import canonical_text
from schemas.contract import Fact, Role
from schemas.state import ProductionState
from schemas.trajectory import Observation, Provenance, RoleOutput
from schemas.verdict import DefectCode as Code
from tests.repair.conftest import Crew, Studio, call
from tests.repair.film import film


def orchestrate(runtime: Runtime, tool: str, **arguments: Any) -> Observation:
    return runtime.step(
        RoleOutput(role=Role.ORCHESTRATOR, tool=tool, arguments_json=canonical_text(arguments), provenance=Provenance.SCRIPTED)
    )


def criticise(runtime: Runtime, content: dict[str, Any]) -> Observation:
    return runtime.step(RoleOutput(role=Role.CRITIC, text=canonical_text(content), provenance=Provenance.SCRIPTED))


def black(studio: Studio) -> ProductionState:
    spoiled = SPOILERS["render_black"](studio.state, "s001", studio.env)
    assert spoiled is not None
    return apply(studio.state, [shot_change("s001", "render", spoiled.value)])


def quiet(studio: Studio) -> ProductionState:
    spoiled = spoiled_voice(lambda _: "volume=-6dB", "")(studio.state, "s001", studio.env)
    assert spoiled is not None
    return apply(studio.state, [shot_change("s001", "narration", spoiled.value)])


def test_the_full_registry_offers_thirteen_tools() -> None:
    assert full_registry().names() == (
        "compose_timeline", "decorate_spotlights", "inspect_quality", "plan_shots", "rank_severity", "reflect_plan", "render_shots",
        "repair_shots", "retrieve_visuals", "search_music", "segment_article", "stitch_video", "synthesize_narration",
    )  # fmt: skip


def test_schemas_are_flat() -> None:
    for schema in full_registry().schemas():
        for spec in schema["function"]["parameters"]["properties"].values():
            assert set(spec) <= {"type", "description", "enum"}
            assert isinstance(spec["type"], str)


JUDGEMENT = {"subject": "s001", "code": "render_black", "confirmed": True, "severity": "error"}


@pytest.mark.parametrize(
    ("judgements", "message"),
    [
        ([], "no judgement on render_black of s001"),
        ([{**JUDGEMENT, "confirmed": False}], "measured fact and cannot be dismissed"),
        ([JUDGEMENT, JUDGEMENT], "judged twice"),
        ([JUDGEMENT, {**JUDGEMENT, "subject": "s002"}], "not among the findings shown"),
    ],
)
def test_an_inspection_answer_must_fit_the_findings(studio: Studio, judgements: list[dict[str, Any]], message: str) -> None:
    runtime = studio.runtime(black(studio))
    assert orchestrate(runtime, "inspect_quality", shots="all").status == "content_requested"
    refused = criticise(runtime, {"judgements": judgements})
    assert refused.status == "refused"
    assert message in refused.blockers[0].message
    assert criticise(runtime, {"judgements": [JUDGEMENT]}).status == "committed"


def test_a_fact_may_be_weighed(studio: Studio) -> None:
    runtime = studio.runtime(black(studio))
    orchestrate(runtime, "inspect_quality", shots="all")
    criticise(runtime, {"judgements": [{**JUDGEMENT, "severity": "warning"}]})
    assert [(d.code, d.severity) for d in runtime.state.shots["s001"].open_defects] == [(Code.RENDER_BLACK, "warning")]
    assert {v.subject: v.passed for v in runtime.calls[-1].verdicts}["s001"] is True


def test_the_evidence_tells_what_was_measured_and_nothing_of_its_cause(studio: Studio) -> None:
    runtime = studio.runtime(black(studio))
    orchestrate(runtime, "inspect_quality", shots="all")
    request = runtime.context().request
    assert request is not None
    (row,) = request.evidence["findings"]
    assert (row["subject"], row["code"], row["fact"], row["standing"]) == ("s001", "render_black", True, "new")
    assert "100% of the frames black" in row["measured"]
    assert "inject" not in canonical_text(request.evidence)


def test_part_of_the_film_is_not_the_film(studio: Studio) -> None:
    runtime = studio.runtime(studio.state)
    seen = call(runtime, "inspect_quality", Crew(), shots="s001-s002")
    assert seen.results["not_inspected"] == "s003"
    assert not facts.holds(Fact.INSPECTION, runtime.state)
    assert unseen(runtime.state) == ("s003",)
    assert call(runtime, "inspect_quality", Crew(), shots="missing").results["inspected"] == "s003"
    assert facts.holds(Fact.INSPECTION, runtime.state)
    refused = orchestrate(runtime, "inspect_quality", shots="missing")
    assert [b.code for b in refused.blockers] == [BlockerCode.VALUE_NOT_ALLOWED]


def test_a_spotlight_verdict_carries_the_judges_score(studio: Studio) -> None:
    runtime = studio.runtime(studio.state)
    call(runtime, "inspect_quality", Crew(), shots="all")
    judges = {v.subject: v.judge for v in runtime.calls[-1].verdicts}
    assert judges == {"film": "structured", "s001": "structured", "s002": "embedded", "s003": "structured"}


def test_inspection_needs_renders(studio: Studio) -> None:
    runtime = studio.runtime(apply(studio.state, [shot_change("s003", "render", None)]))
    refused = orchestrate(runtime, "inspect_quality", shots="all")
    assert [(b.code, b.needs, b.remedies) for b in refused.blockers] == [
        (BlockerCode.PREREQUISITE_MISSING, ("renders",), ("render_shots",))
    ]


@pytest.mark.parametrize(
    ("order", "message"),
    [(["def_0"], "is no open defect"), (["{a}"], "is left out"), (["{a}", "{a}", "{b}"], "named twice")],
)
def test_a_severity_order_is_a_permutation(studio: Studio, order: list[str], message: str) -> None:
    one, two = (found(Code.RENDER_BLACK, s, "black", 1, 0).defect() for s in ("s001", "s002"))
    state = apply(studio.state, [shot_change("s001", "open_defects", [one]), shot_change("s002", "open_defects", [two])])
    runtime = studio.runtime(state)
    orchestrate(runtime, "rank_severity")
    ids = {"a": one.defect_id, "b": two.defect_id}
    refused = criticise(runtime, {"order": [o.format(**ids) for o in order]})
    assert any(message in b.message for b in refused.blockers)
    assert criticise(runtime, {"order": [two.defect_id, one.defect_id]}).status == "committed"
    assert runtime.state.film.ranked_defects == (two.defect_id, one.defect_id)


@pytest.mark.parametrize("tool", ["rank_severity", "repair_shots"])
def test_without_open_defects_there_is_nothing_to_do(studio: Studio, tool: str) -> None:
    refused = orchestrate(studio.runtime(studio.state), tool, **({"shots": "all"} if tool == "repair_shots" else {}))
    assert [(b.code, b.remedies) for b in refused.blockers] == [(BlockerCode.PREREQUISITE_MISSING, ("inspect_quality",))]


@pytest.mark.parametrize(
    ("mend", "message"),
    [
        ({"defect_id": "def_0", "cause": "c", "mend": "rerender"}, "not among the defects shown"),
        ({"defect_id": "{id}", "cause": "c", "mend": "accept"}, "accept is not allowed for render_black; allowed: rerender, reretrieve"),
    ],
)
def test_a_repair_request_names_shown_defects_and_allowed_mends(studio: Studio, mend: dict[str, str], message: str) -> None:
    defect = found(Code.RENDER_BLACK, "s001", "black", 1, 0).defect()
    runtime = studio.runtime(apply(studio.state, [shot_change("s001", "open_defects", [defect])]))
    orchestrate(runtime, "repair_shots", shots="all")
    refused = criticise(runtime, {"mends": [{**mend, "defect_id": mend["defect_id"].format(id=defect.defect_id)}]})
    assert message in refused.blockers[0].message


def test_a_warning_can_be_accepted_and_stays_accepted(studio: Studio) -> None:
    runtime = studio.runtime(quiet(studio))
    crew = Crew()
    call(runtime, "inspect_quality", crew, shots="all")
    (defect,) = runtime.state.shots["s001"].open_defects
    assert defect.severity == "warning"
    refused = orchestrate(runtime, "repair_shots", shots="missing")
    assert refused.blockers[0].message == "nothing that is open lies in 'missing'; 'all' takes warnings too"
    orchestrate(runtime, "repair_shots", shots="all")
    done = criticise(runtime, {"mends": [{"defect_id": defect.defect_id, "cause": "level", "mend": "accept", "reason": "barely audible"}]})
    assert done.results["mends"][0]["outcome"] == "accepted"
    shot = runtime.state.shots["s001"]
    assert (shot.open_defects, shot.repairs_used, shot.mends_tried) == ((), 0, (f"narration_loudness:accept:{defect.defect_id}",))
    again = call(runtime, "inspect_quality", crew, shots="s001")
    assert (again.results["warnings"], again.results["open_defects"]) == (1, [])
    assert not facts.holds(Fact.OPEN_DEFECTS, runtime.state)


def test_scopes_of_a_repair() -> None:
    error = found(Code.RENDER_BLACK, "s002", "", 1, 0).defect()
    warning = found(Code.ASSET_TOO_SHORT, "s003", "", 1, 0).defect()
    silent = found(Code.MUSIC_SILENT, "film", "", 1, 0).defect()
    state = apply(
        film(),
        [
            film_change("film_defects", [silent]),
            shot_change("s002", "open_defects", [error]),
            shot_change("s003", "open_defects", [warning]),
        ],
    )
    assert in_scope(state, "missing") == (silent, error)
    assert in_scope(state, "all") == (silent, error, warning)
    assert in_scope(state, "s002-s003") == (error, warning)
    ranked = apply(state, [film_change("ranked_defects", [warning.defect_id, error.defect_id])])
    assert in_scope(ranked, "all") == (warning, error, silent)


def test_an_exhausted_shot_can_only_accept(studio: Studio) -> None:
    black_one = found(Code.RENDER_BLACK, "s001", "", 1, 0).defect()
    frozen = found(Code.RENDER_FROZEN, "s001", "", 1, 0).defect()
    state = apply(studio.state, [shot_change("s001", "open_defects", [black_one, frozen]), shot_change("s001", "repairs_used", 2)])
    assert [(o.defect.code, [m.value for m in o.allowed]) for o in offers(state, "all", studio.suite.config)] == [
        (Code.RENDER_FROZEN, ["accept"])
    ]


def test_what_was_seen_is_a_matter_of_artifacts() -> None:
    state = film()
    assert shot_seen(state, "s001") != shot_seen(state, "s002")
    marked = apply(state, [shot_change("s001", "inspected", shot_seen(state, "s001"))])
    assert unseen(marked) == ("s002", "s003")
    assert unseen(apply(marked, [shot_change("s001", "render", None)])) == ("s001", "s002", "s003")
