"""The time a tool call has: one allowance for all of its work, whatever engines it uses.

Owns the enforcement of ``ToolContract.wall_s``. A process in the sandbox gets no more time than the call has left; every other engine is
asked only while there is time, so what can run over is one request to an engine in this process (a sentence, a picture). Running out is a
fault of ours, never a blocker: how fast a machine is says nothing about a policy.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import IO, Any

from media.command import Command, Completed, Sandbox
from replay.engines import Engines
from schemas.errors import LimitExceeded

Clock = Callable[[], float]
"""Monotonic seconds."""


class Deadline:
    """The end of one piece of work.

    Args:
        tool: named in the error.
        limit_s: what the contract allows the whole call.
        left_s: what is left of it.
    """

    def __init__(self, tool: str, limit_s: float, left_s: float, clock: Clock = time.monotonic) -> None:
        self._tool, self._limit_s, self._clock = tool, limit_s, clock
        self._end = clock() + left_s

    def left_s(self) -> float:
        """Seconds left.

        Raises:
            LimitExceeded: none are (``call_wall``).
        """
        left = self._end - self._clock()
        if left <= 0:
            what = f"{self._tool} took longer than the {self._limit_s:g} s its contract allows a call"
            raise LimitExceeded("call_wall", what, "give the machine less to do at once, or make the film in smaller scopes")
        return left

    def check(self) -> None:
        """Raises LimitExceeded when no time is left."""
        self.left_s()


class TimedSandbox:
    """A sandbox whose processes end with the call they belong to."""

    def __init__(self, inner: Sandbox, deadline: Deadline) -> None:
        self.name = inner.name
        self._inner, self._deadline = inner, deadline

    def run(self, command: Command, workdir: Path) -> Completed:
        """As the sandbox's own; also raises LimitExceeded when the call has no time left."""
        return self._ended(lambda: self._inner.run(self._bounded(command), workdir))

    def stream(self, command: Command, consume: Callable[[IO[bytes]], None]) -> Completed:
        """As the sandbox's own; also raises LimitExceeded when the call has no time left."""
        return self._ended(lambda: self._inner.stream(self._bounded(command), consume))

    def _bounded(self, command: Command) -> Command:
        left = self._deadline.left_s()
        return command if command.limits.wall_s <= left else replace(command, limits=replace(command.limits, wall_s=left))

    def _ended(self, work: Callable[[], Completed]) -> Completed:
        try:
            return work()
        except LimitExceeded:
            self._deadline.check()  # the call's end, not the command's own, was what stopped it
            raise


class _TimedEngine:
    """An engine that is asked only while there is time. Everything else about it is the engine's own."""

    def __init__(self, inner: Any, deadline: Deadline) -> None:
        self._inner, self._deadline = inner, deadline

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if not callable(value):
            return value

        def asked(*args: Any, **kwargs: Any) -> Any:
            self._deadline.check()
            return value(*args, **kwargs)

        return asked


def timed_engines(engines: Engines, deadline: Deadline) -> Engines:
    """The engines of one piece of work; templates and other plain data stay as they are."""
    plain = (str, int, float, bool, dict, tuple, list, type(None))
    named = {f.name: getattr(engines, f.name) for f in fields(engines)}
    live: dict[str, Any] = {name: _TimedEngine(value, deadline) for name, value in named.items() if not isinstance(value, plain)}
    return replace(engines, **live)
