"""Where shots begin and what joins them, on films drawn frame by frame: every row says what must be found, and nothing else may be."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from evaluation.studio.edit import Cutaway, boundaries
from evaluation.studio.films import KINDS
from evaluation.studio.films import make_film as studio_film
from evaluation.studio.pictures import Picture, darkened, figure, landscape, still_life
from evaluation.studio.scenes import (
    Boxed,
    Camera,
    Captioned,
    Flash,
    Flashing,
    Grainy,
    Lit,
    Moving,
    Scene,
    Slide,
    Sprite,
    Terminal,
    TextLine,
    glide,
    hold,
    shaken,
    whip,
)
from inversion.shots import analysis_size
from media.command import Sandbox
from media.sandbox import open_sandbox
from schemas.storyboard import Transition
from tests.inversion.films import SIZE, encode, found, make_film, shots_of

RNG = np.random.default_rng(20)
WIDE = (384, 216)
LAND, LAND2 = landscape(RNG, *WIDE), landscape(RNG, *WIDE)
LIFE, LIFE2 = still_life(RNG, *WIDE), still_life(RNG, *WIDE)
FACE, FACE2 = figure(RNG, *WIDE), figure(RNG, *WIDE)
PANORAMA: Picture = np.concatenate([LAND, LAND2, LIFE], axis=1)


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    return open_sandbox()


def still(picture: Picture, *view: float) -> Scene:
    return Camera(picture, hold(*view) if view else hold())


def drift(picture: Picture, frames: int = 50) -> Scene:
    return Camera(picture, glide((0.45, 0.5, 0.85), (0.55, 0.5, 0.7), frames))


def hand(picture: Picture, strength: float = 0.004, seed: int = 1) -> Scene:
    return Camera(picture, shaken(hold(), np.random.default_rng(seed), strength))


def crossing(picture: Picture, cutout: Picture, speed: float = 0.03, size: float = 0.6) -> Scene:
    return Moving(still(picture), (Sprite(cutout[:200, :200], 0.0, 0.5, speed, 0.0, size),))


def bars(*rows: tuple[float, float, float]) -> Scene:
    """A dark slide with light bars at (x, y, width)."""
    return Slide((15, 15, 15), bars=tuple((x, y, w, 0.045, (200, 200, 200)) for x, y, w in rows))


def words(*lines: str, ground: tuple[int, int, int] = (12, 12, 16), ink: tuple[int, int, int] = (230, 230, 230)) -> Scene:
    return Slide(ground, tuple(TextLine(t, 0.15, 0.2 + 0.16 * k, 0.11, ink) for k, t in enumerate(lines)))


def typed() -> Scene:
    events = [
        (-1, "$ "),
        *((5 + 2 * k, c) for k, c in enumerate("make demo")),
        (30, "\nmade\n$ "),
        *((36 + 2 * k, c) for k, c in enumerate("ls")),
    ]
    return Terminal(tuple(events), rows=12)


def lamp(picture: Picture, at: int = 25) -> Scene:
    return Lit(still(picture), lambda k: (1.0 if k < at else 0.55, 0.0))


def dimmed(scene: Scene, frames: int, ramp: int) -> Scene:
    return Lit(scene, lambda k: (min(1.0, k / ramp, max(0.0, (frames - 1 - k) / ramp)), 0.0))


def printout(seed: int, dark: bool) -> Picture:
    """A tall page of lines of letters, four screens high, 8 pixels a line on a screen of 216."""
    rng = np.random.default_rng(seed)
    ground, ink = ((24, 24, 28), (220, 220, 220)) if dark else ((250, 250, 250), (30, 30, 30))
    page = np.full((4 * 216, 384, 3), ground, np.uint8)
    for y in range(8, len(page) - 8, 8):
        x = 12 + 6 * int(rng.integers(0, 4))
        for _ in range(int(rng.integers(0, 12))):
            width = int(rng.integers(8, 34))
            page[y : y + 5, x : min(x + width, 372) : 2] = ink
            x += width + 4
    return page


def scrolled(seed: int, dark: bool, lines: int, every: int = 1, lasting: int = 2) -> Scene:
    """Rests, moves by ``lines`` lines each ``every`` frames for ``lasting`` frames, rests, twice."""

    def path(at: float) -> tuple[float, float, float]:
        steps = sum(min(max(int((at - start) // every), 0), lasting // every) for start in (20, 55))
        return 0.5, 0.125 + steps * lines * 8 / (4 * 216), 0.25

    return Camera(printout(seed, dark), path)


Row = tuple[list[Cutaway], list[str]]

CUTS: dict[str, Row] = {
    "two pictures": ([Cutaway(still(LAND), 40), Cutaway(still(FACE), 40)], ["cut@40"]),
    "pictures that drift": ([Cutaway(drift(LAND), 50), Cutaway(drift(LIFE), 50)], ["cut@50"]),
    "closer on the same place": ([Cutaway(still(FACE, 0.5, 0.5, 0.95), 40), Cutaway(still(FACE, 0.4, 0.4, 0.35), 40)], ["cut@40"]),
    "a little closer on the same place": ([Cutaway(still(LIFE, 0.5, 0.5, 0.85), 40), Cutaway(still(LIFE, 0.5, 0.5, 0.65), 40)], ["cut@40"]),
    "to the other side of the same place": (
        [Cutaway(still(LIFE, 0.28, 0.5, 0.5), 40), Cutaway(still(LIFE, 0.72, 0.5, 0.5), 40)],
        ["cut@40"],
    ),
    "at night": (
        [Cutaway(still(darkened(LAND, 0.15, 8)), 40), Cutaway(still(darkened(LIFE, 0.12, 10)), 40)],
        ["cut@40"],
    ),
    "between shaking cameras": ([Cutaway(hand(LAND, 0.012), 40), Cutaway(hand(LIFE, 0.012, 2), 40)], ["cut@40"]),
    "under grain": ([Cutaway(Grainy(still(LAND), 10, 1), 40), Cutaway(Grainy(still(LIFE), 10, 2), 40)], ["cut@40"]),
    "dialogue": ([Cutaway(hand((FACE, FACE2)[k % 2], 0.001), 20) for k in range(4)], ["cut@20", "cut@40", "cut@60"]),
    "a shot of one frame": ([Cutaway(still(LAND), 40), Cutaway(still(LIFE), 1), Cutaway(still(FACE), 40)], ["cut@40", "cut@41"]),
    "a shot of three frames": ([Cutaway(still(LAND), 40), Cutaway(still(LIFE), 3), Cutaway(still(FACE), 40)], ["cut@40", "cut@43"]),
    "dark slides": (
        [Cutaway(bars((0.13, 0.33, 0.4), (0.13, 0.47, 0.3)), 40), Cutaway(bars((0.2, 0.2, 0.6)), 40), Cutaway(words("next topic"), 40)],
        ["cut@40", "cut@80"],
    ),
    "a bar more on a dark slide": (
        [Cutaway(bars((0.13, 0.33, 0.38)), 40), Cutaway(bars((0.13, 0.33, 0.38), (0.13, 0.47, 0.45)), 40)],
        ["cut@40"],
    ),
    "white slides": (
        [Cutaway(words(t, "and a line", ground=(250, 250, 250), ink=(30, 30, 30)), 40) for t in ("First topic here", "Another matter")],
        ["cut@40"],
    ),
    "between pages of text": ([Cutaway(still(printout(k, False)[:216]), 40) for k in (1, 2)], ["cut@40"]),
    "between printing terminals": ([Cutaway(scrolled(k, True, 2), 40) for k in (5, 6)], ["cut@40"]),
    "card to terminal": ([Cutaway(words("Chapter one"), 40), Cutaway(typed(), 60)], ["cut@40"]),
    "letterbox": (
        [Cutaway(Boxed(still(p), np.zeros((9, 16, 3), np.uint8), 0, 0.13, 1, 0.74), 40) for p in (LAND, LIFE)],
        ["cut@40"],
    ),
    "in the middle of a motion": ([Cutaway(crossing(LAND, LIFE), 40), Cutaway(crossing(FACE, LAND2), 40)], ["cut@40"]),
    "to plain white": ([Cutaway(still(LAND), 40), Cutaway(Slide((255, 255, 255)), 40)], ["cut@40"]),
    "white to black": ([Cutaway(Slide((255, 255, 255)), 40), Cutaway(Slide((0, 0, 0)), 40)], ["cut@40"]),
}

NO_CUTS: dict[str, Scene] = {
    "nothing moves": still(LAND),
    "fast pan": Camera(PANORAMA, whip(0.2, 0.8, 20, 22)),
    "fast pan with a slow shutter": Camera(PANORAMA, whip(0.2, 0.8, 25, 16), blur=4),
    "zoom": Camera(LIFE, glide((0.5, 0.5, 0.95), (0.5, 0.5, 0.35), 60)),
    "badly shaking camera": hand(FACE, 0.015),
    "object close to the camera": crossing(LAND, LIFE, 0.04, 0.8),
    "lamp switched off": lamp(LAND),
    "light that flickers": Lit(still(FACE), lambda k: (0.85 if k % 4 == 0 else 1.0, 0.0)),
    "one flash of one frame": Flashing(still(FACE), (Flash(30, 1),)),
    "flashes of two to four frames": Flashing(drift(LAND, 90), (Flash(20, 2), Flash(45, 3), Flash(70, 4))),
    "half a flash": Flashing(hand(FACE, 0.002), (Flash(30, 2, share=0.6),)),
    "tinted flash": Flashing(still(LAND), (Flash(30, 3, (255, 190, 80)),)),
    "white strobe": Flashing(still(FACE), tuple(Flash(20 + 4 * k, 2) for k in range(8))),
    "black strobe": Flashing(still(LAND), tuple(Flash(20 + 5 * k, 2, (0, 0, 0)) for k in range(8))),
    "captions over a picture": Captioned(
        still(LAND), [(0, 25, "the river in the north"), (25, 55, "and the stone it carried"), (55, 90, "to the town")]
    ),
    "captions over a card": Captioned(
        words("The printing press"), [(0, 25, "first spoken words here"), (25, 60, "other words follow"), (60, 90, "end")]
    ),
    "typing and output": typed(),
    "strong grain": Grainy(still(LIFE), 14, 5),
    "fade in and out at the ends": dimmed(still(LAND), 90, 15),
    "white terminal that prints two lines a frame": scrolled(1, False, 2),
    "white terminal that prints three lines now and then": scrolled(2, False, 3, every=4, lasting=8),
    "dark terminal that prints five lines a frame": scrolled(3, True, 5),
    "page scrolled by seven lines at once": scrolled(4, False, 7, lasting=1),
    "picture in picture that moves": Boxed(crossing(LAND, LIFE), FACE, 0.6, 0.55, 0.35, 0.35),
}

GRADUAL: dict[str, tuple[Scene, Scene, Transition, int, int]] = {
    "dissolve of 6": (still(LAND), still(FACE), Transition.DISSOLVE, 6, 1),
    "dissolve of 12": (still(LIFE), still(LAND2), Transition.DISSOLVE, 12, 1),
    "dissolve of 25": (still(LAND), still(LIFE), Transition.DISSOLVE, 25, 1),
    "dissolve of 50": (still(FACE), still(LAND), Transition.DISSOLVE, 50, 1),
    "dissolve while both drift": (drift(LAND), drift(LIFE2), Transition.DISSOLVE, 24, 1),
    "dissolve between shaking cameras": (hand(FACE, 0.003), hand(LAND, 0.003, 3), Transition.DISSOLVE, 20, 1),
    "dissolve between slides": (words("First topic"), words("Quite another", "with two lines"), Transition.DISSOLVE, 16, 1),
    "fade through black": (still(LAND), still(FACE), Transition.FADE_BLACK, 24, 1),
    "slow fade through black with a pause": (drift(LIFE), drift(LAND), Transition.FADE_BLACK, 50, 12),
    "fade through black while cameras shake": (hand(FACE), hand(LAND, 0.004, 4), Transition.FADE_BLACK, 30, 3),
    "fade through white": (still(LIFE), still(LAND), Transition.FADE_WHITE, 20, 1),
    "fast fade through white": (still(LAND), still(FACE2), Transition.FADE_WHITE, 10, 2),
}


@pytest.mark.parametrize("name", CUTS)
def test_hard_cuts_are_found_on_the_frame(sandbox: Sandbox, tmp_path: Path, name: str) -> None:
    edit, expected = CUTS[name]
    assert found(shots_of(make_film(sandbox, tmp_path / "film.mp4", edit), sandbox)) == expected


@pytest.mark.parametrize("name", NO_CUTS)
def test_what_happens_inside_a_shot_is_no_cut(sandbox: Sandbox, tmp_path: Path, name: str) -> None:
    track = shots_of(make_film(sandbox, tmp_path / "film.mp4", [Cutaway(NO_CUTS[name], 90)]), sandbox)
    assert found(track) == []
    assert [(s.start_us, s.end_us) for s in track.shots] == [(0, 3_600_000)]


@pytest.mark.parametrize("name", GRADUAL)
def test_gradual_transitions_are_one_boundary_with_start_end_and_kind(sandbox: Sandbox, tmp_path: Path, name: str) -> None:
    before, after, kind, length, pause = GRADUAL[name]
    edit = [Cutaway(before, 50), Cutaway(after, 50, kind.value, length, pause)]  # type: ignore[arg-type]
    (truth,) = boundaries(edit)
    track = shots_of(make_film(sandbox, tmp_path / "film.mp4", edit), sandbox)
    assert [s.transition_in for s in track.shots] == [Transition.START, kind]
    shot = track.shots[1]
    assert shot.transition_start_us is not None
    assert shot.transition_end_us is not None
    start, end = shot.transition_start_us / 40_000, shot.transition_end_us / 40_000
    overlap = min(end, truth.end) - max(start, truth.start)
    assert overlap / (max(end, truth.end) - min(start, truth.start)) > 0.7
    assert abs(shot.start_frame - truth.at) <= max(2, length // 6)


@pytest.mark.parametrize("crf", [18, 30, 40])
def test_compression_changes_nothing(sandbox: Sandbox, tmp_path: Path, crf: int) -> None:
    edit = [Cutaway(drift(LAND), 40), Cutaway(still(FACE), 40), Cutaway(drift(LIFE), 60, "dissolve", 20)]
    track = shots_of(make_film(sandbox, tmp_path / "film.mp4", edit, crf=crf), sandbox)
    assert [s.transition_in.value for s in track.shots] == ["start", "cut", "dissolve"]
    assert track.shots[1].start_frame == 40


@pytest.mark.parametrize("rate", [10, 24, 50, 60])
def test_frame_rate_changes_nothing(sandbox: Sandbox, tmp_path: Path, rate: int) -> None:
    pan = Camera(PANORAMA, whip(0.2, 0.6, rate // 2, rate))
    edit = [
        Cutaway(still(FACE2), 2 * rate),
        Cutaway(pan, 2 * rate),
        Cutaway(Flashing(still(FACE), (Flash(rate, max(1, rate // 20)),)), 2 * rate),
    ]
    assert found(shots_of(make_film(sandbox, tmp_path / "film.mp4", edit, rate=rate), sandbox)) == [f"cut@{2 * rate}", f"cut@{4 * rate}"]


@pytest.mark.parametrize(("slow", "rate"), [(15, 60), (10, 30), (12, 24)])
def test_a_pan_brought_to_a_higher_rate_is_no_cut(sandbox: Sandbox, tmp_path: Path, slow: int, rate: int) -> None:
    pan = Camera(PANORAMA, whip(0.2, 0.8, slow // 2, 2 * slow))
    edit = [Cutaway(pan, 3 * slow), Cutaway(still(FACE), slow)]
    path = make_film(sandbox, tmp_path / "film.mp4", edit, rate=slow, options=["-r", str(rate)])
    track = shots_of(path, sandbox)
    assert [round(s.start_us / 1e6, 2) for s in track.shots] == [0.0, 3.0]


def test_times_come_from_presentation_stamps(sandbox: Sandbox, tmp_path: Path) -> None:
    edit = [Cutaway(still(LAND), 60), Cutaway(still(FACE), 20), Cutaway(still(LIFE), 30)]
    stamps = ["-vf", "setpts='if(lt(N,60),N/30,2+(N-60)/10)/TB'", "-fps_mode", "passthrough", "-enc_time_base", "1:90000"]
    track = shots_of(make_film(sandbox, tmp_path / "film.mp4", edit, options=stamps), sandbox)
    assert [round(s.start_us / 1e6, 3) for s in track.shots] == [0.0, 2.0, 4.0]
    assert [s.start_frame for s in track.shots] == [0, 60, 80]


def test_frames_with_equal_times_give_no_empty_shot(sandbox: Sandbox, tmp_path: Path) -> None:
    edit = [Cutaway(still(LAND), 40), Cutaway(still(LIFE), 1), Cutaway(still(FACE), 39)]
    stamps = ["-bf", "0", "-bsf:v", "setts=ts='floor(N/2)*80'"]
    track = shots_of(make_film(sandbox, tmp_path / "film.mkv", edit, options=stamps), sandbox)
    assert all(s.end_us > s.start_us for s in track.shots)
    assert [s.start_us for s in track.shots] == [0, 1_600_000]


@pytest.mark.parametrize("name", ["two pictures", "a shot of one frame", "dark slides"])
def test_shots_cover_the_picture_without_gap_or_overlap(sandbox: Sandbox, tmp_path: Path, name: str) -> None:
    edit, _ = CUTS[name]
    track = shots_of(make_film(sandbox, tmp_path / "film.mp4", edit), sandbox)
    assert track.shots[0].start_us == 0
    assert track.shots[-1].end_us == track.end_us == sum(c.frames for c in edit) * 40_000
    assert all(a.end_us == b.start_us and a.end_frame == b.start_frame for a, b in pairwise(track.shots))
    assert track.shots[-1].end_frame == track.frames


def test_a_film_of_one_frame_is_one_shot(sandbox: Sandbox, tmp_path: Path) -> None:
    track = shots_of(make_film(sandbox, tmp_path / "film.mp4", [Cutaway(still(LAND), 1)]), sandbox)
    assert [(s.start_frame, s.end_frame) for s in track.shots] == [(0, 1)]


def test_short_shots_are_joined_when_a_least_length_is_asked_for(sandbox: Sandbox, tmp_path: Path) -> None:
    edit = [Cutaway(still(LAND), 40), Cutaway(still(LIFE), 3), Cutaway(still(FACE), 40)]
    path = make_film(sandbox, tmp_path / "film.mp4", edit)
    assert found(shots_of(path, sandbox, min_shot_us=400_000)) == ["cut@40"]


def test_stills_lie_inside_their_shot_and_outside_transitions(sandbox: Sandbox, tmp_path: Path) -> None:
    edit = [Cutaway(dimmed(still(LAND), 400, 20), 60), Cutaway(drift(FACE), 60, "dissolve", 30), Cutaway(still(LIFE), 40)]
    for shot in shots_of(make_film(sandbox, tmp_path / "film.mp4", edit), sandbox).shots:
        assert shot.stills_us
        for at in shot.stills_us:
            assert max(shot.start_us, shot.transition_end_us or 0) <= at < shot.end_us
    first = shots_of(tmp_path / "film.mp4", sandbox).shots[0]
    assert first.stills_us[0] >= 15 * 40_000, "not in the dark beginning"


def test_changing_captions_are_counted_and_motion_is_measured(sandbox: Sandbox, tmp_path: Path) -> None:
    lines = [(0, 25, "the river in the north"), (25, 55, "and the stone it carried"), (55, 90, "to the town in the plain")]
    edit = [Cutaway(Captioned(still(LAND), lines, height=0.1), 90), Cutaway(hand(FACE, 0.01), 50), Cutaway(still(LIFE), 40)]
    titled, shaky, quiet = shots_of(make_film(sandbox, tmp_path / "film.mp4", edit), sandbox).shots
    assert titled.strip_changes == 2
    assert quiet.strip_changes == 0
    assert shaky.motion > 10 * quiet.motion


def test_sensitivity_moves_what_is_doubtful(sandbox: Sandbox, tmp_path: Path) -> None:
    edit = [Cutaway(bars((0.13, 0.4, 0.35)), 40), Cutaway(bars((0.13, 0.4, 0.35), (0.13, 0.55, 0.3)), 40)]
    path = make_film(sandbox, tmp_path / "film.mp4", edit)
    assert [len(shots_of(path, sandbox, sensitivity=s).shots) for s in (0.0, 1.0)] == [1, 2]


def test_the_same_film_gives_the_same_shots(sandbox: Sandbox, tmp_path: Path) -> None:
    edit = [Cutaway(drift(LAND), 40), Cutaway(hand(FACE), 40, "dissolve", 16), Cutaway(still(LIFE), 40)]
    path = make_film(sandbox, tmp_path / "film.mp4", edit)
    assert shots_of(path, sandbox).shots == shots_of(path, sandbox).shots


@pytest.mark.parametrize(("wanted", "size"), [(32, (64, 36)), (64, (64, 36)), (96, (96, 54)), (100, (96, 54)), (640, (640, 360))])
def test_analysis_sizes_fit_the_match_grid(wanted: int, size: tuple[int, int]) -> None:
    assert analysis_size(wanted) == size


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_studio_films_of_every_kind(sandbox: Sandbox, tmp_path: Path, kind: str) -> None:
    """At most one mistake in two films of a kind (about ten boundaries); the whole table is in bench/shots.py."""
    wrong: list[str] = []
    for seed in (100, 101):
        film = studio_film(kind, seed)
        path = make_film(sandbox, tmp_path / f"{seed}.mp4", list(film.edit), rate=film.rate, crf=film.crf)
        track = shots_of(path, sandbox)
        left = [s for s in track.shots[1:]]
        for b in film.truth:
            reach = 1 if b.kind == "cut" else max(2, (b.end - b.start) // 2)
            hit = next((s for s in left if abs(s.start_frame - b.at) <= reach and s.transition_in.value == b.kind), None)
            if hit is None:
                wrong.append(f"missed {b}")
            else:
                left.remove(hit)
        wrong += [f"false {s.transition_in.value}@{s.start_frame}" for s in left]
    assert len(wrong) <= 1, wrong


def test_a_long_film_is_decided_piece_by_piece_with_the_same_result(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit = [
        Cutaway(drift((LAND, FACE, LIFE, LAND2)[k % 4]), 45, ("cut", "dissolve", "cut", "fade_black")[k % 4], 0 if k % 2 == 0 else 20)
        for k in range(12)
    ]
    path = make_film(sandbox, tmp_path / "film.mp4", edit)
    whole = shots_of(path, sandbox).shots
    monkeypatch.setattr("inversion.shots._CORE", 70)
    monkeypatch.setattr("inversion.shots._MARGIN", 110)
    assert shots_of(path, sandbox).shots == whole
    assert len(whole) == 12


CASES = {
    "vfr_30_then_10.mp4": ([2.0, 4.0, 6.0], 7.94),
    "flash_strobe.mp4": ([], 6.0),
    "single_shot.mp4": ([], 5.0),
    "dark_slides.mp4": ([2.0, 4.0, 6.0], 8.0),
    "rotate90.mp4": ([2.0], 4.0),
    "audio_8s_video_3s.mp4": ([1.52], 3.0),
    "duplicate_pts.mkv": ([2.0], 3.921),
    "mixed_sample_rate.ts": ([2.48], 4.957),
    "odd_321x181_yuv444.mp4": ([2.0], 4.0),
    "silence_25s_between.mp4": ([6.0, 26.0], 31.84),
}


@pytest.mark.shared
@pytest.mark.parametrize("name", CASES)
def test_reported_files_give_their_right_shots(sandbox: Sandbox, shared: Path, name: str) -> None:
    cuts, end = CASES[name]
    track = shots_of(shared / "cases" / name, sandbox)
    assert [s.start_us / 1e6 for s in track.shots[1:]] == pytest.approx(cuts, abs=0.041)
    assert track.end_us / 1e6 == pytest.approx(end, abs=0.08)


@pytest.mark.shared
def test_the_reported_dissolve_and_white_fade(sandbox: Sandbox, shared: Path) -> None:
    track = shots_of(shared / "cases" / "dissolve_and_white_fade.mp4", sandbox)
    assert [s.transition_in.value for s in track.shots] == ["start", "dissolve", "fade_white"]
    assert 2.0 <= track.shots[1].start_us / 1e6 <= 3.0
    assert 4.6 <= track.shots[2].start_us / 1e6 <= 5.4


SEEN = {
    "physicsworks_lecture_en.webm": [
        11.13,
        20.73,
        67.53,
        69.80,
        72.27,
        73.87,
        131.53,
        133.67,
        142.07,
        183.67,
        185.47,
        187.67,
        191.33,
        200.47,
        201.47,
    ],
    "autocut_test001_zh-en.mp4": [5.09],
}


@pytest.mark.shared
@pytest.mark.parametrize("name", SEEN)
def test_cuts_seen_by_eye_in_real_films(sandbox: Sandbox, shared: Path, name: str) -> None:
    track = shots_of(shared / "media" / "narrated" / name, sandbox)
    starts = [s.start_us / 1e6 for s in track.shots[1:] if s.transition_in is Transition.CUT]
    assert starts == pytest.approx(SEEN[name], abs=0.07)


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "cuts"),
    [
        ("proving-it-works_en.mp4", [4.03, 32.10, 47.73, 51.27, 58.63, 71.67, 97.90, 111.93]),
        ("codevideo_console-log_en.mov", []),
        ("codevideo_short_en.mp4", []),
    ],
)
def test_screen_recordings(sandbox: Sandbox, shared: Path, name: str, cuts: list[float]) -> None:
    track = shots_of(shared / "media" / "narrated" / name, sandbox)
    assert [s.start_us / 1e6 for s in track.shots[1:]] == pytest.approx(cuts, abs=0.04)


def test_portrait_and_odd_sizes_are_squeezed_without_harm(sandbox: Sandbox, tmp_path: Path) -> None:
    size = (101, 180)
    pictures = [Camera(p, hold(zoom=1.0)).frame(0, size) for p in (LAND, FACE) for _ in range(30)]
    path = encode(sandbox, tmp_path / "film.mkv", pictures, size=size, options=["-pix_fmt", "yuv444p"])
    assert SIZE != size
    assert found(shots_of(path, sandbox)) == ["cut@30"]
