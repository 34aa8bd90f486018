"""Seeded edit lists of every kind that shot detection has to cope with.

Owns the variety of the made films (docs: one function per kind, see ``KINDS``). The truth of a film is :func:`edit.boundaries`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from evaluation.studio.edit import Boundary, Cutaway, Join, boundaries
from evaluation.studio.pictures import Picture, darkened, drawn
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

Rng = np.random.Generator
WIDE = (640, 360)


@dataclass(frozen=True)
class Film:
    """One made film: its edit, frame rate, and how hard it is compressed (x264 ``crf``)."""

    kind: str
    seed: int
    edit: tuple[Cutaway, ...]
    rate: int = 25
    crf: int = 23

    @property
    def truth(self) -> tuple[Boundary, ...]:
        """The joins, exact."""
        return boundaries(list(self.edit))


class Stock:
    """Where pictures come from: drawn ones, mixed with real ones when given."""

    def __init__(self, rng: Rng, real: list[Picture]) -> None:
        self._rng = rng
        self._real = real
        self._left: list[int] = []

    def take(self) -> Picture:
        """Another picture; a real one comes again only when all have been used."""
        if self._real and self._rng.random() < 0.6:
            if not self._left:
                self._left = [int(k) for k in self._rng.permutation(len(self._real))]
            return self._real[self._left.pop()]
        return drawn(self._rng, *WIDE)


def _view(rng: Rng) -> tuple[float, float, float]:
    return float(rng.uniform(0.4, 0.6)), float(rng.uniform(0.4, 0.6)), float(rng.uniform(0.6, 0.9))


def still(rng: Rng, stock: Stock, frames: int, motion: float = 1.0) -> Scene:
    """A picture on a tripod, or with the slow move of a documentary."""
    picture = stock.take()
    if rng.random() < 0.35 or motion == 0:
        return Camera(picture, hold(*_view(rng)))
    a, b = _view(rng), _view(rng)
    reach = motion * rng.uniform(0.3, 1.0)
    end = tuple(x + (y - x) * reach for x, y in zip(a, b, strict=True))
    return Camera(picture, glide(a, (end[0], end[1], end[2]), frames))


def live(rng: Rng, stock: Stock, frames: int) -> Scene:
    """Something that moves as a filmed scene does: an unsteady hand and objects crossing."""
    base = Camera(stock.take(), shaken(hold(*_view(rng)), rng, float(rng.uniform(0.001, 0.006))))
    sprites = tuple(
        Sprite(
            stock.take()[:180, :180],
            float(rng.random()),
            float(rng.uniform(0.2, 0.9)),
            float(rng.uniform(-0.02, 0.02)),
            float(rng.uniform(-0.004, 0.004)),
            float(rng.uniform(0.1, 0.5)),
        )
        for _ in range(int(rng.integers(1, 4)))
    )
    return Moving(base, sprites)


def _length(rng: Rng, low: int = 25, high: int = 90) -> int:
    return int(rng.integers(low, high))


def _run(rng: Rng, stock: Stock, make: Callable[[Rng, Stock, int], Scene], shots: int, low: int = 25, high: int = 90) -> list[Cutaway]:
    out = []
    for _ in range(shots):
        n = _length(rng, low, high)
        out.append(Cutaway(make(rng, stock, n), n))
    return out


def cuts(rng: Rng, stock: Stock) -> list[Cutaway]:
    """Hard cuts between different pictures."""
    return _run(rng, stock, still, 6)


def live_cuts(rng: Rng, stock: Stock) -> list[Cutaway]:
    """Hard cuts between moving scenes."""
    return _run(rng, stock, live, 5)


def similar(rng: Rng, stock: Stock) -> list[Cutaway]:
    """Hard cuts between views of one place: punch-ins, other framings, other exposures."""
    picture = drawn(rng, 1280, 720)
    out = []
    views = [(0.3, 0.5, 0.5), (0.7, 0.5, 0.5), (0.5, 0.5, 0.95), (0.35, 0.4, 0.35), (0.68, 0.62, 0.35)]
    rng.shuffle(views)
    for view in views:
        n = _length(rng)
        tone = darkened(picture, float(rng.uniform(0.8, 1.1)))
        path = hold(*view) if rng.random() < 0.5 else shaken(hold(*view), rng, 0.001)
        out.append(Cutaway(Camera(tone, path), n))
    return out


def dark(rng: Rng, stock: Stock) -> list[Cutaway]:
    """Hard cuts between pictures at night."""
    out = []
    for _ in range(5):
        n = _length(rng)
        picture = darkened(stock.take(), float(rng.uniform(0.08, 0.25)), float(rng.uniform(4, 14)))
        scene: Scene = Camera(picture, glide(_view(rng), _view(rng), n))
        if rng.random() < 0.5:
            scene = Grainy(scene, float(rng.uniform(1, 3)), int(rng.integers(1, 10**6)))
        out.append(Cutaway(scene, n))
    return out


def _strip(stock: Stock, count: int = 3) -> Picture:
    parts = [stock.take()[:360, :640] for _ in range(count)]
    strip = np.concatenate(parts, axis=1)
    for k in range(1, count):
        for x in range(-40, 40):
            share = (x + 40) / 80
            at = k * 640 + x
            left, right = strip[:, k * 640 - 41].astype(np.float32), strip[:, k * 640 + 40].astype(np.float32)
            strip[:, at] = ((1 - share) * left + share * right).astype(np.uint8)
    return strip


def whip_pans(rng: Rng, stock: Stock) -> list[Cutaway]:
    """Fast pans inside a shot, and a cut now and then."""
    out = []
    for _ in range(3):
        n = _length(rng, 60, 110)
        path = whip(0.2, float(rng.uniform(0.6, 0.85)), int(rng.integers(15, n - 30)), int(rng.integers(8, 30)))
        out.append(Cutaway(Camera(_strip(stock), path, blur=int(rng.integers(1, 5))), n))
    return out


def zooms(rng: Rng, stock: Stock) -> list[Cutaway]:
    """Fast zooms."""
    out = []
    for _ in range(3):
        n = _length(rng, 40, 80)
        a, b = (0.5, 0.5, 0.95), (float(rng.uniform(0.35, 0.65)), float(rng.uniform(0.35, 0.65)), float(rng.uniform(0.15, 0.4)))
        if rng.random() < 0.5:
            a, b = b, a
        out.append(Cutaway(Camera(stock.take(), glide(a, b, n)), n))
    return out


def handheld(rng: Rng, stock: Stock) -> list[Cutaway]:
    """A badly shaking camera."""
    out = []
    for _ in range(4):
        n = _length(rng, 40, 90)
        out.append(Cutaway(Camera(stock.take(), shaken(hold(0.5, 0.5, 0.7), rng, float(rng.uniform(0.008, 0.02)))), n))
    return out


def crossing(rng: Rng, stock: Stock) -> list[Cutaway]:
    """Large objects that cross close to the camera."""
    out = []
    for _ in range(3):
        n = _length(rng, 60, 100)
        sprites = tuple(
            Sprite(stock.take()[:300, :300], float(rng.random()), 0.5, float(rng.uniform(0.02, 0.06)), 0.0, float(rng.uniform(0.5, 0.9)))
            for _ in range(2)
        )
        out.append(Cutaway(Moving(Camera(stock.take(), hold(*_view(rng))), sprites), n))
    return out


def _joined(
    rng: Rng, stock: Stock, join: Join, make: Callable[[Rng, Stock, int], Scene], lengths: tuple[int, int], holds: tuple[int, int] = (1, 2)
) -> list[Cutaway]:
    out: list[Cutaway] = []
    for index in range(5):
        n = _length(rng, 60, 110)
        scene = make(rng, stock, n)
        if index and rng.random() < 0.75:
            out.append(Cutaway(scene, n, join, int(rng.integers(*lengths)), int(rng.integers(*holds))))
        else:
            out.append(Cutaway(scene, n))
    return out


def dissolves(rng: Rng, stock: Stock) -> list[Cutaway]:
    """Dissolves of 6 to 50 frames between pictures that stand or move slowly."""
    return _joined(rng, stock, "dissolve", still, (6, 51))


def live_dissolves(rng: Rng, stock: Stock) -> list[Cutaway]:
    """Dissolves between moving scenes."""
    return _joined(rng, stock, "dissolve", live, (8, 40))


def fades_black(rng: Rng, stock: Stock) -> list[Cutaway]:
    """Fades through black."""
    return _joined(rng, stock, "fade_black", still if rng.random() < 0.6 else live, (12, 50), (1, 10))


def fades_white(rng: Rng, stock: Stock) -> list[Cutaway]:
    """Fades through white."""
    return _joined(rng, stock, "fade_white", still if rng.random() < 0.6 else live, (10, 40), (1, 6))


def flashes(rng: Rng, stock: Stock) -> list[Cutaway]:
    """Camera flashes of one to four frames, whole or part, white or tinted, inside shots."""
    out = []
    for _ in range(3):
        n = _length(rng, 70, 110)
        scene = still(rng, stock, n) if rng.random() < 0.5 else live(rng, stock, n)
        marks = tuple(
            Flash(
                int(rng.integers(10, n - 14)),
                int(rng.integers(1, 5)),
                (255, 255, 255) if rng.random() < 0.7 else (255, int(rng.integers(150, 255)), int(rng.integers(60, 200))),
                float(rng.uniform(0.5, 1.0)),
            )
            for _ in range(3)
        )
        out.append(Cutaway(Flashing(scene, marks), n))
    return out


def strobes(rng: Rng, stock: Stock) -> list[Cutaway]:
    """A strobe light for a second or two."""
    out = []
    for _ in range(2):
        n = _length(rng, 80, 120)
        on, off = int(rng.integers(1, 4)), int(rng.integers(2, 5))
        begin = int(rng.integers(15, 30))
        colour = (255, 255, 255) if rng.random() < 0.6 else (0, 0, 0)
        marks = tuple(Flash(begin + k * (on + off), on, colour) for k in range(int(rng.integers(4, 9))))
        out.append(Cutaway(Flashing(still(rng, stock, n), marks), n))
    return out


_WORDS = "light water stone early wood printed letters north engine river number history window market copper".split()


def _phrase(rng: Rng, low: int = 2, high: int = 7) -> str:
    return " ".join(_WORDS[int(k)] for k in rng.integers(0, len(_WORDS), int(rng.integers(low, high))))


def captions(rng: Rng, stock: Stock) -> list[Cutaway]:
    """Burned-in captions that change inside shots."""
    out = []
    for _ in range(4):
        n = _length(rng, 60, 110)
        scene: Scene = still(rng, stock, n)
        if rng.random() < 0.3:
            scene = Slide((15, 15, 18), (TextLine(_phrase(rng), 0.1, 0.35, 0.1),))
        marks = sorted({0, n, *(int(k) for k in rng.integers(8, n - 8, 3))})
        lines = [(a, b, _phrase(rng)) for a, b in pairwise(marks)]
        out.append(Cutaway(Captioned(scene, lines, boxed=bool(rng.random() < 0.3)), n))
    return out


def montage(rng: Rng, stock: Stock) -> list[Cutaway]:
    """Shots of one to eight frames."""
    out = [Cutaway(still(rng, stock, 30), 30)]
    for _ in range(8):
        n = int(rng.integers(1, 9))
        out.append(Cutaway(still(rng, stock, n), n))
    out.append(Cutaway(still(rng, stock, 30), 30))
    return out


def _bars(rng: Rng, count: int, left: float, top: float) -> tuple[tuple[float, float, float, float, tuple[int, int, int]], ...]:
    shade = int(rng.integers(150, 230))
    return tuple((left, top + k * float(rng.uniform(0.1, 0.16)), float(rng.uniform(0.2, 0.6)), 0.045, (shade,) * 3) for k in range(count))


def dark_slides(rng: Rng, stock: Stock) -> list[Cutaway]:
    """Slides with a few bars or lines on one dark ground, every change a cut."""
    ground = (int(rng.integers(8, 30)),) * 3
    out = []
    for _ in range(5):
        n = _length(rng, 35, 70)
        if rng.random() < 0.5:
            scene = Slide(ground, bars=_bars(rng, int(rng.integers(1, 5)), float(rng.uniform(0.08, 0.3)), float(rng.uniform(0.1, 0.5))))
        else:
            x, y = float(rng.uniform(0.08, 0.3)), float(rng.uniform(0.1, 0.4))
            lines = tuple(TextLine(_phrase(rng), x, y + 0.13 * k, 0.09 if k == 0 else 0.07) for k in range(int(rng.integers(1, 4))))
            scene = Slide(ground, lines)
        out.append(Cutaway(scene, n))
    return out


def light_slides(rng: Rng, stock: Stock) -> list[Cutaway]:
    """White slides, some with a picture."""
    out = []
    for _ in range(5):
        n = _length(rng, 35, 70)
        lines = tuple(TextLine(_phrase(rng), 0.1, 0.12 + 0.14 * k, 0.08, (30, 30, 40)) for k in range(int(rng.integers(2, 6))))
        scene: Scene = Slide((250, 250, 250), lines)
        if rng.random() < 0.4:
            scene = Boxed(still(rng, stock, n, 0.0), scene.frame(0, WIDE), 0.55, 0.45, 0.4, 0.45)
        out.append(Cutaway(scene, n))
    return out


def terminal(rng: Rng, stock: Stock) -> list[Cutaway]:
    """A terminal recording: typing and output inside shots; between them a card or a fresh terminal."""
    out = []
    for index in range(4):
        n = _length(rng, 70, 140)
        if index % 2 == 1 and rng.random() < 0.8:
            out.append(Cutaway(Slide((14, 14, 18), (TextLine(_phrase(rng, 2, 4), 0.25, 0.42, 0.1),)), n))
            continue
        events: list[tuple[int, str]] = [(-1, "user@host:~$ ")]
        at = 4
        while at < n - 10:
            for c in _phrase(rng, 1, 3):
                events.append((at, c))
                at += int(rng.integers(1, 3))
            at += 4
            shown = "\n" + "".join(_phrase(rng, 3, 8) + "\n" for _ in range(int(rng.integers(0, 6)))) + "user@host:~$ "
            events.append((at, shown))
            at += int(rng.integers(5, 15))
        out.append(Cutaway(Terminal(tuple(events), bar=(80, 160, 0) if index < 2 else None), n))
    return out


def grain(rng: Rng, stock: Stock) -> list[Cutaway]:
    """Strong film grain."""
    sigma = float(rng.uniform(5, 16))
    return [Cutaway(Grainy(c.scene, sigma, int(rng.integers(1, 10**6))), c.frames) for c in _run(rng, stock, still, 5)]


def lights(rng: Rng, stock: Stock) -> list[Cutaway]:
    """Light that changes inside a shot: a lamp switched on or off, a slow change, flicker."""
    out = []
    for _ in range(3):
        n = _length(rng, 70, 110)
        at, low = int(rng.integers(20, n - 20)), float(rng.uniform(0.45, 0.75))
        mode = int(rng.integers(0, 3))

        def gain(k: int, at: int = at, low: float = low, mode: int = mode) -> tuple[float, float]:
            if mode == 0:
                return (1.0 if k < at else low), 0.0
            if mode == 1:
                return 1.0 - (1.0 - low) * min(max((k - at + 10) / 20, 0.0), 1.0), 0.0
            return 1.0 - 0.15 * (k % 4 == 0), 0.0

        out.append(Cutaway(Lit(still(rng, stock, n), gain), n))
    return out


def dialogue(rng: Rng, stock: Stock) -> list[Cutaway]:
    """Two views alternating, as an interview is cut."""
    a, b = stock.take(), stock.take()
    out = []
    for k in range(7):
        n = _length(rng, 20, 60)
        out.append(Cutaway(Camera((a, b)[k % 2], shaken(hold(0.5, 0.5, 0.8), rng, 0.001)), n))
    return out


def ends(rng: Rng, stock: Stock) -> list[Cutaway]:
    """One shot that fades in from black and out to black: no boundary at all."""
    n = _length(rng, 100, 150)
    length = int(rng.integers(10, 25))

    def gain(k: int) -> tuple[float, float]:
        return min(1.0, k / length, max(0.0, (n - 1 - k) / length)), 0.0

    return [Cutaway(Lit(live(rng, stock, n), gain), n)]


def single(rng: Rng, stock: Stock) -> list[Cutaway]:
    """One shot only."""
    n = _length(rng, 100, 160)
    return [Cutaway(live(rng, stock, n) if rng.random() < 0.5 else still(rng, stock, n, 2.0), n)]


def mixed(rng: Rng, stock: Stock) -> list[Cutaway]:
    """All joins in one film, boxed in letterbox now and then."""
    out: list[Cutaway] = []
    joins: tuple[Join, ...] = ("cut", "cut", "cut", "dissolve", "fade_black", "fade_white")
    boxed = rng.random() < 0.4
    for index in range(8):
        n = _length(rng, 60, 110)
        scene: Scene = still(rng, stock, n) if rng.random() < 0.6 else live(rng, stock, n)
        if boxed:
            scene = Boxed(scene, np.zeros((36, 64, 3), np.uint8), 0.0, 0.13, 1.0, 0.74)
        join = joins[int(rng.integers(0, len(joins)))] if index else "cut"
        out.append(Cutaway(scene, n, join, 0 if join == "cut" else int(rng.integers(10, 40)), int(rng.integers(1, 5))))
    return out


KINDS: dict[str, Callable[[Rng, Stock], list[Cutaway]]] = {
    f.__name__: f
    for f in (
        cuts, live_cuts, similar, dark, whip_pans, zooms, handheld, crossing, dissolves, live_dissolves, fades_black, fades_white, flashes,
        strobes, captions, montage, dark_slides, light_slides, terminal, grain, lights, dialogue, ends, single, mixed,
    )
}  # fmt: skip
"""Name of each kind of film to the function that makes its edit list."""


def make_film(kind: str, seed: int, real: list[Picture] | None = None) -> Film:
    """The film of one kind and seed; with ``real`` pictures most of its stills are real."""
    rng = np.random.default_rng([seed, list(KINDS).index(kind)])
    stock = Stock(rng, real or [])
    edit = KINDS[kind](rng, stock)
    rate = int(rng.choice([24, 25, 25, 30]))
    crf = int(rng.choice([18, 23, 23, 28, 36]))
    return Film(kind, seed, tuple(edit), rate, crf)
