"""A small lake made with real tools: one project of three shots, played with two seeds (flite speech, 180 lines), with its examples."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from inversion.rows import storyboard_rows
from jobs.stages import trajectory_done
from materialize.config import MaterializeConfig
from materialize.examples import materialize
from materialize.recorded import LakeRuns
from media.sandbox import open_sandbox
from repair.config import FaultConfig
from schemas.artifact import ArtifactKind
from schemas.example import Split
from schemas.trajectory import Trajectory
from storage.lake import Lake, StageCommit
from tests.replay.small_film import SmallFilm

SEEDS = (4, 6)
FAULTS = FaultConfig(kinds=("render_black", "product_rejected"), count=2, seed=5)
CONFIG = MaterializeConfig(tokenizer="none", validation_share=0, held_out_share=0)


@dataclass
class RealLake:
    """The lake and what lies in it."""

    lake: Lake
    film: SmallFilm
    trajectories: tuple[Trajectory, ...]

    @property
    def runs(self) -> LakeRuns:
        """Its decisions, opened anew."""
        return LakeRuns(self.lake)


def make_lake(root: Path, split: str = "train") -> RealLake:
    """Make it in an empty folder; some seconds. ``split`` is that of the project."""
    film = SmallFilm(root, open_sandbox(), shots=3, spotlight_every=99, faults=FAULTS)
    lake = Lake(root / "lake")
    board = lake.store.put_bytes(film.board.canonical(), ArtifactKind.STORYBOARD, "application/json").sha256
    rows = storyboard_rows(film.board)
    commit_rows(lake, film, "invert", "one", {**rows, "projects": [{**rows["projects"][0], "split": split}]}, (board,))
    runs = []
    for seed in SEEDS:
        trajectory, run = film.play(root / "lake", seed)
        runs.append(trajectory)
        done = trajectory_done(trajectory, run.suite.store, run.spent_us)
        sha = lake.store.put_bytes(trajectory.canonical(), ArtifactKind.TRAJECTORY, "application/json").sha256
        commit_rows(lake, film, "replay", trajectory.trajectory_id, done.rows, (*done.artifacts, sha, film.config_digest))
    config = CONFIG.model_copy(update={"pinned": {film.board.project_id: Split(split)}})
    made: dict[str, dict[str, object]] = {}
    kept: set[str] = set()
    for trajectory in runs:
        done_examples = materialize(trajectory, film.board, lake.store, lake.snapshots, config, None, known=frozenset(made))
        made |= {row["example_id"]: row for row in done_examples.rows["examples"]}
        kept |= set(done_examples.artifacts)
    commit_rows(lake, film, "materialize", "all", {"examples": list(made.values())}, tuple(sorted(kept)))
    return RealLake(lake, film, tuple(runs))


def commit_rows(
    lake: Lake, film: SmallFilm, stage: str, scope: str, rows: dict[str, list[dict[str, object]]], kept: tuple[str, ...]
) -> None:
    """A finished stage of the project's run."""
    lake.commit(StageCommit(stage, f"stg_{stage}_{scope}", film.board.project_id, scope, "done", None, rows, kept, "run_1"))


def execute_again(place: Path, calls: list[tuple[str, int]], threads: int) -> list[tuple[str, int, str, str]]:
    """For another process: restore recorded calls of a lake in several threads and give each its recorded output.

    Returns:
        trajectory, call, state after it, and the observation as JSON.
    """
    runs = LakeRuns.at(place)

    def one(call: tuple[str, int]) -> tuple[str, int, str, str]:
        trajectory, index = runs.find({"trajectory_id": call[0], "call_index": call[1]})
        with runs.bench(trajectory).open() as env:
            env.restore(trajectory, index)
            observation = env.step(trajectory.calls[index].output)
            return (*call, env.runtime.state_digest, observation.model_dump_json())

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(one, calls))
