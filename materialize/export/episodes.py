"""Whole episodes as rows of an export: the trajectories behind the examples of ``sft`` and ``rft``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from materialize.export.options import ExportOptions, LeftOut
from materialize.export.records import Records
from materialize.export.selection import (
    Key,
    Rules,
    Source,
    arranged,
    lake_of,
)
from materialize.export.starts import Artifacts
from schemas.canonical import Sha256
from schemas.errors import ConfigInvalid
from schemas.reply import ModelReply, read_reply
from schemas.trajectory import Trajectory


@dataclass(frozen=True, slots=True)
class Episode:
    """One run, with a way to what its policies saw."""

    trajectory: Trajectory
    store: Artifacts
    row: dict[str, Any]
    escaped: bool = False

    @property
    def ident(self) -> str:
        """Its trajectory id."""
        return self.trajectory.trajectory_id

    def context(self, sha256: Sha256) -> dict[str, Any]:
        """Messages and tools that a policy saw."""
        found: dict[str, Any] = self.store.read_json(sha256)
        return found

    def reply(self, sha256: Sha256) -> ModelReply:
        """What an endpoint answered."""
        return read_reply(self.store.read(sha256), f"an output of {self.ident}")


_EPISODES = """
select t.project_id, t.trajectory_id, t.trajectory_sha256, t.outcome, t.quality, t.outcome = 'delivered', e.split, e.licence, e.attribution
from trajectories t
left join (select project_id, min(split) as split, min(licence) as licence, min(attribution) as attribution from examples group by 1) e
  on e.project_id = t.project_id
where {condition} order by e.split <> 'train', t.project_id, t.trajectory_id
"""
_NAMED = {
    "sft": ("runs", "add projects to the lake with: workprint run"),
    "rft": ("admitted runs", "admit some with: workprint rft --lake LAKE"),
}
_CONDITION = {"sft": "true", "rft": "t.trajectory_id in (select trajectory_id from rft where admitted)"}


def episode_records(kind: str, source: Source, options: ExportOptions, store: Artifacts | None) -> Records[Key, Episode]:
    """The delivered runs of training projects (``sft``), or the admitted ones (``rft``).

    Raises:
        ConfigInvalid: the source is no lake, filters ask for single outputs or held-out projects, or nothing passes.
        StorageFault, DigestMismatch: a trajectory or a context is missing or damaged.
    """
    con = lake_of(source, "has no trajectories")
    rules = Rules.of(con, options)
    if store is None:
        raise ConfigInvalid("no_store", "trajectories lie in the lake's artifact store", "pass store=lake.store")
    f = options.filters
    if f.roles or f.kinds or f.provenance:
        raise ConfigInvalid(
            "episode_filter",
            "an episode holds the outputs of all roles, kinds and authors",
            "filter episodes by split, licence, project or quality",
        )
    keys: list[Key] = []
    about: dict[str, dict[str, Any]] = {}
    for project, trajectory, sha, outcome, quality, delivered, split, licence, attribution in con.execute(
        _EPISODES.format(condition=_CONDITION[kind])
    ).fetchall():
        if rules.leave_out(split, "", "", "", licence, project, trajectory, delivered or kind == "rft"):
            continue
        keys.append(Key(project, trajectory, 0, trajectory, split))
        about[trajectory] = {
            "project_id": project, "split": split, "role": "episode", "kind": outcome, "licence": licence, "attribution": attribution,
            "quality": quality, "trajectory_sha256": sha,
        }  # fmt: skip
    by_split, digest = arranged(keys, options, rules.not_taken, {t: row["trajectory_sha256"] for t, row in about.items()})
    if not keys:
        raise rules.nothing(*_NAMED[kind])

    def read(shard: list[Key]) -> Iterator[Episode | LeftOut]:
        for key in shard:
            row = about[key.trajectory_id]
            run = Trajectory.model_validate_json(store.read(row["trajectory_sha256"]))
            yield Episode(run, store, row | {"config_digest": run.config_digest})

    return Records(kind, con, by_split, read, digest, rules.not_taken, overlaps=rules.overlaps)
