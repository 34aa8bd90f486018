"""Limits of one remote server: how many requests at once, how many a minute, how many tokens, how much money. One gate a server and run.

Waiting is fair in order of arrival and never blocks others than those who ask. Thread-safe. Chat models bring a gate of their own, which a
run on several machines keeps in one place (jobs.models); servers of speech, recognition and captions are limited by the name of the
setting that holds their address (:func:`limit`), in each process for itself.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from pydantic import Field

from schemas.canonical import Frozen
from schemas.errors import EndpointRefused

MINUTE_S = 60.0


class RateLimits(Frozen):
    """How hard a server may be worked. Never changes what it would answer."""

    concurrency: int = Field(default=8, ge=1, le=4096, description="requests in flight at once, over all workers of a run")
    requests_per_minute: int | None = Field(default=None, ge=1)
    tokens_per_minute: int | None = Field(default=None, ge=1, description="prompt and generated tokens, as the endpoint counts them")
    budget_requests: int | None = Field(default=None, ge=0, description="requests one run may send; then it stops asking")
    budget_tokens: int | None = Field(default=None, ge=0, description="tokens one run may spend; then it stops asking")
    budget_microusd: int | None = Field(default=None, ge=0, description="millionths of a dollar one run may spend")


class ServiceLimits(Frozen):
    """How hard a server of speech, recognition or captions may be worked by one process. Never changes what it would answer."""

    timeout_s: float | None = Field(default=None, gt=0, le=3600, description="seconds one request may take; none: what the engine asks for")
    attempts: int | None = Field(default=None, ge=1, le=10, description="requests sent for one answer; none: what the engine asks for")
    concurrency: int = Field(default=8, ge=1, le=4096, description="requests in flight at once, of one worker process")
    requests_per_minute: int | None = Field(default=None, ge=1, description="of one worker process")
    budget_requests: int | None = Field(default=None, ge=0, description="requests one worker process may send; then it stops asking")

    def rates(self) -> RateLimits:
        """What the gate has to know."""
        return RateLimits(concurrency=self.concurrency, requests_per_minute=self.requests_per_minute, budget_requests=self.budget_requests)


class BudgetSpent(EndpointRefused):
    """A run has used what it may spend at an endpoint. Run again with a larger budget: it goes on at the next call."""


@dataclass(slots=True)
class Turn:
    """One request in flight; says what it took."""

    guessed: int
    waited_ms: int = 0
    tokens: int | None = None
    microusd: int = 0

    def spent(self, prompt_tokens: int | None, completion_tokens: int | None, microusd: int | None) -> None:
        """What the endpoint counted; where it counts nothing, the guess stands."""
        counted = prompt_tokens is not None and completion_tokens is not None
        self.tokens = (prompt_tokens or 0) + (completion_tokens or 0) if counted else self.guessed
        self.microusd = microusd or 0


class Gate:
    """Lets requests through as the limits allow."""

    def __init__(
        self,
        limits: RateLimits,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._changed = threading.Condition()
        self._queue: deque[object] = deque()
        self._flying = 0
        self._started: deque[float] = deque()
        self._used: deque[tuple[float, int]] = deque()
        self._guessed = 0
        self._closed_until = 0.0
        self.requests = 0
        """Turns given so far."""
        self.tokens = 0
        """Tokens spent so far."""
        self.microusd = 0
        """Money spent so far, millionths of a dollar."""

    @contextmanager
    def turn(self, guess: int = 0) -> Iterator[Turn]:
        """Wait for a turn, hold it, and give it back.

        Args:
            guess: tokens the request may take.

        Raises:
            BudgetSpent: the run may spend no more here.
        """
        turn = Turn(guess)
        began = self._clock()
        ticket = object()
        with self._changed:
            self._queue.append(ticket)
            try:
                while True:
                    self._check_budget()
                    wait = self._wait_s(guess) if self._queue[0] is ticket else None
                    if wait == 0:
                        break
                    self._changed.wait(wait)
                self._flying += 1
                self.requests += 1
                self._guessed += guess
                self._started.append(self._clock())
            finally:
                self._queue.remove(ticket)
                self._changed.notify_all()
        turn.waited_ms = round((self._clock() - began) * 1000)
        try:
            yield turn
        finally:
            with self._changed:
                self._flying -= 1
                self._guessed -= guess
                if turn.tokens is not None:
                    self.tokens += turn.tokens
                    self._used.append((self._clock(), turn.tokens))
                self.microusd += turn.microusd
                self._changed.notify_all()

    def close_for(self, seconds: float) -> None:
        """Let nobody through for so long: the server asked one for it and means all."""
        with self._changed:
            self._closed_until = max(self._closed_until, self._clock() + seconds)

    def _check_budget(self) -> None:
        limit = self._limits
        for name, spent, allowed in (
            ("budget_requests", self.requests, limit.budget_requests),
            ("budget_tokens", self.tokens, limit.budget_tokens),
            ("budget_microusd", self.microusd, limit.budget_microusd),
        ):
            if allowed is not None and spent >= allowed:
                raise BudgetSpent(
                    "endpoint_budget_spent",
                    f"the run has spent {spent} of its {allowed} ({name}) at this endpoint",
                    f"raise {name} and run the same command again: every run goes on at its next call",
                )

    def _wait_s(self, guess: int) -> float | None:
        """0: now. A number: not before so many seconds. None: when a turn is given back."""
        limit, now = self._limits, self._clock()
        while self._started and now - self._started[0] >= MINUTE_S:
            self._started.popleft()
        while self._used and now - self._used[0][0] >= MINUTE_S:
            self._used.popleft()
        if now < self._closed_until:
            return max(0.001, self._closed_until - now)
        if self._flying >= limit.concurrency:
            return None
        if limit.requests_per_minute is not None and len(self._started) >= limit.requests_per_minute:
            return max(0.001, MINUTE_S - (now - self._started[0]))
        if limit.tokens_per_minute is not None:
            taken = sum(tokens for _, tokens in self._used) + self._guessed
            if taken and taken + guess > limit.tokens_per_minute:
                return max(0.001, MINUTE_S - (now - self._used[0][0])) if self._used else None
        return 0


# -- limits of this process ----------------------------------------------------------------------------------------------------

_LOCK = threading.Lock()
_LIMITS: dict[str, ServiceLimits] = {}
_GATES: dict[tuple[str, str], tuple[ServiceLimits, Gate]] = {}


def limit(limits: Mapping[str, ServiceLimits]) -> None:
    """Limit the servers of this process from now on, by the setting that holds their address."""
    with _LOCK:
        _LIMITS.clear()
        _LIMITS.update(limits)


def limits_of(setting: str) -> ServiceLimits:
    """The limits of the server whose address a setting holds; the defaults where nothing was said."""
    return _LIMITS.get(setting) or ServiceLimits()


def gate_of(setting: str, url: str) -> Gate:
    """The one gate of this process to a server. It keeps its count for as long as its limits stay."""
    with _LOCK:
        wanted = limits_of(setting)
        held = _GATES.get((setting, url))
        if held is None or held[0] != wanted:
            held = _GATES[setting, url] = (wanted, Gate(wanted.rates()))
        return held[1]
