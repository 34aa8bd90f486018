"""Inject, inspect, diagnose, repair, make again, verify: through the runtime, with equal digests of everything untouched."""

from __future__ import annotations

from dataclasses import replace

import pytest

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
from schemas.blocker import BlockerCode
from schemas.contract import Fact
from schemas.state import ProductionState
from schemas.verdict import DefectCode as Code
from tests.repair.conftest import SPOTLIGHT, Crew, Studio, call, digests

MAKER = {
    Product.NARRATION: "synthesize_narration",
    Product.ASSET: "retrieve_visuals",
    Product.DECORATION: "decorate_spotlights",
    Product.MUSIC: "search_music",
    Product.RENDER: "render_shots",
}
DOWNSTREAM = {
    "narration": set(),
    "asset": {"render"},
    "decoration": {"render"},
    "music": set(),
    "render": set(),
}
SLOW = {"decoration_wrong_text"}


def without(studio: Studio, subject: str, field: str) -> ProductionState:
    """The film before a product was made."""
    return apply(studio.state, [film_change(field, None) if subject == "film" else shot_change(subject, field, None)])


def finish(runtime: Runtime, crew: Crew) -> None:
    """What a repair left to be made again."""
    for fact, tool in ((Fact.TIMELINE, "compose_timeline"), (Fact.RENDERS, "render_shots")):
        if not facts.holds(fact, runtime.state):
            arguments = {"shots": "missing"} if tool == "render_shots" else {}
            assert call(runtime, tool, crew, **arguments).status == "committed"


def inject(studio: Studio, kind: str, subject: str, crew: Crew) -> Runtime:
    """A film in which the product was made again, with the fault, and everything after it."""
    spec = KINDS[kind]
    runtime = studio.runtime(without(studio, subject, spec.field), FaultPlan(explicit=[FaultSpec(kind, subject)]))
    assert spec.product is not None
    tool = MAKER[spec.product]
    arguments = {} if tool == "search_music" else {"shots": subject}
    assert call(runtime, tool, crew, **arguments).status == "committed"
    assert [f.kind for f in runtime.calls[-1].faults] == [kind]
    finish(runtime, crew)
    return runtime


@pytest.mark.parametrize("kind", [pytest.param(k, marks=pytest.mark.slow) if k in SLOW else k for k in EXECUTION_KINDS])
def test_an_injected_fault_is_found_mended_and_verified(studio: Studio, kind: str) -> None:
    subject = "film" if kind == "music_silent" else SPOTLIGHT
    crew = Crew()
    runtime = inject(studio, kind, subject, crew)
    faulty = digests(runtime.state)

    assert call(runtime, "inspect_quality", crew, shots="all").results["errors"] >= 1
    assert KINDS[kind].symptoms[0] in {d.code for v in runtime.calls[-1].verdicts for d in v.defects}
    done = call(runtime, "repair_shots", crew, shots="missing")
    assert done.status == "committed", done.blockers
    assert {m["outcome"] for m in done.results["mends"]} == {"redone"}
    mended = digests(runtime.state)
    field = KINDS[kind].field
    assert {k for k in faulty if faulty[k] != mended.get(k)} == {f"{subject}.{field}"}

    finish(runtime, crew)
    after = digests(runtime.state)
    changed = {k for k in faulty if faulty[k] != after[k]}
    lengths = {"film.timeline", f"{subject}.render"} if kind == "narration_truncated" else set()
    assert changed <= {f"{subject}.{f}" for f in {field} | DOWNSTREAM[field]} | lengths
    seen = call(runtime, "inspect_quality", crew, shots="missing" if facts.lacking(Fact.INSPECTION, runtime.state) else "all")
    assert seen.results["errors"] == 0
    assert facts.holds(Fact.INSPECTION, runtime.state)
    (one,) = [r for r in link(runtime.calls) if r.defect.code is KINDS[kind].symptoms[0]]
    assert one.outcome == "verified"
    assert one.artifact_before == faulty[f"{subject}.{field}"]
    assert one.artifact_after == after[f"{subject}.{field}"]
    assert one.score_after is not None
    assert one.score_after > one.score_before
    assert one.injected_fault is not None


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
