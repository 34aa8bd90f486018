"""From a seed to the plan of a narrated film: what is said when, which shots lie over it, what joins them, what is written on them.

Owns every choice; all of them come from the seed. Sound is given (evaluation.studio.voices); must not draw, encode or write.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from evaluation.studio.cards import Card, caption_layer, make_card
from evaluation.studio.edit import Cutaway, Join
from evaluation.studio.films import Rng, Stock, live, still
from evaluation.studio.footage import Footage
from evaluation.studio.lettering import Layer
from evaluation.studio.pictures import Picture, darkened
from evaluation.studio.scenes import (
    Camera,
    Flash,
    Flashing,
    Grainy,
    Overlaid,
    Painted,
    Scene,
    Size,
    glide,
    hold,
    shaken,
    whip,
)
from evaluation.studio.texts import Topic
from evaluation.studio.truth import TrueLine
from evaluation.studio.voices import Utterance
from schemas.storyboard import SpotlightKind
from schemas.time import US

CARD_KINDS = (
    SpotlightKind.TITLE,
    SpotlightKind.LIST,
    SpotlightKind.NUMBER,
    SpotlightKind.QUOTE,
    SpotlightKind.COMPARISON,
    SpotlightKind.CHART,
)


@dataclass(frozen=True)
class Recipe:
    """How often what happens in films of one kind; shares of 1 unless said otherwise.

    ``joins``: weights of cut, dissolve, fade_black, fade_white, wipe, push. ``scenes``: weights of still, live, footage, handheld, whip.
    ``similar``: a cut to another view of the same picture. ``late``: a cut up to 0.1 s beside the pause it belongs to.
    """

    joins: tuple[float, ...] = (8, 2, 0.5, 0.4, 0, 0)
    scenes: tuple[float, ...] = (5, 2, 2, 0.5, 0.3)
    cards: float = 0.3
    lower_thirds: float = 0.12
    similar: float = 0.15
    dark: float = 0.1
    late: float = 0.2
    flashes: float = 0.05
    blinks: float = 0.0
    inside: float = 0.45
    captions: float = 0.0
    music: float = 0.4
    vfr: float = 0.0
    sizes: tuple[Size, ...] = ((480, 270), (640, 360), (480, 360), (480, 270))
    rates: tuple[int, ...] = (24, 25, 25, 30)


WIDE_SIZES: tuple[Size, ...] = ((480, 270), (640, 360))
KINDS: dict[str, Recipe] = {
    "essay": Recipe(),
    "explainer": Recipe(cards=0.65, lower_thirds=0.2, joins=(8, 1, 0, 0, 0.6, 0.6), sizes=WIDE_SIZES),
    "captioned": Recipe(captions=1.0, music=1.0, cards=0.15, lower_thirds=0.0),
    "night": Recipe(dark=1.0, joins=(10, 1, 0.5, 0, 0, 0), cards=0.3),
    "gradual": Recipe(joins=(2, 5, 2.5, 2, 0, 0), inside=0.2, cards=0.15),
    "restless": Recipe(scenes=(2, 3, 2, 3, 3), flashes=0.4, blinks=0.5, joins=(1, 0, 0, 0, 0, 0), rates=(25, 30, 50)),
    "upright": Recipe(sizes=((270, 480), (360, 360), (427, 241), (361, 271)), cards=0.35),
    "vfr": Recipe(vfr=1.0, rates=(30, 30, 60), joins=(10, 1, 0.5, 0.5, 0, 0)),
}
"""Name of each kind of narrated film to its recipe."""


@dataclass(frozen=True)
class Shown:
    """One planned shot and what is true of it."""

    cutaway: Cutaway
    what: str
    card: Card | None = None
    words: tuple[int, int] = (0, 0)
    """words[first:end] that the editor means to lie over it."""
    flashes: tuple[tuple[int, int], ...] = ()
    """Frames [first, end) of flashes, counted from the shot's start."""


@dataclass(frozen=True)
class Sound:
    """A sentence and where its first sample lies, microseconds."""

    said: Utterance
    at_us: int


@dataclass(frozen=True)
class Caption:
    """A burned-in caption over frames ``[since, until)``."""

    layer: Layer
    lines: tuple[TrueLine, ...]
    since: int
    until: int


@dataclass(frozen=True)
class Plan:
    """A whole film, ready to be drawn. ``kept`` are the frames that are encoded (all but in films of varying frame rate)."""

    kind: str
    size: Size
    rate: int
    sounds: tuple[Sound, ...]
    shots: tuple[Shown, ...]
    captions: tuple[Caption, ...]
    vfr: bool
    kept: tuple[int, ...]
    music: bool
    footage: bool
    length: int = field(default=0)
    """Frames before any were left out."""


def lay_out(rng: Rng, said: list[Utterance]) -> tuple[Sound, ...]:
    """Sentences one after another with pauses of 0.25 to 0.9 s."""
    at = int(rng.integers(500_000, 1_100_000))
    out: list[Sound] = []
    for one in said:
        out.append(Sound(one, at))
        at += round(len(one.samples) * US / 24_000) + int(rng.integers(250_000, 900_000))
    return tuple(out)


def make_plan(
    rng: Rng, kind: str, topic: Topic, sounds: tuple[Sound, ...], footage: Footage, real: list[Picture], *, exact_words: bool
) -> Plan:
    """Everything but the sound.

    Args:
        exact_words: word times can be relied on; without them no cut falls inside a sentence.
        footage: real film to take clips from.
        real: real pictures to mix among the drawn ones; may be empty.
    """
    recipe = KINDS[kind]
    size = recipe.sizes[int(rng.integers(0, len(recipe.sizes)))]
    rate = recipe.rates[int(rng.integers(0, len(recipe.rates)))]
    borders = _borders(rng, recipe if exact_words else replace(recipe, inside=0.0), sounds, rate)
    maker = _Maker(rng, recipe, topic, size, rate, Stock(rng, real), footage)
    shots = maker.shots(borders)
    length = borders[-1][0]
    captions = _captions(rng, sounds, size, rate) if rng.random() < recipe.captions else ()
    vfr = rng.random() < recipe.vfr
    return Plan(
        kind=kind,
        size=size,
        rate=rate,
        sounds=sounds,
        shots=tuple(shots),
        captions=captions,
        vfr=vfr,
        kept=_kept(rng, length) if vfr else tuple(range(length)),
        music=bool(rng.random() < recipe.music),
        footage=maker.used_footage,
        length=length,
    )


def _borders(rng: Rng, recipe: Recipe, sounds: tuple[Sound, ...], rate: int) -> list[tuple[int, int]]:
    """(frame, first word) of the start of each shot, and of the end of the film behind them."""
    words = [(s.at_us + w.start_us, s.at_us + w.end_us, w.text) for s in sounds for w in s.said.words]
    least = max(12, round(0.7 * rate))
    out: list[tuple[int, int]] = [(0, 0)]
    first = 0
    for index, sound in enumerate(sounds):
        count = len(sound.said.words)
        for k in range(3, count - 2):
            a, b = words[first + k - 1], words[first + k]
            clause = a[2][-1] in ",;，；、"
            wanted = recipe.inside * (1.5 if clause else 0.25)
            long_enough = b[0] - words[first][0] > 1_400_000 and words[first + count - 1][1] - b[0] > 1_200_000
            if long_enough and rng.random() < wanted:
                _add(out, round((a[1] + b[0]) / 2 * rate / US), first + k, least)
        first += count
        if index + 1 < len(sounds) and rng.random() < 0.8:
            low, high = words[first - 1][1], words[first][0]
            at = float(rng.uniform(low + 40_000, max(high - 40_000, low + 41_000)))
            if rng.random() < recipe.late:
                at = float(rng.choice([low - 100_000, high + 100_000]))
            _add(out, round(at * rate / US), first, least)
    end = words[-1][1] + int(rng.integers(600_000, 1_400_000))
    frame = -(-end * rate // US)
    if frame - out[-1][0] < least:
        out.pop()
    return [*out, (frame, len(words))]


def _add(out: list[tuple[int, int]], frame: int, word: int, least: int) -> None:
    if frame - out[-1][0] >= least:
        out.append((frame, word))


def _kept(rng: Rng, length: int) -> tuple[int, ...]:
    """Frames left when stretches run at a half or a third of the rate, and every so often one is dropped."""
    keep = np.ones(length, bool)
    at = 0
    while at < length:
        run, every = int(rng.integers(40, 160)), int(rng.choice([1, 2, 3]))
        keep[at : at + run] = (np.arange(at, min(at + run, length)) - at) % every == 0
        at += run
    keep[rng.integers(1, length, 8)] = False
    keep[0] = keep[-1] = True
    return tuple(int(k) for k in np.flatnonzero(keep))


def _captions(rng: Rng, sounds: tuple[Sound, ...], size: Size, rate: int) -> tuple[Caption, ...]:
    boxed = bool(rng.random() < 0.5)
    out: list[Caption] = []
    for sound in sounds:
        words = sound.said.words
        chunks, start = [], 0
        most = 16 if not any(w.space_after for w in words) else 40
        for k in range(1, len(words) + 1):
            text = "".join(w.text + " " * w.space_after for w in words[start:k]).strip()
            ends = k == len(words)
            if ends or len(text) + len(words[k].text) > most:
                chunks.append((start, k, text))
                start = k
        for a, b, text in chunks:
            since, until = ((sound.at_us + t) * rate // US for t in (words[a].start_us, words[b - 1].end_us))
            layer, boxes = caption_layer(text, size, boxed=boxed)
            lines = tuple(
                TrueLine(
                    text=t, x=x, y=y, width=w, height=h, since_us=since * US // rate, until_us=(until + 1) * US // rate, role="caption"
                )
                for t, (x, y, w, h) in boxes
            )
            out.append(Caption(layer, lines, since, until + 1))
    return tuple(out)


class _Maker:
    """Fills shots with scenes."""

    def __init__(self, rng: Rng, recipe: Recipe, topic: Topic, size: Size, rate: int, stock: Stock, footage: Footage) -> None:
        self._rng, self._recipe, self._topic = rng, recipe, topic
        self._size, self._rate, self._stock, self._footage = size, rate, stock, footage
        self._cards = [CARD_KINDS[int(k)] for k in rng.permutation(len(CARD_KINDS))]
        self._last: Picture | None = None
        self._named = False
        self.used_footage = False

    def shots(self, borders: list[tuple[int, int]]) -> list[Shown]:
        out: list[Shown] = []
        for k, ((start, word), (end, after)) in enumerate(pairwise(borders)):
            shown = self._shot(end - start, k)
            cutaway = self._joined(shown.cutaway, borders, k) if k else shown.cutaway
            shown = replace(shown, cutaway=cutaway, words=(word, after))
            if k and cutaway.join == "cut" and self._rng.random() < self._recipe.blinks and shown.cutaway.frames > 40:
                out.append(Shown(Cutaway(self._picture(1), 1), "blink", words=(word, word)))
                shown = replace(shown, cutaway=replace(shown.cutaway, frames=shown.cutaway.frames - 1))
            out.append(shown)
        return out

    def _joined(self, cutaway: Cutaway, borders: list[tuple[int, int]], k: int) -> Cutaway:
        names: tuple[Join, ...] = ("cut", "dissolve", "fade_black", "fade_white", "wipe", "push")
        weights = np.array(self._recipe.joins) / sum(self._recipe.joins)
        join = names[int(self._rng.choice(len(names), p=weights))]
        room = min(borders[k][0] - borders[k - 1][0], borders[k + 1][0] - borders[k][0])
        length = int(self._rng.uniform(0.35, 1.1) * self._rate)
        if join == "cut" or room < length + round(0.8 * self._rate):
            return cutaway
        return replace(cutaway, join=join, length=length, hold=int(self._rng.integers(1, 5)))

    def _shot(self, frames: int, index: int) -> Shown:
        readable = frames >= 1.8 * self._rate
        if readable and self._rng.random() < self._recipe.cards:
            kind = self._cards[index % len(self._cards)]
            card = make_card(kind, self._topic, self._rng, self._size, self._stock.take())
            assert card.picture is not None  # noqa: S101
            return Shown(Cutaway(Painted(card.picture), frames), "card", card)
        what, scene = self._scene(frames)
        if readable and not self._named and self._rng.random() < self._recipe.lower_thirds * 2:
            self._named = True
            card = make_card(SpotlightKind.LOWER_THIRD, self._topic, self._rng, self._size)
            assert card.layer is not None  # noqa: S101
            return Shown(Cutaway(Overlaid(scene, card.layer), frames), "lower_third", card)
        if self._rng.random() < self._recipe.flashes and frames > 40:
            at, long = int(self._rng.integers(12, frames - 20)), int(self._rng.integers(1, 4))
            lit = Flashing(scene, (Flash(at, long, share=float(self._rng.uniform(0.6, 1.0))),))
            return Shown(Cutaway(lit, frames), what, flashes=((at, at + long),))
        return Shown(Cutaway(scene, frames), what)

    def _scene(self, frames: int) -> tuple[str, Scene]:
        weights = np.array(self._recipe.scenes) / sum(self._recipe.scenes)
        what = ("still", "live", "footage", "handheld", "whip")[int(self._rng.choice(5, p=weights))]
        if self._rng.random() < self._recipe.dark:
            return "dark", self._dark(frames)
        if what == "footage":
            self.used_footage = True
            return what, self._footage.clip(self._rng, frames, self._rate)
        if what == "live":
            return what, live(self._rng, self._stock, frames)
        if what == "handheld":
            shake = shaken(hold(0.5, 0.5, 0.7), self._rng, float(self._rng.uniform(0.004, 0.012)))
            return what, Camera(self._stock.take(), shake)
        if what == "whip" and frames > 45:
            path = whip(0.2, float(self._rng.uniform(0.6, 0.85)), int(self._rng.integers(8, frames - 28)), int(self._rng.integers(8, 20)))
            return what, Camera(self._strip(), path, blur=3)
        return "still", self._picture(frames)

    def _picture(self, frames: int) -> Scene:
        """A still, now and then another view of the one before."""
        if self._last is not None and frames > 1 and self._rng.random() < self._recipe.similar:
            x, y, zoom = (float(v) for v in (self._rng.uniform(0.3, 0.7), self._rng.uniform(0.35, 0.65), self._rng.uniform(0.35, 0.5)))
            return Camera(self._last, hold(x, y, zoom))
        if self._rng.random() < 0.5:
            return still(self._rng, self._stock, max(frames, 20))
        self._last = self._stock.take()
        return Camera(self._last, hold(0.5, 0.5, float(self._rng.uniform(0.8, 1.0))))

    def _dark(self, frames: int) -> Scene:
        picture = darkened(self._stock.take(), float(self._rng.uniform(0.09, 0.25)), float(self._rng.uniform(4, 14)))
        scene: Scene = Camera(picture, glide((0.45, 0.5, 0.9), (0.55, 0.5, float(self._rng.uniform(0.7, 0.9))), frames))
        return Grainy(scene, float(self._rng.uniform(1, 3)), int(self._rng.integers(1, 10**6))) if self._rng.random() < 0.4 else scene

    def _strip(self) -> Picture:
        left, right = self._stock.take(), self._stock.take()
        share = np.clip((np.arange(1280) - 600) / 80, 0, 1)[None, :, None]
        wide = np.concatenate([left, left[:, ::-1]], axis=1) * (1 - share) + np.concatenate([right[:, ::-1], right], axis=1) * share
        out: Picture = wide.astype(np.uint8)
        return out
