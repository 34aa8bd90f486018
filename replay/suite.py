"""The editing suite: everything a run needs besides its task, and the private folder each piece of tool work happens in.

Owns the line between a policy's failure and one of ours: whatever a tool raises leaves here as a ``PipelineError``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from media.command import Sandbox
from replay.config import ReplayConfig
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

    def work(self, tool: str, call_index: int, job: Callable[[ToolEnv], T], retried: list[Retried]) -> T:
        """Do a piece of a tool's work in a private folder; once more in a fresh one if a fault of ours may pass.

        Args:
            retried: gets an entry for every fault that was tried again.

        Raises:
            PipelineError: the fault stayed, or cannot pass. Anything else that a tool raises becomes ``ToolFailed`` (tool_crashed).
        """
        attempt = 1
        while True:
            with tempfile.TemporaryDirectory(dir=self.scratch, prefix="call-") as folder:
                env = ToolEnv(self.store, self.sandbox, self.engines, self.config, Path(folder), self.note)
                try:
                    return job(env)
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
