"""A process that runs a small replay and kills itself at one point.

python -m tests.fault.replay_child ROOT PLACE SEED [CALL OPERATION]
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from media.sandbox import open_sandbox
from storage import durable
from storage.journal import Journal
from tests.replay.small_film import SmallFilm


class Watch:
    """A fault point that counts durable operations by the call they belong to; a call's last one is the fsync of its journal line."""

    def __init__(self, journal: Path, at: tuple[int, int] | None = None) -> None:
        self.journal, self.at = journal, at
        self.calls: list[list[str]] = [[]]

    def __call__(self, operation: str, path: str) -> None:
        if self.at == (len(self.calls) - 1, len(self.calls[-1])):
            os.kill(os.getpid(), signal.SIGKILL)
        self.calls[-1].append(operation)
        if operation == "fsync" and Path(path) == self.journal:
            self.calls.append([])


def play(film: SmallFilm, place: Path, seed: int, at: tuple[int, int] | None = None) -> tuple[bytes, list[list[str]]]:
    """Begin a run in a folder, or go on with one.

    Returns:
        the canonical bytes of its trajectory, and the durable operations of every call.
    """
    with Journal(place / "journal") as journal:
        run = film.runtime(place, journal)
        watch, before = Watch(place / "journal", at), durable.fault_point
        durable.fault_point = watch
        try:
            return film.finish(run, seed).canonical(), watch.calls[:-1]
        finally:
            durable.fault_point = before


if __name__ == "__main__":
    root, place, seed, *point = sys.argv[1:]
    ready = SmallFilm.reopen(Path(root), open_sandbox())
    print("ready", flush=True)
    play(ready, Path(place), int(seed), (int(point[0]), int(point[1])) if point else None)
