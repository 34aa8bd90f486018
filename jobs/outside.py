"""Episodes of outside agents: live over MCP, or read from a recording and executed again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import typer

from jobs.atif import read_calls
from jobs.config import load_config
from jobs.episodes import Episode, commit_run, open_episode, recorded_start, storyboard_start, workshop
from jobs.single import read_storyboard
from jobs.stages import replay_digest
from replay.outside import LOOK, OutsideSession
from schemas.errors import ConfigInvalid
from schemas.trajectory import Outcome, Trajectory
from storage.artifacts import ArtifactStore
from storage.lake import Lake

Keep = Callable[[Trajectory], None]


@dataclass(frozen=True, slots=True)
class Asked:
    """Where an episode begins and where it is written, as the command line says it."""

    record: Path
    """File that receives the trajectory."""
    snapshot: str | None
    lake: Path
    storyboard: Path | None
    source: Path | None
    budget: int | None
    config: str | None


def serve_episode(asked: Asked) -> None:
    """One episode over MCP.

    Raises:
        ConfigInvalid: neither or both of snapshot and storyboard, or they make no sense.
        EngineMissing: the package ``mcp`` is not installed.
    """
    from jobs.mcp_server import serve

    with _episode(asked) as (episode, keep):
        serve(episode, asked.record, keep)


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What became of a recording. ``as_json`` is the documented form."""

    trajectory: Trajectory
    record: Path
    executed: int
    refused: int
    left_out: dict[str, int]
    """Calls of tools that are not ours, by name."""
    unread: int
    """Calls after the run was over."""

    @property
    def delivered(self) -> bool:
        """The film was delivered and validated."""
        return self.trajectory.outcome is Outcome.DELIVERED

    def as_json(self) -> dict[str, Any]:
        """Stable form of ``workprint import --json``."""
        return {
            "trajectory_id": self.trajectory.trajectory_id,
            "outcome": self.trajectory.outcome.value,
            "record": str(self.record),
            "executed": self.executed,
            "refused": self.refused,
            "left_out": self.left_out,
            "after_the_end": self.unread,
        }

    def print(self) -> None:
        """For a person."""
        foreign = ", ".join(f"{name} ({n})" for name, n in self.left_out.items()) or "none"
        typer.echo(f"{self.trajectory.outcome.value}: {self.executed} calls executed, {self.refused} of them refused")
        typer.echo(f"calls of other tools, left out: {foreign}; calls after the end: {self.unread}\nwritten to {self.record}")


def import_recording(recording: Path, asked: Asked) -> ImportReport:
    """Execute a recording's calls again.

    Raises:
        ConfigInvalid: the file is no ATIF trajectory, or the start makes no sense.
        PipelineError: a fault of ours.
    """
    agent, calls = read_calls(recording)
    with _episode(asked) as (episode, keep):
        session = OutsideSession(episode.runtime)
        ours = {t.name for t in session.tools()} - {LOOK}
        left_out: Counter[str] = Counter()
        executed = refused = unread = 0
        for call in calls:
            if call.name not in ours:
                left_out[call.name] += call.name != LOOK
            elif episode.runtime.finished:
                unread += 1
            else:
                told = session.call(call.name, call.arguments)
                if told.fault is not None:
                    raise told.fault
                executed += 1
                refused += told.is_error
        trajectory = episode.trajectory(f"atif {agent}")
        episode.runtime.suite.store.sync()
        asked.record.write_bytes(orjson.dumps(trajectory.model_dump(mode="json"), option=orjson.OPT_SORT_KEYS))
        keep(trajectory)
    return ImportReport(trajectory, asked.record, executed, refused, {k: v for k, v in sorted(left_out.items()) if v}, unread)


@contextmanager
def _episode(asked: Asked) -> Iterator[tuple[Episode, Keep]]:
    if (asked.snapshot is None) == (asked.storyboard is None):
        raise ConfigInvalid(
            "episode_start", "an episode starts at a snapshot or at a storyboard", "give --snapshot or --storyboard, one of them"
        )
    config = load_config(asked.config)
    asked.record.parent.mkdir(parents=True, exist_ok=True)
    if asked.snapshot is not None:
        opened = Lake(asked.lake)
        shop = workshop(config, opened.store)
        start = recorded_start(opened, asked.snapshot)
        before = len(start.history)
        with open_episode(shop, start, replay_digest(config), budget=asked.budget) as episode:
            yield episode, lambda t: commit_run(opened, t, episode.spent_us) if len(t.calls) > before else None
        return
    assert asked.storyboard is not None  # noqa: S101  one of the two is given, checked above
    board, path = read_storyboard(asked.storyboard, asked.source)
    shop = workshop(config, ArtifactStore(asked.record.with_name(asked.record.name + ".artifacts")))
    with open_episode(shop, storyboard_start(shop, board, path), replay_digest(config), budget=asked.budget) as episode:
        yield episode, lambda _t: None
