"""Limits of one endpoint: how many requests at once, how many a minute, how many tokens, how much money. One gate an endpoint and run.

Waiting is fair in order of arrival and never blocks others than those who ask. Thread-safe; a run on several machines keeps its gate in one
place (jobs.models).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import orjson

from media.endpoint import EndpointRefused
from replay.chat.config import EndpointLimits

MINUTE_S = 60.0
CHARS_PER_TOKEN = 3
"""For the first guess of a request's tokens; the endpoint's own count replaces it."""
PICTURE_TOKENS = 1_500
"""The same for one picture, whatever its bytes."""


class BudgetSpent(EndpointRefused):
    """A run has used what it may spend at an endpoint. Run again with a larger budget: it goes on at the next call."""


def estimate(body: dict[str, Any], max_tokens: int) -> int:
    """Tokens a request may take, guessed from above before the endpoint has counted."""
    texts, pictures = [], 0
    for message in body.get("messages", ()):
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        texts.append([part for part in parts if part.get("type") == "text"])
        pictures += sum(1 for part in parts if part.get("type") != "text")
    return len(orjson.dumps([texts, body.get("tools", ())])) // CHARS_PER_TOKEN + pictures * PICTURE_TOKENS + max_tokens


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
        limits: EndpointLimits,
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
        self.tokens = 0
        """Tokens spent so far."""
        self.microusd = 0
        """Money spent so far, millionths of a dollar."""

    @contextmanager
    def turn(self, guess: int) -> Iterator[Turn]:
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

    def _check_budget(self) -> None:
        limit = self._limits
        for name, spent, allowed in (
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
        if self._flying >= limit.concurrency:
            return None
        if limit.requests_per_minute is not None and len(self._started) >= limit.requests_per_minute:
            return max(0.001, MINUTE_S - (now - self._started[0]))
        if limit.tokens_per_minute is not None:
            taken = sum(tokens for _, tokens in self._used) + self._guessed
            if taken and taken + guess > limit.tokens_per_minute:
                return max(0.001, MINUTE_S - (now - self._used[0][0])) if self._used else None
        return 0
