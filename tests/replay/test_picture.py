"""The picture of one shot: exact frames, held ends, backdrop, graphics laid over it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from media.ffmpeg import house_video, run_ffmpeg
from media.sandbox import open_sandbox
from replay.picture import Canvas, card_frames, reading_us, shot_argv, timescale
from schemas.artifact import ArtifactKind, ArtifactRef
from schemas.state import Decoration
from schemas.time import Rate

R30 = Rate(num=30, den=1)
CANVAS = Canvas(160, 90, R30, 20, "ultrafast")
RED, GREEN, BLUE = (255, 0, 0), (0, 128, 0), (0, 0, 255)


def decoration(placement: str = "full_frame", size: tuple[int, int] = (160, 90), ms: int = 1000, **slots: str) -> Decoration:
    ref = ArtifactRef(sha256="0" * 64, kind=ArtifactKind.DECORATION, media_type="video/mp4", size_bytes=1)
    return Decoration(
        ref=ref,
        template="title",
        template_digest="0" * 64,
        slots=slots,
        placement=placement,  # type: ignore[arg-type]
        duration_us=ms * 1000,
        width=size[0],
        height=size[1],
    )


class Table:
    """Makes clips and renders shots in the real sandbox."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sandbox = open_sandbox()
        self.made = 0

    def _folder(self) -> Path:
        self.made += 1
        folder = self.root / str(self.made)
        folder.mkdir()
        return folder

    def clip(self, source: str, frames: int) -> Path:
        folder = self._folder()
        argv = ("-f", "lavfi", "-i", source, "-frames:v", str(frames), *house_video(12, "ultrafast"), "/out/clip.mp4")
        run_ffmpeg(argv, outputs=("clip.mp4",), sandbox=self.sandbox, workdir=folder)
        return folder / "clip.mp4"

    def shot(
        self, clip: Path, size: tuple[int, int], frames: int, canvas: Canvas = CANVAS, card: tuple[Path, Decoration] | None = None
    ) -> Path:
        folder = self._folder()
        inputs = {"clip": clip} | ({} if card is None else {"card": card[0]})
        run_ffmpeg(
            shot_argv(size, frames, canvas, None if card is None else card[1]),
            inputs=inputs,
            outputs=("shot.mp4",),
            sandbox=self.sandbox,
            workdir=folder,
        )
        return folder / "shot.mp4"

    def pixels(self, shot: Path, width: int = 160, height: int = 90) -> NDArray[np.uint8]:
        argv = ("-i", "/in/shot", "-vf", "scale=in_color_matrix=bt709,format=rgb24", "-f", "rawvideo", "pipe:1")
        done = run_ffmpeg(argv, inputs={"shot": shot}, sandbox=self.sandbox, workdir=self._folder())
        return np.frombuffer(done.stdout, np.uint8).reshape(-1, height, width, 3)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return Table(tmp_path_factory.mktemp("picture"))


def is_near(pixel: NDArray[np.uint8], colour: tuple[int, int, int], slack: int = 24) -> bool:
    return bool(np.abs(pixel.astype(int) - colour).max() <= slack)


def test_a_longer_clip_is_cut_at_the_exact_frame(table: Table) -> None:
    shot = table.pixels(table.shot(table.clip("testsrc2=s=160x90:r=30", 60), (160, 90), 37))
    assert len(shot) == 37


def test_a_shorter_clip_holds_its_last_frame(table: Table) -> None:
    shot = table.pixels(table.shot(table.clip("testsrc2=s=160x90:r=30", 20), (160, 90), 50))
    assert len(shot) == 50
    assert float(np.abs(shot[49].astype(int) - shot[20].astype(int)).mean()) < 2
    assert float(shot[49].mean()) > 60


def test_another_frame_rate_keeps_the_pace(table: Table) -> None:
    clip = table.clip("color=red:s=160x90:r=15:d=1[a];color=blue:s=160x90:r=15:d=2[b];[a][b]concat=n=2", 45)
    shot = table.pixels(table.shot(clip, (160, 90), 90))
    assert is_near(shot[28, 45, 80], RED)
    assert is_near(shot[32, 45, 80], BLUE)


def test_a_narrow_clip_stands_whole_before_a_darker_copy_of_itself(table: Table) -> None:
    shot = table.pixels(table.shot(table.clip("color=red:s=90x90:r=30", 10), (90, 90), 10))
    assert is_near(shot[5, 45, 80], RED)
    edge = shot[5, 45, 4].astype(int)
    assert 60 < edge[0] < 200
    assert edge[0] > edge[1] + 20


def test_a_nearly_fitting_clip_fills_the_canvas(table: Table) -> None:
    shot = table.pixels(table.shot(table.clip("color=red:s=160x96:r=30", 10), (160, 96), 10))
    assert all(is_near(shot[5, y, x], RED) for y, x in ((1, 1), (88, 158), (45, 80)))


def test_a_graphic_gives_way_to_the_clip(table: Table) -> None:
    card = table.clip("color=blue:s=160x90:r=30", 30)
    spot = decoration(title="x")
    assert card_frames(spot, 200, R30) == 66
    shot = table.pixels(table.shot(table.clip("color=red:s=160x90:r=30", 30), (160, 90), 200, card=(card, spot)))
    assert len(shot) == 200
    assert is_near(shot[50, 45, 80], BLUE)
    assert is_near(shot[67, 45, 80], RED)
    assert is_near(shot[199, 45, 80], RED)


def test_a_graphic_stays_when_little_would_be_left(table: Table) -> None:
    card = table.clip("color=blue:s=160x90:r=30", 30)
    shot = table.pixels(table.shot(table.clip("color=red:s=160x90:r=30", 30), (160, 90), 90, card=(card, decoration(title="x"))))
    assert len(shot) == 90
    assert all(is_near(frame[45, 80], BLUE) for frame in shot)


def test_a_band_comes_and_goes(table: Table) -> None:
    band = table.clip("color=blue:s=96x16:r=30", 30)
    spot = decoration("lower_third", (96, 16), title="x")
    shot = table.pixels(table.shot(table.clip("color=red:s=160x90:r=30", 60), (160, 90), 240, card=(band, spot)))
    place = (72, 30)
    assert is_near(shot[2][place], RED)
    assert is_near(shot[90][place], BLUE)
    assert is_near(shot[200][place], RED)
    assert is_near(shot[90][10, 80], RED)


def test_a_shot_gives_the_same_bytes_twice(table: Table) -> None:
    clip = table.clip("testsrc2=s=90x90:r=30", 20)
    assert table.shot(clip, (90, 90), 30).read_bytes() == table.shot(clip, (90, 90), 30).read_bytes()


@pytest.mark.parametrize(
    ("rate", "ticks"), [((24, 1), 15360), ((25, 1), 12800), ((30, 1), 15360), ((60, 1), 15360), ((30000, 1001), 30000)]
)
def test_every_frame_lasts_whole_ticks(rate: tuple[int, int], ticks: int) -> None:
    r = Rate(num=rate[0], den=rate[1])
    assert timescale(r) == ticks
    assert ticks * r.den % r.num == 0


def test_longer_texts_are_shown_longer() -> None:
    assert reading_us({"title": "a" * 20}) == 3_100_000
    assert reading_us({"title": "桥" * 10}) == 3_700_000


def test_no_text_of_a_slot_stands_in_the_arguments() -> None:
    hostile = "';[0:v]drawtext=textfile=/etc/passwd"
    assert hostile not in " ".join(shot_argv((160, 90), 90, CANVAS, decoration(title=hostile)))
