"""What a run is doing, as lines in files: readable from another shell, from another process, after a crash.

One file a project under ``LAKE/runs/RUN/events``. Lines are appended by the one process that works on the project.
Times in here are for people; they never enter a digest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

Note = Callable[[str], None]


def runs_folder(lake: Path) -> Path:
    """Folder of all runs of a lake."""
    return lake / "runs"


@dataclass(slots=True)
class EventLog:
    """Appends events of one project."""

    path: Path

    @classmethod
    def open(cls, lake: Path, run_id: str, key: str) -> EventLog:
        """The log of one project in one run; makes its folder."""
        folder = runs_folder(lake) / run_id / "events"
        folder.mkdir(parents=True, exist_ok=True)
        return cls(folder / f"{key}.jsonl")

    def write(self, event: str, **fields: Any) -> None:
        """Append one event. ``event``: stage_started, stage_done, stage_skipped, note, rejected, failed, finished."""
        line = orjson.dumps({"time_s": round(time.time(), 3), "event": event, **fields}) + b"\n"
        with self.path.open("ab") as f:
            f.write(line)

    def note(self, stage: str) -> Note:
        """A progress callback for a stage."""
        return lambda text: self.write("note", stage=stage, text=text)


class EventReader:
    """Reads what is new in a run's event files since the last look. A torn last line waits for its end."""

    def __init__(self, lake: Path, run_id: str) -> None:
        self._folder = runs_folder(lake) / run_id / "events"
        self._offset: dict[Path, int] = {}

    def new(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """(project key, event) for every event not seen yet."""
        if not self._folder.is_dir():
            return
        for path in sorted(self._folder.glob("*.jsonl")):
            start = self._offset.get(path, 0)
            with path.open("rb") as f:
                f.seek(start)
                data = f.read()
            end = data.rfind(b"\n") + 1
            self._offset[path] = start + end
            for line in data[:end].splitlines():
                try:
                    yield path.stem, orjson.loads(line)
                except orjson.JSONDecodeError:
                    continue
