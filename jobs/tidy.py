"""Merging small files while a run goes on: every commit makes some, and questions to a hundred thousand of them take minutes.

Owns when it is done; :mod:`storage.upkeep` does it, in another process if the run has others: what a merge needs is then never part of
the driver. Must never end a run: what fails here is tried again later.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from jobs import stopping
from schemas.errors import PipelineError
from storage.lake import Lake

FILES = 2000
"""Small files of one table that are merged."""

TARGET_BYTES = 32 * 1024 * 1024
"""Smaller than what ``workprint compact`` makes, since this takes the memory of a merged file beside a run."""

EVERY_S = 60.0


Merge = Callable[[Path], object]


@contextmanager
def tidied(location: Path, merge: Merge | None = None, *, every_s: float = EVERY_S, files: int = FILES) -> Iterator[None]:
    """Look after a lake during the block and, unless the run was ended before it was done, once at its end: tables with
    many small files are merged. Rows and their digests stay.

    Args:
        merge: does the merging, elsewhere; None does it in this process.
        every_s: how often is looked, in seconds.
        files: small files of one table that are merged.
    """
    over = threading.Event()

    def work() -> None:
        while not over.wait(every_s):
            tidy(location, merge, files=files)

    thread = threading.Thread(target=work, daemon=True, name="tidy")
    thread.start()
    try:
        yield
    except BaseException:
        over.set()  # a merge may be killed at any moment: nobody waits for it
        raise
    over.set()
    if stopping.asked():  # the next run merges
        return
    thread.join()
    tidy(location, merge, files=files)


def tidy(location: Path, merge: Merge | None = None, *, files: int = FILES) -> bool:
    """Merge small files if a table has this many of them; whether it was done."""
    try:
        lake = Lake(location, create=False)
        if max(lake.small_files(below_bytes=TARGET_BYTES // 2).values(), default=0) < files:
            return False
        (merge or merged)(location)
    except PipelineError:  # another upkeep is running, or the device failed: the run itself will tell
        return False
    return True


def merged(location: Path) -> None:
    """Merge the small files of a lake now; raises as :meth:`Lake.compact`."""
    Lake(location, create=False).compact(target_bytes=TARGET_BYTES)
    pa.default_memory_pool().release_unused()  # a process keeps what it needs, not what a merge once needed
