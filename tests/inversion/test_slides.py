"""Wipes and pushes: found as one boundary with its extent; a camera that pans over a seamless picture is none."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from evaluation.studio.edit import Cutaway, Join, frames
from evaluation.studio.pictures import landscape, still_life
from evaluation.studio.scenes import Camera, Scene, hold, whip
from inversion.cuts import Rules
from inversion.reel import Reel
from inversion.slides import find_slides

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
