"""One video in one folder, without a lake: what ``invert``, ``replay`` and ``verify`` do."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import typer
from pydantic import ValidationError

from inversion import asr
from inversion.consistency import check_storyboard
from inversion.interchange import public_json
from jobs.config import load_config
from jobs.layout import write_delivery, write_storyboard
from jobs.sources import digest_file, locate
from jobs.stages import Workshop, replay_digest, run_invert, run_replay
from media.sandbox import open_sandbox
from replay.delivery import DeliveryReport, verify_delivery
from schemas.errors import ConfigInvalid
from schemas.media import SourceItem
from schemas.stage import Rejected
from schemas.storyboard import Storyboard
from schemas.trajectory import Outcome, Trajectory
from storage.artifacts import ArtifactStore

_LARGEST = 512 * 1024 * 1024
"""Bytes of a storyboard file."""
STORE = "store"
"""Name of the artifact folder inside an output folder."""


def printer(quiet: bool) -> Callable[[str], None]:
    """A progress callback that writes lines to standard error."""
    started = time.monotonic()

    def note(text: str) -> None:
        if not quiet:
            print(f"[{time.monotonic() - started:6.1f} s] {text}", file=sys.stderr, flush=True)

    return note


@dataclass(frozen=True, slots=True)
class Inverted:
    """A recovered storyboard and where it lies."""

    board: Storyboard
    folder: Path
    public: dict[str, Any]

    def print(self) -> None:
        """For a person: one line a shot."""
        b = self.board
        for shot in b.shots:
            s = shot.shot
            text = shot.narration or "(no narration)"
            typer.echo(f"{s.index + 1:4d}  {s.start_us / 1e6:8.2f}  {s.end_us / 1e6:8.2f}  {s.transition_in.value:10}  {text[:100]}")
        typer.echo(f"\n{len(b.shots)} shots, {len(b.sentences)} sentences, {len(b.words)} words ({b.language}) in {self.folder}")


def invert_one(video: str, about: SourceItem, out: Path, config_name: str | None, *, quiet: bool) -> Inverted | Rejected:
    """Recover one storyboard and write it out. ``about`` holds what the user said of the video.

    Raises:
        PipelineError: for faults that are ours; a refused input is returned as ``Rejected``.
    """
    config = load_config(config_name)
    located = locate([video])
    if len(located) != 1:
        raise ConfigInvalid("one_video", f"expected one video, {about.uri!r} names {len(located)} files", "use 'workprint run' for many")
    if located[0].refused is not None:
        return located[0].refused
    asr.check(config.inversion.asr)
    if not config.inversion.asr.prefer_given or (about.subtitles is None and about.script is None):
        asr.check_installed(config.inversion.asr)
    out.mkdir(parents=True, exist_ok=True)
    shop = Workshop(config, ArtifactStore(out / STORE), open_sandbox(config.run.sandbox))
    done = run_invert(shop, about, located[0].path, printer(quiet))
    if isinstance(done, Rejected):
        return done
    write_storyboard(done.output, out)
    frames = out / "frames"
    frames.mkdir(exist_ok=True)
    for shot in done.output.shots:
        for n, frame in enumerate(shot.evidence.key_frames):
            (frames / f"shot{shot.shot.index + 1:04d}_{n}.jpg").write_bytes(shop.store.read(frame.sha256))
    public = public_json(done.output)
    (out / "shots.json").write_bytes(orjson.dumps(public, option=orjson.OPT_INDENT_2))
    return Inverted(done.output, out, public)


@dataclass(frozen=True, slots=True)
class Replayed:
    """A finished run and where it lies."""

    trajectory: Trajectory
    folder: Path

    @property
    def delivered(self) -> bool:
        """The film was delivered and validated."""
        return self.trajectory.outcome is Outcome.DELIVERED

    def as_json(self) -> dict[str, Any]:
        """Stable form of ``workprint replay --json``."""
        t = self.trajectory
        return {
            "trajectory_id": t.trajectory_id,
            "project_id": t.project_id,
            "outcome": t.outcome.value,
            "policy": t.policy,
            "seed": t.seed,
            "calls": [
                {
                    "call_index": c.call_index,
                    "role": c.role.value,
                    "tool": c.tool,
                    "status": c.observation.status.value,
                    "blockers": [b.model_dump(mode="json") for b in c.observation.blockers],
                    "state_after": c.state_after,
                }
                for c in t.calls
            ],
            "repairs": [r.model_dump(mode="json") for r in t.repairs],
            "video": str(self.folder / "video.mp4") if t.video else None,
            "manifest": str(self.folder / "manifest.json") if t.manifest else None,
            "sandbox": t.sandbox,
        }

    def print(self) -> None:
        """For a person: one line a call."""
        t = self.trajectory
        for c in t.calls:
            why = "; ".join(f"{b.code.value} {b.subject}" for b in c.observation.blockers)
            typer.echo(f"{c.call_index:3d}  {c.role.value:12}  {c.tool or '-':22}  {c.observation.status.value:18}  {why}")
        typer.echo(f"\n{t.outcome.value}: {len(t.calls)} calls, {len(t.repairs)} repairs, in {self.folder}")


def read_storyboard(storyboard: Path, source: Path | None) -> tuple[Storyboard, Path]:
    """A storyboard file, and the video it was recovered from.

    Args:
        source: the video, if it is not where the storyboard says.

    Raises:
        ConfigInvalid: the file is no storyboard, or one that contradicts itself; or the source video is missing or is another one.
    """
    if not storyboard.is_file() or storyboard.stat().st_size > _LARGEST:
        raise ConfigInvalid(
            "not_a_storyboard", f"{storyboard} is no regular file of at most {_LARGEST} bytes", "write one with 'workprint invert'"
        )
    try:
        board = Storyboard.model_validate_json(storyboard.read_bytes())
    except ValidationError as e:
        said = "; ".join(f"{'.'.join(map(str, x['loc'])) or 'JSON'}: {x['msg']}" for x in e.errors(include_input=False)[:3])
        raise ConfigInvalid("not_a_storyboard", f"{storyboard} is no storyboard: {said[:600]}", "write one with 'workprint invert'") from e
    check_storyboard(board)
    path = source or Path(board.source.uri)
    sha, _ = digest_file(path)
    if sha != board.media.sha256:
        seen = "cannot be read" if sha is None else "holds other bytes than the storyboard was recovered from"
        raise ConfigInvalid("source_video", f"the source video {path} {seen}", "name the right file with --source")
    return board, path


def replay_one(
    storyboard: Path, out: Path, source: Path | None, config_name: str | None, seed: int | None, *, quiet: bool, pool: Path | None = None
) -> Replayed:
    """Produce the film of one storyboard.

    Args:
        pool: folder of the user's own clips that join the source pool; overrides the configuration.

    Raises:
        ConfigInvalid: the file is no storyboard, or the source video is missing or is another one.
        PipelineError: for faults that are ours.
    """
    config = load_config(config_name)
    if seed is not None:
        policy = config.replay.policy.model_copy(update={"seed": seed})
        config = config.model_copy(update={"replay": config.replay.model_copy(update={"policy": policy})})
    if pool is not None:
        retrieval = config.replay.retrieval.model_copy(update={"extra_folder": str(pool)})
        config = config.model_copy(update={"replay": config.replay.model_copy(update={"retrieval": retrieval})})
    board, path = read_storyboard(storyboard, source)
    out.mkdir(parents=True, exist_ok=True)
    shop = Workshop(config, ArtifactStore(out / STORE), open_sandbox(config.run.sandbox))
    trajectory = run_replay(shop, board, path, out / "journal", replay_digest(config), printer(quiet)).output
    (out / "trajectory.json").write_bytes(orjson.dumps(trajectory.model_dump(mode="json"), option=orjson.OPT_INDENT_2))
    write_delivery(trajectory, shop.store, out)
    return Replayed(trajectory, out)


def verify_one(folder: Path) -> DeliveryReport:
    """Validate a delivered folder on its bytes.

    Raises:
        ConfigInvalid: the folder does not exist.
    """
    if not folder.is_dir():
        raise ConfigInvalid("no_folder", f"there is no folder {folder}", "name a folder with video.mp4 and manifest.json")
    return verify_delivery(folder, open_sandbox())
