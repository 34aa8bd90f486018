"""Splits of a whole lake: after a run, near-duplicate projects are brought into one split, and their examples with them.

Projects are worked on at the same time and cannot see each other, so each is given the split of its own hash first. When all are done the
prints of all projects are compared here, once, and what has to move is made into examples again. Owns the commit of table ``splits``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evaluation.fingerprints import Print
from jobs.config import WorkprintConfig
from jobs.stages import STAGE_VERSIONS, Workshop, run_materialize
from materialize.kinship import Decision, Kin, decide, find_kin
from materialize.splits import split_of
from media.sandbox import open_sandbox
from schemas.artifact import ArtifactKind
from schemas.canonical import digest_of, stage_key
from schemas.errors import AlreadyDone
from schemas.example import Split
from schemas.storyboard import Storyboard
from schemas.trajectory import Trajectory
from storage.lake import Lake, StageCommit

SUBJECT = "lake"
VERSION = 1

_SETTINGS = ("validation_share", "held_out_share", "split_seed", "pinned", "same_pictures", "same_sound", "same_text")


@dataclass(frozen=True, slots=True)
class Settled:
    """What a lake's splits came to."""

    decisions: tuple[Decision, ...]
    kin: tuple[Kin, ...]
    moved: tuple[str, ...]
    """Projects whose examples were made again for another split."""


def split_settings(config: WorkprintConfig) -> dict[str, Any]:
    """The part of the configuration that decides splits. Other settings, other splits: earlier decisions then do not count."""
    dump = config.materialize.model_dump(mode="json")
    return {name: dump[name] for name in _SETTINGS}


def decided_split(lake: Lake, project_id: str, config: WorkprintConfig) -> Split | None:
    """The split that was decided for a project under these settings; None when none was."""
    found = _before(lake, config).get(project_id)
    return None if found is None else found[0]


def materialize_settings(config: WorkprintConfig, project_id: str, split: Split | None) -> dict[str, Any]:
    """What decides the examples of a project: the settings and, where it is not that of its own hash, the split."""
    settings = config.materialize.model_dump(mode="json")
    return settings if split in (None, split_of(project_id, config.materialize)) else {**settings, "split": str(split)}


def settle(lake: Lake, config: WorkprintConfig, run_id: str) -> Settled:
    """Decide the splits of all projects of a lake and bring the examples into line.

    Raises:
        StorageFault: nothing was acknowledged; the next run settles.
    """
    prints = [Print.of_row(row) for row in lake.scan("fingerprints").to_pylist()]
    projects = sorted(lake.scan("projects").column("project_id").to_pylist())
    kin = find_kin(prints, config.materialize)
    decisions = decide(projects, kin, _before(lake, config), config.materialize)
    rows = [d.row() for d in decisions]
    settings = lake.store.put_json(split_settings(config), ArtifactKind.OTHER)
    key = stage_key("split", VERSION, settings.sha256, (digest_of(rows),))
    if rows and lake.done(key) is None:
        _commit(
            lake,
            StageCommit("split", key, SUBJECT, SUBJECT, "done", settings.sha256, {"splits": rows}, (settings.sha256,), run_id),
        )
    moved = _misplaced(lake, {d.project_id: d.split for d in decisions})
    for project_id in moved:
        _again(lake, config, project_id, run_id)
    return Settled(decisions, kin, moved)


def _before(lake: Lake, config: WorkprintConfig) -> dict[str, tuple[Split, str]]:
    live = [r for r in lake.live(SUBJECT) if r.stage == "split"]
    if not live or live[-1].output_sha256 != digest_of(split_settings(config)):
        return {}
    newest = (str(lake.root), live[-1].stage_key)
    if newest not in _KNOWN:  # a process asks for one project after the other
        _KNOWN.clear()
        _KNOWN[newest] = {r["project_id"]: (Split(r["split"]), r["group_id"]) for r in lake.rows_of("splits", newest[1])}
    return _KNOWN[newest]


_KNOWN: dict[tuple[str, str], dict[str, tuple[Split, str]]] = {}
"""The newest decisions that this process has read, by lake and stage key."""


def _misplaced(lake: Lake, decided: dict[str, Split]) -> tuple[str, ...]:
    found = lake.query("select distinct project_id, split from examples order by all").rows
    return tuple(dict.fromkeys(str(p) for p, split in found if p in decided and decided[p] != split))


def _again(lake: Lake, config: WorkprintConfig, project_id: str, run_id: str) -> None:
    """Make the examples of a project again, for the split that was decided."""
    board_sha = next(row["storyboard_sha256"] for r in lake.live(project_id) for row in lake.rows_of("storyboards", r.stage_key))
    board = Storyboard.model_validate_json(lake.store.read(board_sha))
    replayed = [r.output_sha256 for r in lake.live(project_id) if r.stage == "replay" and r.output_sha256 is not None]
    runs = sorted(((Trajectory.model_validate_json(lake.store.read(sha)), sha) for sha in replayed), key=lambda r: r[0].seed)
    trajectories = tuple(run for run, _ in runs)
    split = decided_split(lake, project_id, config)
    settings = materialize_settings(config, project_id, split)
    key = stage_key("materialize", STAGE_VERSIONS["materialize"], digest_of(settings), (board_sha, *(sha for _, sha in runs)))
    shop = Workshop(config, lake.store, open_sandbox(config.run.sandbox))
    done = run_materialize(shop, board, trajectories, lambda _text: None, split)
    _commit(lake, StageCommit("materialize", key, project_id, project_id, "done", None, done.rows, done.artifacts, run_id))


def _commit(lake: Lake, commit: StageCommit) -> None:
    try:
        lake.commit(commit)
    except AlreadyDone:  # another run settled the same at the same time
        return
