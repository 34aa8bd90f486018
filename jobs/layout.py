"""The folder of a finished project inside a lake: the film, the storyboard, the calls and a picture, under names for people.

Copies of artifacts; deleting the folder loses nothing, the next run lays it out again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import orjson

from inversion.interchange import to_otio, to_srt
from jobs.descent import own_runs
from jobs.picture import contact_sheet
from media.command import Sandbox
from replay.manifest import ATTRIBUTION, CAPTIONS, MANIFEST, VIDEO
from schemas.storyboard import Storyboard
from schemas.trajectory import Trajectory
from storage.artifacts import ArtifactStore
from storage.durable import write_file
from storage.lake import Lake

_BOARD, _LAST = "storyboard.json", "picture.png"


@dataclass(frozen=True, slots=True)
class ProjectFolder:
    """Where a person finds a project's results."""

    root: Path

    @property
    def has_film(self) -> bool:
        """A film was delivered."""
        return (self.root / VIDEO).is_file()

    @property
    def attribution(self) -> str | None:
        """Whom to name where the source is shown."""
        found = orjson.loads((self.root / _BOARD).read_bytes())["source"].get("attribution")
        return None if found is None else str(found)

    def shown(self) -> list[tuple[str, Path]]:
        """(label, path) of everything worth opening."""
        names = [("film", VIDEO)] if self.has_film else []
        names += [("storyboard", _BOARD), ("picture", _LAST), ("calls", "trajectory.json")]
        return [(label, self.root / name) for label, name in names]


def laid_out(lake: Lake, project_id: str) -> ProjectFolder | None:
    """The project's folder if it is there, whole as far as one look tells: the picture is written last."""
    root = lake.root / "projects" / project_id
    return ProjectFolder(root) if (root / _LAST).is_file() else None


def lay_out(lake: Lake, project_id: str, sandbox: Sandbox) -> ProjectFolder:
    """Write the project's folder from the lake; files that are right already stay."""
    root = lake.root / "projects" / project_id
    root.mkdir(parents=True, exist_ok=True)
    board, trajectory = load_project(lake, project_id)
    write_storyboard(board, root)
    if trajectory is not None:
        _write(root / "trajectory.json", orjson.dumps(trajectory.model_dump(mode="json"), option=orjson.OPT_INDENT_2))
        write_delivery(trajectory, lake.store, root)
    _write(root / _LAST, contact_sheet(board, trajectory, lake.store, sandbox))
    return ProjectFolder(root)


def load_project(lake: Lake, project_id: str) -> tuple[Storyboard, Trajectory | None]:
    """The storyboard of a project and its best trajectory, if there is one: a delivered one before others, then by quality and seed.
    Runs with faults put in on purpose, and a teacher's continuations, do not stand for a project.

    Asks the ledger for the project's own rows, so that it takes as long in a lake of a hundred thousand projects as in one of ten.
    """
    keys = [r.stage_key for r in lake.live(project_id)]
    board_sha = next(row["storyboard_sha256"] for key in keys for row in lake.rows_of("storyboards", key))
    runs = [row for r in own_runs(lake, project_id) for row in lake.rows_of("trajectories", r.stage_key)]
    board = Storyboard.model_validate_json(lake.store.read(board_sha))
    if not runs:
        return board, None
    best = min(runs, key=lambda r: (r["outcome"], -(r["quality"] or 0.0), r["seed"]))
    return board, Trajectory.model_validate_json(lake.store.read(best["trajectory_sha256"]))


def write_storyboard(board: Storyboard, root: Path) -> None:
    """storyboard.json (the whole record), .srt and .otio."""
    _write(root / _BOARD, orjson.dumps(board.model_dump(mode="json"), option=orjson.OPT_INDENT_2))
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
