"""The stage as a whole: from a file to a storyboard or a closed reason."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from inversion.config import InversionConfig
from inversion.interchange import from_otio, from_srt, public_json, to_otio, to_srt
from inversion.invert import invert
from media.command import Command, Completed, Limits, Sandbox
from media.sandbox import open_sandbox
from schemas.errors import EngineMissing, MediaRejected, PipelineError, SandboxUnavailable, StorageFault
from schemas.media import SourceItem
from schemas.stage import Done, RejectCode, Rejected
from schemas.storyboard import Storyboard, WordTiming
from schemas.tables import TABLE
from storage.artifacts import ArtifactStore

FAST = InversionConfig.model_validate({"asr": {"model": "whisper-tiny-en"}, "evidence": {"ocr": False}})


@pytest.fixture(scope="session")
def sandbox() -> Sandbox:
    try:
        return open_sandbox()
    except SandboxUnavailable:
        return open_sandbox("process")


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "store")


@pytest.fixture(scope="session")
def clips(tmp_path_factory: pytest.TempPathFactory, sandbox: Sandbox) -> Path:
    """Small films: narrated (two shots, cut at 4.0 s), mute, silent, sound only, and files that are none."""
    folder = tmp_path_factory.mktemp("clips")
    picture = "testsrc2=s=320x180:r=25:d=4[p];smptebars=s=320x180:r=25:d=4[q];[p][q]concat=n=2[v]"
    voice = (
        "flite=text='The old pendulum swings slowly over the wooden table.':voice=slt[a];"
        "flite=text='Nobody was hurt when the building came down.':voice=slt[b];"
        "[a]aresample=16000,apad=whole_dur=4.3[c];[b]aresample=16000,apad=whole_dur=3.7[d];[c][d]concat=n=2:v=0:a=1,aresample=48000,asetnsamples=1024[s]"
    )
    coders = ("-c:v", "libx264", "-preset", "ultrafast", "-c:a", "aac", "-ar", "48000")
    makes = {
        "narrated.mp4": (f"{picture};{voice}", ("-map", "[v]", "-map", "[s]", "-t", "8", *coders)),
        "mute.mp4": (picture, ("-map", "[v]", *coders)),
        "silent.mp4": (f"{picture};anullsrc=r=48000:cl=mono:d=8[s]", ("-map", "[v]", "-map", "[s]", *coders)),
        "sound.m4a": (voice, ("-map", "[s]", "-c:a", "aac")),
    }
    for name, (graph, more) in makes.items():
        argv = ("ffmpeg", "-v", "error", "-filter_complex", graph, *more, f"/out/{name}")
        done = sandbox.run(Command(argv=argv, outputs=(name,), limits=Limits(wall_s=120)), folder)
        assert done.returncode == 0, done.stderr
        if done.outputs[name] != folder / name:
            done.outputs[name].rename(folder / name)
    (folder / "empty.mp4").write_bytes(b"")
    (folder / "text.mp4").write_text("this is no film\n" * 50)
    (folder / "list.mp4").write_text("#EXTM3U\n#EXTINF:5,\nnarrated.mp4\n")
    return folder


def run(
    clips: Path, name: str, sandbox: Sandbox, store: ArtifactStore, config: InversionConfig = FAST, **item: str
) -> Done[Storyboard] | Rejected:
    try:
        return invert(SourceItem(uri=name, **item), clips / name, config, sandbox=sandbox, store=store)
    except EngineMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def done(clips: Path, sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> tuple[Done[Storyboard], ArtifactStore]:
    store = ArtifactStore(tmp_path_factory.mktemp("done"))
    found = run(clips, "narrated.mp4", sandbox, store)
    assert isinstance(found, Done), found
    return found, store


def test_a_narrated_film_becomes_a_storyboard(done: tuple[Done[Storyboard], ArtifactStore]) -> None:
    board = done[0].output
    assert [(s.shot.start_us, s.shot.end_us) for s in board.shots] == [(0, 4_000_000), (4_000_000, 8_000_000)]
    assert [(s.text.lower().rstrip("."), s.shots) for s in board.sentences] == [
        ("the old pendulum swings slowly over the wooden table", (0,)),
        ("nobody was hurt when the building came down", (1,)),
    ]
    assert {w.timing for w in board.words} == {WordTiming.ALIGNED}
    assert [w.shot for w in board.words] == [0] * 9 + [1] * 8
    assert board.language == "en"
    assert board.aspect_ratio == "16:9"
    assert board.admission.speech_covered > 0.95
    assert 0.5 < board.admission.narration_share < 1.0


def test_its_rows_fit_the_tables_and_its_artifacts_are_stored(done: tuple[Done[Storyboard], ArtifactStore]) -> None:
    found, store = done
    assert sorted(found.rows) == ["alignments", "projects", "sentences", "shots", "storyboards", "words"]
    assert "split" not in found.rows["projects"][0]
    for name, rows in found.rows.items():
        for row in rows:
            TABLE[name].finish({**row, "split": "train"} if name == "projects" else row, stage_key="k", run_id="r")
    assert all(store.has(sha) for sha in found.artifacts)
    assert Storyboard.model_validate_json(store.read(found.rows["storyboards"][0]["storyboard_sha256"])) == found.output
    assert {k.sha256 for s in found.output.shots for k in s.evidence.key_frames} < set(found.artifacts)


def test_it_goes_out_and_comes_back(done: tuple[Done[Storyboard], ArtifactStore]) -> None:
    board = done[0].output
    cuts, cues = from_otio(to_otio(board))
    assert [c.start_us for c in cuts] == [s.shot.start_us for s in board.shots]
    assert [c.text for c in cues] == [c.text for c in from_srt(to_srt(board))] == [s.text for s in board.sentences]
    assert public_json(board)["shots"][1]["start_us"] == 4_000_000


def test_one_half_after_the_other_gives_the_same_storyboard(
    done: tuple[Done[Storyboard], ArtifactStore], clips: Path, sandbox: Sandbox, store: ArtifactStore
) -> None:
    again = run(clips, "narrated.mp4", sandbox, store, FAST.model_copy(update={"overlap": False}))
    assert isinstance(again, Done)
    assert again.output.digest() == done[0].output.digest()


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("empty.mp4", RejectCode.EMPTY_FILE),
        ("text.mp4", RejectCode.NOT_MEDIA),
        ("list.mp4", RejectCode.MANIFEST_REFUSED),
        ("mute.mp4", RejectCode.NO_AUDIO),
        ("sound.m4a", RejectCode.NO_VIDEO),
        ("silent.mp4", RejectCode.NO_SPEECH),
    ],
)
def test_what_is_no_narrated_film_is_rejected(clips: Path, sandbox: Sandbox, store: ArtifactStore, name: str, code: RejectCode) -> None:
    found = run(clips, name, sandbox, store)
    assert isinstance(found, Rejected)
    assert found.code is code
    assert found.detail


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"admission": {"licences": ["CC0-1.0"]}}, RejectCode.LICENCE_REFUSED),
        ({"admission": {"min_duration_us": 60_000_000}}, RejectCode.TOO_SHORT),
        ({"admission": {"languages": ["zh"]}}, RejectCode.LANGUAGE_REFUSED),
        ({"admission": {"min_shots": 3}}, RejectCode.TOO_FEW_SHOTS),
    ],
)
def test_thresholds_reject_with_their_reason(
    clips: Path, sandbox: Sandbox, store: ArtifactStore, settings: dict[str, object], code: RejectCode
) -> None:
    config = InversionConfig.model_validate({**FAST.model_dump(), **settings})
    found = run(clips, "narrated.mp4", sandbox, store, config)
    assert isinstance(found, Rejected)
    assert found.code is code


def test_subtitles_of_the_source_are_used_and_named(clips: Path, sandbox: Sandbox, store: ArtifactStore, tmp_path: Path) -> None:
    srt = tmp_path / "own.srt"
    srt.write_text(
        "1\n00:00:00,000 --> 00:00:04,000\nThe OLD pendulum swings slowly over the wooden table.\n\n"
        "2\n00:00:04,300 --> 00:00:08,000\nNobody was hurt when the building came down.\n"
    )
    found = run(clips, "narrated.mp4", sandbox, store, subtitles=str(srt))
    assert isinstance(found, Done)
    assert found.output.sentences[0].text.startswith("The OLD pendulum")
    assert found.output.engines["asr"] == "sidecar srt"
    assert [s.shots for s in found.output.sentences] == [(0,), (1,)]


@pytest.mark.parametrize("content", [None, b"\x00\x01\x02", b""])
def test_subtitles_that_cannot_be_read_reject_the_source(
    clips: Path, sandbox: Sandbox, store: ArtifactStore, tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "bad.srt"
    if content is not None:
        path.write_bytes(content)
    found = run(clips, "narrated.mp4", sandbox, store, subtitles=str(path))
    assert isinstance(found, Rejected)
    assert found.code is RejectCode.UNREADABLE


def test_another_script_than_is_spoken_rejects_the_source(clips: Path, sandbox: Sandbox, store: ArtifactStore, tmp_path: Path) -> None:
    path = tmp_path / "script.txt"
    path.write_text("Completely unrelated prose about seven penguins and their breakfast habits.")
    found = run(clips, "narrated.mp4", sandbox, store, script=str(path))
    assert isinstance(found, Rejected)
    assert found.code is RejectCode.SCRIPT_MISMATCH


@dataclass
class Broken:
    """A sandbox that fails at the n-th command."""

    inner: Sandbox
    error: PipelineError
    at: int
    name: str = "broken"
    count: int = 0

    def run(self, command: Command, workdir: Path) -> Completed:
        self._count()
        return self.inner.run(command, workdir)

    def stream(self, command: Command, consume: object) -> Completed:
        self._count()
        return self.inner.stream(command, consume)  # type: ignore[arg-type]

    def _count(self) -> None:
        self.count += 1
        if self.count >= self.at:
            raise self.error


@pytest.mark.parametrize("at", [1, 3])
def test_failures_of_ours_are_raised_never_turned_into_rejections(clips: Path, sandbox: Sandbox, store: ArtifactStore, at: int) -> None:
    with pytest.raises(SandboxUnavailable):
        run(clips, "narrated.mp4", Broken(sandbox, SandboxUnavailable("no_userns", "gone"), at), store)  # type: ignore[arg-type]


def test_a_decoder_that_gives_up_half_way_rejects_the_source(clips: Path, sandbox: Sandbox, store: ArtifactStore) -> None:
    found = run(clips, "narrated.mp4", Broken(sandbox, MediaRejected("unreadable", "torn"), 3), store)  # type: ignore[arg-type]
    assert isinstance(found, Rejected)
    assert (found.code, found.detail) == (RejectCode.UNREADABLE, "torn")


def test_a_store_that_fails_is_a_failure(clips: Path, sandbox: Sandbox, tmp_path: Path) -> None:
    class Full(ArtifactStore):
        def put_bytes(self, *args: object, **kwargs: object) -> object:  # type: ignore[override]
            raise StorageFault("no_space", "full")

    with pytest.raises(StorageFault):
        run(clips, "narrated.mp4", sandbox, Full(tmp_path / "full"))


# -- real files --------------------------------------------------------------------------------------------------------------


@pytest.mark.shared
@pytest.mark.slow
def test_sentences_of_constructed_films_lie_over_their_true_shots(shared: Path, sandbox: Sandbox, store: ArtifactStore) -> None:
    config = InversionConfig.model_validate({"evidence": {"ocr": False}})
    english = run(shared / "media/constructed", "printing_en.mp4", sandbox, store, config)
    assert isinstance(english, Done)
    words = english.output.words

    def shot_of(text: str) -> int | None:
        return next(w.shot for w in words if w.text.lower().strip(".,") == text)

    assert [shot_of(t) for t in ("printing", "although", "engraved", "produced", "metal", "earliest", "bible", "surpassed")] == [
        0,
        2,
        3,
        4,
        5,
        7,
        8,
        8,
    ]
    chinese = run(shared / "media/constructed", "three-lines_zh.mp4", sandbox, store, config)
    assert isinstance(chinese, Done)
    assert chinese.output.language == "zh"
    assert [s.shots for s in chinese.output.sentences] == [(0,), (1,), (2, 3)]
    assert " " not in chinese.output.script
