"""Preference and KTO rows: ``export pref`` and ``export kto``, from executed groups and from verified repairs (materialize.repaired).

A pair is made inside one group and nowhere else, so both outputs answer the same context in the same state and were continued alike. The
chosen one is the best that was accepted and is no mistake; every output that is worth less by ``MARGIN`` is rejected in favour of it. For
KTO an output is desirable when its advantage (eq. 8) is above 0. Held-out and contaminated projects never leave, as in :mod:`.selection`.
A repair gives no
rewards: there the accepted output is chosen over the refused one that it took the place of. Outputs that no trainer can be told (a call
whose arguments are no JSON) are not compared; they are listed in the manifest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import duckdb
import orjson

from materialize.export.conversation import Answer, Conversation, answer_of, conversation, prompt_of, tools_of
from materialize.export.options import ExportOptions, LeftOut
from materialize.export.records import Records
from materialize.export.selection import (
    COLUMNS,
    Rules,
    Source,
    arranged,
    has_table,
    lake_of,
)
from materialize.export.texts import BadText
from materialize.repaired import repair_labels, repair_pairs
from schemas.canonical import canonical_text, digest_of

MARGIN = 0.05
"""Least difference of the rewards of a pair."""

_GROUPS_AT_ONCE = 256
"""Groups whose prompts are in memory at the same time."""

_RULED = ("split", "role", "kind", "licence", "project_id", "trajectory_id")
"""Columns of a decision that the rules look at."""

ComparedKind = Literal["pref", "kto"]


@dataclass(frozen=True, slots=True)
class Compared:
    """One row: the output trained on (or chosen), and what it is compared with."""

    item: Conversation
    rejected: Answer | None
    label: bool
    group_id: str
    reward: float | None
    """None where a repair decided."""
    other_reward: float | None
    ident: str

    @property
    def row(self) -> dict[str, Any]:
        """The lake row of the decision."""
        return self.item.row

    @property
    def escaped(self) -> bool:
        """The prompt held control tokens."""
        return self.item.escaped


@dataclass(frozen=True, slots=True)
class Repair:
    """What a repair is made a row of: the accepted output's example, and the refused output."""

    example: dict[str, Any]
    rejected_json: str | None


@dataclass(frozen=True, slots=True)
class ComparedKey:
    """Names one row: a group, the candidate trained on, and the one it is compared with; or a repair."""

    group_id: str
    project_id: str
    candidate: int
    other: int | None
    reward: float | None
    other_reward: float | None
    label: bool
    split: str
    repair: Repair | None = None

    @property
    def ident(self) -> str:
        """Group and candidates; the pair's own name for a repair."""
        if self.repair is not None:
            return self.group_id
        return f"{self.group_id}.{self.candidate}" + ("" if self.other is None else f".{self.other}")


def compared_records(kind: ComparedKind, source: Source, options: ExportOptions) -> Records[ComparedKey, Compared]:
    """Pairs, or single outputs with a label, of the accepted groups that the filters leave.

    Raises:
        ConfigInvalid: the source is no lake, held-out projects are asked for, or no group gives a row.
    """
    con = lake_of(source, "has no groups, of which preferences are made")
    rules = Rules.of(con, options)
    left_out: list[LeftOut] = []
    keys: list[ComparedKey] = []
    digests: dict[str, str] = {}

    def leave_out(row: Mapping[str, Any], verified: bool, author: str | None) -> bool:
        split, role, kind, licence, project, trajectory = (row[c] for c in _RULED)
        return rules.leave_out(split, role, kind, author, licence, project, trajectory, verified)

    for row in _groups(con):
        if leave_out(row, row["verified"], None):
            continue
        members = []
        for member in row["members"]:
            try:
                answer_of(_completion(row, member["output"]))
                members.append(member)
            except BadText as bad:
                left_out.append(LeftOut(example_id=f"{row['group_id']}.{member['i']}", reason=str(bad)))
        made = list(_pairs(row, members) if kind == "pref" else _labels(row, members))
        if not made:
            rules.count("no_difference")
        authors = {member["i"]: author_of(member["output"]) for member in members}
        made = [k for k in made if not rules.leave_out_author(authors[k.candidate])]
        keys += made
        digests |= {k.ident: f"{row['row_digest']} {row['candidates']}" for k in made}
    for key in _repairs(kind, con):
        row = key.repair.example if key.repair is not None else {}
        if leave_out(row, True, row["provenance"]):
            continue
        try:
            answer_of(row["completion_json"])
            if key.repair is not None and key.repair.rejected_json is not None:
                answer_of(key.repair.rejected_json)
        except BadText as bad:
            left_out.append(LeftOut(example_id=key.ident, reason=str(bad)))
            continue
        keys.append(key)
        digests[key.ident] = digest_of([row, key.repair.rejected_json if key.repair is not None else None, key.label])
    by_split, digest = arranged(keys, options, rules.not_taken, digests)
    if not keys:
        for _bad in left_out:
            rules.count("left_out")
        raise rules.nothing("accepted groups and repairs", "make groups with: workprint groups --lake LAKE")
    return Records(
        kind, con, by_split, lambda shard: _read(con, shard), digest, rules.not_taken, overlaps=rules.overlaps, left_out=tuple(left_out)
    )


_FROM = "from groups g join examples e on e.trajectory_id = g.trajectory_id and e.call_index = g.call_index "


_GROUPS = f"""
select g.group_id, e.project_id, e.trajectory_id, e.call_index, e.split, e.role, e.kind, e.provenance, e.licence, e.verified, e.row_digest,
  (select list({{'i': c.candidate_index, 'origin': c.origin, 'output': c.output_json, 'refused': c.refused, 'reward': c.reward,
    'advantage': c.advantage}} order by c.candidate_index) from candidates c where c.group_id = g.group_id),
  (select string_agg(c.row_digest, ' ' order by c.candidate_index) from candidates c where c.group_id = g.group_id)
{_FROM} where g.status = 'accepted' order by e.split <> 'train', g.group_id, e.example_id
"""  # noqa: S608 - own names


def _groups(con: duckdb.DuckDBPyConnection) -> Iterator[dict[str, Any]]:
    """Accepted groups of decisions that are examples, with their candidates, without prompts."""
    columns = ("group_id", "project_id", "trajectory_id", "call_index", "split", "role", "kind", "provenance", "licence", "verified")
    found = con.execute(_GROUPS)
    seen = ""
    while rows := found.fetchmany(_GROUPS_AT_ONCE):
        for values in rows:
            row = dict(zip((*columns, "row_digest", "members", "candidates"), values, strict=True))
            if row["group_id"] != seen:
                seen = row["group_id"]
                yield row


def _repairs(kind: ComparedKind, con: duckdb.DuckDBPyConnection) -> Iterator[ComparedKey]:
    if not all(has_table(con, name) for name in ("rft", "calls", "trajectories")):
        return
    if kind == "pref":
        for pair in repair_pairs(con):
            yield _repair_key(pair.pair_id, Repair(pair.example, pair.rejected_json), True)
    else:
        for label in repair_labels(con):
            yield _repair_key(f"{label.example['example_id']}.repair", Repair(label.example, None), label.held)


def _repair_key(name: str, repair: Repair, label: bool) -> ComparedKey:
    row = repair.example
    return ComparedKey(name, row["project_id"], 0, None, None, None, label, row["split"], repair)


def _read(con: duckdb.DuckDBPyConnection, shard: list[ComparedKey]) -> Iterator[Compared | LeftOut]:
    """Groups stand before repairs in every split, and so here."""
    yield from _read_groups(con, [k for k in shard if k.repair is None])
    for key in shard:
        if key.repair is not None:
            yield _mended(key, key.repair)


def _mended(key: ComparedKey, repair: Repair) -> Compared | LeftOut:
    try:
        item = conversation({**repair.example, "quality": None})
        rejected = None if repair.rejected_json is None else answer_of(repair.rejected_json)
    except BadText as bad:
        return LeftOut(example_id=key.ident, reason=str(bad))
    return Compared(item, rejected, key.label, key.group_id, None, None, key.ident)


def _read_groups(con: duckdb.DuckDBPyConnection, shard: list[ComparedKey]) -> Iterator[Compared | LeftOut]:
    groups = list(dict.fromkeys(k.group_id for k in shard))
    listed = ", ".join(f"e.{c}" for c in COLUMNS)
    for start in range(0, len(groups), _GROUPS_AT_ONCE):
        wanted = groups[start : start + _GROUPS_AT_ONCE]
        found = con.execute(
            f"select g.group_id, {listed} {_FROM} where list_contains($1, g.group_id) order by e.example_id",
            [wanted],
        )
        names = [d[0] for d in found.description]
        rows: dict[str, dict[str, Any]] = {}
        for values in found.fetchall():
            rows.setdefault(values[0], dict(zip(names, values, strict=True)))
        outputs = {
            (group, index): output
            for group, index, output in con.execute(
                "select group_id, candidate_index, output_json from candidates where list_contains($1, group_id)", [wanted]
            ).fetchall()
        }
        chosen = set(wanted)
        for key in shard:
            if key.group_id in chosen:
                yield _row(key, rows[key.group_id], outputs)


def _row(key: ComparedKey, row: dict[str, Any], outputs: dict[tuple[str, int], str]) -> Compared | LeftOut:
    try:
        prompt, escaped = prompt_of(row["prompt_json"])
        tools = tools_of(row["tools_json"])
    except BadText as bad:
        return LeftOut(example_id=key.ident, reason=str(bad))
    completion = _completion(row, outputs[key.group_id, key.candidate])
    own = {
        **row,
        "completion_json": completion,
        "provenance": author_of(outputs[key.group_id, key.candidate]),
        "quality": None,
        "completion_tokens": None,
    }
    answer = answer_of(completion)
    rejected = None if key.other is None else answer_of(_completion(row, outputs[key.group_id, key.other]))
    item = Conversation(prompt, answer.content, answer.calls, tools, escaped, own)
    return Compared(item, rejected, key.label, key.group_id, key.reward, key.other_reward, key.ident)


def _pairs(row: dict[str, Any], members: list[dict[str, Any]]) -> Iterator[ComparedKey]:
    good = [m for m in members if not m["refused"] and m["origin"] != "mistake"]
    if not good:
        return
    best = max(good, key=lambda m: (m["reward"], -m["i"]))
    for other in members:
        if best["reward"] - other["reward"] >= MARGIN:
            yield _key(row, best, True, other)


def _labels(row: dict[str, Any], members: list[dict[str, Any]]) -> Iterator[ComparedKey]:
    for member in members:
        if member["advantage"]:
            yield _key(row, member, member["advantage"] > 0 and not member["refused"], None)


def _key(row: dict[str, Any], member: dict[str, Any], label: bool, other: dict[str, Any] | None) -> ComparedKey:
    return ComparedKey(
        group_id=row["group_id"],
        project_id=row["project_id"],
        candidate=member["i"],
        other=None if other is None else other["i"],
        reward=member["reward"],
        other_reward=None if other is None else other["reward"],
        label=label,
        split=row["split"],
    )


def _completion(row: dict[str, Any], output_json: str) -> str:
    """A candidate's output as the assistant message that a policy would have said, exact."""
    return completion_of(row["role"], row["call_index"], orjson.loads(output_json))


def author_of(output_json: str) -> str:
    """Who authored a role output; nobody when it is none, which reading it tells."""
    output = orjson.loads(output_json)
    return str(output.get("provenance", "")) if isinstance(output, dict) else ""


def completion_of(role: str, call_index: int, output: dict[str, Any]) -> str:
    """A role output as the exact JSON text of an assistant message.

    Raises:
        BadText: it is no role output.
    """
    if not {"text", "tool", "arguments_json"} <= output.keys():
        raise BadText("not_an_output", "a candidate is no output of a role")
    completion: dict[str, Any] = {"role": "assistant", "content": output["text"]}
    if role == "orchestrator":
        function = {"name": output["tool"] or "", "arguments": output["arguments_json"] or ""}
        completion["tool_calls"] = [{"id": f"call_{call_index}", "type": "function", "function": function}]
    return canonical_text(completion)
