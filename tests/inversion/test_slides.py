"""Wipes and pushes of every shape: found as one boundary with its extent; what pans, grows or opens over a page is none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from evaluation.studio.edit import Cutaway, Join, frames
from evaluation.studio.pictures import Picture, landscape, still_life
from evaluation.studio.scenes import Camera, Scene, hold, whip
from inversion.cuts import Rules, find_cuts
from inversion.gradual import find_fades
from inversion.reel import Reel
from inversion.slides import find_slides
from media.ffmpeg import run_ffmpeg
from media.sandbox import open_sandbox
from schemas.storyboard import Transition
from tests.inversion.films import shots_of

RNG = np.random.default_rng(12)
LAND, LIFE = landscape(RNG, 640, 360), still_life(RNG, 640, 360)


def reel_of(edit: list[Cutaway], turn: bool = False) -> Reel:
    size = (144, 256) if turn else (256, 144)
    drawn = [np.rot90(f) if turn else f for f in frames(edit, size)]
    reel = Reel(64, 36)
    reel.add(np.stack([np.asarray(Image.fromarray(f).resize((64, 36), Image.Resampling.BOX)) for f in drawn]))
    return reel


def slides(reel: Reel) -> list[tuple[int, int]]:
    return [(g.start, g.end) for g in find_slides(reel, 0, reel.end, 1.0, [], Rules.of(0.5))]


@pytest.mark.parametrize("turn", [False, True], ids=["across", "down"])
@pytest.mark.parametrize("join", ["wipe", "push"])
def test_a_slide_is_found_where_it_is(join: Join, turn: bool) -> None:
    edit = [Cutaway(Camera(LAND, hold()), 40), Cutaway(Camera(LIFE, hold()), 40, join, 14)]
    ((start, end),) = slides(reel_of(edit, turn))
    assert abs(start - 33) <= 1
    assert abs(end - 47) <= 1


@pytest.mark.parametrize(
    "second",
    [
        Cutaway(Camera(LIFE, hold()), 40),
        Cutaway(Camera(LIFE, hold()), 40, "dissolve", 14),
        Cutaway(Camera(LIFE, hold()), 40, "fade_black", 14),
    ],
    ids=["cut", "dissolve", "fade"],
)
def test_other_joins_are_no_slides(second: Cutaway) -> None:
    assert slides(reel_of([Cutaway(Camera(LAND, hold()), 40), second])) == []


@pytest.mark.parametrize("length", [8, 14, 24])
def test_a_fast_pan_is_no_slide(length: int) -> None:
    wide = np.concatenate([LAND, LAND[:, ::-1], LAND], axis=1)
    scene: Scene = Camera(wide, whip(0.2, 0.75, 30, length), blur=3)
    assert slides(reel_of([Cutaway(scene, 80)])) == []


Y, X = np.mgrid[0:144, 0:256]
RIM = np.hypot(X - 128, Y - 72) / np.hypot(128, 72)
PLACES = {
    "iris opens": RIM,
    "iris closes": 1 - RIM,
    "clock": (np.arctan2(Y - 72, X - 128) / (2 * np.pi)) % 1,
    "corner": (X / 256 + Y / 144) / 2,
    "blinds": (X % 32) / 32,
    "doors": np.abs(X - 128) / 128,
    "squares": np.kron(np.random.default_rng(5).random((9, 16)), np.ones((16, 16))),
}
"""When each place of the frame turns, 0 to 1."""


def turning(before: Picture, after: Picture, place: NDArray[np.float64], frames: int, edge: float) -> list[Picture]:
    """``frames`` mixed frames; ``edge`` is how much of the way a place takes to turn."""
    out = []
    for k in range(1, frames + 1):
        share = np.clip((k / (frames + 1) * (1 + edge) - place) / edge, 0, 1)[..., None]
        out.append((before * (1 - share) + after * share).astype(np.uint8))
    return out


def drawn(*parts: list[Picture]) -> Reel:
    reel = Reel(64, 36)
    reel.add(np.stack([np.asarray(Image.fromarray(f).resize((64, 36), Image.Resampling.BOX)) for part in parts for f in part]))
    return reel


def small(picture: Picture) -> Picture:
    return np.asarray(Image.fromarray(picture).resize((256, 144), Image.Resampling.BOX))


@pytest.mark.parametrize("edge", [0.02, 0.7], ids=["hard", "soft"])
@pytest.mark.parametrize("shape", PLACES)
def test_a_wipe_of_any_shape_is_one_boundary(shape: str, edge: float) -> None:
    before, after = small(LAND), small(LIFE)
    ((start, end),) = slides(drawn([before] * 30, turning(before, after, PLACES[shape], 20, edge), [after] * 30))
    assert 28 <= start <= 38
    assert 39 <= end <= 51


def test_an_iris_that_closes_and_opens_again_is_one_fade() -> None:
    before, after, black = small(LAND), small(LIFE), np.zeros((144, 256, 3), np.uint8)
    closing, opening = turning(before, black, 1 - RIM, 14, 0.02), turning(black, after, RIM, 14, 0.02)
    reel = drawn([before] * 30, closing, [black] * 3, opening, [after] * 30)
    (fade,) = find_slides(reel, 0, reel.end, 1.0, [], Rules.of(0.5))
    assert fade.kind is Transition.FADE_BLACK
    assert 30 <= fade.start < fade.end <= 62


@pytest.mark.parametrize("count", [6, 10, 15, 38, 75])
def test_an_iris_of_any_pace_to_black_and_back_is_one_fade(count: int) -> None:
    """As quick as cuts, or with a second of darkness in its middle: the circle shrinks by the third power of time."""
    left = np.abs(np.linspace(1, -1, count + 2)[1:-1]) ** 3
    frames = [np.where((RIM < z)[..., None], small(LAND if k < count / 2 else LIFE), np.uint8(0)) for k, z in enumerate(left)]
    reel = drawn([small(LAND)] * 30, frames, [small(LIFE)] * 30)
    times, rules = np.arange(reel.end + 1) * 40_000, Rules.of(0.5)
    cuts = [c.frame for c in find_cuts(reel, 0, reel.end, times, 1.0, rules)]
    fades = find_fades(reel, times, 1.0, cuts, reel.end, rules)
    assert set(cuts) <= fades.spent
    walls = [edge for stretch in fades.taken for edge in stretch]
    slides = [s for s in find_slides(reel, 0, reel.end, 1.0, walls, rules) if not fades.fades or s.end <= fades.fades[0].start]
    (fade,) = [*fades.fades, *slides]
    assert fade.kind is Transition.FADE_BLACK
    assert abs((fade.start + fade.end) // 2 - (30 + count // 2)) <= 2


def test_a_cut_to_black_and_a_cut_back_is_no_iris() -> None:
    reel = drawn([small(LAND)] * 30, [np.zeros((144, 256, 3), np.uint8)] * 40, [small(LIFE)] * 30)
    times, rules = np.arange(reel.end + 1) * 40_000, Rules.of(0.5)
    cuts = [c.frame for c in find_cuts(reel, 0, reel.end, times, 1.0, rules)]
    assert (cuts, find_fades(reel, times, 1.0, cuts, reel.end, rules).fades) == ([30, 70], ())


PAGE = np.full((144, 256, 3), 245, np.uint8)
PAGE[20:120:12, 20:236] = 40
SKETCH = np.where(((X // 6 + Y // 6) % 3 == 0)[..., None], np.uint8(20), np.uint8(255)).repeat(3, axis=2)


@pytest.mark.parametrize(
    ("before", "after", "place"),
    [
        (np.full_like(PAGE, 255), SKETCH, PLACES["corner"]),
        (PAGE, np.where((X > 170)[..., None], np.uint8(90), PAGE), (256 - X) / 256),
        (PAGE, np.where((Y > 60)[..., None] & (PAGE > 200), np.uint8(230), PAGE), Y / 144),
    ],
    ids=["a drawing grows on an empty page", "a drawer opens over a page", "a shade falls over a page"],
)
def test_what_comes_over_a_page_is_no_wipe(before: Picture, after: Picture, place: NDArray[np.float64]) -> None:
    assert slides(drawn([before] * 30, turning(before, after, place, 20, 0.02), [after] * 30)) == []


XFADES = (
    "circleclose circlecrop circleopen diagbl diagbr diagtl diagtr dissolve distance fade fadeblack fadegrays fadewhite hblur hlslice "
    "horzclose horzopen hrslice pixelize radial rectcrop slidedown slideleft slideright slideup smoothdown smoothleft "
    "smoothright smoothup squeezeh squeezev vdslice vertclose vertopen vuslice wipebl wipebr wipedown wipeleft wiperight "
    "wipetl wipetr wipeup"
).split()


@pytest.mark.full
@pytest.mark.parametrize("kind", XFADES)
def test_a_transition_that_ffmpeg_makes_is_one_boundary(kind: str, tmp_path: Path) -> None:
    sandbox, pictures = open_sandbox(), {"a.png": LAND, "b.png": LIFE}
    for name, picture in pictures.items():
        Image.fromarray(picture).save(tmp_path / name)
    stills = [word for name in pictures for word in ("-loop", "1", "-framerate", "25", "-t", "3", "-i", f"/in/{name}")]
    mixing = f"[0]format=yuv420p[a];[1]format=yuv420p[b];[a][b]xfade=transition={kind}:duration=1:offset=2[o]"
    encoder = ("-c:v", "libx264", "-preset", "ultrafast", "-threads", "1", "/out/film.mp4")
    run_ffmpeg(
        [*stills, "-filter_complex", mixing, "-map", "[o]", *encoder],
        inputs={name: tmp_path / name for name in pictures},
        outputs=("film.mp4",),
        sandbox=sandbox,
        workdir=tmp_path,
    )
    first, second = shots_of(tmp_path / "film.mp4", sandbox).shots
    assert second.transition_in not in (Transition.START, Transition.CUT)
    assert 2_200_000 <= first.end_us <= 2_800_000
