"""One project as one HTML file: film strip, narration, calls, blockers, repairs. No script, no network."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import jinja2
import orjson

from jobs.layout import load_project
from jobs.picture import jpeg_data, produced_frames
from jobs.questions import open_lake
from media.images import decode_image
from media.sandbox import open_sandbox
from schemas.errors import ConfigInvalid
from schemas.storyboard import Storyboard
from schemas.trajectory import Call, Trajectory
from storage.lake import Lake

WIDTH = 260


def write_report(lake_path: Path, project: str, out: Path) -> Path:
    """Write the page of one project.

    Raises:
        ConfigInvalid: no project, or more than one, begins with this id.
    """
    lake = open_lake(lake_path)
    project_id = _resolve(lake, project)
    board, trajectory = load_project(lake, project_id)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page(board, trajectory, lake), "utf-8")
    return out


def page(board: Storyboard, trajectory: Trajectory | None, lake: Lake) -> str:
    """The page as text. All text from the source is escaped."""
    produced = produced_frames(board, trajectory, lake.store, open_sandbox())
    shots = []
    for shot in board.shots:
        frame = shot.evidence.key_frames[0] if shot.evidence.key_frames else None
        right = produced.get(shot.shot.index)
        shots.append(
            {
                "shot": shot,
                "left": _image(jpeg_data(decode_image(lake.store.read(frame.sha256)), WIDTH)) if frame else None,
                "right": _image(jpeg_data(right, WIDTH)) if right is not None else None,
            }
        )
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string((Path(__file__).parent / "report.html.j2").read_text("utf-8"))
    return template.render(
        board=board,
        trajectory=trajectory,
        shots=shots,
        calls=[_call(c) for c in trajectory.calls] if trajectory else [],
        refused=sum(1 for c in trajectory.calls if c.observation.blockers) if trajectory else 0,
    )


def _call(call: Call) -> dict[str, Any]:
    said = call.output.arguments_json if call.output.arguments_json is not None else call.output.text
    results = call.observation.results
    return {
        "index": call.call_index,
        "role": call.role.value,
        "tool": call.tool or "-",
        "status": call.observation.status.value,
        "said": said[:1500],
        "returned": orjson.dumps(results).decode()[:1500] if results else "",
        "blockers": call.observation.blockers,
        "faults": call.faults,
        "provenance": call.output.provenance.value,
    }


def _image(data: bytes) -> str:
    return "data:image/jpeg;base64," + base64.b64encode(data).decode()


def _resolve(lake: Lake, project: str) -> str:
    con = lake.connect()
    try:
        found = [str(r[0]) for r in con.execute("select project_id from projects where starts_with(project_id, $1)", [project]).fetchall()]
        known = [str(r[0]) for r in con.execute("select project_id from projects order by project_id limit 5").fetchall()]
    finally:
        con.close()
    if len(found) != 1:
        seen = "no project begins" if not found else f"{len(found)} projects begin"
        raise ConfigInvalid("project", f"{seen} with {project!r}", f"projects here: {', '.join(known) or 'none'}")
    return found[0]
