"""``workprint explain``: admitted projects, refused sources, storyboard files, unclear names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from inversion.rows import storyboard_rows
from jobs.cli import app
from jobs.sources import project_id_of
from schemas.artifact import ArtifactKind
from schemas.errors import ConfigInvalid
from schemas.media import SourceItem
from schemas.storyboard import Storyboard, WordTiming
from storage.lake import Lake, StageCommit
from tests.inversion.test_storyboard import THREE, board, spoken

SHA = "c" * 64


@pytest.fixture(scope="module")
def film() -> Storyboard:
    """Three shots; the second cut falls into the middle of a word."""
    said = spoken(("One two three.", 500, 3_000), ("Four five six seven.", 5_300, 7_200), timing=WordTiming.RECOGNISED)
    return board(said, THREE, item=SourceItem(uri="films/talk.mp4", licence="CC BY"))


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, film: Storyboard) -> Path:
    """A lake with one admitted project and three refused sources."""
    root = tmp_path_factory.mktemp("explain") / "lake"
    opened = Lake(root)
    rows = storyboard_rows(film)
    rows["projects"][0]["split"] = "train"
    rows.pop("shots")  # its key frames are made up
    sha = opened.store.put_bytes(film.canonical(), ArtifactKind.STORYBOARD, "application/json").sha256
    opened.commit(StageCommit("invert", "k1", film.project_id, film.project_id, "done", sha, rows))
    refused = [
        ("k" * 64, "films/broken.mp4", "unreadable", "the container cannot be read: moov atom not found", SHA),
        ("l" * 64, "films/quiet.mp4", "low_narration_share", "narration fills 0.012 of the picture, at least 0.050 is wanted", "d" * 64),
        ("m" * 64, "other/quiet.mp4", "not_found", "no such file (FileNotFoundError)", None),
    ]
    names = ("source_key", "uri", "code", "detail", "source_sha256")
    for key, *_ in refused:
        own = [dict(zip(names, row, strict=True)) for row in refused if row[0] == key]
        opened.commit(StageCommit("invert", key, key, key, "rejected", None, {"rejections": own}))
    return root


def told(lake: Path, name: str, *options: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["explain", name, "--lake", str(lake), "--json", *options], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", ["prj_1", "films/talk.mp4", "talk.mp4"])
def test_an_admitted_project_by_any_of_its_names(lake: Path, name: str) -> None:
    found = told(lake, name)
    assert (found["verdict"], found["project_id"], found["uri"], found["code"]) == ("admitted", "prj_1", "films/talk.mp4", None)
    assert [(f["name"], f["seen"], f["wanted"], f["passed"]) for f in found["figures"]] == [
        ("narration share", "0.440", "at least 0.050", True),
        ("mean word confidence", "0.800", "at least 0.300", True),
        ("speech covered by words", "1.000", "at least 0.500", True),
        ("language", "en", "allowed: all", None),
        ("licence", "CC BY", "allowed: all", None),
        ("shots", "3", "at least 1", True),
        ("length", "10.00 s", "2.00 s to 14400.00 s", True),
    ]
    assert [(s["index"], s["transition_in"], s["words"], s["cut_confidence"]) for s in found["shots"]] == [
        (0, "start", 3, 0.9),
        (1, "cut", 1, 0.9),
        (2, "dissolve", 3, 0.9),
    ]


def test_words_at_a_doubtful_border_are_named(lake: Path) -> None:
    (border,) = told(lake, "prj_1")["doubtful_borders"]
    assert (border["shot"], border["cut_us"], border["before"], border["after"]) == (2, 6_000_000, "Four", "five")
    assert (border["before_end_us"], border["after_start_us"]) == (5_775_000, 5_775_000)
    assert 0.3 < border["confidence"] < 0.9


def test_thresholds_are_those_of_the_configuration(lake: Path, tmp_path: Path) -> None:
    (tmp_path / "strict.yaml").write_text("inversion: {admission: {min_narration_share: 0.5, licences: [CC0]}}")
    found = told(lake, "prj_1", "--config", str(tmp_path / "strict.yaml"))
    assert (found["verdict"], found["code"]) == ("refused", "licence_refused")
    assert [f["name"] for f in found["figures"] if f["passed"] is False] == ["narration share", "licence"]


@pytest.mark.parametrize("name", ["broken.mp4", "films/broken.mp4", "kkkkkk", SHA[:12], project_id_of(SHA)])
def test_a_refused_source_by_any_of_its_names(lake: Path, name: str) -> None:
    found = told(lake, name)
    assert (found["verdict"], found["code"]) == ("refused", "unreadable")
    assert found["detail"] == "the container cannot be read: moov atom not found"
    assert found["meaning"] == "it is damaged, cut off, or locked"
    assert found["next_step"].startswith("play it in another player")


def test_a_refusal_names_the_setting(lake: Path) -> None:
    assert told(lake, "films/quiet.mp4")["setting"] == "admission.min_narration_share"


def test_a_storyboard_file_needs_no_lake(film: Storyboard, tmp_path: Path) -> None:
    (tmp_path / "storyboard.json").write_bytes(film.canonical())
    assert told(tmp_path / "none", str(tmp_path / "storyboard.json"))["project_id"] == "prj_1"


def test_it_is_told_in_words(lake: Path) -> None:
    done = CliRunner().invoke(app, ["explain", "prj_1", "--lake", str(lake)])
    lines = done.stdout.splitlines()
    assert lines[0] == "films/talk.mp4: admitted as prj_1"
    assert lines[1] == "narration share: 0.440 (at least 0.050; admission.min_narration_share): ok"
    assert lines[8] == "sound: the only one"
    assert lines[11].startswith("shot 2: 6.00 s to 10.00 s, dissolve (confidence 0.90), 3 words (alignment 0.")
    assert lines[-2] == "doubtful borders (confidence under 0.9): 1"
    assert lines[-1].endswith('"Four" ends 225 ms before it, "five" starts 225 ms before it')


@pytest.mark.parametrize(
    ("name", "message"),
    [("quiet.mp4", "2 sources are named 'quiet.mp4'"), ("nobody", "no source is named 'nobody'"), ("", "no source is named ''")],
)
def test_unclear_names_are_errors_that_say_what_there_is(lake: Path, name: str, message: str) -> None:
    done = CliRunner().invoke(app, ["explain", name, "--lake", str(lake)])
    assert isinstance(done.exception, ConfigInvalid)
    assert message in str(done.exception)
    assert "films/" in done.exception.next_step or "prj_1" in done.exception.next_step


def test_a_file_that_is_no_storyboard(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    done = CliRunner().invoke(app, ["explain", str(tmp_path / "a.json")])
    assert isinstance(done.exception, ConfigInvalid)
