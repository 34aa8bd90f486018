"""Projects one after the other in this process: for debugging, and where Ray is not wanted. Rows equal those of the Ray runner.

Small files are merged meanwhile. Time limits of a stage hold here too; a memory limit can only be told to the stage, since ending the
process would end the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jobs import stopping
from jobs.chain import ProjectResult, not_begun, process
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
    """Run every project, in order; after a stop was asked for, none any more.

    Args:
        work: what is done with one project; the chain of stages.
    """
    with guarded(config.run.limits, EventLog.open(work_folder(lake), run_id, ""), may_die=False), tidied(lake):
        return [_done(group, config, lake, run_id, work) for group in groups]


def _done(group: SourceGroup, config: WorkprintConfig, lake: Path, run_id: str, work: Work) -> ProjectResult:
    try:
        with stopping.cut_short():
            return not_begun(group) if stopping.asked() else work(group, config, lake, run_id)
    except stopping.OutOfTime:
        EventLog.open(work_folder(lake), run_id, group.key).write("finished", status="stopped")
        return not_begun(group)
