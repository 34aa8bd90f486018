"""Sets of runs in which a model took part, made with real tools: what TRL trains of them, and where the benchmark begins."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from jobs.stages import trajectory_done
from materialize.distillation import distillation_rows
from materialize.export.api import export
from replay.chat.config import EndpointLimits, ModelConfig
from replay.chat.model import HttpChatModel
from replay.episode import run_episode
from replay.policies.chat import ChatPolicy
from schemas.artifact import ArtifactKind
from schemas.example import Split
from schemas.trajectory import Outcome
from storage.lake import Lake
from tests.consumers.conftest import python_of, run_script
from tests.materialize.real_lake import commit_rows, make_lake
from tests.media.servers import serve
from tests.replay.test_chat_policy import repeated

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake in which a model on a loopback endpoint edited the film as the editor had done, and the teacher finished failed runs."""
    python_of("trl")
    root = tmp_path_factory.mktemp("real")
    made = make_lake(root)
    limits = {"timeout_s": 30, "attempts": 1}
    with serve(repeated(made.trajectories[0])) as server:
        model = HttpChatModel(ModelConfig(model="tiny"), EndpointLimits(endpoint_url=server.url, **limits))
        run = made.film.runtime(root / "lake")
        student = run_episode(run, ChatPolicy(model, run.suite.store), config_digest=made.film.config_digest)
    assert student.outcome is Outcome.DELIVERED
    store = made.lake.store
    done = trajectory_done(student, run.suite.store, run.spent_us)
    sha = store.put_bytes(student.canonical(), ArtifactKind.TRAJECTORY, "application/json").sha256
    kept = (*done.artifacts, sha, made.film.config_digest)
    commit_rows(made.lake, made.film, "replay", student.trajectory_id, done.rows, kept)
    turns = distillation_rows(student, made.film.board, store, Split.TRAIN)
    assert len(turns) == len(student.calls)
    commit_rows(made.lake, made.film, "materialize", student.trajectory_id, {"distillation": turns}, ())
    command = str(Path(sys.executable).with_name("workprint"))
    subprocess.run([command, "rft", "--lake", str(made.lake.root)], check=True, capture_output=True)
    return made.lake.root


@pytest.fixture(scope="module")
def trained(place: Path, tokenizers: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """What the steps printed."""
    root = tmp_path_factory.mktemp("steps")
    connection = Lake(place, create=False).connect()
    for kind in ("rft", "opd"):
        export(kind, "trl", connection, root / kind)
    connection.close()
    jobs = [a for kind in ("rft", "opd") for a in (kind, root / kind, tokenizers / "qwen3")]
    lines = run_script("trl", "trl_train.py", *jobs, cwd=root)
    assert not [line["error"] for line in lines if "error" in line]
    return {kind: [line for line in lines if line["job"] == number] for number, kind in enumerate(("rft", "opd"))}


def said(row: dict[str, Any]) -> str:
    """What Qwen3's template makes of a recorded call."""
    if row["role"] != "orchestrator":
        return f"{row['content_json']}<|im_end|>\n"
    arguments = json.dumps(json.loads(row["arguments_json"]), ensure_ascii=False)
    return f'<tool_call>\n{{"name": "{row["tool"]}", "arguments": {arguments}}}\n</tool_call><|im_end|>\n'


def test_rft_trains_what_was_said_in_admitted_runs(place: Path, trained: dict[str, list[dict[str, Any]]]) -> None:
    *rows, end = trained["rft"]
    found = Lake(place, create=False).query(
        "select calls.role, tool, arguments_json, content_json from calls "
        "join rft using (trajectory_id) where admitted and status <> 'refused'"
    )
    recorded = [said(dict(zip(found.columns, row, strict=True))) for row in found.rows]
    assert len(rows) > 10
    assert Counter(r["trained"] for r in rows) <= Counter(recorded)
    assert end["steps"] == 2
    assert all(0 < loss < 20 for loss in end["losses"])


def test_the_turns_of_a_model_are_distilled(trained: dict[str, list[dict[str, Any]]]) -> None:
    (end,) = trained["opd"]
    assert end["steps"] == 1
    assert all(loss > 0 for loss in end["losses"])


def test_the_benchmark_begins_where_held_out_runs_began(tmp_path: Path) -> None:
    python_of("trl")
    (tmp_path / "made").mkdir()
    made = make_lake(tmp_path / "made", split="held_out")
    export("benchmark", "hf", made.lake.connect(), tmp_path / "benchmark", store=made.lake.store)
    (found,) = run_script("trl", "real_starts.py", made.lake.root, tmp_path / "benchmark", cwd=tmp_path)
    assert (found["split"], found["roles"]) == ("held_out", ["system", "user"])
    assert not {"completion", "completion_json"} & set(found["columns"])
    assert '"results"' in found["seen"]  # the music that was found
