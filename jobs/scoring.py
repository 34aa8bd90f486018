"""Final quality of stored runs, computed again from what the lake holds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.quality import AUDIT_WEIGHT, WEIGHTS, RuleQuality, rule_quality
from jobs.questions import open_lake
from schemas.errors import ConfigInvalid
from schemas.trajectory import Trajectory
from storage.snapshots import SnapshotStore


@dataclass(frozen=True, slots=True)
class Scored:
    """Quality of one stored run, and what its row says."""

    trajectory_id: str
    project_id: str
    outcome: str
    stored: float
    quality: RuleQuality

    @property
    def agrees(self) -> bool:
        """The row holds what is computed now."""
        return abs(self.stored - self.quality.end) < 1e-9

    def as_json(self) -> dict[str, Any]:
        """Stable form of ``workprint quality --json``."""
        return {
            "trajectory_id": self.trajectory_id,
            "project_id": self.project_id,
            "outcome": self.outcome,
            "features": self.quality.features,
            "weights": WEIGHTS,
            "rule": self.quality.rule,
            "audit": self.quality.audit,
            "audit_weight": AUDIT_WEIGHT if self.quality.audit is not None else 0.0,
            "quality": self.quality.end,
            "stored": self.stored,
            "agrees": self.agrees,
        }


def score(lake_path: Path, target: str) -> list[Scored]:
    """Quality of every run whose id, or whose project's id, begins with ``target``, best first.

    Raises:
        ConfigInvalid: there is no lake, or no such run.
        StorageFault, DigestMismatch: what a run is computed from cannot be read.
    """
    lake = open_lake(lake_path)
    con = lake.connect()
    try:
        rows = con.execute(
            "select trajectory_sha256, quality from trajectories where starts_with(trajectory_id, $1) or starts_with(project_id, $1) "
            "order by quality desc, trajectory_id",
            [target],
        ).fetchall()
    finally:
        con.close()
    if not rows:
        raise ConfigInvalid(
            "no_trajectory", f"no stored trajectory or project begins with {target!r}", "see: workprint query 'from trajectories'"
        )
    snapshots = SnapshotStore(lake.store)
    out: list[Scored] = []
    for sha, stored in rows:
        run = Trajectory.model_validate_json(lake.store.read(sha))
        found = rule_quality(run, snapshots.load(run.last_snapshot))
        out.append(Scored(run.trajectory_id, run.project_id, run.outcome.value, float(stored), found))
    return out
