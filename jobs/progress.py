"""What a run is doing, as lines in files: readable from another shell, from another process, after a crash.

One file a process under ``LAKE/runs/RUN/events``, so that a run of many thousand projects has few of them. Lines are appended whole by the
one process that owns the file. Times in here are for people; they never enter a digest.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

Note = Callable[[str], None]


def printable(text: str) -> str:
    """Text on one line that does nothing to a terminal: names of files may hold line breaks and control sequences."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def tail(text: str, width: int) -> str:
    """The last ``width`` characters of a name, printable; what was cut off shows as an ellipsis."""
    text = printable(text)
    return text if len(text) <= width else "…" + text[1 - width :]


def runs_folder(lake: Path) -> Path:
    """Folder of all runs of a lake."""
    return lake / "runs"


@dataclass(frozen=True, slots=True)
class Doing:
    """What this process does right now: a stage of a project, and since when (monotonic seconds)."""

    key: str
    stage: str
    since: float


_doing: Doing | None = None


def doing() -> Doing | None:
    """The stage this process is in, if any. For the guard of its limits."""
    return _doing


def _follow(key: str, event: str, fields: dict[str, Any]) -> None:
    global _doing
    if event == "stage_started" or (event == "failed" and not fields.get("quarantined", True)):
        _doing = Doing(key, str(fields["stage"]), time.monotonic())
    elif event in ("stage_done", "stage_skipped", "rejected", "failed", "finished"):
        _doing = None


@dataclass(slots=True)
class EventLog:
    """Appends events of one project."""

    path: Path
    key: str

    @classmethod
    def open(cls, lake: Path, run_id: str, key: str) -> EventLog:
        """The log of one project in one run; makes its folder."""
        folder = runs_folder(lake) / run_id / "events"
        folder.mkdir(parents=True, exist_ok=True)
        return cls(folder / f"{socket.gethostname()}-{os.getpid()}.jsonl", key)

    def write(self, event: str, **fields: Any) -> None:
        """Append one event. ``event``: stage_started, stage_done, stage_skipped, note, rejected, failed, finished."""
        _follow(self.key, event, fields)
        line = orjson.dumps({"time_s": round(time.time(), 3), "project": self.key, "event": event, **fields}) + b"\n"
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            os.write(fd, line)
        finally:
            os.close(fd)

    def note(self, stage: str) -> Note:
        """A progress callback for a stage."""
        return lambda text: self.write("note", stage=stage, text=text)


class EventReader:
    """Reads what is new in a run's event files since the last look. A torn last line waits for its end."""

    def __init__(self, lake: Path, run_id: str) -> None:
        self._folder = runs_folder(lake) / run_id / "events"
        self._offset: dict[Path, int] = {}

    def new(self, key: str | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
        """(project key, event) for every event not seen yet (of one project, if it is named); those of one process in their order."""
        wanted = b"" if key is None else key.encode()
        if not self._folder.is_dir():
            return
        for path in sorted(self._folder.glob("*.jsonl")):
            start = self._offset.get(path, 0)
            if path.stat().st_size <= start:
                continue
            with path.open("rb") as f:
                f.seek(start)
                data = f.read()
            end = data.rfind(b"\n") + 1
            self._offset[path] = start + end
            for line in data[:end].splitlines():
                if wanted not in line:
                    continue
                try:
                    event = orjson.loads(line)
                    yield str(event["project"]), event
                except (orjson.JSONDecodeError, KeyError, TypeError):
                    continue


def last_actors(lake: Path, run_id: str) -> dict[str, dict[str, Any]]:
    """What the engines that a run holds in actors were last said to be doing, by part; empty where it holds none.

    Reads the file of the run's own process alone, so it is called there.
    """
    path = EventLog.open(lake, run_id, "").path
    lines = path.read_bytes().splitlines() if path.exists() else []
    told = [event for event in map(orjson.loads, lines) if event["event"] == "actors"]
    return told[-1]["actors"] if told else {}


def actors_line(part: str, figures: dict[str, Any]) -> str:
    """One pool in words."""
    line = f"{part}: {figures['busy']} of {figures['slots']} places busy, {figures['waiting']} waiting, {figures['calls']} calls"
    faults = ", ".join(f"{figures[name]} {name}" for name in ("deaths", "timeouts", "failed", "gone") if figures[name])
    return f"{line}, {faults}" if faults else line


def last_failure(lake: Path, run_id: str, key: str) -> dict[str, Any] | None:
    """The last ``failed`` event of a project in a run, by its time; None if there is none."""
    found = [e for k, e in EventReader(lake, run_id).new(key) if k == key and e["event"] == "failed"]
    return max(found, key=lambda e: float(e["time_s"]), default=None)


def last_stage(lake: Path, run_id: str, key: str) -> str | None:
    """The stage that a project was last said to have started in a run."""
    found = [e for k, e in EventReader(lake, run_id).new(key) if k == key and e["event"] == "stage_started"]
    return str(max(found, key=lambda e: float(e["time_s"]))["stage"]) if found else None
