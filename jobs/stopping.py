"""An orderly end of a run before it is done: who asked for it, and how long what is under way may still take.

The first ctrl-C, or the first SIGTERM (what a scheduler sends), asks: no project is started any more, and one that is under way ends after
the stage it is in. The second one ends the run at once, and so does the end of the time that was allowed. Owns the two signals of a
run's process and what is known of them in this process; a runner on several processes tells the others (:func:`heeding`).
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class OutOfTime(KeyboardInterrupt):
    """The time that was allowed for an orderly end is over; raised in the main thread, inside :func:`cut_short`."""


class _State:
    asked_at: float | None = None
    allowed_s = 0.0
    listening = False
    cuts = False
    is_over = False
    elsewhere: Callable[[], bool] | None = None


_state = _State()


def asked() -> bool:
    """Whether this process was asked to end, or the run that it works for."""
    return _state.asked_at is not None or (_state.elsewhere is not None and _state.elsewhere())


def left_s() -> float:
    """Seconds that what is under way may still take; without end where nobody asked."""
    return float("inf") if _state.asked_at is None else _state.asked_at + _state.allowed_s - time.monotonic()


@contextmanager
def stoppable(allowed_s: float) -> Iterator[None]:
    """Heed the two signals inside the block; only in the main thread, elsewhere it changes nothing.

    Raises:
        KeyboardInterrupt: at the second signal.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    _state.allowed_s, _state.listening = allowed_s, True
    listen()
    try:
        yield
    finally:
        _state.listening, _state.asked_at = False, None
        for number, handler in before.items():
            signal.signal(number, handler)


def listen() -> None:
    """Take the signals again, where something (Ray's start) has put its own handlers in place meanwhile. A run in the background of a shell
    goes on ignoring ctrl-C."""
    if _state.listening:
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, _heard)


@contextmanager
def cut_short() -> Iterator[None]:
    """Inside the block the end of the allowed time is an exception in the main thread.

    Raises:
        OutOfTime: wherever the main thread is by then.
    """
    _state.cuts, _state.is_over = True, False
    try:
        yield
    finally:
        _state.cuts = False


@contextmanager
def heeding(elsewhere: Callable[[], bool] | None) -> Iterator[None]:
    """In a worker: inside the block SIGINT, simulated or not, asks and interrupts nothing. (Ray's workers get no ctrl-C of a terminal;
    a cancelled task gets what looks like one.)

    Args:
        elsewhere: whether the run was asked to end, where that is known in another process; asked before every stage.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, _ask)
    _state.elsewhere = elsewhere
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        _state.asked_at = _state.elsewhere = None


def _ask(_number: int, _frame: FrameType | None) -> None:
    if _state.asked_at is None:
        _state.asked_at = time.monotonic()


def _heard(number: int, frame: FrameType | None) -> None:
    if _state.is_over:
        _state.is_over = False
        if _state.cuts:
            raise OutOfTime
        return
    if _state.asked_at is not None:
        raise KeyboardInterrupt
    _ask(number, frame)
    if _state.cuts:
        timer = threading.Timer(_state.allowed_s, _cut)
        timer.daemon = True
        timer.start()


def _cut() -> None:
    if _state.cuts and _state.asked_at is not None:
        _state.is_over = True
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
