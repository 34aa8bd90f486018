"""Which rows of a project descend from which of its trajectories, and which of them end when a trajectory is no longer there.

A run with faults put in (``workprint inject``), a teacher's continuation (``workprint rft``) and a group of candidates (``workprint
groups``) are made from a stored run. When that run is made anew, or its source is refused, what was made from the old one says nothing
about the new one: it ends with it. Runs of outside agents stand for themselves and end with their project only. Asks the ledger for the
project's own stages; reads nothing else of the lake.
"""

from __future__ import annotations

from collections.abc import Iterable

from storage.history import StageRecord
from storage.lake import Lake

MADE_BY_ITSELF = ("replay", "outside")
"""Stages whose runs are made from a storyboard, or by an agent of its own."""


def orphans(lake: Lake, project_id: str, kept: Iterable[str]) -> list[tuple[str, str]]:
    """(stage, scope) of everything that was made from runs of a project that are gone.

    Args:
        kept: trajectories of the project that stay; with none, its outside runs end as well.
    """
    live = lake.live(project_id)
    alive = set(kept)
    outside = [r for r in live if r.stage == "outside"]
    if alive:
        alive |= {run for r in outside for run in _runs(lake, r)}
    ended = [] if alive else outside
    made = [r for r in live if r.stage in ("inject", "rft")]
    while made:  # an injected run may itself have been taken up again
        known = [r for r in made if _origin(r) in alive]
        if not known:
            break
        alive |= {run for r in known for run in _runs(lake, r)}
        made = [r for r in made if r not in known]
    ended += made
    lost = {run for r in made for run in _runs(lake, r)}
    shared = [r for r in live if r.stage == "rft" and r not in made and _continuation(lake, r) in lost]
    ended += shared  # its run's rows were written with another student's, and go with them
    groups = [r for r in live if r.stage == "groups"]
    ended += [r for r in groups if not {str(row["trajectory_id"]) for row in lake.rows_of("groups", r.stage_key)} <= alive - lost]
    return [(r.stage, r.scope) for r in ended]


def own_runs(lake: Lake, project_id: str) -> list[StageRecord]:
    """Stages that made the runs of a project by which it is shown: no faults were put into them, and no teacher finished them."""
    live = lake.live(project_id)
    return next((found for stage in MADE_BY_ITSELF if (found := [r for r in live if r.stage == stage])), [])


def _origin(record: StageRecord) -> str:
    """The run that a stage took up: its scope begins with it."""
    return record.scope.partition("#")[0]


def _runs(lake: Lake, record: StageRecord) -> list[str]:
    return [str(row["trajectory_id"]) for row in lake.rows_of("trajectories", record.stage_key)]


def _continuation(lake: Lake, record: StageRecord) -> str | None:
    return next((row["trajectory_id"] for row in lake.rows_of("rft", record.stage_key)), None)
