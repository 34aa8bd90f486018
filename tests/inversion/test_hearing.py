"""Windows recognised at the same time: order, the language, what happens when somebody gives up."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest

from inversion.asr import Heard
from inversion.config import InversionConfig
from inversion.hearing import hear
from inversion.speech import Samples, Window
from inversion.transcript import SpokenSegment, SpokenWord
from schemas.errors import EndpointFailed
from schemas.storyboard import WordTiming
from schemas.time import US, Span

AUDIO = np.repeat(np.arange(10, dtype=np.int16), 16_000)
"""Ten seconds; the sample value tells the second."""
WINDOWS = tuple(Window((Span(start_us=k * US, end_us=(k + 1) * US),)) for k in range(10))
CONFIG = InversionConfig()


@dataclass
class Slow:
    """Says the number of the second it hears; even seconds take longer than odd ones."""

    at_once: int = 2
    names: Mapping[int, str] = field(default_factory=dict)
    """Language it names in a second."""
    fails_at: int = -1
    name: str = "slow"
    longest_us: int = 28 * US
    takes_whole: bool = False
    gives_aligned: bool = True
    asked: list[tuple[int, str | None]] = field(default_factory=list)
    most: int = 0
    _now: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def detect(self, sound: Samples) -> Mapping[str, float]:
        return {}

    def recognise(self, sound: Samples, language: str | None, *, careful: bool = False) -> Heard:
        second = round(float(sound[0]) * 32768)
        with self._lock:
            self.asked.append((second, language))
            self._now += 1
            self.most = max(self.most, self._now)
        time.sleep(0.03 if second % 2 == 0 else 0.005)
        with self._lock:
            self._now -= 1
        if second == self.fails_at:
            raise EndpointFailed("endpoint_status", "no", "wait")
        word = SpokenWord(f"w{second}", 0, US // 2, 0.9, WordTiming.RECOGNISED, False)
        return Heard((SpokenSegment((word,), 0, US // 2, 0.9),), language or self.names.get(second))


def test_windows_come_out_in_order_whoever_is_finished_first() -> None:
    engine = Slow()
    segments, language = hear(AUDIO, WINDOWS, engine, CONFIG, "en")
    assert [(s.text, s.start_us) for s in segments] == [(f"w{k}", k * US) for k in range(10)]
    assert (language, engine.most) == ("en", 2)


def test_an_engine_that_takes_one_window_gets_one() -> None:
    engine = Slow(at_once=1)
    hear(AUDIO, WINDOWS, engine, CONFIG, "en")
    assert engine.most == 1
    assert [second for second, _ in engine.asked] == list(range(10))


def test_the_first_language_that_is_named_holds_for_the_rest() -> None:
    engine = Slow(names={0: "", 1: "de", 5: "fr"})
    _, language = hear(AUDIO, WINDOWS, engine, CONFIG, None)
    assert language == "de"
    assert sorted(engine.asked)[:2] == [(0, None), (1, None)]
    assert {asked for _, asked in engine.asked[2:]} == {"de"}


def test_progress_tells_every_window() -> None:
    told: list[str] = []
    hear(AUDIO, WINDOWS[:3], Slow(), CONFIG, "en", note=told.append)
    assert told == ["heard 1 of 3 windows", "heard 2 of 3 windows", "heard 3 of 3 windows"]


def test_what_the_listener_of_progress_raises_ends_the_work() -> None:
    engine = Slow()

    def stop(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hear(AUDIO, WINDOWS, engine, CONFIG, "en", note=stop)
    assert len(engine.asked) < 6


def test_a_failure_of_the_engine_is_passed_on_and_ends_the_work() -> None:
    engine = Slow(fails_at=1)
    with pytest.raises(EndpointFailed):
        hear(AUDIO, WINDOWS, engine, CONFIG, "en")
    assert len(engine.asked) < 8


def test_no_windows_no_words() -> None:
    assert hear(AUDIO, (), Slow(), CONFIG, None) == ([], None)
