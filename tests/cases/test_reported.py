"""The inputs of bug reports through the real entry points: every row of CASES.tsv that concerns inversion or ingest gives its right value.

Rows that concern the lake and exports are tested beside what they concern; :data:`ELSEWHERE` says where, and a test keeps the list whole.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tarfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from inversion.config import InversionConfig
from inversion.invert import invert
from jobs.cli import app
from jobs.sources import group, locate
from media.command import Sandbox
from media.frames import stream_frames
from media.images import decode_image
from media.probe import probe
from media.sandbox import open_sandbox
from schemas.errors import EngineMissing
from schemas.media import SourceItem
from schemas.stage import Done, RejectCode, Rejected
from schemas.storyboard import Storyboard
from storage.artifacts import ArtifactStore
from tests.hostile.watching import Opened
from tests.media.clips import make

pytestmark = [pytest.mark.shared, pytest.mark.hostile]

FAST = InversionConfig.model_validate({"asr": {"model": "whisper-tiny-en"}, "evidence": {"ocr": False}})

ELSEWHERE = {
    "words_without_times.json": "tests/inversion/test_words.py",
    "zh_mixed_punctuation.json": "tests/inversion/test_sentences.py",
    "repeated_segments.json": "tests/inversion/test_guards.py",
    "tool_calls_mixed_args.jsonl": "tests/materialize/test_export_trl.py",
    "bad_text.json": "tests/materialize/test_export_texts.py",
    "shards/part-00{0,1,2}.jsonl": "tests/storage/test_arrow.py",
    "replay_slot_longer_than_clip.json": "tests/replay/test_picture.py",
}
"""Rows whose right value is tested in another file."""


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    return open_sandbox()


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "store")


def recovered(path: Path, sandbox: Sandbox, store: ArtifactStore) -> Done[Storyboard] | Rejected:
    try:
        return invert(SourceItem(uri=path.name), path, FAST, sandbox=sandbox, store=store)
    except EngineMissing as missing:
        pytest.skip(str(missing))


def admitted(path: Path, sandbox: Sandbox, store: ArtifactStore) -> Storyboard:
    found = recovered(path, sandbox, store)
    assert isinstance(found, Done), found
    return found.output


def cuts_of(board: Storyboard) -> list[float]:
    return [s.shot.start_us / 1e6 for s in board.shots[1:]]


# -- narrated films ----------------------------------------------------------------------------------------------------------


def _portrait(board: Storyboard) -> None:
    video = board.media.video
    assert video is not None
    assert (video.display_width, video.display_height, video.coded_width, video.rotation) == (180, 320, 320, 270)
    assert {(k.width, k.height) for s in board.shots for k in s.evidence.key_frames} == {(180, 320)}


def _late(board: Storyboard) -> None:
    assert board.media.audio is not None
    assert board.media.audio.start_us == pytest.approx(1_500_000, abs=25_000)  # AAC puts 1024 samples in front
    assert min(w.start_us for w in board.words) >= 1_500_000
    (only,) = board.sentences
    assert (only.start_us / 1e6, only.end_us / 1e6) == pytest.approx((1.5, 3.4), abs=0.15)
    assert only.shots == (0, 1)


def _outlasting(board: Storyboard) -> None:
    assert board.shots[-1].shot.end_us == 3_000_000
    first, second = board.sentences
    assert first.shots == (0, 1)
    assert second.start_us == pytest.approx(5_500_000, abs=150_000)
    assert (second.shots, second.flags) == ((), ("after_picture",))
    assert "narration_outlasts_picture" in board.shots[-1].constraints


def _one_track(board: Storyboard) -> None:
    assert board.script.lower().startswith("in being comparatively modern")
    assert "login" not in board.script.lower()
    assert board.media.audio_choice == "stream 2 is the only narration: stream 1 is a commentary track"


def _rate_changes(board: Storyboard) -> None:
    first, second = board.sentences
    assert "surpassed" in first.text
    assert "comparatively modern" in second.text
    assert second.start_us == pytest.approx(2_600_000, abs=100_000)
    assert (first.shots, second.shots) == ((0,), (1,))


def _long_silence(board: Storyboard) -> None:
    spans = [(s.start_us / 1e6, s.end_us / 1e6) for s in board.sentences]
    assert spans == [pytest.approx((0.5, 2.4), abs=0.15), pytest.approx((28.0, 29.8), abs=0.15)]
    assert not [w.text for w in board.words if w.end_us > 3_000_000 and w.start_us < 27_500_000]


def _numerals(board: Storyboard) -> None:
    text = board.script.lower()
    assert "forty-two" in text or "42" in text
    assert "1455" in text
    assert all(0 <= w.start_us < w.end_us <= 9_000_000 for w in board.words)
    assert all(a.start_us <= b.start_us for a, b in pairwise(board.words))


NARRATED: dict[str, tuple[list[float], Callable[[Storyboard], None]]] = {
    "rotate90.mp4": ([2.0], _portrait),
    "audio_starts_1.5s.mkv": ([2.0], _late),
    "audio_8s_video_3s.mp4": ([1.52], _outlasting),
    "two_audio_tracks.mkv": ([2.0], _one_track),
    "mixed_sample_rate.ts": ([2.48], _rate_changes),
    "silence_25s_between.mp4": ([6.0, 26.0], _long_silence),
    "numerals_1455.mp4": ([4.0], _numerals),
}


@pytest.mark.parametrize("name", NARRATED)
def test_narrated_films(shared: Path, sandbox: Sandbox, store: ArtifactStore, name: str) -> None:
    cuts, check = NARRATED[name]
    board = admitted(shared / "cases" / name, sandbox, store)
    assert cuts_of(board) == pytest.approx(cuts, abs=0.041)
    check(board)


# -- films without sound: refused as they are, right once somebody speaks in them --------------------------------------------


def _within(*ranges: tuple[float, float]) -> Callable[[list[float]], bool]:
    return lambda cuts: len(cuts) == len(ranges) and all(low <= at <= high for at, (low, high) in zip(cuts, ranges, strict=True))


def _near(*cuts: float, frame: float = 0.04) -> Callable[[list[float]], bool]:
    return _within(*((at - frame - 1e-3, at + frame + 1e-3) for at in cuts))


SILENT: dict[str, tuple[Callable[[list[float]], bool], tuple[float, float], tuple[int, int]]] = {
    # cuts, duration of the picture, display size
    "vfr_30_then_10.mp4": (_near(2.0, 4.0, 6.0), (7.94, 8.0), (320, 180)),
    "flash_strobe.mp4": (_near(), (6.0, 6.0), (320, 180)),
    "dissolve_and_white_fade.mp4": (_within((2.0, 3.0), (4.6, 5.4)), (7.6, 7.6), (320, 180)),
    "single_shot.mp4": (_near(), (5.0, 5.0), (320, 180)),
    "dark_slides.mp4": (_near(2.0, 4.0, 6.0), (8.0, 8.0), (320, 180)),
    "no_audio.mp4": (_near(2.0), (4.0, 4.0), (320, 180)),
    "duplicate_pts.mkv": (_near(2.0, frame=0.08), (3.92, 4.0), (320, 180)),
    "odd_321x181_yuv444.mp4": (_near(2.0), (4.0, 4.0), (321, 181)),
}


@pytest.mark.parametrize("name", SILENT)
def test_films_without_sound_are_refused(shared: Path, sandbox: Sandbox, store: ArtifactStore, name: str) -> None:
    found = recovered(shared / "cases" / name, sandbox, store)
    assert isinstance(found, Rejected)
    assert found.code is RejectCode.NO_AUDIO


@pytest.mark.parametrize("name", SILENT)
def test_the_same_films_with_narration(shared: Path, sandbox: Sandbox, store: ArtifactStore, tmp_path: Path, name: str) -> None:
    """The picture untouched (stream copy), a sentence of another case as its sound."""
    right, (shortest, longest), size = SILENT[name]
    inputs = {"film": shared / "cases" / name, "voice": shared / "cases" / "rotate90.mp4"}
    argv = ["-copyts", "-i", "/in/film", "-i", "/in/voice", "-map", "0:v", "-map", "1:a", "-c", "copy"]
    board = admitted(make(sandbox, tmp_path / name, argv, inputs=inputs), sandbox, store)
    assert right(cuts_of(board)), cuts_of(board)
    assert shortest - 1e-3 <= board.shots[-1].shot.end_us / 1e6 <= longest + 1e-3
    assert "comparatively modern" in board.script
    video = board.media.video
    assert video is not None
    assert (video.display_width, video.display_height) == size
    spans = [(s.shot.start_us, s.shot.end_us) for s in board.shots]
    assert all(start < end for start, end in spans)
    assert [a[1] for a in spans[:-1]] == [b[0] for b in spans[1:]]
    assert {(k.width, k.height) for s in board.shots for k in s.evidence.key_frames} == {size}


def test_equal_time_stamps_come_in_pairs(shared: Path, sandbox: Sandbox) -> None:
    path = shared / "cases" / "duplicate_pts.mkv"
    times = [f.pts_us for f in stream_frames(path, probe(path, sandbox), sandbox, width=16, height=9, gray=True)]
    assert len(times) == 100
    assert times[0::2] == times[1::2]
    assert all(a < b for a, b in pairwise(times[::2]))


# -- what is refused ---------------------------------------------------------------------------------------------------------

REFUSED = {
    "audio_only_cover.m4a": RejectCode.NO_VIDEO,
    "no_moov.mp4": RejectCode.UNREADABLE,
    "zero_byte.mp4": RejectCode.EMPTY_FILE,
    "playlist_local_file.mp4": RejectCode.MANIFEST_REFUSED,
    "ffconcat_named.mp4": RejectCode.MANIFEST_REFUSED,
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_by_the_command(shared: Path, tmp_path: Path, name: str) -> None:
    done = CliRunner().invoke(app, ["invert", str(shared / "cases" / name), "-o", str(tmp_path / "out"), "--json"])
    assert done.exit_code == 3
    assert json.loads(done.stdout)["rejected"]["code"] == REFUSED[name].value
    assert not (tmp_path / "out" / "storyboard.json").exists()


@pytest.mark.parametrize("name", ["playlist_local_file.mp4", "ffconcat_named.mp4"])
def test_manifests_open_no_other_file(shared: Path, sandbox: Sandbox, store: ArtifactStore, tmp_path: Path, name: str) -> None:
    """By the kernel's word, for the whole stage: the file beside it that it names is never opened."""
    for each in (name, "single_shot.mp4", "dark_slides.mp4"):
        (tmp_path / each).write_bytes((shared / "cases" / each).read_bytes())
    with Opened(tmp_path / "single_shot.mp4", tmp_path / "dark_slides.mp4") as opened:
        found = recovered(tmp_path / name, sandbox, store)
    assert isinstance(found, Rejected)
    assert found.code is RejectCode.MANIFEST_REFUSED
    assert opened.count == 0


def test_a_manifest_makes_no_socket_and_opens_nothing_by_strace(shared: Path, tmp_path: Path) -> None:
    """The command under strace, children included: no connect but to local sockets, and no opening of the file it points to."""
    log = tmp_path / "strace.log"
    argv = ["strace", "-f", "-qq", "-e", "trace=openat,open,connect,execve", "-o", str(log)]
    script = "import sys; from jobs.cli import app; sys.argv[0] = 'workprint'; app()"
    command = [sys.executable, "-c", script, "invert", str(shared / "cases" / "ffconcat_named.mp4"), "-o", str(tmp_path / "out")]
    try:
        done = subprocess.run([*argv, *command], capture_output=True, timeout=300, check=False)
    except FileNotFoundError:
        pytest.skip("strace is not installed")
    if "ptrace" in done.stderr.decode() and not log.stat().st_size:
        pytest.skip("this host allows no tracing")
    calls = log.read_text("utf-8", "replace")
    assert done.returncode == 3, done.stderr.decode()[-500:]
    assert "ffconcat_named.mp4" in calls
    assert "single_shot.mp4" not in calls
    assert "dark_slides.mp4" not in calls
    assert "AF_INET" not in calls


# -- names, links, equal stems -----------------------------------------------------------------------------------------------


@pytest.fixture
def unpacked(shared: Path, tmp_path: Path) -> Path:
    with tarfile.open(shared / "cases" / "weird-names.tar") as tar:
        tar.extractall(tmp_path / "in", filter=lambda member, path: member)  # noqa: S202  (its links are what is tested)
    return tmp_path / "in"


def test_odd_names_give_the_same_result_and_are_kept(unpacked: Path, sandbox: Sandbox, store: ArtifactStore) -> None:
    located = locate([str(unpacked / "names")])
    assert [one.item.uri for one in located] == sorted(str(p) for p in (unpacked / "names").iterdir())
    assert len(located) == 9
    assert all(one.refused is None for one in located)
    results = {repr(recovered(one.path, sandbox, store)) for one in located}
    assert len(results) == 1
    (one,) = group(located)
    assert len(one.items) == 9
    assert not (unpacked / "names" / "x").exists()


def test_links(unpacked: Path) -> None:
    found = {Path(one.item.uri).name: one.refused and one.refused.code for one in locate([str(unpacked / "links")])}
    assert found == {
        "inside.mp4": RejectCode.OUTSIDE_ROOT,
        "outside.mp4": RejectCode.OUTSIDE_ROOT,
        "dangling.mp4": RejectCode.NOT_FOUND,
        "loop.mp4": RejectCode.NOT_FOUND,
        "dir": RejectCode.OUTSIDE_ROOT,  # a folder of films outside
    }
    whole = {Path(one.item.uri).name: one.refused for one in locate([str(unpacked)]) if "links" in one.item.uri}
    assert whole["inside.mp4"] is None


def test_a_link_to_no_film_named_by_itself(unpacked: Path, sandbox: Sandbox, store: ArtifactStore) -> None:
    (one,) = locate([str(unpacked / "links" / "outside.mp4")])
    found = recovered(one.path, sandbox, store)
    assert isinstance(found, Rejected)
    assert found.code is RejectCode.NOT_MEDIA
    secret = Path("/etc/hostname").read_text().strip()
    assert not secret or secret not in found.detail


def test_equal_stems_are_four_records(unpacked: Path) -> None:
    """Equal bytes are one project; its four names are four records, none of them lost."""
    (one,) = group(locate([str(unpacked / "same_stem")]))
    assert sorted(Path(i.uri).relative_to(unpacked / "same_stem").as_posix() for i in one.items) == [
        "a/clip.MP4",
        "a/clip.mp4",
        "b/clip.MP4",
        "b/clip.mp4",
    ]


def test_equal_stems_of_different_films_are_four_projects(unpacked: Path) -> None:
    for number, path in enumerate(sorted((unpacked / "same_stem").rglob("*.*4"))):
        path.write_bytes(path.read_bytes() + b"\0\0\0\x08free" * (number + 1))
    groups = group(locate([str(unpacked / "same_stem")]))
    assert len({g.project_id for g in groups}) == 4


# -- key frames of odd films -------------------------------------------------------------------------------------------------


def test_key_frames_of_a_turned_film_are_portrait_pictures(shared: Path, sandbox: Sandbox, store: ArtifactStore) -> None:
    board = admitted(shared / "cases" / "rotate90.mp4", sandbox, store)
    for shot in board.shots:
        assert decode_image(store.read(shot.evidence.key_frames[0].sha256)).shape == (320, 180, 3)


def test_every_row_is_tested(shared: Path) -> None:
    with (shared / "cases" / "CASES.tsv").open(encoding="utf-8", newline="") as file:
        rows = [row["file"] for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]
    here = {*NARRATED, *SILENT, *REFUSED, "weird-names.tar:names/*", "weird-names.tar:links/*", "weird-names.tar:same_stem/**"}
    assert {row.strip() for row in rows} == here | set(ELSEWHERE)
    for name, place in ELSEWHERE.items():
        text = (Path(__file__).resolve().parents[2] / place).read_text("utf-8")
        assert name in text or name.startswith(("shards", "replay_slot")), f"{place} no longer names {name}"
