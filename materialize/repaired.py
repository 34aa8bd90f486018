"""Preferences and labels from verified repairs: the output that mended a run against the one that failed, in the very same context.

A run finished by the teacher (evaluation.rft) is restored before its first failure, so its first new output and the failing one answer
byte-equal contexts over one state; what was refused is compared with what was accepted and led to a verified film, and with nothing else.
A repair request is labelled by whether its repairs held. Reads a lake's connection; held-out rules and filters are the export's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import duckdb
import orjson

from schemas.canonical import canonical_text, derive_id
from schemas.tables import TABLE

_COLUMNS = ", ".join(f"e.{c.name}" for c in TABLE["examples"].columns)

_PAIRS = f"""
    select {_COLUMNS}, c.trajectory_id as failed_trajectory, c.call_index as failed_call, c.tool as failed_tool, c.arguments_json,
        c.content_json, c.provenance as failed_provenance
    from rft r
    join examples e on e.trajectory_id = r.trajectory_id and e.verified
    join calls c on c.trajectory_id = r.student_trajectory_id and c.context_sha256 = e.context_sha256 and c.role = e.role
    where r.admitted and r.failure_kind = 'blocker' and r.trajectory_id <> r.student_trajectory_id and c.status = 'refused'
        and c.call_index >= r.failure_call
    order by e.example_id, failed_trajectory, failed_call
"""  # noqa: S608 - names of our own columns

_REQUESTS = f"""
    select {_COLUMNS}
    from examples e join trajectories t using (trajectory_id)
    where e.kind = 'repair_request' and t.outcome = 'delivered'
    order by e.example_id
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class RepairPair:
    """An accepted output of a mended run, and the refused one that it took the place of."""

    pair_id: str
    example: dict[str, Any]
    """The chosen row of table ``examples``."""
    rejected_json: str
    """The refused output as an assistant message, exact JSON."""
    rejected_provenance: str


@dataclass(frozen=True, slots=True)
class RepairLabel:
    """A repair request, and whether all repairs that it asked for held."""

    example: dict[str, Any]
    held: bool


def repair_pairs(con: duckdb.DuckDBPyConnection) -> Iterator[RepairPair]:
    """Every pair of a lake, in the order of the examples; equal outputs never pair."""
    names = [c.name for c in TABLE["examples"].columns]
    for values in con.execute(_PAIRS).fetchall():
        example = dict(zip(names, values, strict=False))
        trajectory, index, tool, arguments, content, provenance = values[len(names) :]
        message: dict[str, Any] = {"role": "assistant", "content": content or ""}
        if example["role"] == "orchestrator":
            function = {"name": tool or "", "arguments": arguments or ""}
            message["tool_calls"] = [{"id": f"call_{example['call_index']}", "type": "function", "function": function}]
        rejected = canonical_text(message)
        if _said(message) != _said(orjson.loads(example["completion_json"])):
            pair = derive_id("group", ["repair", example["example_id"], trajectory, index])
            yield RepairPair(pair, example, rejected, str(provenance))


def repair_labels(con: duckdb.DuckDBPyConnection) -> Iterator[RepairLabel]:
    """Every repair request of a delivered run, in the order of the examples."""
    names = [c.name for c in TABLE["examples"].columns]
    for values in con.execute(_REQUESTS).fetchall():
        example = dict(zip(names, values, strict=True))
        yield RepairLabel(example, bool(example["verified"]))


def _said(message: dict[str, Any]) -> tuple[Any, ...]:
    """What a message says, apart from the names of its calls."""
    return message["content"], [(c["function"]["name"], c["function"]["arguments"]) for c in message.get("tool_calls") or ()]
