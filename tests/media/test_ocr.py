"""Reading text off stills: exact lines in English and Chinese, order, silence, no network."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from media import ocr
from media.ocr import RapidReader, reading_order
from schemas.errors import EngineMissing
from schemas.storyboard import TextBox

FONTS = Path(__file__).resolve().parents[2] / "node_modules" / "@fontsource"
INTER = FONTS / "inter" / "files" / "inter-latin-600-normal.woff2"
NOTO = FONTS / "noto-sans-sc" / "files" / "noto-sans-sc-chinese-simplified-500-normal.woff2"


def picture(
    lines: list[tuple[str, int, int, int]],
    font: Path,
    size: tuple[int, int] = (1280, 720),
    ink: tuple[int, int, int] = (240, 240, 240),
    ground: tuple[int, int, int] = (18, 24, 38),
) -> NDArray[np.uint8]:
    """Lines of (text, x, y, height in pixels) on one colour."""
    if not font.is_file():
        pytest.skip(f"font {font.name} is not installed (npm ci)")
    image = Image.new("RGB", size, ground)
    draw = ImageDraw.Draw(image)
    for text, x, y, height in lines:
        draw.text((x, y), text, fill=ink, font=ImageFont.truetype(str(font), height))
    return np.asarray(image)


@pytest.fixture(scope="module")
def reader() -> RapidReader:
    return RapidReader(threads=1)


@pytest.mark.parametrize(
    ("texts", "font"),
    [
        pytest.param(["Editing in the age of print", "First shown in 1455, kept to this day"], INTER, id="english"),
        pytest.param(["从叙述到长视频", "三个步骤：分段、检索、合成"], NOTO, id="chinese"),
        pytest.param(["42 %", "of all shots carry text"], INTER, id="number"),
    ],
)
def test_lines_are_read_exactly(reader: RapidReader, texts: list[str], font: Path) -> None:
    image = picture([(t, 120, 180 + 140 * k, 56 - 12 * k) for k, t in enumerate(texts)], font)
    assert [_plain(b.text) for b in reader.read(image)] == [_plain(t) for t in texts]


@pytest.mark.parametrize(
    ("ink", "ground"),
    [((20, 20, 20), (250, 250, 250)), ((255, 230, 0), (0, 40, 160)), ((150, 150, 150), (40, 40, 40))],
    ids=["dark on light", "yellow on blue", "grey on grey"],
)
def test_colours_do_not_matter(reader: RapidReader, ink: tuple[int, int, int], ground: tuple[int, int, int]) -> None:
    image = picture([("Colours of the press", 200, 300, 60)], INTER, ink=ink, ground=ground)
    assert [b.text for b in reader.read(image)] == ["Colours of the press"]


def test_boxes_lie_on_the_text_in_picture_pixels(reader: RapidReader) -> None:
    image = picture([("Where it stands", 400, 500, 64)], INTER)
    (box,) = reader.read(image)
    ink = np.argwhere(image.sum(axis=2) > 400)
    top, left = ink.min(axis=0)
    bottom, right = ink.max(axis=0)
    assert abs(box.x - left) < 20
    assert abs(box.y - top) < 20
    assert abs(box.x + box.width - right) < 20
    assert abs(box.y + box.height - bottom) < 20


@pytest.mark.parametrize("size", [(1280, 720), (640, 360), (1920, 1080), (720, 1280)])
def test_small_and_large_frames_are_read(reader: RapidReader, size: tuple[int, int]) -> None:
    image = picture([("Same words", size[0] // 8, size[1] // 3, min(size) // 12)], INTER, size=size)
    assert [b.text for b in reader.read(image)] == ["Same words"]


def test_a_frame_without_text_gives_nothing(reader: RapidReader) -> None:
    rng = np.random.default_rng(3)
    soft = Image.fromarray(rng.integers(0, 255, (9, 16, 3), np.uint8)).resize((1280, 720), Image.Resampling.BICUBIC)
    assert reader.read(np.asarray(soft)) == ()


@pytest.mark.parametrize("shape", [(720, 1280, 3), (5, 5, 3), (8, 3000, 3), (3000, 8, 3)], ids=["black", "tiny", "sliver", "column"])
def test_empty_pictures_give_nothing(reader: RapidReader, shape: tuple[int, int, int]) -> None:
    assert reader.read(np.zeros(shape, np.uint8)) == ()


def test_a_grey_picture_is_refused(reader: RapidReader) -> None:
    with pytest.raises(ValueError, match="height, width, 3"):
        reader.read(np.zeros((720, 1280), np.uint8))


def test_nothing_is_printed_and_no_socket_is_made(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a socket was made")

    monkeypatch.setattr(ocr, "_idle", [])
    monkeypatch.setattr(socket.socket, "connect", refuse)
    fresh = RapidReader(threads=1)
    fresh.read(picture([("Quiet please", 300, 300, 60)], INTER))
    fresh.read(np.zeros((720, 1280, 3), np.uint8))
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


def test_one_engine_is_shared_by_all_readers_of_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []

    class Engine:
        def __call__(self, image: NDArray[np.uint8]) -> object:
            return object()

    def load() -> Engine:
        made.append(object())
        return Engine()

    monkeypatch.setattr(ocr, "_idle", [])
    monkeypatch.setattr(ocr, "_load", load)
    for _ in range(3):
        RapidReader(threads=2).read(np.zeros((64, 64, 3), np.uint8))
    assert len(made) == 1


def test_reads_at_the_same_time_agree_with_one_after_the_other(reader: RapidReader) -> None:
    images = [picture([(f"Line number {k}", 60, 150, 40)], INTER, size=(640, 360)) for k in (1, 2, 3)]
    alone = [reader.read(i) for i in images]
    both = RapidReader(threads=2)
    out: list[tuple[TextBox, ...]] = [()] * 3

    def work(k: int) -> None:
        out[k] = both.read(images[k])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert out == alone


def test_a_missing_package_says_what_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ocr, "_idle", [])
    monkeypatch.setattr(ocr, "find_spec", lambda name: None)
    with pytest.raises(EngineMissing, match="pip install rapidocr"):
        RapidReader().read(np.zeros((64, 64, 3), np.uint8))


def test_reading_order_is_by_lines_then_left_to_right() -> None:
    def box(text: str, x: int, y: int) -> TextBox:
        return TextBox(text=text, x=x, y=y, width=50, height=20, confidence=1.0)

    boxes = [box("d", 0, 100), box("b", 200, 12), box("a", 10, 10), box("c", 400, 8)]
    assert [b.text for b in reading_order(boxes)] == ["a", "b", "c", "d"]


def _plain(text: str) -> str:
    """Full-width colons and commas are the same characters to a reader; spaces beside them do not count."""
    return text.replace("：", ":").replace("，", ",").replace("、", ",").replace(" ", "")
