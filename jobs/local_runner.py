"""Projects one after the other in this process: for debugging, and where Ray is not wanted. Rows equal those of the Ray runner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from jobs.chain import ProjectResult, process
from jobs.config import WorkprintConfig
from jobs.sources import SourceGroup


def run_all(
    groups: Sequence[SourceGroup],
    config: WorkprintConfig,
    lake: Path,
    run_id: str,
    tick: Callable[[], None],
) -> list[ProjectResult]:
    """Run every project; ``tick`` is called between projects."""
    out = []
    for group in groups:
        out.append(process(group, config, lake, run_id))
        tick()
    return out
