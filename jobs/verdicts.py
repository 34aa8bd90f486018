"""Finds what a person means by a project, among admitted and refused sources of a lake or in a storyboard file, and has it explained."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from inversion.explain import Explanation, explain_project, explain_refusal
from jobs.config import load_config
from jobs.layout import load_project
from jobs.questions import open_lake
from jobs.sources import project_id_of
from schemas.errors import ConfigInvalid
from schemas.storyboard import Storyboard
from storage.lake import Lake

_PROJECTS = """
select project_id, uri from projects
where starts_with(project_id, $1) or starts_with(source_sha256, $1) or uri = $1 or ends_with(uri, '/' || $1)
"""
_REJECTIONS = "select source_key, uri, code, detail, source_sha256 from rejections order by uri, source_key"
_LEAST = 4
"""Fewer characters of a digest name nothing."""


def explain_named(name: str, lake: Path, config: str | None) -> Explanation:
    """Why a source was admitted or refused.

    Args:
        name: a storyboard file, or within the lake a project id or the beginning of one, a file's digest, or a source's uri or file name.
        config: whose thresholds are shown; as for all commands.

    Raises:
        ConfigInvalid: nothing, or more than one thing, has this name; or the file is no storyboard.
    """
    settings = load_config(config).inversion
    path = Path(name)
    if path.suffix == ".json" and path.is_file():
        return explain_project(_read(path), settings)
    opened = open_lake(lake)
    admitted, refused = _admitted(opened, name), _refused(opened, name)
    if len(admitted) + len(refused) != 1:
        raise _unclear(opened, name, [uri for _, uri in admitted] + [one.uri for one in refused])
    if refused:
        return refused[0]
    board, _ = load_project(opened, admitted[0][0])
    return explain_project(board, settings)


def _read(path: Path) -> Storyboard:
    try:
        return Storyboard.model_validate_json(path.read_bytes())
    except (ValidationError, OSError) as error:
        raise ConfigInvalid("storyboard", f"{path.name} is no storyboard", "give the storyboard.json of 'workprint invert'") from error


def _admitted(lake: Lake, name: str) -> list[tuple[str, str]]:
    if not name:
        return []
    con = lake.connect()
    try:
        found = con.execute(_PROJECTS, [name]).fetchall()
    finally:
        con.close()
    return [(str(project_id), str(uri)) for project_id, uri in found]


def _refused(lake: Lake, name: str) -> list[Explanation]:
    out: list[Explanation] = []
    for key, uri, code, detail, sha256 in lake.query(_REJECTIONS).rows:
        project_id = None if sha256 is None else project_id_of(sha256)
        digests = [key, *([sha256, project_id] if sha256 is not None else [])]
        if uri == name or Path(uri).name == name or (len(name) >= _LEAST and any(str(d).startswith(name) for d in digests)):
            out.append(explain_refusal(uri, code, detail, project_id))
    return out


def _unclear(lake: Lake, name: str, found: list[str]) -> ConfigInvalid:
    if found:
        return ConfigInvalid("project", f"{len(found)} sources are named {name!r}", f"say which: {', '.join(found[:5])}")
    known = lake.query("select project_id from projects union all select uri from rejections order by 1 limit 5").rows
    shown = ", ".join(str(row[0]) for row in known) or "none"
    return ConfigInvalid("project", f"no source is named {name!r}", f"sources here: {shown}")
