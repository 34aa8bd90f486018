"""Splits of a lake with near-duplicates: brought together after the run, told by the report, left out by exports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from evaluation.fingerprints import Print
from evaluation.shingles import shingles, signature
from jobs.cli import app
from jobs.config import WorkprintConfig
from jobs.kinship import decided_split, materialize_settings, settle
from materialize.config import MaterializeConfig
from materialize.examples import materialize
from materialize.export.api import export
from materialize.rows import trajectory_rows
from materialize.splits import split_of
from schemas.artifact import ArtifactKind
from schemas.errors import ConfigInvalid
from schemas.example import Split
from storage.lake import Lake, StageCommit
from tests.materialize.conftest import storyboard, whole_run

SHARES = MaterializeConfig(tokenizer="none", validation_share=0.4, held_out_share=0.3)
CONFIG = WorkprintConfig(materialize=SHARES)

STORY = " ".join(f"word{n}" for n in range(80))


def add(lake: Lake, project: str, script: str, split: Split | None = None) -> None:
    """Commit a project as the chain does, with a narration of its own."""
    run = whole_run(lake.store.root, project)
    trajectory = run.trajectory()
    board = storyboard(project).model_copy(update={"script": script})
    board_sha = lake.store.put_bytes(board.canonical(), ArtifactKind.STORYBOARD, "application/json").sha256
    sha = lake.store.put_bytes(trajectory.canonical(), ArtifactKind.TRAJECTORY, "application/json").sha256
    grams = shingles(script, 3)
    prints = Print(project, (), np.zeros(0, np.uint32), signature(grams), len(grams))
    invert = {"projects": [project_row(project)], "fingerprints": [prints.row()], "storyboards": [board_row(project, board_sha, script)]}
    rows = trajectory_rows(trajectory, final_state=run.states[1], quality=0.75, trajectory_sha256=sha)
    contexts = tuple(sorted({c.context_sha256 for c in trajectory.calls}))
    done = materialize(trajectory, board, lake.store, run.snapshots, SHARES, None, split=split)
    for stage, table_rows, artifacts in (("invert", invert, ()), ("replay", rows, contexts), ("materialize", done.rows, done.artifacts)):
        scope = f"{project}#0" if stage == "replay" else project
        output = sha if stage == "replay" else None
        lake.commit(StageCommit(stage, f"stg_{stage}_{project}", project, scope, "done", output, table_rows, artifacts, "run_1"))


def project_row(project: str) -> dict[str, Any]:
    """One row of table ``projects``."""
    texts = {"uri": "a.mp4", "title": "t", "language": "en", "licence": "CC0-1.0", "source_sha256": "1" * 64, "engines_json": "{}"}
    counts = {"duration_us": 1, "width": 16, "height": 10, "shots": 1, "sentences": 1, "words": 1}
    return {"project_id": project, **texts, **counts, "attribution": None, "narration_share": 1.0, "split": "train"}


def board_row(project: str, sha: str, script: str) -> dict[str, Any]:
    """One row of table ``storyboards``."""
    row = {"project_id": project, "storyboard_sha256": sha, "schema_version": "storyboard.1", "aspect_ratio": "16:9"}
    return {**row, "segments": 0, "spotlights": 0, "script": script}


def splits(lake: Lake) -> dict[str, set[str]]:
    """The splits that the examples of each project have."""
    out: dict[str, set[str]] = {}
    for project, split in lake.query("select distinct project_id, split from examples").rows:
        out.setdefault(project, set()).add(split)
    return out


def named(split: Split, count: int) -> list[str]:
    """Project ids whose own hash gives a split."""
    return [p for p in (f"prj_{i:03d}" for i in range(200)) if split_of(p, SHARES) is split][:count]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


def test_near_duplicates_of_one_run_are_brought_into_one_split(lake: Lake) -> None:
    train, held = named(Split.TRAIN, 1)[0], named(Split.HELD_OUT, 1)[0]
    alone = named(Split.VALIDATION, 1)[0]
    add(lake, train, STORY)
    add(lake, held, STORY + " and more")
    add(lake, alone, " ".join(f"other{n}" for n in range(80)))
    settled = settle(lake, CONFIG, "run_2")
    group = min(train, held)
    assert {d.project_id: d.group_id for d in settled.decisions} == {train: group, held: group, alone: alone}
    assert splits(lake) == {train: {split_of(group, SHARES)}, held: {split_of(group, SHARES)}, alone: {"validation"}}
    assert lake.query("select count(*), count(distinct example_id) from examples").rows == [(72, 72)]


def test_settling_again_changes_nothing(lake: Lake) -> None:
    add(lake, named(Split.TRAIN, 1)[0], STORY)
    add(lake, named(Split.HELD_OUT, 1)[0], STORY)
    settle(lake, CONFIG, "run_2")
    before = lake.versions()[-1].version
    assert settle(lake, CONFIG, "run_3").moved == ()
    assert lake.versions()[-1].version == before


def test_a_project_that_comes_later_joins_its_kin_and_moves_nobody(lake: Lake) -> None:
    first = max(named(Split.TRAIN, 9))
    later = min(named(Split.HELD_OUT, 9))
    assert later < first  # by name alone the newcomer would lead the group
    add(lake, first, STORY)
    settle(lake, CONFIG, "run_2")
    add(lake, later, STORY)
    assert settle(lake, CONFIG, "run_3").moved == (later,)
    assert splits(lake) == {first: {"train"}, later: {"train"}}


def test_the_split_that_was_decided_is_what_the_next_run_uses(lake: Lake) -> None:
    first, later = max(named(Split.TRAIN, 9)), min(named(Split.HELD_OUT, 9))
    add(lake, first, STORY)
    settle(lake, CONFIG, "run_2")
    add(lake, later, STORY)
    settle(lake, CONFIG, "run_3")
    assert decided_split(lake, later, CONFIG) is Split.TRAIN
    assert materialize_settings(CONFIG, later, Split.TRAIN)["split"] == "train"
    assert "split" not in materialize_settings(CONFIG, first, Split.TRAIN)
    other = WorkprintConfig(materialize=SHARES.model_copy(update={"split_seed": 1}))
    assert decided_split(lake, later, other) is None


def test_the_report_tells_pairs_in_different_splits_and_the_status_says_so(lake: Lake) -> None:
    train, held = named(Split.TRAIN, 1)[0], named(Split.HELD_OUT, 1)[0]
    add(lake, train, STORY)
    add(lake, held, STORY)
    result = CliRunner().invoke(app, ["dataset", "leakage", "--lake", str(lake.root)])
    assert result.exit_code == 4
    assert f"{min(train, held)}  {max(train, held)}  picture 0%, sound 0%, narration 100%" in result.output
    assert f"{train}  {held}  69 runs" in result.output  # 80 words hold 69 runs of twelve
    settle(lake, CONFIG, "run_2")
    assert CliRunner().invoke(app, ["dataset", "leakage", "--lake", str(lake.root)]).exit_code == 0


def test_exports_leave_out_projects_with_twelve_words_of_a_held_out_one(lake: Lake, tmp_path: Path) -> None:
    clean, tainted = named(Split.TRAIN, 2)
    add(lake, clean, " ".join(f"other{n}" for n in range(80)))
    add(lake, tainted, "here begins something else altogether " + " ".join(STORY.split()[10:22]))
    add(lake, named(Split.HELD_OUT, 1)[0], STORY)
    con = lake.connect()
    try:
        report = export("sft", "trl", con, tmp_path / "out")
    finally:
        con.close()
    assert report.projects == {clean: "train"}
    assert report.not_taken["contaminated"] > 0


def test_a_benchmark_text_that_cannot_be_read_is_named(lake: Lake, tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match=r"gone\.txt"):
        CliRunner().invoke(
            app, ["dataset", "leakage", "--lake", str(lake.root), "--benchmark", str(tmp_path / "gone.txt")], catch_exceptions=False
        )
