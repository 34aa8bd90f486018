"""Inject, inspect, diagnose, repair, make again, verify: through the runtime, with equal digests of everything untouched."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from repair.diagnose import ScriptedCritic
from repair.fault_kinds import EXECUTION_KINDS, KINDS
from repair.faults import FaultPlan, FaultSpec
from repair.links import link
from repair.registry import full_registry
from repair.spoil import SPOILERS, spoiled_voice
from repair.taxonomy import Product
from replay import facts, lineage
from replay.engines import Samples, SpeechEngine
from replay.runtime import Runtime
from replay.state import apply, film_change, shot_change
from replay.tool import Product as Made
from replay.tool import ToolEnv
from schemas.blocker import BlockerCode
from schemas.contract import ContentRequest, Fact
from schemas.state import ProductionState
from schemas.trajectory import InjectedFault
from schemas.verdict import DefectCode as Code
from tests.repair.conftest import SPOTLIGHT, Crew, Studio, call, digests

MAKER = {
    Product.NARRATION: "synthesize_narration",
    Product.ASSET: "retrieve_visuals",
    Product.DECORATION: "decorate_spotlights",
    Product.MUSIC: "search_music",
    Product.RENDER: "render_shots",
    Product.TIMELINE: "compose_timeline",
    Product.DELIVERY: "stitch_video",
}
MADE_BY_MEND = {"record": {"planned"}, "timeline": {"planned"}}
"""Fields that a mend itself changes, where it is not the faulty one."""

AFTERWARDS = {
    "narration": set(),
    "asset": {"render"},
    "decoration": {"render"},
    "music": set(),
    "render": set(),
    "delivery": set(),
    "timeline": {"film.timeline", "render"},
    "record": {"film.timeline", "narration", "render"},
}
"""What is made again because of the mend, besides the faulty product: fields of the shot, or of the film."""

SLOW = {"decoration_wrong_text"}
NO_DEFECT = {"product_rejected"}


def without(studio: Studio, subject: str, field: str) -> ProductionState:
    """The film before a product was made."""
    return apply(studio.state, [film_change(field, None) if subject == "film" else shot_change(subject, field, None)])


def finish(runtime: Runtime, crew: Crew) -> None:
    """What a repair left to be made again."""
    due = (Fact.NARRATION, "synthesize_narration"), (Fact.TIMELINE, "compose_timeline"), (Fact.RENDERS, "render_shots")
    for fact, tool in due:
        if not facts.holds(fact, runtime.state):
            arguments = {} if tool == "compose_timeline" else {"shots": "missing"}
            assert call(runtime, tool, crew, **arguments).status == "committed"


def inject(studio: Studio, kind: str, subject: str, crew: Crew) -> Runtime:
    """A film in which the product was made again, with the fault, and everything after it."""
    spec = KINDS[kind]
    plan = FaultPlan(explicit=[FaultSpec(kind, subject)])
    if spec.field == "record":
        spoiled = SPOILERS[kind](studio.state, subject, studio.env)
        assert spoiled is not None
        runtime = studio.runtime(apply(studio.state, [shot_change(subject, "record", spoiled.value)]))
        finish(runtime, crew)
        return runtime
    runtime = studio.runtime(without(studio, "film" if spec.on_film else subject, spec.field), plan)
    assert spec.product is not None
    tool = MAKER[spec.product]
    assert call(runtime, tool, crew, **({} if spec.on_film else {"shots": subject})).status == "committed"
    assert [f.kind for f in runtime.calls[-1].faults] == [kind]
    finish(runtime, crew)
    return runtime


def subject_of(kind: str) -> str:
    """The film for a fault of the film's music or delivery, else the shot with the graphic."""
    return "film" if KINDS[kind].product in (Product.MUSIC, Product.DELIVERY) else SPOTLIGHT


FAULTS = [pytest.param(k, marks=pytest.mark.slow) if k in SLOW else k for k in EXECUTION_KINDS if k not in NO_DEFECT]


@pytest.mark.parametrize("kind", FAULTS)
def test_an_injected_fault_is_found_mended_and_verified(studio: Studio, kind: str) -> None:
    subject, field = subject_of(kind), KINDS[kind].field
    crew = Crew()
    runtime = inject(studio, kind, subject, crew)
    faulty, plans = digests(runtime.state), {sid: s.planned for sid, s in runtime.state.shots.items()}

    assert call(runtime, "inspect_quality", crew, shots="all").results["errors"] >= 1
    assert KINDS[kind].symptoms[0] in {d.code for v in runtime.calls[-1].verdicts for d in v.defects}
    done = call(runtime, "repair_shots", crew, shots="missing")
    assert done.status == "committed", done.blockers
    mended = digests(runtime.state)
    changed = {k for k in faulty if faulty[k] != mended.get(k)}
    if field in MADE_BY_MEND:
        assert {m["outcome"] for m in done.results["mends"]} == {"cleared"}
        assert changed == {"film.timeline"}
        assert {sid for sid, p in plans.items() if runtime.state.shots[sid].planned != p} == {subject}
    else:
        assert {m["outcome"] for m in done.results["mends"]} == {"redone"}
        assert changed == {f"{subject}.{field}"}

    finish(runtime, crew)
    after = digests(runtime.state)
    lengths = {"film.timeline", f"{subject}.render"} if kind == "narration_truncated" else set()
    allowed = {f if "." in f else f"{subject}.{f}" for f in AFTERWARDS[field]} | {f"{subject}.{field}"} | lengths
    assert {k for k in faulty if faulty[k] != after[k]} <= allowed
    seen = call(runtime, "inspect_quality", crew, shots="missing" if facts.lacking(Fact.INSPECTION, runtime.state) else "all")
    assert seen.results["errors"] == 0
    assert facts.holds(Fact.INSPECTION, runtime.state)
    (one,) = [r for r in link(runtime.calls) if r.defect.code is KINDS[kind].symptoms[0]]
    assert one.outcome == "verified"
    assert one.score_after is not None
    assert one.score_after > one.score_before
    if field not in MADE_BY_MEND:
        assert one.artifact_before == faulty[f"{subject}.{field}"]
        assert one.artifact_after == after[f"{subject}.{field}"]
        assert one.injected_fault is not None


def test_a_faulty_film_keeps_the_run_open_and_a_mended_one_ends_it(studio: Studio) -> None:
    crew = Crew()
    runtime = studio.runtime(studio.state, FaultPlan(explicit=[FaultSpec("delivery_silent", "film")]))
    call(runtime, "inspect_quality", crew, shots="all")
    renders = {k: v for k, v in digests(runtime.state).items() if k.endswith(".render")}
    first = call(runtime, "stitch_video", crew)
    assert (first.status, first.finished) == ("committed", False)
    assert [(d["code"], d["severity"]) for d in first.results["film_errors"]] == [("delivery_silent", "error")]
    done = call(runtime, "repair_shots", crew, shots="missing")
    assert [(m["mend"], m["outcome"]) for m in done.results["mends"]] == [("remix", "redone")]
    assert {k: v for k, v in digests(runtime.state).items() if k.endswith(".render")} == renders
    assert call(runtime, "stitch_video", crew).finished
    (one,) = link(runtime.calls)
    assert (one.outcome, one.injected_fault is not None) == ("verified", True)


def test_delivering_a_faulty_film_once_more_ends_the_run(studio: Studio) -> None:
    crew = Crew()
    runtime = studio.runtime(studio.state, FaultPlan(explicit=[FaultSpec("delivery_silent", "film")]))
    assert not call(runtime, "stitch_video", crew).finished
    healthy = runtime.state.film.delivery
    assert call(runtime, "stitch_video", crew).finished, "the film made again is sound"
    silent = studio.runtime(apply(studio.state, [film_change("delivery", healthy)]), AlwaysSilent())
    assert call(silent, "stitch_video", crew).finished, "open defects do not hold a delivery back for ever"
    assert [d.code for d in silent.state.film.film_defects] == [Code.DELIVERY_SILENT]


class AlwaysSilent:
    """A mixer that is broken for good."""

    def __call__(
        self, call_index: int, tool: str, product: Made, env: ToolEnv, state: ProductionState
    ) -> tuple[Made, tuple[InjectedFault, ...]]:
        if tool != "stitch_video":
            return product, ()
        spoiled = SPOILERS["delivery_silent"](apply(state, product.changes), "film", env)
        assert spoiled is not None
        return Made((film_change("delivery", spoiled.value),), product.results), ()


def test_a_rejected_product_is_a_blocker_and_the_next_call_makes_it(studio: Studio) -> None:
    crew = Crew()
    runtime = studio.runtime(without(studio, "s001", "render"), FaultPlan(explicit=[FaultSpec("product_rejected", "s001")]))
    refused = call(runtime, "render_shots", crew, shots="s001")
    assert [(b.code, b.subject) for b in refused.blockers] == [(BlockerCode.PRODUCT_REJECTED, "shot:s001")]
    assert [f.kind for f in runtime.calls[-1].faults] == ["product_rejected"]
    assert call(runtime, "render_shots", crew, shots="missing").status == "committed"
    assert digests(runtime.state) == digests(studio.state)


@pytest.mark.parametrize(
    ("kind", "field", "tool", "error"),
    [("tool_crash", "render", "render_shots", "ToolFailed"), ("time_out", "narration", "synthesize_narration", "LimitExceeded")],
)
def test_a_break_down_is_retried_recorded_and_never_shown(studio: Studio, kind: str, field: str, tool: str, error: str) -> None:
    plan = FaultPlan(explicit=[FaultSpec(kind, "s001")])
    runtime = studio.runtime(without(studio, "s001", field), plan)
    assert call(runtime, tool, Crew(), shots="s001").status == "committed"
    assert digests(runtime.state) == digests(studio.state)
    assert [(r.tool, r.error["type"]) for r in runtime.retried] == [(tool, error)]
    assert [(f.kind, f.subject) for f in plan.broken_down] == [(kind, "s001")]
    assert [c.faults for c in runtime.calls] == [()]
    assert kind not in runtime.calls[0].model_dump_json()


def test_a_repaired_narration_moves_no_other_shot(studio: Studio) -> None:
    crew = Crew()
    runtime = inject(studio, "narration_truncated", "s001", crew)
    renders = {s: r for s, r in digests(runtime.state).items() if s.endswith(".render")}
    call(runtime, "inspect_quality", crew, shots="all")
    call(runtime, "repair_shots", crew, shots="s001")
    assert not lineage.timeline_is_current(runtime.state)
    finish(runtime, crew)
    now = digests(runtime.state)
    assert {k for k in renders if renders[k] != now[k]} == {"s001.render"}


class HalfSpeech:
    """The real voice, which breaks off in the middle of every text."""

    def __init__(self, voice: SpeechEngine) -> None:
        self._voice = voice
        self.name, self.version, self.languages = f"half {voice.name}", voice.version, voice.languages

    def voice_for(self, language: str, wanted: str) -> str:
        return self._voice.voice_for(language, wanted)

    def speak(self, text: str, language: str, voice: str, speed: float) -> tuple[Samples, int]:
        samples, rate = self._voice.speak(text, language, voice, speed)
        return samples[: len(samples) * 2 // 5], rate


@pytest.mark.parametrize(("quieter_db", "severity"), [(6, "warning"), (14, "error")])
def test_a_product_that_is_no_better_is_not_kept(studio: Studio, quieter_db: int, severity: str) -> None:
    crew = Crew()
    spoiled = spoiled_voice(lambda _: f"volume=-{quieter_db}dB", "")(studio.state, "s001", studio.env)
    assert spoiled is not None
    runtime = studio.runtime(apply(studio.state, [shot_change("s001", "narration", spoiled.value)]))
    call(runtime, "inspect_quality", crew, shots="all")
    before = digests(runtime.state)
    assert [(d.code, d.severity) for d in runtime.state.shots["s001"].open_defects] == [(Code.NARRATION_LOUDNESS, severity)]
    engines = replace(studio.suite.engines, speech=HalfSpeech(studio.suite.engines.speech))
    clumsy = Runtime(runtime.state, full_registry(), replace(studio.suite, engines=engines), history=runtime.calls)
    (row,) = call(clumsy, "repair_shots", crew, shots="all").results["mends"]
    assert row["outcome"] == "kept_previous"
    assert row["score_after"] <= row["score_before"]
    assert digests(clumsy.state) == before
    assert [d.code for d in clumsy.state.shots["s001"].open_defects] == [Code.NARRATION_LOUDNESS]
    assert clumsy.state.shots["s001"].repairs_used == 1
    assert [r.outcome for r in link(clumsy.calls)] == ["kept_previous"]


class Insistent(ScriptedCritic):
    """A critic that mends with the cheapest mend whatever the severity."""

    def decide(self, request: ContentRequest) -> dict[str, Any]:
        if request.kind != "repair_request":
            return super().decide(request)
        rows = request.evidence["defects"]
        return {"mends": [{"defect_id": d["defect_id"], "cause": "seen", "mend": d["allowed"][0]["mend"]} for d in rows]}


def test_a_warning_can_be_mended_too(studio: Studio) -> None:
    """The plan itself asks for the same picture twice."""
    crew = Crew()
    crew.critic = Insistent()
    shot = studio.state.shots["s002"]
    assert shot.asset is not None
    query = studio.state.shots["s001"].planned.visual_query
    twice = [
        shot_change("s002", "planned", shot.planned.model_copy(update={"visual_query": query})),
        shot_change("s002", "asset", shot.asset.model_copy(update={"query": query})),
    ]
    runtime = studio.runtime(apply(studio.state, twice))
    crew.queries = {"s002": "steel ball at the chin"}
    call(runtime, "inspect_quality", crew, shots="all")
    before = digests(runtime.state)
    assert [(d.code, d.severity) for d in runtime.state.shots["s002"].open_defects] == [(Code.PLAN_REPETITION, "warning")]
    done = call(runtime, "repair_shots", crew, shots="s002")
    assert {(m["mend"], m["outcome"]) for m in done.results["mends"]} == {("reretrieve", "redone")}
    assert {k for k, v in digests(runtime.state).items() if before[k] != v} == {"s002.asset"}
    finish(runtime, crew)
    call(runtime, "inspect_quality", crew, shots="all")
    assert Code.PLAN_REPETITION not in {d.code for d in runtime.state.shots["s002"].open_defects}


def test_the_next_mend_is_tried_when_the_cheapest_did_not_help(studio: Studio) -> None:
    crew = Crew()
    runtime = inject(studio, "render_black", "s001", crew)
    tried = apply(runtime.state, [shot_change("s001", "mends_tried", ["render_black:rerender:def_0"])])
    again = studio.runtime(tried)
    call(again, "inspect_quality", crew, shots="all")
    asset = again.state.shots["s001"].asset
    assert asset is not None
    done = call(again, "repair_shots", crew, shots="s001")
    assert [(m["mend"], m["outcome"]) for m in done.results["mends"]] == [("reretrieve", "redone")]
    now = again.state.shots["s001"]
    assert now.excluded_clips == (asset.clip_id,)
    assert now.asset is not None
    assert now.asset.clip_id != asset.clip_id
    assert crew.asked[-2:] == ["repair_request", "queries"]
    assert "renders" in done.results["due"]
    finish(again, crew)
    assert call(again, "inspect_quality", crew, shots="missing").results["errors"] == 0


def test_a_shot_without_repairs_left_is_refused_before_anybody_is_asked(studio: Studio) -> None:
    crew = Crew()
    runtime = inject(studio, "narration_silent", "s001", crew)
    call(runtime, "inspect_quality", crew, shots="all")
    used = studio.runtime(apply(runtime.state, [shot_change("s001", "repairs_used", studio.suite.config.shot_repairs)]))
    crew.asked.clear()
    refused = call(used, "repair_shots", crew, shots="missing")
    assert refused.status == "refused"
    assert [(b.code, b.subject) for b in refused.blockers] == [(BlockerCode.REPAIR_LIMIT_REACHED, "shot:s001")]
    assert crew.asked == []
    assert call(used, "stitch_video", crew).status == "committed", "an open defect does not hold a delivery back"


def test_a_run_without_repairs_left_is_refused(studio: Studio) -> None:
    crew = Crew()
    runtime = inject(studio, "narration_silent", "s001", crew)
    call(runtime, "inspect_quality", crew, shots="all")
    used = studio.runtime(apply(runtime.state, [film_change("repairs_used", studio.suite.config.run_repairs)]))
    refused = call(used, "repair_shots", crew, shots="missing")
    assert [b.code for b in refused.blockers] == [BlockerCode.REPAIR_LIMIT_REACHED]


def test_exhausted_repairs_do_not_replace_a_missing_product(studio: Studio) -> None:
    state = apply(studio.state, [film_change("repairs_used", studio.suite.config.run_repairs), shot_change("s001", "render", None)])
    refused = call(studio.runtime(state), "stitch_video", Crew())
    assert [(b.code, b.needs) for b in refused.blockers] == [(BlockerCode.PREREQUISITE_MISSING, ("renders",))]


def test_several_defects_are_mended_in_one_call(studio: Studio) -> None:
    crew = Crew()
    state = studio.state
    for subject, kind in (("s001", "narration_clipped"), ("s003", "render_frozen")):
        spoiled = SPOILERS[kind](state, subject, studio.env)
        assert spoiled is not None
        state = apply(state, [shot_change(subject, KINDS[kind].field, spoiled.value)])
    runtime = studio.runtime(state)
    call(runtime, "inspect_quality", crew, shots="all")
    assert call(runtime, "rank_severity", crew).results["ranked"] == 3  # clipping is too loud as well
    done = call(runtime, "repair_shots", crew, shots="missing")
    assert {(m["subject"], m["mend"]) for m in done.results["mends"]} == {("s001", "renarrate"), ("s003", "rerender")}
    assert digests(runtime.state) == digests(studio.state)
    assert runtime.state.film.ranked_defects == ()
    assert call(runtime, "inspect_quality", crew, shots="missing").results["errors"] == 0
    assert {r.outcome for r in link(runtime.calls)} == {"verified"}
