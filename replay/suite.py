"""The editing suite: everything a run needs besides its task, and the private folder each piece of tool work happens in.

Owns the line between a policy's failure and one of ours: whatever a tool raises leaves here as a ``PipelineError``.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from media.command import Sandbox
from replay.config import ReplayConfig
from replay.deadline import Deadline, TimedSandbox, timed_engines
from replay.engines import Engines
from replay.tool import ToolEnv
from schemas.errors import LimitExceeded, PipelineError, Retry, ToolFailed
from storage.artifacts import ArtifactStore
from storage.snapshots import SnapshotStore

ATTEMPTS = 2
"""Tries of one piece of tool work, each in a fresh folder, before a fault of ours propagates."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Retried:
    """A fault of ours that a second try got over; for the record of failures, never for a policy."""

    call_index: int
    tool: str
    error: dict[str, Any]


@dataclass(slots=True)
class Allowance:
    """What one tool call may take, over all its pieces of work; the time others need to answer its requests does not count."""

    tool: str
    limit_s: float
    spent_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Suite:
    """Stores, sandbox, engines and settings of a run."""

    store: ArtifactStore
    snapshots: SnapshotStore
    sandbox: Sandbox
    engines: Engines
    config: ReplayConfig
    scratch: Path
    """Existing folder in which every piece of tool work gets a private, empty, short-lived folder."""
    note: Callable[[str], None] = field(default=lambda _text: None)
    """Progress for a person; never recorded."""

    def work(self, allowance: Allowance, call_index: int, job: Callable[[ToolEnv], T], retried: list[Retried]) -> T:
        """Do a piece of a tool's work in a private folder; once more in a fresh one if a fault of ours may pass.

        Args:
            allowance: the tool and the time its call may take; the piece's time is taken off. A second try has as much as the first had.
            retried: gets an entry for every fault that was tried again.

        Raises:
            LimitExceeded: the call took longer than its contract allows (``call_wall``), twice.
            PipelineError: the fault stayed, or cannot pass. Anything else that a tool raises becomes ``ToolFailed`` (tool_crashed).
        """
        attempt, tool = 1, allowance.tool
        while True:
            started = time.monotonic()
            deadline = Deadline(tool, allowance.limit_s, allowance.limit_s - allowance.spent_s)
            with tempfile.TemporaryDirectory(dir=self.scratch, prefix="call-") as folder:
                sandbox, engines = TimedSandbox(self.sandbox, deadline), timed_engines(self.engines, deadline)
                env = ToolEnv(self.store, sandbox, engines, self.config, Path(folder), self.note)
                try:
                    done = job(env)
                    deadline.check()
                    allowance.spent_s += time.monotonic() - started
                    return done
                except PipelineError as error:
                    if attempt == ATTEMPTS or not _may_pass(error):
                        raise
                    retried.append(Retried(call_index, tool, error.as_json()))
                    self.note(f"{tool}: {error.code}, trying again")
                except Exception as error:
                    what = f"{tool} raised {type(error).__name__}: {error}"
                    raise ToolFailed("tool_crashed", what, "this is a bug; please report it with the message") from error
            attempt += 1


def _may_pass(error: PipelineError) -> bool:
    return error.retry is Retry.FRESH_ENVIRONMENT or isinstance(error, LimitExceeded)
