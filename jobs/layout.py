"""The folder of a finished project inside a lake: the film, the storyboard, the calls and a picture, under names for people.

Copies of artifacts; deleting the folder loses nothing, the next run lays it out again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import orjson

from inversion.interchange import to_otio, to_srt
from jobs.picture import contact_sheet
from media.command import Sandbox
from replay.manifest import ATTRIBUTION, CAPTIONS, MANIFEST, VIDEO
from schemas.storyboard import Storyboard
from schemas.trajectory import Trajectory
from storage.artifacts import ArtifactStore
from storage.durable import write_file
from storage.lake import Lake


@dataclass(frozen=True, slots=True)
class ProjectFolder:
    """Where a person finds a project's results."""

    root: Path
    has_film: bool
    attribution: str | None

    def shown(self) -> list[tuple[str, Path]]:
        """(label, path) of everything worth opening."""
        names = [("film", "video.mp4")] if self.has_film else []
        names += [("storyboard", "storyboard.json"), ("picture", "picture.png"), ("calls", "trajectory.json")]
        return [(label, self.root / name) for label, name in names]


def lay_out(lake: Lake, project_id: str, sandbox: Sandbox) -> ProjectFolder:
    """Write the project's folder from the lake; files that are right already stay."""
    root = lake.root / "projects" / project_id
    root.mkdir(parents=True, exist_ok=True)
    board, trajectory = load_project(lake, project_id)
    write_storyboard(board, root)
    has_film = False
    if trajectory is not None:
        _write(root / "trajectory.json", orjson.dumps(trajectory.model_dump(mode="json"), option=orjson.OPT_INDENT_2))
        has_film = write_delivery(trajectory, lake.store, root)
    _write(root / "picture.png", contact_sheet(board, trajectory, lake.store, sandbox))
    return ProjectFolder(root, has_film, board.source.attribution)


def load_project(lake: Lake, project_id: str) -> tuple[Storyboard, Trajectory | None]:
    """The storyboard of a project and its best trajectory, if there is one: a delivered one before others, then by quality and seed."""
    con = lake.connect()
    try:
        boards = con.execute("select storyboard_sha256 from storyboards where project_id = $1", [project_id]).fetchall()
        runs = con.execute(
            "select trajectory_sha256 from trajectories where project_id = $1 order by outcome, quality desc, seed limit 1", [project_id]
        ).fetchall()
    finally:
        con.close()
    board = Storyboard.model_validate_json(lake.store.read(boards[0][0]))
    return board, Trajectory.model_validate_json(lake.store.read(runs[0][0])) if runs else None


def write_storyboard(board: Storyboard, root: Path) -> None:
    """storyboard.json (the whole record), .srt and .otio."""
    _write(root / "storyboard.json", orjson.dumps(board.model_dump(mode="json"), option=orjson.OPT_INDENT_2))
    _write(root / "storyboard.srt", to_srt(board).encode())
    _write(root / "storyboard.otio", to_otio(board).encode())


def write_delivery(trajectory: Trajectory, store: ArtifactStore, root: Path) -> bool:
    """video.mp4, manifest.json, ATTRIBUTION.txt and captions.srt of a delivered run; False if nothing was delivered."""
    if trajectory.video is None or trajectory.manifest is None:
        return False
    _write(root / VIDEO, store.read(trajectory.video.sha256))
    _write(root / MANIFEST, store.read(trajectory.manifest.sha256))
    manifest = store.read_json(trajectory.manifest.sha256)
    for name, entry in ((CAPTIONS, manifest.get("captions")), (ATTRIBUTION, manifest.get("attribution"))):
        if entry is not None:
            _write(root / name, store.read(entry["sha256"]))
    return True


def _write(path: Path, data: bytes) -> None:
    if not path.is_file() or path.read_bytes() != data:
        write_file(path, data)
