"""The source pool: exact frames, bounded pieces, nothing cut twice, and the user's own clips."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest

from media.command import Command, Completed, Sandbox
from media.ffmpeg import run_ffmpeg
from media.frames import stream_frames
from media.probe import probe
from replay.config import RenderConfig, ReplayConfig, RetrievalConfig
from replay.credits import credits_of
from replay.pool import cut_pool, pieces
from replay.shelf import About, Shelf
from replay.state import apply, film_change, initial, put_shot
from replay.task import build_task, canvas
from schemas.errors import ConfigInvalid
from schemas.media import SourceItem
from schemas.state import AssetChoice, PlannedShot, PoolClip, ShotRecord
from schemas.storyboard import BoardShot, Evidence, Shot, Storyboard, TextBox, Transition
from storage.artifacts import ArtifactStore
from tests.replay.doubles import engines
from tests.replay.toy import storyboard

FPS = 25
COUNTER = "nullsrc=s=160x90:r={fps}:d={s},format=gray,geq=lum='if(mod(floor(N/pow(2,floor(X/20))),2),235,16)'"
"""A film whose frames say their number: eight bars, one for each bit."""

X264 = ("-c:v", "libx264", "-preset", "ultrafast", "-g", "50", "-bf", "2", "-pix_fmt", "yuv420p")


class Counting:
    """The real sandbox, with its commands counted."""

    def __init__(self, inner: Sandbox) -> None:
        self.inner, self.name, self.commands = inner, inner.name, 0

    def run(self, command: Command, workdir: Path) -> Completed:
        self.commands += 1
        return self.inner.run(command, workdir)

    def stream(self, command: Command, consume: Callable[[IO[bytes]], None]) -> Completed:
        self.commands += 1
        return self.inner.stream(command, consume)


def film(sandbox: Sandbox, folder: Path, name: str, *options: str, seconds: int = 7) -> Path:
    """A counting film with a tone under it."""
    lavfi = ("-f", "lavfi", "-i", COUNTER.format(fps=FPS, s=seconds), "-f", "lavfi", "-i", f"sine=300:d={seconds}")
    done = run_ffmpeg((*lavfi, *options, "-shortest", f"/out/{name}"), outputs=(name,), sandbox=sandbox, workdir=folder)
    return done.outputs[name]


def us(frame: int) -> int:
    return round(frame * 1_000_000 / FPS)


def board(sandbox: Sandbox, source: Path, shots: list[tuple[int, int]], **changes: Any) -> Storyboard:
    """A storyboard of a counting film with shots between the given frames."""
    base = storyboard(1)
    rows: list[BoardShot] = []
    for i, (first, end) in enumerate(shots):
        shot = Shot(
            index=i,
            start_us=us(first),
            end_us=us(end),
            start_frame=first,
            end_frame=end,
            transition_in=Transition.START if i == 0 else Transition.CUT,
            cut_confidence=1.0,
            first_word=0,
            end_word=0,
            alignment_confidence=1.0,
            has_narration=True,
        )
        box = TextBox(text=f"Card {i}", x=0, y=0, width=9, height=9, confidence=1.0)
        evidence = Evidence(key_frames=(), text=(box,), motion=0.1, luma=0.25, colour=(10, 20, 30), caption=f"bars {i}")
        rows.append(base.shots[0].model_copy(update={"shot": shot, "narration": f"Said {i}.", "evidence": evidence}))
    item = SourceItem(uri=source.name, licence="CC-BY-3.0", attribution="Somebody")
    return base.model_copy(update={"media": probe(source, sandbox), "shots": tuple(rows), "source": item, **changes})


def numbers(clip: PoolClip, store: ArtifactStore, sandbox: Sandbox) -> list[int]:
    """The frame numbers a clip shows."""
    path = store.path(clip.ref.sha256)
    out: list[int] = []
    for frame in stream_frames(path, probe(path, sandbox), sandbox, width=160, height=90, gray=True):
        out.append(sum(int(frame.array[:, 10 + 20 * k].mean() > 128) << k for k in range(8)))
    return out


def retrieval(**changes: Any) -> ReplayConfig:
    return ReplayConfig(retrieval=RetrievalConfig(**changes), render=RenderConfig(height=180, frame_rate=25))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("film.mp4", (*X264, "-c:a", "aac")),
        ("late.mkv", (*X264, "-c:a", "aac", "-output_ts_offset", "3.3")),
        ("film.ts", (*X264, "-c:a", "aac")),
    ],
    ids=["mp4", "mkv that starts late", "transport stream"],
)
def test_clips_hold_exactly_the_frames_of_their_shots(tmp_path: Path, sandbox: Sandbox, name: str, options: tuple[str, ...]) -> None:
    source = film(sandbox, tmp_path, name, *options)
    store = ArtifactStore(tmp_path / "store")
    shots = [(0, 30), (30, 67), (67, 150)]
    clips = cut_pool(board(sandbox, source, shots), source, sandbox=sandbox, store=store, config=retrieval())
    assert [numbers(c, store, sandbox) for c in clips] == [list(range(a, b)) for a, b in shots]
    assert [c.duration_us for c in clips] == [us(30), us(37), us(83)]


def test_a_pool_is_cut_once_and_described(tmp_path: Path, sandbox: Sandbox) -> None:
    source = film(sandbox, tmp_path, "film.mp4", *X264, "-an", seconds=4)
    recovered = board(sandbox, source, [(0, 50), (50, 100)])
    counting = Counting(sandbox)
    store = ArtifactStore(tmp_path / "store")
    first = cut_pool(recovered, source, sandbox=counting, store=store, config=retrieval())
    assert counting.commands > 0
    counting.commands = 0
    second = cut_pool(recovered, source, sandbox=counting, store=ArtifactStore(tmp_path / "store"), config=retrieval())
    assert (second, counting.commands) == (first, 0)
    one = first[0]
    assert (one.text, one.licence, one.attribution, one.origin) == ("Said 0. Card 0 bars 0", "CC-BY-3.0", "Somebody", "source")
    assert (one.luma, one.colour, one.width, one.height) == (0.25, (10, 20, 30), 160, 90)
    assert one.clip_id == f"clip_{one.ref.sha256[:12]}"


def test_a_task_does_not_name_the_film_it_was_recovered_from(tmp_path: Path, sandbox: Sandbox) -> None:
    source = film(sandbox, tmp_path, "film.mp4", *X264, "-an", seconds=3)
    recovered = board(sandbox, source, [(0, 75)])
    pool = cut_pool(recovered, source, sandbox=sandbox, store=ArtifactStore(tmp_path / "store"), config=retrieval())
    task = build_task(recovered, pool, retrieval(), engines(), "0" * 64)
    assert recovered.media.sha256 not in task.model_dump_json()
    assert "film.mp4" not in task.model_dump_json()


def test_gradual_transitions_belong_to_no_clip(tmp_path: Path, sandbox: Sandbox) -> None:
    source = film(sandbox, tmp_path, "film.mp4", *X264, "-an", seconds=4)
    recovered = board(sandbox, source, [(0, 50), (50, 100)])
    later = recovered.shots[1].shot.model_copy(
        update={"transition_in": Transition.DISSOLVE, "transition_start_us": us(40), "transition_end_us": us(60)}
    )
    recovered = recovered.model_copy(update={"shots": (recovered.shots[0], recovered.shots[1].model_copy(update={"shot": later}))})
    store = ArtifactStore(tmp_path / "store")
    clips = cut_pool(recovered, source, sandbox=sandbox, store=store, config=retrieval())
    assert [numbers(c, store, sandbox) for c in clips] == [list(range(40)), list(range(60, 100))]


def test_short_shots_are_left_out_unless_there_are_no_others(tmp_path: Path, sandbox: Sandbox) -> None:
    source = film(sandbox, tmp_path, "film.mp4", *X264, "-an", seconds=3)
    store = ArtifactStore(tmp_path / "store")
    mixed = cut_pool(board(sandbox, source, [(0, 10), (10, 60)]), source, sandbox=sandbox, store=store, config=retrieval())
    short = cut_pool(board(sandbox, source, [(0, 10), (10, 20)]), source, sandbox=sandbox, store=store, config=retrieval())
    assert ([c.duration_us for c in mixed], len(short)) == ([us(50)], 2)


def test_the_users_clips_join_the_pool_and_refused_ones_are_named(tmp_path: Path, sandbox: Sandbox) -> None:
    source = film(sandbox, tmp_path, "film.mp4", *X264, "-an", seconds=2)
    extra = tmp_path / "extra"
    extra.mkdir()
    film(sandbox, extra, "red-square_at_dawn.mp4", *X264, "-an", seconds=6)
    film(sandbox, extra, "told.mp4", *X264, "-an", "-vf", "negate", seconds=2)
    (extra / "told.json").write_text(json.dumps({"text": "a told thing", "licence": "CC0-1.0", "attribution": "Me"}))
    (extra / "words.mp4").write_text("no film at all")
    notes: list[str] = []
    config = retrieval(extra_folder=str(extra), clip_max_us=3_000_000)
    store = ArtifactStore(tmp_path / "store")
    clips = cut_pool(board(sandbox, source, [(0, 50)]), source, sandbox=sandbox, store=store, config=config, note=notes.append)
    assert [(c.origin, c.text, c.licence, c.duration_us) for c in clips[1:]] == [
        ("red-square_at_dawn.mp4", "red square at dawn", "unknown", us(75)),
        ("red-square_at_dawn.mp4", "red square at dawn", "unknown", us(75)),
        ("told.mp4", "a told thing", "CC0-1.0", us(50)),
    ]
    assert any("words.mp4 is not used" in n for n in notes)


def test_a_missing_folder_of_clips_is_a_wrong_setting(tmp_path: Path, sandbox: Sandbox) -> None:
    source = film(sandbox, tmp_path, "film.mp4", *X264, "-an", seconds=1)
    with pytest.raises(ConfigInvalid) as caught:
        cut_pool(
            board(sandbox, source, [(0, 25)]),
            source,
            sandbox=sandbox,
            store=ArtifactStore(tmp_path / "store"),
            config=retrieval(extra_folder=str(tmp_path / "gone")),
        )
    assert caught.value.code == "extra_folder"


@pytest.mark.parametrize(
    ("start", "end", "longest", "shortest", "expected"),
    [
        (0, 10, 20, 1, [(0, 10)]),
        (0, 20, 20, 1, [(0, 20)]),
        (0, 21, 20, 1, [(0, 10), (10, 21)]),
        (5, 65, 20, 1, [(5, 25), (25, 45), (45, 65)]),
        (0, 21, 20, 15, [(0, 21)]),
    ],
)
def test_long_shots_are_cut_in_equal_pieces(start: int, end: int, longest: int, shortest: int, expected: list[tuple[int, int]]) -> None:
    assert pieces(start, end, longest, shortest) == expected


@pytest.mark.parametrize(
    ("aspect", "short", "expected"),
    [
        ("16:9", 720, (1280, 720)),
        ("9:16", 720, (720, 1280)),
        ("1:1", 481, (482, 482)),
        ("4:3", 360, (480, 360)),
        ("16:9", 181, (324, 182)),
    ],
)
def test_a_canvas_is_even_and_has_the_wanted_short_side(aspect: str, short: int, expected: tuple[int, int]) -> None:
    assert canvas(aspect, short) == expected


def test_an_unknown_aspect_has_no_canvas() -> None:
    with pytest.raises(ConfigInvalid):
        canvas("2:1", 720)


def test_a_long_shot_is_there_whole_and_in_pieces(sandbox: Sandbox, tmp_path: Path) -> None:
    source = film(sandbox, tmp_path, "long.mp4", *X264)
    store, config = ArtifactStore(tmp_path / "store"), retrieval(clip_max_us=3_000_000)
    clips = cut_pool(board(sandbox, source, [(0, 150)]), source, sandbox=sandbox, store=store, config=config)
    assert [c.duration_us for c in clips] == [6_000_000, 3_000_000, 3_000_000]


def test_a_shot_longer_than_the_bound_is_there_in_pieces_only(sandbox: Sandbox, tmp_path: Path) -> None:
    source = film(sandbox, tmp_path, "long.mp4", *X264)
    store, config = ArtifactStore(tmp_path / "store"), retrieval(clip_max_us=3_000_000, whole_max_us=5_000_000)
    clips = cut_pool(board(sandbox, source, [(0, 150)]), source, sandbox=sandbox, store=store, config=config)
    assert [c.duration_us for c in clips] == [3_000_000, 3_000_000]


HOSTILE = {
    "words.mp4": lambda p: p.write_text("no film at all"),
    "empty.mp4": lambda p: p.write_bytes(b""),
    "playlist.mp4": lambda p: p.write_text("#EXTM3U\n#EXTINF:10,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n"),
    "concat.mkv": lambda p: p.write_text("ffconcat version 1.0\nfile /etc/passwd\n"),
    "pipe.mp4": lambda p: os.mkfifo(p),
    "folder.mp4": lambda p: p.mkdir(),
    "link.mp4": lambda p: p.symlink_to("/etc/passwd"),
    "dangling.mp4": lambda p: p.symlink_to("/nowhere"),
    "torn.mp4": lambda p: p.write_bytes(b"\x00\x00\x00\x20ftypisom" + b"\x00" * 4000),
    "bad\nname\u202e.mp4": lambda p: p.write_text("x"),
}
"""Files of a user's folder that are no clips, by name."""


def test_hostile_files_are_refused_one_by_one_and_never_lose_the_rest(tmp_path: Path, sandbox: Sandbox) -> None:
    source = film(sandbox, tmp_path, "film.mp4", *X264, "-an", seconds=1)
    extra = tmp_path / "extra"
    extra.mkdir()
    film(sandbox, extra, "aaa.mp4", *X264, "-an", "-vf", "vflip,hflip", seconds=1)
    for name, make in HOSTILE.items():
        make(extra / name)
    good = film(sandbox, extra, "zzz.mp4", *X264, "-an", "-vf", "negate", seconds=1)
    torn = extra / "half.mkv"
    film(sandbox, extra, "half.mkv", *X264, "-an", "-vf", "hflip", seconds=3)
    torn.write_bytes(torn.read_bytes()[:900])
    for name, text in (("odd.json", "[1]"), ("deep.json", "[" * 100_000)):
        (extra / name).write_text(text)
        (extra / name).with_suffix(".mp4").write_bytes(good.read_bytes())
    notes: list[str] = []
    clips = cut_pool(
        board(sandbox, source, [(0, 25)]), source, sandbox=sandbox, store=ArtifactStore(tmp_path / "store"),
        config=retrieval(extra_folder=str(extra)), note=notes.append,
    )  # fmt: skip
    assert [c.origin for c in clips] == ["source", "aaa.mp4", "zzz.mp4"]
    refused = [n for n in notes if " is not used: " in n]
    assert len(refused) == len(HOSTILE) + 3, refused
    assert all("\n" not in n and "\u202e" not in n and "root:" not in n and len(n) < 400 for n in refused)


def test_a_list_describes_clips_and_a_sidecar_goes_before_it(tmp_path: Path) -> None:
    for name in ("a.mp4", "b.mp4", "c_d.mp4"):
        (tmp_path / name).write_bytes(b"x")
    rows = [
        {"file": "a.mp4", "text": "ships\u202e in\n a harbour", "licence": "CC-BY-4.0", "attribution": "A. Camera"},
        {"file": "b.mp4", "text": "listed", "licence": "CC0-1.0"},
    ]
    (tmp_path / "pool.json").write_text(json.dumps({"clips": rows}))
    (tmp_path / "b.json").write_text(json.dumps({"text": "told", "rating": 5}))
    shelf = Shelf(tmp_path)
    assert [shelf.about(p) for p in shelf.clips()] == [
        About("ships in a harbour", "CC-BY-4.0", "A. Camera"),
        About("told", "CC0-1.0", None),
        About("c d", "unknown", None),
    ]


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"clips": {}}', '{"clips": [1]}', '{"clips": [{"text": "x"}]}', '{"clips": [{"file": "a", "text": 1}]}']
)
def test_a_list_that_is_not_as_described_is_a_wrong_setting(tmp_path: Path, text: str) -> None:
    (tmp_path / "pool.json").write_text(text)
    with pytest.raises(ConfigInvalid):
        Shelf(tmp_path)


def test_a_clip_of_the_users_is_named_in_the_credits_with_its_licence(tmp_path: Path, sandbox: Sandbox) -> None:
    source = film(sandbox, tmp_path, "film.mp4", *X264, "-an", seconds=1)
    extra = tmp_path / "extra"
    extra.mkdir()
    film(sandbox, extra, "harbour.mp4", *X264, "-an", "-vf", "negate", seconds=2)
    (extra / "pool.json").write_text(json.dumps({"clips": [{"file": "harbour.mp4", "licence": "CC-BY-4.0", "attribution": "A. Camera"}]}))
    config = retrieval(extra_folder=str(extra))
    recovered = board(sandbox, source, [(0, 25)])
    pool = cut_pool(recovered, source, sandbox=sandbox, store=ArtifactStore(tmp_path / "store"), config=config)
    task = build_task(recovered, pool, config, engines(), "0" * 64)
    planned = PlannedShot(segment=0, script_start=0, script_end=1, text="x", visual_query="x", target_duration_us=1)
    choice = AssetChoice(clip_id=pool[1].clip_id, ref=pool[1].ref, query="x", score=1.0, ranked=())
    state = apply(
        initial(task), [film_change("shot_order", ("s001",)), put_shot(ShotRecord(shot_id="s001", planned=planned, asset=choice))]
    )
    footage = [(c.name, c.licence, c.attribution) for c in credits_of(state, engines()) if c.kind == "footage"]
    assert footage == [("harbour.mp4", "CC-BY-4.0", "A. Camera")]
