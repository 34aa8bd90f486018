"""The music library."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from replay.embed import HashingEmbedder
from replay.music import open_music, rank_tracks
from schemas.errors import ConfigInvalid


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
