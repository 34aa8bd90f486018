"""A whole run of a small film in a lake of its own, for tests of what is done with stored runs."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from inversion.rows import storyboard_rows
from jobs.cli import app
from jobs.config import WorkprintConfig
from jobs.stages import Workshop, replay_digest, replay_settings, run_replay
from media.command import Sandbox
from media.ffmpeg import run_ffmpeg
from media.probe import probe
from schemas.artifact import ArtifactKind
from schemas.canonical import digest_of, stage_key
from schemas.storyboard import Storyboard
from schemas.trajectory import Trajectory
from storage.lake import Lake, StageCommit
from tests.replay.toy import storyboard

PROJECT = "prj_test"


@dataclass(frozen=True)
class Stored:
    """A run and the lake that holds it."""

    lake: Path
    board: Storyboard
    base: Trajectory
    source: Path
    music: str


def config(music: str, mistakes: float = 0.0) -> WorkprintConfig:
    """Settings of a small, fast film."""
    return WorkprintConfig.model_validate(
        {
            "replay": {
                "speech": {"engine": "flite"},
                "retrieval": {"embedder": "hashing"},
                "render": {"height": 180, "frame_rate": 15, "preset": "ultrafast", "crf": 28},
                "mix": {"music_folder": music},
                "policy": {"mistake_rate": mistakes, "seed": 4},
            },
            "materialize": {"tokenizer": "none", "validation_share": 0.0, "held_out_share": 0.0},
        }
    )


def stored_run(root: Path, sandbox: Sandbox, music: str, mistakes: float = 0.0) -> Stored:
    """Make a film of six shots, one silent and one with a graphic, and commit its storyboard and its run."""
    board = storyboard(6, silent_every=6, spotlight_every=3, sentences_per_segment=3)
    pictures = "".join(
        f"testsrc2=s=320x180:r=15:d={s.target_duration_us / 1e6},hue=h={60 * i}[v{i}];" for i, (s) in enumerate([b for b in board.shots])
    )
    joined = "".join(f"[v{i}]" for i in range(len(board.shots))) + f"concat=n={len(board.shots)}:v=1:a=0[v]"
    seconds = board.media.duration_us / 1e6
    how = ("-map", "[v]", "-map", "0:a", "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-c:a", "aac", "/out/film.mp4")
    argv = ("-f", "lavfi", "-i", f"sine=300:d={seconds}", "-filter_complex", pictures + joined, *how)
    source = run_ffmpeg(argv, outputs=("film.mp4",), sandbox=sandbox, workdir=root).outputs["film.mp4"]
    board = board.model_copy(update={"media": probe(source, sandbox)})
    lake = Lake(root / "lake")
    board_sha = lake.store.put_bytes(board.canonical(), ArtifactKind.STORYBOARD, "application/json").sha256
    made = storyboard_rows(board)
    rows = {name: made[name] for name in ("projects", "storyboards")}
    rows["projects"] = [{**row, "split": "train"} for row in rows["projects"]]
    _commit(lake, "invert", "test", board_sha, rows, (board_sha,))
    return Stored(root / "lake", board, _replay(lake, board, source, config(music, mistakes), sandbox, "test"), source, music)


def another_run(stored: Stored, sandbox: Sandbox, scope: str, policy: dict[str, Any], endpoint: str | None = None) -> Trajectory:
    """One more run of the same film in its lake, decided by another policy.

    Args:
        policy: settings under ``replay.policy``.
        endpoint: address of the student's model.
    """
    settings = config(stored.music).model_dump(mode="json")
    settings["replay"]["policy"] |= policy
    settings["run"]["endpoints"]["student"]["endpoint_url"] = endpoint
    return _replay(Lake(stored.lake), stored.board, stored.source, WorkprintConfig.model_validate(settings), sandbox, scope)


def run(stored: Stored, *argv: str, codes: tuple[int, ...] = (0,)) -> Any:
    """The JSON that a command prints about the lake."""
    result = CliRunner().invoke(app, [*argv, "--lake", str(stored.lake), "--json"])
    assert result.exit_code in codes, result.output
    return json.loads(result.stdout)


def ask(stored: Stored, sql: str, **names: str) -> list[dict[str, Any]]:
    """Rows of a query; ``:name`` stands for a text."""
    for name, value in names.items():
        sql = sql.replace(f":{name}", f"'{value}'")
    rows: list[dict[str, Any]] = run(stored, "query", sql)
    return rows


def _replay(lake: Lake, board: Storyboard, source: Path, settings: WorkprintConfig, sandbox: Sandbox, scope: str) -> Trajectory:
    shop = Workshop(settings, lake.store, sandbox)
    with tempfile.TemporaryDirectory() as folder:
        done = run_replay(shop, board, source, Path(folder) / "journal", replay_digest(settings), lambda _text: None)
    sha = lake.store.put_bytes(done.output.canonical(), ArtifactKind.TRAJECTORY, "application/json").sha256
    kept = lake.store.put_json(replay_settings(settings), ArtifactKind.OTHER).sha256
    _commit(lake, "replay", scope, sha, done.rows, (*done.artifacts, sha, kept))
    return done.output


def _commit(lake: Lake, stage: str, scope: str, output: str, rows: dict[str, Any], kept: tuple[str, ...]) -> None:
    lake.commit(
        StageCommit(
            stage=stage,
            stage_key=stage_key(stage, 1, digest_of(stage), (output,)),
            subject=PROJECT,
            scope=scope,
            status="done",
            output_sha256=output,
            rows=rows,
            artifacts=kept,
            run_id="test",
        )
    )
