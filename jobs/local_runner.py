"""Projects one after the other in this process: for debugging, and where Ray is not wanted. Rows equal those of the Ray runner."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jobs.chain import ProjectResult, process
from jobs.config import WorkprintConfig
from jobs.sources import SourceGroup


def run_all(
    groups: Sequence[SourceGroup],
    config: WorkprintConfig,
    lake: Path,
    run_id: str,
) -> list[ProjectResult]:
    """Run every project, in order."""
    return [process(group, config, lake, run_id) for group in groups]
