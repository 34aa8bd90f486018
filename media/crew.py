"""Threads that work for this process, and whether all of them only wait.

Some work is done in several threads, and some of these do nothing but wait for an answer from another process. A runner that lends a
project's processors to others meanwhile must know when nothing in here uses them. Owns the threads and that count; who answers, and how is
lent, is the runner's business (:func:`lend_with`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S")

Lend = Callable[[Sequence[Any]], object]
"""Lends the processors until one of these answers is there, or for a moment; called from the main thread alone."""

_CHANGED = threading.Condition()
_here = threading.local()
_working = 0
"""Threads of crews that neither rest nor are away."""
_awaited: dict[object, Any] = {}
"""Answers that threads of this process wait for elsewhere."""
_lend: Lend | None = None


class Crew(ThreadPoolExecutor):
    """Threads whose work is counted. Their results are waited for with :func:`result`."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """As an executor's."""
        return super().submit(lambda: _counted(lambda: fn(*args, **kwargs)))

    def gather(self, work: Callable[[S], T], items: Iterable[S]) -> list[T]:
        """The result for every item, in order. At the first fault the rest is not begun, and it is raised."""
        futures = [self.submit(work, item) for item in items]
        try:
            return [result(future) for future in futures]
        finally:
            for future in futures:
                future.cancel()


def result(future: Future[T]) -> T:
    """The result of what a crew was given. While the main thread waits for it and every other thread waits too, processors are lent."""
    if threading.current_thread() is not threading.main_thread():
        with _resting():
            return future.result()
    if _lend is not None:
        future.add_done_callback(_stir)
        while not future.done():
            with _CHANGED:
                _CHANGED.wait_for(lambda: future.done() or _idle())
                awaited = list(_awaited.values()) if _idle() else []
            if awaited and not future.done():
                _lend(awaited)
    return future.result()


@contextmanager
def away(answer: Any) -> Iterator[None]:
    """This thread does nothing here until another process has given an answer."""
    mark = object()
    try:
        with _CHANGED:
            _awaited[mark] = answer
        with _resting():
            yield
    finally:
        with _CHANGED:
            _awaited.pop(mark, None)


def lend_with(lend: Lend | None) -> None:
    """How processors are lent in this process; None where nobody takes them."""
    global _lend
    _lend = lend


def _idle() -> bool:
    return bool(_awaited) and _working == 0


def _counted(work: Callable[[], T]) -> T:
    _here.counted = True
    _count(1)
    try:
        return work()
    finally:
        _count(-1)


@contextmanager
def _resting() -> Iterator[None]:
    counted = getattr(_here, "counted", False)
    if counted:
        _count(-1)
    try:
        yield
    finally:
        if counted:
            _count(1)


def _count(change: int) -> None:
    global _working
    with _CHANGED:
        _working += change
        _CHANGED.notify_all()


def _stir(_future: Future[Any]) -> None:
    with _CHANGED:
        _CHANGED.notify_all()
