"""States to start from: ``export rl`` gives recorded decisions of training projects, ``export benchmark`` the beginnings of held-out ones.

A row names what the environment restores (``trajectory_sha256`` and ``call_index``, ``snapshot_id``) and holds the prompt that is seen
there; it never holds an answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Protocol

from materialize.export.distilled import Prompted, prompted
from materialize.export.options import ExportOptions, LeftOut
from materialize.export.records import EQUAL_STATES, Records
from materialize.export.selection import (
    SAME_STATE,
    Key,
    Rules,
    Source,
    arranged,
    has_table,
    lake_of,
    select,
)
from schemas.canonical import Sha256, canonical_text, digest_of
from schemas.contract import Role
from schemas.errors import ConfigInvalid
from schemas.example import Split

_COLUMNS = (
    "example_id", "project_id", "trajectory_id", "call_index", "role", "kind", "provenance", "licence", "attribution", "split",
    "config_digest", "snapshot_id", "context_sha256", "prompt_json", "tools_json", "prompt_tokens",
)  # fmt: skip


class Artifacts(Protocol):
    """The part of storage.artifacts.ArtifactStore that is needed."""

    def read(self, sha256: Sha256) -> bytes:
        """Verified bytes."""
        ...

    def read_json(self, sha256: Sha256) -> Any:
        """The JSON of an artifact."""
        ...


def rl_records(source: Source, options: ExportOptions) -> Records[Key, Prompted]:
    """One row for each different state in which a recorded decision was made; of the orchestrator, unless the filters name other roles.

    Raises:
        ConfigInvalid: the source is no lake, or nothing passes the filters.
    """
    con = lake_of(source, "does not name the runs that states are restored from")
    if not options.filters.roles:
        options = options.model_copy(update={"filters": options.filters.model_copy(update={"roles": (Role.ORCHESTRATOR,)})})
    chosen = select(source, options, same=SAME_STATE)
    shas = dict(con.execute("select trajectory_id, trajectory_sha256 from trajectories").fetchall())
    groups = {
        (t, i): g
        for t, i, g in (
            con.execute("select trajectory_id, call_index, min(group_id) from groups group by all").fetchall()
            if has_table(con, "groups")
            else ()
        )
    }

    def read(keys: list[Key]) -> Iterator[Prompted | LeftOut]:
        for row in chosen.read(keys, _COLUMNS):
            row |= {
                "trajectory_sha256": shas[row["trajectory_id"]],
                "group_id": groups.get((row["trajectory_id"], row["call_index"]), ""),
            }
            yield prompted(row, row["example_id"])

    return Records("rl", con, chosen.keys, read, chosen.digest, chosen.not_taken, chosen.repeated, EQUAL_STATES, overlaps=chosen.overlaps)


_BENCHMARK = """
select c.project_id, c.trajectory_id, c.call_index, t.trajectory_sha256, c.snapshot_before, c.context_sha256, p.language, t.quality,
  (select min(e.licence) from examples e where e.project_id = c.project_id) as licence,
  (select min(e.attribution) from examples e where e.project_id = c.project_id) as attribution
from calls c join trajectories t on t.trajectory_id = c.trajectory_id join projects p on p.project_id = c.project_id
where c.call_index = 0 and c.role = 'orchestrator'
  and c.project_id in (select project_id from examples where split = 'held_out')
order by c.project_id, c.snapshot_before, c.trajectory_id
"""


def benchmark_records(source: Source, options: ExportOptions, store: Artifacts | None) -> Records[Key, Prompted]:
    """One row for each different beginning of a held-out project: the task as the policy first sees it.

    Raises:
        ConfigInvalid: the source is no lake, the filters ask for other splits or roles, or no project is held out.
        StorageFault, DigestMismatch: a context is missing or damaged.
    """
    con = lake_of(source, "does not name the runs that states are restored from")
    if store is None:
        raise ConfigInvalid("no_store", "the prompts of the benchmark lie in the lake's artifact store", "pass store=lake.store")
    f = options.filters
    if set(f.splits) - {Split.HELD_OUT} or set(f.roles) - {Role.ORCHESTRATOR} or f.kinds or f.provenance:
        raise ConfigInvalid(
            "benchmark_filter",
            "the benchmark holds beginnings of held-out projects, which nobody authored",
            "leave out the filters of split, role, kind and provenance",
        )
    rules = Rules.of(con, options, held_out=True)
    keys: list[Key] = []
    about: dict[str, dict[str, Any]] = {}
    names = (
        "project_id", "trajectory_id", "call_index", "trajectory_sha256", "snapshot_id", "context_sha256", "language", "run_quality",
        "licence", "attribution",
    )  # fmt: skip
    seen: dict[tuple[str, str], str] = {}
    repeated: dict[str, str] = {}
    for values in con.execute(_BENCHMARK).fetchall():
        row = dict(zip(names, values, strict=True))
        if rules.leave_out("held_out", "orchestrator", "start", "", row["licence"], row["project_id"], row["trajectory_id"], True):
            continue
        task = "tsk_" + digest_of([row["project_id"], row["snapshot_id"], row["context_sha256"]])[:24]
        if (other := seen.setdefault((row["project_id"], row["context_sha256"]), task)) != task or task in about:
            rules.count("repeated")
            repeated |= {task: other} if task != other else {}
            continue
        key = Key(row["project_id"], row["trajectory_id"], row["call_index"], task, "held_out")
        keys.append(key)
        about[task] = row | {"task_id": task, "split": "held_out", "role": "orchestrator", "kind": "start"}
    contexts = {k.ident: about[k.ident]["context_sha256"] for k in keys}
    by_split, digest = arranged(keys, options, rules.not_taken, contexts, (Split.HELD_OUT,))
    if not keys:
        raise rules.nothing("held-out projects with a run", "raise materialize.held_out_share, or pin one (materialize.pinned)")

    def read(shard: list[Key]) -> Iterator[Prompted | LeftOut]:
        for key in shard:
            row = about[key.ident]
            context = store.read_json(row["context_sha256"])
            found = prompted(
                row | {"prompt_json": canonical_text(context["messages"]), "tools_json": canonical_text(context["tools"])}, key.ident
            )
            yield found if isinstance(found, LeftOut) else replace(found, row=row | {"tools_json": canonical_text(context["tools"])})

    return Records("benchmark", con, by_split, read, digest, rules.not_taken, repeated, EQUAL_STATES)
