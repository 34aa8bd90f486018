"""Every structured check on real bytes: the healthy film has no finding, each fault shows as its defect and as nothing else's."""

from __future__ import annotations

from pathlib import Path

import pytest

from repair.checks.delivery import delivery_findings
from repair.checks.sound import narration_findings
from repair.fault_kinds import KINDS
from repair.findings import Finding
from repair.inspect import examine, judge_score, product_quality
from repair.measurements import MEASURED, Measurements
from repair.spoil import SPOILERS
from repair.taxonomy import Product
from replay.state import apply, film_change, shot_change
from schemas.artifact import ArtifactKind
from schemas.state import AssetChoice, ProductionState
from schemas.verdict import DefectCode as Code
from tests.repair.conftest import SPOTLIGHT, Studio, store_clip
from tests.repair.film import clip, invented

ALL = ("s001", "s002", "s003")

OF_THE_FILM = (Product.MUSIC, Product.DELIVERY)
SUBJECT = {kind: "film" if KINDS[kind].product in OF_THE_FILM else SPOTLIGHT for kind in SPOILERS}
SLOW = {"decoration_wrong_text"}


def spoiled(studio: Studio, kind: str, state: ProductionState | None = None) -> ProductionState:
    """The film, or another state of it, with a faulty product and what was made from that."""
    subject, field = SUBJECT[kind], KINDS[kind].field
    healthy = state or studio.state
    made = SPOILERS[kind](healthy, subject, studio.env)
    assert made is not None
    after = apply(healthy, [film_change(field, made.value) if KINDS[kind].on_film else shot_change(subject, field, made.value)])
    if field == "record":
        after = studio.do(after, "synthesize_narration", {"shots": subject})
        after = studio.do(after, "compose_timeline", {})
    return studio.do(after, "render_shots", {"shots": subject}) if field in ("record", "timeline") else after


def errors(findings: tuple[Finding, ...]) -> set[tuple[str, Code]]:
    return {(f.subject, f.code) for f in findings if f.severity == "error"}


def test_the_healthy_film_has_no_findings(studio: Studio) -> None:
    report = examine(studio.state, ALL, studio.env)
    assert [(f.subject, f.code.value, f.measured) for f in report.findings] == []
    assert set(report.judged) == {SPOTLIGHT}
    assert report.judged[SPOTLIGHT] >= 0.95


@pytest.mark.parametrize("kind", [pytest.param(k, marks=pytest.mark.slow) if k in SLOW else k for k in SPOILERS])
def test_a_fault_shows_as_its_defect_and_only_there(studio: Studio, stitched: ProductionState, kind: str) -> None:
    state = spoiled(studio, kind, stitched if KINDS[kind].product is Product.DELIVERY else None)
    findings = examine(state, ALL, studio.env).findings
    symptoms = set(KINDS[kind].symptoms)
    assert KINDS[kind].symptoms[0] in {f.code for f in findings}
    assert {f.subject for f in findings} == {SUBJECT[kind]}
    assert {f.code for f in findings} <= symptoms
    assert errors(findings), "an injected fault is severe enough to be mended"


def test_a_black_card_is_rendered_as_it_is_and_found(studio: Studio) -> None:
    made = SPOILERS["decoration_low_contrast"](studio.state, SPOTLIGHT, studio.env)
    shot = studio.state.shots[SPOTLIGHT]
    assert made is not None
    assert shot.narration is not None
    card = {**made.value, "placement": "full_frame", "duration_us": 60_000_000}
    state = studio.do(apply(studio.state, [shot_change(SPOTLIGHT, "decoration", card)]), "render_shots", {"shots": SPOTLIGHT})
    render = state.shots[SPOTLIGHT].render
    assert render is not None
    assert MEASURED.video(render.ref, studio.env).black_share > 0.9
    assert errors(examine(state, ALL, studio.env).findings) == {(SPOTLIGHT, Code.SPOTLIGHT_LOW_CONTRAST)}


def test_a_finding_names_the_faulty_artifact(studio: Studio) -> None:
    state = spoiled(studio, "render_black")
    (finding,) = examine(state, ALL, studio.env).findings
    render = state.shots[SPOTLIGHT].render
    assert render is not None
    assert finding.artifact_sha256 == render.ref.sha256
    assert finding.defect_id == examine(state, ALL, studio.env).findings[0].defect_id


def remade(studio: Studio, source: str, tmp_path: Path, seconds: int = 6) -> ProductionState:
    """The film with the first shot's clip replaced and rendered again."""
    entry = store_clip(studio.suite, tmp_path, source, "pendulum in a lecture hall", seconds=seconds)
    pool = (entry, *studio.state.film.task.pool[1:])
    state = studio.state.model_copy(
        update={"film": studio.state.film.model_copy(update={"task": studio.state.film.task.model_copy(update={"pool": pool})})}
    )
    choice = AssetChoice(clip_id=entry.clip_id, ref=entry.ref, query="pendulum in a lecture hall", score=0.9, ranked=(entry.clip_id,))
    state = apply(state, [shot_change("s001", "asset", choice)])
    return studio.do(state, "render_shots", {"shots": "s001"})


@pytest.mark.parametrize(
    "source",
    [
        "smptebars=size=320x180:rate=15",  # a static shot is no defect
        "testsrc2=size=320x180:rate=15,lutyuv=y=16+(val-16)*0.03:u=128:v=128",  # nor is a dark one
        "testsrc2=size=320x180:rate=15,fps=5,fps=15",  # nor jerky footage
    ],
)
def test_static_and_dark_footage_is_healthy(studio: Studio, tmp_path: Path, source: str) -> None:
    assert errors(examine(remade(studio, source, tmp_path), ALL, studio.env).findings) == set()


def test_a_clip_much_shorter_than_its_slot_is_too_short(studio: Studio, tmp_path: Path) -> None:
    state = remade(studio, "testsrc2=size=320x180:rate=15", tmp_path, seconds=1)
    assert [(f.subject, f.code) for f in examine(state, ALL, studio.env).findings] == [("s001", Code.ASSET_TOO_SHORT)]


def test_a_clip_from_outside_the_pool_is_a_mismatch(studio: Studio) -> None:
    foreign = clip(invented("foreign", ArtifactKind.CLIP), "pendulum in a lecture hall")
    choice = AssetChoice(clip_id=foreign.clip_id, ref=foreign.ref, query="q", score=1.0, ranked=())
    state = apply(studio.state, [shot_change("s001", "asset", choice)])
    assert ("s001", Code.ASSET_MISMATCH) in errors(examine(state, ("s001",), studio.env).findings)


def test_a_planned_graphic_that_was_not_made_is_missing(studio: Studio) -> None:
    state = apply(studio.state, [shot_change(SPOTLIGHT, "decoration", None)])
    assert (SPOTLIGHT, Code.SPOTLIGHT_MISSING) in errors(examine(state, ALL, studio.env).findings)
    assert judge_score(state, SPOTLIGHT, studio.env) == 0.0


def test_a_record_that_promises_more_than_the_bytes_hold_is_truncated(studio: Studio) -> None:
    track = studio.state.shots["s001"].narration
    assert track is not None
    state = apply(studio.state, [shot_change("s001", "narration", track.model_copy(update={"duration_us": track.duration_us + 500_000}))])
    found = [f for f in examine(state, ("s001",), studio.env).findings if f.code is Code.NARRATION_TRUNCATED]
    assert [f.hard for f in found] == [True]


@pytest.fixture(scope="module")
def stitched(studio: Studio) -> ProductionState:
    return studio.do(studio.state, "stitch_video", {})


def test_a_healthy_film_is_not_measured_again(studio: Studio, stitched: ProductionState) -> None:
    """Its manifest holds what was measured of these very bytes."""
    memory = Measurements()
    assert list(delivery_findings(stitched, studio.env, memory)) == []
    assert stitched.film.delivery is not None
    assert memory.taken["audio"] == 0
    assert memory.taken["still"] == 0
    assert memory.taken["likeness"] == 1, "its one graphic is looked for on screen all the same"


def test_an_unchanged_artifact_is_not_measured_twice(studio: Studio) -> None:
    memory = Measurements()
    examine(studio.state, ALL, studio.env, memory)
    first = dict(memory.taken)
    examine(studio.state, ALL, studio.env, memory)
    assert dict(memory.taken) == first
    state = spoiled(studio, "render_black")
    examine(state, ALL, studio.env, memory)
    assert memory.taken["video"] == first["video"] + 1
    assert memory.taken["audio"] == first["audio"]


@pytest.mark.parametrize(
    ("kind", "product"),
    [
        ("narration_clipped", Product.NARRATION),
        ("decoration_overflow", Product.DECORATION),
        ("render_wrong_length", Product.RENDER),
        ("asset_repeated", Product.ASSET),
        ("music_silent", Product.MUSIC),
    ],
)
def test_a_faulty_product_has_a_lower_quality(studio: Studio, kind: str, product: Product) -> None:
    healthy, _ = product_quality(studio.state, SPOTLIGHT, product, studio.env)
    faulty, seen = product_quality(spoiled(studio, kind), SPOTLIGHT, product, studio.env)
    assert faulty < healthy
    assert KINDS[kind].symptoms[0] in seen


@pytest.mark.parametrize("text", ["And.", "Three, two, one."])
def test_a_short_track_that_breaks_off_is_truncated(studio: Studio, text: str) -> None:
    """A word or two have no reliable rate; that the sound stops while it is loud gives it away."""
    planned = studio.state.shots["s001"].planned.model_copy(update={"text": text})
    state = studio.do(apply(studio.state, [shot_change("s001", "planned", planned)]), "synthesize_narration", {"shots": "s001"})
    assert [f.code for f in narration_findings(state, ["s001"], studio.env, MEASURED)] == []
    cut = SPOILERS["narration_truncated"](state, "s001", studio.env)
    assert cut is not None
    broken = apply(state, [shot_change("s001", "narration", cut.value)])
    assert [f.code for f in narration_findings(broken, ["s001"], studio.env, MEASURED)] == [Code.NARRATION_TRUNCATED]
