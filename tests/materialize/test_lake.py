"""Rows in a real lake: committed, asked with SQL, exported from its connection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from materialize.config import MaterializeConfig
from materialize.examples import materialize
from materialize.export.api import export
from materialize.rows import trajectory_rows
from schemas.artifact import ArtifactKind
from storage.lake import Lake, StageCommit

CONFIG = MaterializeConfig(tokenizer="none", validation_share=0, held_out_share=0)


@pytest.fixture
def lake(tmp_path: Path, build: Any) -> Lake:
    """A lake with the run of one project, committed stage by stage."""
    lake = Lake(tmp_path / "lake")
    run = build.whole_run(lake.store.root)
    trajectory = run.trajectory()
    sha = lake.store.put_bytes(trajectory.canonical(), ArtifactKind.TRAJECTORY, "application/json").sha256
    rows = trajectory_rows(trajectory, final_state=run.states[1], quality=0.75, trajectory_sha256=sha)
    contexts = tuple(sorted({c.context_sha256 for c in trajectory.calls}))
    done = materialize(trajectory, build.storyboard("prj_one"), lake.store, run.snapshots, CONFIG, None)
    for stage, table_rows, artifacts in (("replay", rows, contexts), ("materialize", done.rows, done.artifacts)):
        lake.commit(
            StageCommit(
                stage=stage,
                stage_key=f"stg_{stage}",
                subject="prj_one",
                scope="prj_one",
                status="done",
                output_sha256=sha if stage == "replay" else None,
                rows=table_rows,
                artifacts=artifacts,
                run_id="run_1",
            )
        )
    return lake


def test_every_call_is_an_example_or_its_fate_can_be_asked_for(lake: Lake) -> None:
    found = lake.query(
        """
        select case when e.example_id is not null then 'example' when c.status = 'refused' then 'refused' else 'other' end, count(*)
        from calls c left join examples e using (trajectory_id, call_index) group by 1 order by 1
        """
    ).rows
    assert found == [("example", 24), ("refused", 2)]


def test_repairs_lead_to_their_calls_and_verdicts(lake: Lake) -> None:
    found = lake.query(
        """
        select r.outcome, found.tool, mended.tool from repairs r
        join calls found on found.trajectory_id = r.trajectory_id and found.call_index = r.call_found
        join calls mended on mended.trajectory_id = r.trajectory_id and mended.call_index = r.call_mended order by 1
        """
    ).rows
    assert found == [("not_verified", "inspect_quality", "repair_shots"), ("verified", "inspect_quality", "repair_shots")]


def test_an_export_reads_the_lakes_own_connection(lake: Lake, tmp_path: Path) -> None:
    connection = lake.connect()
    try:
        report = export("sft", "trl", connection, tmp_path / "out")
    finally:
        connection.close()
    assert report.rows == {"train": 23}
    assert pq.read_table(tmp_path / "out" / "data").num_rows == 23


def test_snapshots_of_examples_can_be_restored_from_the_lake(lake: Lake) -> None:
    for snapshot_id, digest in lake.query(
        "select distinct snapshot_id, state_digest from snapshots join examples using (snapshot_id)"
    ).rows:
        assert lake.snapshots.digest(lake.snapshots.load(snapshot_id)) == digest
