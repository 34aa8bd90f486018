"""The measure that shot detection rests on: what one frame cannot explain of another."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from evaluation.studio.pictures import darkened, landscape, still_life
from inversion.likeness import Matcher
from inversion.reel import Reel

SIZE = (64, 36)
RNG = np.random.default_rng(4)
WIDE = np.asarray(landscape(RNG, 128, 72))
OTHER = np.asarray(still_life(RNG, 64, 36))
HERE = WIDE[18:54, 32:96]


def unlike(a: NDArray[np.uint8], b: NDArray[np.uint8]):  # type: ignore[no-untyped-def]
    matcher = Matcher(*SIZE)
    return matcher.compare(matcher.take(np.ascontiguousarray(a)), matcher.take(np.ascontiguousarray(b)))


def test_a_frame_explains_itself() -> None:
    assert unlike(HERE, HERE).share == 0.0


@pytest.mark.parametrize(("dx", "dy"), [(4, 0), (-8, 0), (0, 4), (6, -3)])
def test_a_shifted_frame_is_explained(dx: int, dy: int) -> None:
    moved = WIDE[18 + dy : 54 + dy, 32 + dx : 96 + dx]
    assert unlike(HERE, moved).share < 0.35


def test_another_picture_is_not() -> None:
    assert unlike(HERE, OTHER).share > 0.5


@pytest.mark.parametrize("gain", [0.5, 0.7, 1.2])
def test_other_light_is_no_other_picture(gain: float) -> None:
    found = unlike(HERE, darkened(HERE, gain))
    assert found.share < 0.2
    assert found.kin > 0.95
    assert abs(found.tilt) > 0.9


def test_the_measure_does_not_depend_on_contrast() -> None:
    full, faint = unlike(HERE, OTHER), unlike(darkened(HERE, 0.3, 20), darkened(OTHER, 0.3, 20))
    assert faint.share == pytest.approx(full.share, abs=0.2)


def test_it_is_the_same_in_both_directions() -> None:
    there, back = unlike(HERE, OTHER), unlike(OTHER, HERE)
    assert there.share == pytest.approx(back.share, abs=1e-3)
    assert (there.gone, there.fresh) == pytest.approx((back.fresh, back.gone), abs=1e-3)


def test_what_comes_and_what_goes_are_told_apart() -> None:
    empty = np.full((36, 64, 3), 15, np.uint8)
    written = empty.copy()
    written[8:11, 10:40] = 220
    assert unlike(empty, written).fresh > 1
    assert unlike(empty, written).gone == pytest.approx(0, abs=0.05)
    assert unlike(written, empty).gone > 1


def test_a_change_low_in_the_frame_is_told_from_one_above() -> None:
    page = np.full((36, 64, 3), 15, np.uint8)
    page[6:9, 8:50] = 220
    one, two = page.copy(), page.copy()
    one[30:33, 14:50] = 200
    two[30:33, 20:40] = 200
    assert unlike(one, two).upper == pytest.approx(0, abs=0.01)
    assert unlike(page[::-1], one).upper > 0.5


def test_plain_frames_have_no_pattern_but_a_tone() -> None:
    found = unlike(np.full((36, 64, 3), 250, np.uint8), np.full((36, 64, 3), 5, np.uint8))
    assert found.pattern == pytest.approx(0)
    assert found.tone == pytest.approx(245, abs=0.5)


def test_sizes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot be cut"):
        Matcher(65, 36)


def test_a_reel_forgets_from_the_front_and_keeps_its_numbers() -> None:
    reel = Reel(*SIZE)
    frames = np.stack([np.roll(OTHER, k, axis=1) for k in range(300)])
    for k in range(0, 300, 50):
        reel.add(frames[k : k + 50])
    step, pair = float(reel.step[200]), reel.unlike(250, 251)
    reel.drop_before(200)
    assert (reel.first, reel.end) == (200, 300)
    assert float(reel.step[0]) == step
    assert reel.unlike(250, 251) == pair
    reel.add(frames[:10])
    assert reel.end == 310


def test_batches_of_any_size_give_the_same_figures() -> None:
    frames = np.stack([np.roll(HERE, k * 2, axis=1) for k in range(40)])
    whole, parts = Reel(*SIZE), Reel(*SIZE)
    whole.add(frames)
    for frame in frames:
        parts.add(frame[None])
    for name in ("step", "shift", "strip", "upper", "mean", "spread", "contrast", "deviation"):
        np.testing.assert_allclose(getattr(whole, name), getattr(parts, name), rtol=1e-5, err_msg=name)
