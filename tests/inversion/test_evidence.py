"""What is gathered of each shot of a small film: key frames in the store, text, captions, light, motion, kin."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from evaluation.studio.edit import Cutaway, frames
from evaluation.studio.pictures import landscape, still_life
from evaluation.studio.scenes import Camera, Captioned, Scene, Slide, TextLine, hold, shaken
from inversion.config import EvidenceConfig, InversionConfig
from inversion.evidence import gather
from inversion.shots import ShotTrack, detect_shots
from media.command import Sandbox
from media.images import decode_image
from media.ocr import RapidReader
from media.probe import probe
from media.sandbox import open_sandbox
from schemas.media import MediaInfo
from schemas.storyboard import TextBox
from storage.artifacts import ArtifactStore
from tests.inversion.films import encode

RNG = np.random.default_rng(9)
LAND, LIFE = landscape(RNG, 640, 360), still_life(RNG, 640, 360)
INTER = Path(__file__).resolve().parents[2] / "node_modules" / "@fontsource" / "inter" / "files" / "inter-latin-600-normal.woff2"
SIZE = (640, 360)


@dataclass
class CountingReader:
    """Reads nothing and remembers what it was shown."""

    name: str = "counting"
    seen: list[NDArray[np.uint8]] = field(default_factory=list)
    at_once: int = 0
    most: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self, image: NDArray[np.uint8]) -> tuple[TextBox, ...]:
        with self.lock:
            self.seen.append(image)
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        with self.lock:
            self.at_once -= 1
        return ()


@dataclass(frozen=True)
class Footage:
    """A film of four shots: a card, a picture with captions, a shaking picture, the first picture again."""

    path: Path
    info: MediaInfo
    track: ShotTrack


def scenes() -> list[tuple[Scene, int]]:
    font = str(INTER) if INTER.is_file() else None
    card = Slide(
        (18, 24, 40), (TextLine("Printing in 1455", 0.12, 0.3, 0.13), TextLine("a short history", 0.12, 0.5, 0.08)), font_path=font
    )
    lines = [(0, 20, "the river in the north"), (20, 50, "and the stone it carried")]
    titled = Captioned(Camera(LAND, hold()), lines, height=0.08, font_path=font)
    return [(card, 30), (titled, 50), (Camera(LIFE, shaken(hold(), np.random.default_rng(1), 0.01)), 40), (Camera(LAND, hold()), 30)]


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    return open_sandbox()


@pytest.fixture(scope="module")
def footage(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Footage:
    folder = tmp_path_factory.mktemp("footage")
    path = encode(sandbox, folder / "film.mp4", frames([Cutaway(s, n) for s, n in scenes()], SIZE), size=SIZE)
    info = probe(path, sandbox)
    track = detect_shots(path, info, sandbox, InversionConfig())
    assert [s.start_frame for s in track.shots] == [0, 30, 80, 120]
    return Footage(path, info, track)


def look(footage: Footage, sandbox: Sandbox, folder: Path, reader: object, **settings: object):  # type: ignore[no-untyped-def]
    config = InversionConfig(evidence=EvidenceConfig.model_validate(settings))
    store = ArtifactStore(folder / "store")
    found, spent = gather(footage.path, footage.info, sandbox, footage.track.shots, reader, store, config)  # type: ignore[arg-type]
    return found, spent, store


def test_each_shot_has_a_stored_key_frame_from_inside_it(footage: Footage, sandbox: Sandbox, tmp_path: Path) -> None:
    found, _, store = look(footage, sandbox, tmp_path, None)
    for shot, seen in zip(footage.track.shots, found, strict=True):
        (frame,) = seen.key_frames
        assert shot.start_us <= frame.at_us < shot.end_us
        assert (frame.width, frame.height) == SIZE
        image = decode_image(store.read(frame.sha256))
        assert image.shape == (360, 640, 3)


def test_more_key_frames_and_smaller_ones_can_be_asked_for(footage: Footage, sandbox: Sandbox, tmp_path: Path) -> None:
    found, _, _ = look(footage, sandbox, tmp_path, None, key_frames_per_shot=2, max_side=320)
    assert [len(e.key_frames) for e in found] == [2, 2, 2, 2]
    assert {(k.width, k.height) for e in found for k in e.key_frames} == {(320, 180)}


def test_cards_are_read_and_captions_stand_apart(footage: Footage, sandbox: Sandbox, tmp_path: Path) -> None:
    if not INTER.is_file():
        pytest.skip("fonts are not installed (npm ci)")
    found, spent, _ = look(footage, sandbox, tmp_path, RapidReader(threads=2))
    assert [b.text for b in found[0].text] == ["Printing in 1455", "a short history"]
    assert found[0].text[0].y == pytest.approx(0.3 * 360, abs=20)
    assert found[0].burned_captions == ()
    assert found[1].burned_captions in (("the river in the north",), ("and the stone it carried",))
    assert found[1].text == ()
    assert spent.read_us > 0
    assert 'on screen: "Printing in 1455 / a short history"' in found[0].caption


def test_without_a_reader_or_with_reading_off_there_is_no_text(footage: Footage, sandbox: Sandbox, tmp_path: Path) -> None:
    reader = CountingReader()
    found, spent, _ = look(footage, sandbox, tmp_path, reader, ocr=False)
    assert all(e.text == () for e in found)
    assert (reader.seen, spent.reads) == ([], 0)


def test_every_still_is_read_once_by_no_more_threads_than_allowed(footage: Footage, sandbox: Sandbox, tmp_path: Path) -> None:
    reader = CountingReader()
    _, spent, _ = look(footage, sandbox, tmp_path, reader, ocr_threads=2)
    assert len(reader.seen) == spent.reads == 4
    assert reader.most <= 2


def test_plain_stills_and_repeated_ones_are_not_read(sandbox: Sandbox, tmp_path: Path) -> None:
    black, card = Slide((0, 0, 0)), Camera(LAND, hold())
    other = Camera(LIFE, hold())
    path = encode(sandbox, tmp_path / "film.mp4", frames([Cutaway(s, 30) for s in (card, other, card, black, other)], SIZE), size=SIZE)
    info = probe(path, sandbox)
    track = detect_shots(path, info, sandbox, InversionConfig())
    assert len(track.shots) == 5
    reader = CountingReader()
    _, spent, _ = look(Footage(path, info, track), sandbox, tmp_path, reader)
    assert (spent.reads, spent.spared) == (2, 3)


def test_motion_light_and_kin_are_told(footage: Footage, sandbox: Sandbox, tmp_path: Path) -> None:
    card, titled, shaky, again = look(footage, sandbox, tmp_path, None)[0]
    assert card.motion < 0.001 < shaky.motion
    assert card.luma < 0.25
    assert again.nearest_shot == 1
    assert titled.nearest_shot == 3
    assert again.nearest_similarity is not None
    assert again.nearest_similarity > 0.9
    assert {e.caption_source for e in (card, titled, shaky, again)} == {"composed"}


def test_the_same_film_gives_the_same_evidence(footage: Footage, sandbox: Sandbox, tmp_path: Path) -> None:
    first, _, _ = look(footage, sandbox, tmp_path / "a", None)
    second, _, _ = look(footage, sandbox, tmp_path / "b", None)
    assert first == second


@pytest.mark.shared
def test_key_frames_of_a_turned_film_stand_upright(sandbox: Sandbox, shared: Path, tmp_path: Path) -> None:
    path = shared / "cases" / "rotate90.mp4"
    info = probe(path, sandbox)
    track = detect_shots(path, info, sandbox, InversionConfig())
    found, _, _ = look(Footage(path, info, track), sandbox, tmp_path, None)
    assert [(k.width, k.height) for e in found for k in e.key_frames] == [(180, 320), (180, 320)]
