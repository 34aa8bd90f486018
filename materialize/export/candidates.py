"""Executed groups, one row for each candidate: ``export groups``. Rewards and outputs are those of the lake; nothing is compared anew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from materialize.export.compared import author_of, completion_of
from materialize.export.conversation import prompt_of, tools_of
from materialize.export.options import ExportOptions, LeftOut
from materialize.export.records import Records
from materialize.export.selection import (
    Rules,
    Source,
    arranged,
    lake_of,
)
from materialize.export.starts import Artifacts
from materialize.export.texts import BadText
from materialize.rows import reply_columns
from schemas.errors import ConfigInvalid
from schemas.reply import ModelReply, read_reply

_GROUPS_AT_ONCE = 128


@dataclass(frozen=True, slots=True)
class Candidate:
    """One output of a group with what it was worth."""

    prompt: tuple[tuple[str, str], ...]
    tools: tuple[str, ...]
    escaped: bool
    row: dict[str, Any]

    @property
    def ident(self) -> str:
        """Group and candidate."""
        return str(self.row["candidate_id"])


@dataclass(frozen=True, slots=True)
class CandidateKey:
    """Names one candidate."""

    group_id: str
    candidate: int
    split: str

    @property
    def ident(self) -> str:
        """Group and candidate."""
        return f"{self.group_id}.{self.candidate}"


def group_records(source: Source, options: ExportOptions, store: Artifacts | None) -> Records[CandidateKey, Candidate]:
    """All candidates of the groups that the filters leave, queued groups too (``status`` tells).

    Raises:
        ConfigInvalid: the source is no lake, held-out projects are asked for, or there are no groups; while reading: a candidate has the
            reply of a model, and no store was given.
    """
    con = lake_of(source, "has no groups")
    rules = Rules.of(con, options)
    found = con.execute(
        "select g.group_id, c.candidate_index, e.split, e.role, e.kind, c.output_json, e.licence, e.project_id, e.verified, "
        "g.trajectory_id, g.row_digest || c.row_digest from groups g join candidates c using (group_id) "
        "left join (select trajectory_id, call_index, min(split) as split, min(role) as role, min(kind) as kind, "
        "min(licence) as licence, min(project_id) as project_id, "
        "bool_or(verified) as verified from examples group by 1, 2) e "
        "on e.trajectory_id = g.trajectory_id and e.call_index = g.call_index "
        "order by e.split <> 'train', g.group_id, c.candidate_index"
    ).fetchall()
    keys: list[CandidateKey] = []
    digests: dict[str, str] = {}
    for group, index, split, role, kind, output, licence, project, verified, trajectory, digest in found:
        if rules.leave_out(split, role, kind, author_of(output), licence, project, trajectory, verified):
            continue
        keys.append(key := CandidateKey(group, index, split))
        digests[key.ident] = digest
    by_split, state = arranged(keys, options, rules.not_taken, digests)
    if not keys:
        raise rules.nothing("candidates of groups", "make groups with: workprint groups --lake LAKE")
    return Records("groups", con, by_split, lambda shard: _read(con, shard, store), state, rules.not_taken, overlaps=rules.overlaps)


_SQL = """
select g.group_id, c.candidate_index, e.project_id, g.trajectory_id, g.call_index, e.role, e.kind, g.tool, g.status, g.rounds, g.variance,
  g.snapshot_id, s.state_digest, g.matched_key_json, e.context_sha256, e.licence, e.attribution, e.split, e.config_digest, e.prompt_json,
  e.tools_json, e.prompt_tokens, c.origin, c.output_json, c.refused, c.observation_json,
  c.state_after, c.calls, c.reward, c.reward_parts_json, c.advantage
from groups g join candidates c using (group_id)
join examples e on e.trajectory_id = g.trajectory_id and e.call_index = g.call_index
left join (select snapshot_id, any_value(state_digest) as state_digest from snapshots group by 1) s on s.snapshot_id = g.snapshot_id
where list_contains($1, g.group_id) order by e.example_id
"""


def _read(con: Any, shard: list[CandidateKey], store: Artifacts | None) -> Iterator[Candidate | LeftOut]:
    groups = list(dict.fromkeys(k.group_id for k in shard))
    for start in range(0, len(groups), _GROUPS_AT_ONCE):
        wanted = groups[start : start + _GROUPS_AT_ONCE]
        found = con.execute(_SQL, [wanted])
        names = [d[0] for d in found.description]
        rows: dict[tuple[str, int], dict[str, Any]] = {}
        for values in found.fetchall():
            row = dict(zip(names, values, strict=True))
            rows.setdefault((row["group_id"], row["candidate_index"]), row)
        chosen = set(wanted)
        for key in shard:
            if key.group_id in chosen:
                yield _candidate(rows[key.group_id, key.candidate], key.ident, store)


def _candidate(row: dict[str, Any], ident: str, store: Artifacts | None) -> Candidate | LeftOut:
    try:
        prompt, escaped = prompt_of(row["prompt_json"])
        tools = tools_of(row["tools_json"])
        output = orjson.loads(row["output_json"])
        completion = completion_of(row["role"], row["call_index"], output)
    except BadText as bad:
        return LeftOut(example_id=ident, reason=str(bad))
    more = {
        "candidate_id": ident,
        "completion_json": completion,
        "provenance": author_of(row["output_json"]),
        "text_known": output.get("text_known", True),
        **reply_columns(_reply(output.get("reply"), ident, store)),
    }
    return Candidate(prompt, tools, escaped, row | more)


def _reply(sha256: str | None, ident: str, store: Artifacts | None) -> ModelReply | None:
    if sha256 is None:
        return None
    if store is None:
        raise ConfigInvalid("no_store", "replies of models lie in the lake's artifact store", "pass store=lake.store")
    return read_reply(store.read(sha256), ident)
