"""Projects one after the other in this process: for debugging, and where Ray is not wanted. Rows equal those of the Ray runner.

Small files are merged meanwhile. Time limits of a stage hold here too; a memory limit can only be told to the stage, since ending the
process would end the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jobs.chain import ProjectResult, process
from jobs.config import WorkprintConfig
from jobs.guard import guarded
from jobs.progress import EventLog
from jobs.sources import SourceGroup
from jobs.tidy import tidied
from jobs.work import Work
from storage.place import work_folder


def run_all(
    groups: Sequence[SourceGroup],
    config: WorkprintConfig,
    lake: Path,
    run_id: str,
    *,
    work: Work = process,
) -> list[ProjectResult]:
    """Run every project, in order.

    Args:
        work: what is done with one project; the chain of stages.
    """
    with guarded(config.run.limits, EventLog.open(work_folder(lake), run_id, ""), may_die=False), tidied(lake):
        return [work(group, config, lake, run_id) for group in groups]
