"""Progress of a run in the terminal: a live table where there is one, else plain lines."""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from math import ceil
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from jobs import stopping
from jobs.progress import EventReader, actors_line, printable, tail

_MARK = {"delivered": "green", "incomplete": "yellow", "rejected": "yellow", "failed": "red", "stopped": "yellow"}


SHOWN = 12
"""Projects in the table."""


class LiveView:
    """Shows what each project is doing, from the run's event files, twice a second until the end of the ``with`` block."""

    def __init__(self, lake: Path, run_id: str, names: dict[str, str], *, quiet: bool) -> None:
        self._reader = EventReader(lake, run_id)
        self._names = names
        self._rows: dict[str, dict[str, Any]] = {}
        self._done: deque[str] = deque()
        self._finished = 0
        self._said = False
        self._actors: dict[str, dict[str, Any]] = {}
        self._start = time.monotonic()
        self._console = Console(stderr=True)
        self._quiet = quiet
        self._live = Live(console=self._console, refresh_per_second=4) if self._console.is_terminal and not quiet else None
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True, name="progress")

    def __enter__(self) -> LiveView:
        if self._live is not None:
            self._live.__enter__()
        self._watcher.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._watcher.join()
        self._look()
        if self._live is not None:
            self._live.__exit__(None, None, None)

    def _watch(self) -> None:
        while not self._over.wait(0.5):
            self._look()

    def _look(self) -> None:
        """Take in new events and show them."""
        if stopping.asked() and not self._said:
            self._said = True
            self._console.print(
                f"stopping: no further project is started, those under way have {max(0, ceil(stopping.left_s()))} s to end their stage; "
                "once more: at once",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )
        for key, event in self._reader.new():
            if event["event"] == "actors":
                self._actors = event["actors"]
                continue
            row = self._rows.setdefault(key, {"stage": "", "text": "", "status": ""})
            kind = event["event"]
            if kind in ("stage_started", "stage_skipped", "stage_done"):
                row["stage"] = event["stage"]
                row["text"] = {"stage_started": "started", "stage_skipped": "known, nothing to do", "stage_done": "done"}[kind]
                if kind == "stage_done":
                    row["text"] += f" in {event['wall_s']:.1f} s, {event['rows']} rows"
            elif kind == "note":
                row["stage"], row["text"] = event["stage"], event["text"]
            elif kind == "failed":
                row["text"] = f"attempt {event['attempt']} failed: {event['message']}"
            elif kind == "rejected":
                row["text"] = f"refused: {event['code']}: {event['detail']}"
            elif kind == "finished":
                row["status"] = event["status"]
                self._finished += event["status"] != "stopped"
                self._done.append(key)
            if self._live is None and not self._quiet:
                self._line(key, row, kind)
            while len(self._done) > SHOWN:  # what is over is not kept: a run may have a hundred thousand projects
                self._rows.pop(self._done.popleft(), None)
        if self._live is not None:
            self._live.update(self._table())

    def _line(self, key: str, row: dict[str, Any], kind: str) -> None:
        text = row["status"] if kind == "finished" else f"{row['stage']}: {printable(row['text'])}"
        print(f"[{time.monotonic() - self._start:6.1f} s] {self._name(key)}  {text}", file=sys.stderr, flush=True)

    def _name(self, key: str) -> str:
        return tail(self._names.get(key, key), 48)

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False)
        for name in ("source", "stage", "doing"):
            table.add_column(name, overflow="ellipsis", no_wrap=True)
        for key, row in sorted(self._rows.items(), key=lambda r: bool(r[1]["status"]))[:SHOWN]:  # what is being worked on comes first
            status = row["status"]
            shown = f"[{_MARK[status]}]{status}[/]" if status else printable(row["text"]).replace("[", "\\[")
            table.add_row(self._name(key).replace("[", "\\["), row["stage"], shown)
        lines = [f"{self._finished} of {len(self._names)} finished, {time.monotonic() - self._start:.0f} s"]
        table.caption = "\n".join([*lines, *(actors_line(part, figures) for part, figures in self._actors.items())])
        return table
