"""The production tools on real bytes: generated clips, a real voice, the real sandbox.

Longer than 500 lines because the tools share one production that is made once.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from media.audio import read_wav, write_wav
from media.ffmpeg import house_video
from media.frames import stream_frames
from media.sandbox import open_sandbox
from replay import facts, lineage
from replay.delivery import Seen, judge, look, verify_delivery
from replay.engines import MusicTrack
from replay.manifest import ATTRIBUTION, CAPTIONS, MANIFEST, VIDEO, Manifest
from replay.measured import measured_audio, measured_video
from replay.music import FolderLibrary
from replay.state import apply, shot_change
from replay.tool import Product, Refusal
from replay.tools import compose_timeline, render_shots, retrieve_visuals, search_music, stitch_video, synthesize_narration
from schemas.artifact import ArtifactKind
from schemas.blocker import BlockerCode
from schemas.contract import Fact
from schemas.state import ProductionState
from tests.replay.studio import RATE as R30
from tests.replay.studio import SOURCES, Studio, queries

CARD, FRACTAL, CELLS, DARK, SMALL = SOURCES
RETRIEVE, SPEAK, MUSIC, COMPOSE = retrieve_visuals.TOOL, synthesize_narration.TOOL, search_music.TOOL, compose_timeline.TOOL
RENDER, STITCH = render_shots.TOOL, stitch_video.TOOL
CALM: dict[str, Any] = {"query": "a quiet hum", "moods": ["calm"]}


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Studio:
    return Studio(tmp_path_factory.mktemp("studio"), open_sandbox())


@pytest.fixture(scope="module")
def film(studio: Studio) -> ProductionState:
    """The small film with everything but its delivery."""
    state = studio.planned()
    state, _ = studio.run(RETRIEVE, state, {"shots": "all"}, (queries(state),))
    state, _ = studio.run(SPEAK, state, {"shots": "missing"})
    state, _ = studio.run(MUSIC, state, {}, (CALM,))
    state, _ = studio.run(COMPOSE, state)
    state, _ = studio.run(RENDER, state, {"shots": "all"})
    return state


@pytest.fixture(scope="module")
def delivered(studio: Studio, film: ProductionState) -> tuple[ProductionState, Product]:
    return studio.run(STITCH, film)


def clips_of(state: ProductionState, studio: Studio) -> list[str]:
    names = {clip.clip_id: text for text, clip in studio.pool.items()}
    return [names[shot.asset.clip_id] if shot.asset else "" for shot in state.shots.values()]


# -- retrieve_visuals ----------------------------------------------------------------------------------------------------------


def test_each_shot_gets_the_clip_its_query_describes(film: ProductionState, studio: Studio) -> None:
    assert clips_of(film, studio)[:2] == [CARD, FRACTAL]
    assert CELLS in clips_of(film, studio)[2:]


def test_neighbouring_shots_get_different_clips(film: ProductionState, studio: Studio) -> None:
    found = clips_of(film, studio)
    assert all(a != b for a, b in pairwise(found))


def test_ranked_candidates_begin_with_the_chosen_one(film: ProductionState) -> None:
    for shot in film.shots.values():
        assert shot.asset is not None
        assert shot.asset.ranked[0] == shot.asset.clip_id
        assert len(set(shot.asset.ranked)) == len(shot.asset.ranked) == 5


def test_a_black_clip_is_passed_over(studio: Studio) -> None:
    state = studio.planned([("Dark.", "nothing but darkness", 1000)])
    state, product = studio.run(RETRIEVE, state, {"shots": "all"}, (queries(state),))
    assert clips_of(state, studio) != [DARK]
    assert product.results["passed_over"] == [f"{studio.pool[DARK].clip_id}: 100% of it is black"]


def test_excluded_clips_are_not_taken(studio: Studio) -> None:
    state = studio.planned([("A clock.", "colour test card with a running clock", 1000)])
    state = apply(state, [shot_change("s001", "excluded_clips", (studio.pool[CARD].clip_id,))])
    state, _ = studio.run(RETRIEVE, state, {"shots": "all"}, (queries(state),))
    assert clips_of(state, studio) == [SMALL]


def test_a_pool_without_a_usable_clip_is_a_refusal(studio: Studio) -> None:
    state = studio.planned([("Dark.", "darkness", 1000)], pool=(studio.pool[DARK],))
    done = studio.attempt(RETRIEVE, state, {"shots": "all"}, (queries(state),))
    assert isinstance(done, Refusal)
    assert [(b.code, b.subject) for b in done.blockers] == [(BlockerCode.PRODUCT_REJECTED, "shot:s001")]


@pytest.mark.parametrize(
    ("answer", "subjects"),
    [
        ({"queries": [{"shot_id": "s001", "query": "a"}]}, ["content:queries"] * 3),
        ({"queries": [{"shot_id": s, "query": "a"} for s in ("s001", "s002", "s003", "s004", "s004")]}, ["content:queries"]),
        ({"queries": [{"shot_id": s, "query": "a"} for s in ("s001", "s002", "s003", "s004", "s099")]}, ["content:queries.4.shot_id"]),
        (
            {"queries": [{"shot_id": s, "query": " "} for s in ("s001", "s002", "s003", "s004")]},
            [f"content:queries.{i}.query" for i in range(4)],
        ),
    ],
)
def test_queries_that_do_not_fit_are_refused(studio: Studio, answer: dict[str, Any], subjects: list[str]) -> None:
    state = studio.planned()
    assert [b.subject for b in RETRIEVE.accept(state, {"shots": "all"}, (), answer)] == subjects


def test_nothing_missing_is_said(film: ProductionState) -> None:
    assert [b.subject for b in RETRIEVE.resolve(film, {"shots": "missing"})] == ["argument:shots"]
    assert RETRIEVE.resolve(film, {"shots": "s002"}) == ()


# -- synthesize_narration ------------------------------------------------------------------------------------------------------


def test_narration_is_spoken_measured_and_levelled(film: ProductionState, studio: Studio) -> None:
    spoken = {sid: s.narration for sid, s in film.shots.items() if s.narration is not None}
    assert list(spoken) == ["s001", "s002", "s004"]
    for sid, narration in spoken.items():
        assert narration is not None
        m = measured_audio(narration.ref, studio.store, studio.sandbox)
        samples, rate = read_wav(studio.store.read(narration.ref.sha256))
        assert narration.duration_us == m.duration_us == len(samples) * 1_000_000 // rate, sid
        assert m.loudness_lufs is not None
        assert abs(m.loudness_lufs + 16) <= 0.5, sid
        assert m.peak_dbfs <= -1.9
        assert m.clipped_share == 0
        assert lineage.narration_is_current(film, sid)


def test_speaking_again_gives_the_same_bytes_from_the_store(film: ProductionState, studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(studio.engines.speech), "speak", lambda *_a: pytest.fail("the engine was asked again"))
    again, _ = studio.run(SPEAK, film, {"shots": "all"})
    assert again.shots == film.shots


def test_words_that_the_voice_can_only_approximate_are_told(studio: Studio) -> None:
    _, product = studio.run(SPEAK, studio.planned([("We say Привет.", "x", 1000), ("Plain.", "y", 1000)]), {"shots": "all"})
    assert product.results["approximated"] == [{"shot": "s001", "words": ["Привет"]}]


def test_another_speed_is_another_track(film: ProductionState, studio: Studio) -> None:
    fast = studio.config(speech={"engine": "flite", "speed": 1.5})
    state, _ = studio.run(SPEAK, film, {"shots": "s001"}, config=fast)
    before, after = film.shots["s001"].narration, state.shots["s001"].narration
    assert before is not None
    assert after is not None
    assert after.duration_us < before.duration_us


def test_a_text_with_nothing_to_say_gets_a_short_silence(studio: Studio) -> None:
    state, _ = studio.run(SPEAK, studio.planned([("—", "a pause", 1000)]), {"shots": "all"})
    narration = state.shots["s001"].narration
    assert narration is not None
    assert narration.duration_us == 240_000


@pytest.mark.parametrize(
    ("seconds", "level", "words"),
    [
        (1.0, 0.0, "100% of it is silence"),
        (0.2, 0.3, "it lasts 200 ms, which no voice takes for 43 characters"),
        (46.0, 0.3, "it lasts 46000 ms, which no voice takes for 43 characters"),
    ],
    ids=["silent", "cut", "something else"],
)
def test_a_voice_that_fails_is_a_refusal_and_is_asked_again(
    studio: Studio, monkeypatch: pytest.MonkeyPatch, seconds: float, level: float, words: str
) -> None:
    text = "A voice that fails today speaks again soon."
    wave = np.full(round(16_000 * seconds), level, np.float32) * np.sin(np.arange(round(16_000 * seconds)) / 9).astype(np.float32)
    answers = [wave, np.sin(np.arange(48_000) / 9).astype(np.float32) * np.float32(0.3)]
    monkeypatch.setattr(type(studio.engines.speech), "version", f"failing {words}")
    monkeypatch.setattr(type(studio.engines.speech), "speak", lambda *_a: (answers.pop(0), 16_000))
    state = studio.planned([(text, "x", 1000)])
    done = studio.attempt(SPEAK, state, {"shots": "all"})
    assert isinstance(done, Refusal)
    assert [(b.code, b.subject, b.needs, b.remedies) for b in done.blockers] == [
        (BlockerCode.PRODUCT_REJECTED, "shot:s001", ("narration",), ("synthesize_narration",))
    ]
    assert done.blockers[0].message.endswith(words)
    state, _ = studio.run(SPEAK, state, {"shots": "all"})
    assert state.shots["s001"].narration is not None


def test_shots_without_text_cannot_be_spoken(studio: Studio) -> None:
    assert [b.code for b in SPEAK.resolve(studio.planned(), {"shots": "s003"})] == [BlockerCode.VALUE_NOT_ALLOWED]


# -- search_music --------------------------------------------------------------------------------------------------------------


def test_music_is_chosen_by_mood_measured_and_licensed(film: ProductionState, studio: Studio) -> None:
    music = film.film.music
    assert music is not None
    assert (music.track_id, music.licence, round(music.duration_us / 1e6, 1)) == ("hum", "CC0-1.0", 8.0)


def test_silence_is_no_music(studio: Studio) -> None:
    state, _ = studio.run(MUSIC, studio.planned(), {}, ({"query": "hush", "moods": ["silence"]},))
    assert state.film.music is not None
    assert state.film.music.track_id != "hush"


def test_asked_again_another_track_comes(film: ProductionState, studio: Studio) -> None:
    state, _ = studio.run(MUSIC, film, {}, (CALM,))
    assert state.film.music is not None
    assert state.film.music.track_id == "beat"


# -- compose_timeline ----------------------------------------------------------------------------------------------------------


def test_the_timeline_holds_every_shot_back_to_back(film: ProductionState, studio: Studio) -> None:
    timeline = film.film.timeline
    assert timeline is not None
    assert [i.shot_id for i in timeline.items] == ["s001", "s002", "s003", "s004"]
    assert [i.start_frame for i in timeline.items[1:]] == [i.start_frame + i.frames for i in timeline.items[:-1]]
    assert timeline.items[2].frames == 36
    assert facts.holds(Fact.TIMELINE, film)


def test_the_interchange_file_opens_and_has_the_same_frames(film: ProductionState, studio: Studio) -> None:
    import opentimelineio as otio

    timeline = film.film.timeline
    assert timeline is not None
    read = otio.adapters.read_from_string(studio.store.read(timeline.ref.sha256).decode(), "otio_json")
    picture, voice, music = read.tracks
    assert [clip.name for clip in picture] == ["s001", "s002", "s003", "s004"]
    assert [round(clip.duration().value) for clip in picture] == [i.frames for i in timeline.items]
    assert [c.name for c in voice if isinstance(c, otio.schema.Clip)] == ["s001", "s002", "s004"]
    assert round(music.duration().value) == timeline.total_frames


def test_an_impossible_length_without_narration_is_refused(studio: Studio) -> None:
    state = studio.planned([("", "cells", 900)], duration_min_us=9_000_000, duration_max_us=9_500_000)
    done = COMPOSE.execute(state, {}, (), studio.env())
    assert isinstance(done, Refusal)
    assert [(b.code, b.remedies) for b in done.blockers] == [(BlockerCode.PRODUCT_REJECTED, ("reflect_plan", "plan_shots"))]


# -- render_shots --------------------------------------------------------------------------------------------------------------


def test_renders_have_exactly_their_frames(film: ProductionState, studio: Studio) -> None:
    timeline = film.film.timeline
    assert timeline is not None
    for item in timeline.items:
        render = film.shots[item.shot_id].render
        assert render is not None
        m = measured_video(render.ref, studio.store, studio.sandbox)
        assert (m.frames, m.width, m.height, m.rate) == (item.frames, 320, 180, "30/1")
        assert m.black_share < 0.5
    assert facts.holds(Fact.RENDERS, film)


def test_rendering_again_gives_the_same_bytes(film: ProductionState, studio: Studio) -> None:
    again, _ = studio.run(RENDER, film, {"shots": "all"})
    assert again.shots == film.shots


def test_bytes_do_not_depend_on_the_number_of_workers(film: ProductionState, studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two at a time made the film; one at a time, with nothing out of the store, makes the same."""
    assert (synthesize_narration.WORKERS, render_shots.WORKERS) == (2, 2)
    monkeypatch.setattr(synthesize_narration, "WORKERS", 1)
    monkeypatch.setattr(render_shots, "WORKERS", 1)
    monkeypatch.setattr(type(studio.store), "recall", lambda *_a: None)
    again, _ = studio.run(SPEAK, film, {"shots": "all"})
    again, _ = studio.run(RENDER, again, {"shots": "all"})
    assert again.shots == film.shots


def test_a_moved_shot_keeps_its_render(film: ProductionState, studio: Studio) -> None:
    longer = film.shots["s001"].planned.model_copy(update={"target_duration_us": 9_000_000})
    state = apply(film, [shot_change("s001", "planned", longer)])
    state, _ = studio.run(COMPOSE, state)
    assert facts.lacking(Fact.RENDERS, state) == ("s001",)


# -- stitch_video --------------------------------------------------------------------------------------------------------------


def test_the_film_is_one_file_that_agrees_with_its_manifest(delivered: tuple[ProductionState, Product], studio: Studio) -> None:
    state, product = delivered
    delivery, timeline = state.film.delivery, state.film.timeline
    assert delivery is not None
    assert timeline is not None
    manifest = Manifest.model_validate(studio.store.read_json(delivery.manifest.sha256))
    assert manifest.picture.frames == timeline.total_frames
    assert (manifest.picture.codec, manifest.sound.codec, manifest.sound.sample_rate, manifest.sound.channels) == ("h264", "aac", 48_000, 2)
    assert manifest.coverage == 1.0
    assert abs(manifest.sound.loudness_lufs + 16) < 2.0
    assert manifest.sound.drift_us < 33_333
    assert manifest.sound.true_peak_dbtp <= -1.0
    assert {c.kind for c in manifest.credits} == {"footage", "music", "voice"}
    assert [s.narration is not None for s in manifest.shots] == [True, True, False, True]
    assert facts.holds(Fact.DELIVERY, state)
    assert product.results["frames"] == timeline.total_frames


def test_sound_and_picture_lie_together(delivered: tuple[ProductionState, Product], studio: Studio) -> None:
    state, _ = delivered
    assert state.film.delivery is not None
    manifest = Manifest.model_validate(studio.store.read_json(state.film.delivery.manifest.sha256))
    assert abs(manifest.picture.duration_us - manifest.sound.duration_us) <= 33_334


def test_cuts_do_not_push_the_picture_back(delivered: tuple[ProductionState, Product], seen: Seen, studio: Studio) -> None:
    """Every frame of the joined film stands where its number says, to a tick of the container (65 us)."""
    assert delivered[0].film.delivery is not None
    path = studio.store.path(delivered[0].film.delivery.video.sha256)
    times = [f.pts_us for f in stream_frames(path, seen.info, studio.sandbox, width=16, height=10, gray=True)]
    assert len(times) == seen.video.frames
    assert max(abs(t - R30.us_at(n)) for n, t in enumerate(times)) <= 66


def test_stitching_again_gives_the_same_bytes(
    delivered: tuple[ProductionState, Product], film: ProductionState, studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, product = studio.run(STITCH, film)
    assert (kept.film.delivery, product) == (delivered[0].film.delivery, delivered[1])
    monkeypatch.setattr(stitch_video, "_known", lambda *_a: None)
    again, product = studio.run(STITCH, film)
    assert (again.film.delivery, product) == (delivered[0].film.delivery, delivered[1])


def test_another_mix_is_another_film(delivered: tuple[ProductionState, Product], film: ProductionState, studio: Studio) -> None:
    other, _ = studio.run(STITCH, film, config=studio.config(mix={"music_below_db": 12.0}))
    assert other.film.delivery is not None
    assert delivered[0].film.delivery is not None
    assert other.film.delivery.video != delivered[0].film.delivery.video


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (("-vf", "scale=160:90"), "of 160x90, its slot needs"),
        (("-frames:v", "5"), "has 5 frames of 320x180"),
    ],
    ids=["half the size", "cut short"],
)
def test_a_render_that_does_not_fit_its_slot_is_named_to_the_policy(
    film: ProductionState, studio: Studio, spoil: tuple[str, str], words: str
) -> None:
    render = film.shots["s002"].render
    assert render is not None
    file = studio.ffmpeg("a.mp4", "-i", "/in/a", *spoil, *house_video(), "/out/a.mp4", inputs={"a": studio.store.path(render.ref.sha256)})
    wrong = render.model_copy(update={"ref": studio.store.put_file(file, ArtifactKind.RENDER, "video/mp4")})
    state = apply(film, [shot_change("s002", "render", wrong)])
    done = studio.attempt(STITCH, state)
    assert isinstance(done, Refusal)
    assert [(b.code, b.subject, b.needs, b.remedies) for b in done.blockers] == [
        (BlockerCode.PRODUCT_REJECTED, "shot:s002", ("renders",), ("render_shots",))
    ]
    assert words in done.blockers[0].message
    mended, _ = studio.run(RENDER, state, {"shots": "s002"})
    assert mended.shots == film.shots


def test_a_render_that_is_no_film_is_named_to_the_policy(film: ProductionState, studio: Studio) -> None:
    render = film.shots["s001"].render
    assert render is not None
    lie = render.model_copy(update={"ref": studio.store.put_bytes(b"no film at all", ArtifactKind.RENDER, "video/mp4")})
    done = studio.attempt(STITCH, apply(film, [shot_change("s001", "render", lie)]))
    assert isinstance(done, Refusal)
    assert [(b.subject, b.remedies) for b in done.blockers] == [("shot:s001", ("render_shots",))]


def test_a_silenced_narration_over_a_steady_tone_does_not_stop_the_film(film: ProductionState, studio: Studio) -> None:
    """The music that rises after the silence was once taken for a shift of 200 ms."""
    shots = {sid: s.narration for sid, s in film.shots.items() if s.narration is not None}
    state = film
    for sid, narration in shots.items():
        silence = write_wav(np.zeros(narration.duration_us * 24 // 1000, np.float32), 24_000)
        quiet = narration.model_copy(update={"ref": studio.store.put_bytes(silence, ArtifactKind.NARRATION, "audio/wav")})
        state = apply(state, [shot_change(sid, "narration", quiet)])
    state, product = studio.run(STITCH, state)
    assert product.results["drift_us"] < 1000


def export(state: ProductionState, studio: Studio, folder: Path) -> Path:
    assert state.film.delivery is not None
    manifest = studio.store.read(state.film.delivery.manifest.sha256)
    (folder / VIDEO).write_bytes(studio.store.read(state.film.delivery.video.sha256))
    (folder / MANIFEST).write_bytes(manifest)
    for name, part in ((CAPTIONS, "captions"), (ATTRIBUTION, "attribution")):
        (folder / name).write_bytes(studio.store.read(json.loads(manifest)[part]["sha256"]))
    return folder


def test_the_attribution_names_author_licence_and_changes(
    delivered: tuple[ProductionState, Product], studio: Studio, tmp_path: Path
) -> None:
    words = (export(delivered[0], studio, tmp_path) / ATTRIBUTION).read_text()
    assert (
        "footage: Cards\n  by: the test studio\n  licence: CC0-1.0 (https://creativecommons.org/publicdomain/zero/1.0/)\n  changed: cut"
        in words
    )
    assert "voice: flite voices\n  by: Carnegie Mellon University\n" in words


def test_captions_may_be_left_out_and_so_may_names_that_no_licence_asks_for(
    delivered: tuple[ProductionState, Product], studio: Studio, tmp_path: Path
) -> None:
    folder = export(delivered[0], studio, tmp_path)
    (folder / CAPTIONS).unlink()
    (folder / ATTRIBUTION).unlink()
    assert verify_delivery(folder, studio.sandbox).passed


def test_a_delivered_folder_is_valid(delivered: tuple[ProductionState, Product], studio: Studio, tmp_path: Path) -> None:
    report = verify_delivery(export(delivered[0], studio, tmp_path), studio.sandbox)
    assert report.passed, report.problems
    assert "The clock runs on a card." in (tmp_path / CAPTIONS).read_text()


def _edit(folder: Path, **changes: Any) -> None:
    data = json.loads((folder / MANIFEST).read_bytes())
    for path, value in changes.items():
        at = data
        *parents, last = path.split("__")
        for part in parents:
            at = at[int(part) if part.isdigit() else part]
        at[last] = value
    (folder / MANIFEST).write_text(json.dumps(data))


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda f: (f / VIDEO).unlink(), "missing_file"),
        (lambda f: ((f / VIDEO).rename(f / "x"), (f / VIDEO).symlink_to(f / "x")), "missing_file"),
        (lambda f: (f / VIDEO).write_bytes(b""), "missing_file"),
        (lambda f: (f / VIDEO).write_bytes((f / VIDEO).read_bytes()[:-1]), "wrong_bytes"),
        (lambda f: (f / MANIFEST).write_text("{}"), "bad_manifest"),
        (lambda f: (f / MANIFEST).write_text("not json"), "bad_manifest"),
        (lambda f: (f / CAPTIONS).write_text("1\n"), "wrong_captions"),
        (lambda f: os.truncate(f / VIDEO, 1 << 40), "wrong_bytes"),
        (lambda f: os.truncate(f / CAPTIONS, 1 << 40), "wrong_captions"),
        (lambda f: _edit(f, shots__0__shot_id="../../x"), "bad_manifest"),
        (lambda f: _edit(f, shots__0__clip_sha256="../../x"), "bad_manifest"),
        (lambda f: _edit(f, captions__file="/etc/passwd"), "bad_manifest"),
        (lambda f: (f / ATTRIBUTION).write_text("Everything is mine.\n"), "wrong_attribution"),
    ],
)
def test_a_tampered_folder_is_not_valid(
    delivered: tuple[ProductionState, Product], studio: Studio, tmp_path: Path, spoil: Any, code: str
) -> None:
    folder = export(delivered[0], studio, tmp_path)
    spoil(folder)
    report = verify_delivery(folder, studio.sandbox)
    assert [p.code for p in report.problems] == [code]
    assert not report.passed


@pytest.fixture(scope="module")
def seen(delivered: tuple[ProductionState, Product], studio: Studio) -> Seen:
    assert delivered[0].film.delivery is not None
    return look(studio.store.path(delivered[0].film.delivery.video.sha256), studio.sandbox)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"picture__frames": 10}, "wrong_length"),
        ({"picture__width": 640}, "wrong_size"),
        ({"picture__frame_rate": {"num": 25, "den": 1}}, "wrong_rate"),
        ({"sound__loudness_lufs": -12.0}, "loudness"),
        ({"sound__drift_us": 900_000}, "drift"),
        ({"shots__1__start_frame": 3}, "shot_order"),
        ({"credits": []}, "no_credits"),
        ({"coverage": 0.5}, "coverage"),
        ({"picture__black_share": 0.4}, "wrong_measure"),
        ({"sound__silent_share": 0.5}, "wrong_measure"),
        ({"shots__1__shot_id": "s001"}, "shot_twice"),
        ({"shots__0__narration__end_us": 60_000_000}, "narration_outside"),
        ({"picture__stream_sha256": "0" * 64}, "wrong_stream"),
        ({"sound__stream_sha256": "0" * 64}, "wrong_stream"),
    ],
)
def test_a_manifest_that_does_not_fit_the_bytes_is_found_out(
    delivered: tuple[ProductionState, Product], studio: Studio, tmp_path: Path, seen: Seen, changes: dict[str, Any], code: str
) -> None:
    folder = export(delivered[0], studio, tmp_path)
    assert judge(Manifest.model_validate_json((folder / MANIFEST).read_bytes()), seen) == []
    _edit(folder, **changes)
    assert code in {p.code for p in judge(Manifest.model_validate_json((folder / MANIFEST).read_bytes()), seen)}


@pytest.mark.parametrize(("longer_us", "found"), [(21_000, False), (-16_000, False), (22_000, True), (-17_000, True)])
def test_a_filled_block_of_sound_is_no_drift_however_short_a_frame_is(
    delivered: tuple[ProductionState, Product], studio: Studio, tmp_path: Path, seen: Seen, longer_us: int, found: bool
) -> None:
    folder = export(delivered[0], studio, tmp_path)
    _edit(folder, picture__frame_rate={"num": 60, "den": 1})
    other = replace(seen, audio=replace(seen.audio, duration_us=seen.video.duration_us + longer_us))
    assert ("drift" in {p.code for p in judge(Manifest.model_validate_json((folder / MANIFEST).read_bytes()), other)}) is found


@pytest.mark.parametrize("data", [b"no film at all, only words", b"#EXTM3U\nfile:///etc/passwd\n", b"ffconcat version 1.0\nfile secret\n"])
def test_bytes_that_are_no_film_are_named(studio: Studio, delivered: tuple[ProductionState, Product], tmp_path: Path, data: bytes) -> None:
    folder = export(delivered[0], studio, tmp_path)
    (folder / VIDEO).write_bytes(data)
    _edit(folder, video__sha256=hashlib.sha256(data).hexdigest(), video__size_bytes=len(data))
    assert [p.code for p in verify_delivery(folder, studio.sandbox).problems] == ["not_a_film"]


def test_a_track_that_is_no_sound_is_passed_over(studio: Studio, tmp_path: Path) -> None:
    (tmp_path / "lie.mp3").write_bytes(b"no sound at all")
    lie = MusicTrack("lie", tmp_path / "lie.mp3", "Calm lie", ("calm",), "MIT", None, 0)
    engines = replace(studio.engines, music=FolderLibrary("lies", (lie, *studio.engines.music.tracks)))
    env = replace(studio.env(), engines=engines)
    done = MUSIC.execute(studio.planned(), {}, ({"query": "calm lie", "moods": ["calm"]},), env)
    assert isinstance(done, Product)
    assert done.results["track"] == "hum"


def test_a_clip_that_is_no_film_is_passed_over(studio: Studio) -> None:
    ref = studio.store.put_bytes(b"no clip at all", ArtifactKind.CLIP, "video/mp4")
    lie = studio.pool[CARD].model_copy(update={"clip_id": "clip_lie", "ref": ref, "text": "a very special lie"})
    state = studio.planned([("Lie.", "a very special lie", 1000)], pool=(lie, studio.pool[FRACTAL]))
    state, product = studio.run(RETRIEVE, state, {"shots": "all"}, (queries(state),))
    assert clips_of(state, studio) == [FRACTAL]
    assert product.results["passed_over"][0].startswith("clip_lie: it cannot be decoded")


def test_a_film_of_other_bytes_with_the_right_digest_is_not_valid(
    studio: Studio, delivered: tuple[ProductionState, Product], tmp_path: Path
) -> None:
    folder = export(delivered[0], studio, tmp_path)
    blank = studio.ffmpeg(
        "film.mp4", "-f", "lavfi", "-i", "color=black:s=320x180:r=30:d=3", "-f", "lavfi", "-i", "anullsrc", "-shortest", "-c:v", "libx264",
        "-c:a", "aac", "/out/film.mp4",
    )  # fmt: skip
    data = blank.read_bytes()
    (folder / VIDEO).write_bytes(data)
    _edit(folder, video__sha256=hashlib.sha256(data).hexdigest(), video__size_bytes=len(data))
    assert {"wrong_length", "black", "silent"} <= {p.code for p in verify_delivery(folder, studio.sandbox).problems}
