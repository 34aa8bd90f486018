"""Preferences from verified repairs: only equal contexts, only refused against accepted, only admitted runs."""

from __future__ import annotations

import json
from typing import Any

import duckdb
import pytest

from materialize.repaired import repair_labels, repair_pairs
from tests.materialize.conftest import plain_row, tool_call

TEACHER, STUDENT = "trj_teacher", "trj_student"


def lake(**change: Any) -> duckdb.DuckDBPyConnection:
    """A student refused at call 4 for leaving out an argument, and a teacher's run that said it right in the same context."""
    values = {
        "admitted": True,
        "kind": "blocker",
        "status": "refused",
        "context": "c" * 64,
        "said": "{}",
        "verified": True,
        "call": 4,
    } | change
    rows = [
        plain_row(4, completion=tool_call("render_shots", '{"shots":"all"}'), trajectory_id=TEACHER, context_sha256="c" * 64,
                  verified=values["verified"]),
        plain_row(5, completion={"role": "assistant", "content": '{"mends":[1]}'}, trajectory_id=TEACHER, kind="repair_request",
                  role="critic", verified=True),
        plain_row(6, completion={"role": "assistant", "content": '{"mends":[2]}'}, trajectory_id=TEACHER, kind="repair_request",
                  role="critic", verified=False),
        plain_row(7, completion={"role": "assistant", "content": '{"mends":[3]}'}, trajectory_id=STUDENT, kind="repair_request",
                  role="critic", verified=False),
    ]  # fmt: skip
    con = duckdb.connect()
    names = list(rows[0])
    con.execute("create table examples (" + ", ".join(f'"{n}" ' + _type(n) for n in names) + ")")
    con.executemany(f"insert into examples values ({', '.join('?' * len(names))})", [list(r.values()) for r in rows])  # noqa: S608
    con.execute(
        "create table rft as select ? as student_trajectory_id, ? as trajectory_id, ? as admitted, ? as failure_kind, 4 as failure_call",
        [STUDENT, TEACHER, values["admitted"], values["kind"]],
    )
    con.execute(
        "create table calls as select ? as trajectory_id, ? as call_index, 'orchestrator' as role, 'render_shots' as tool, "
        "? as arguments_json, null::text as content_json, ? as status, 'student' as provenance, ? as context_sha256",
        [STUDENT, values["call"], values["said"], values["status"], values["context"]],
    )
    con.execute(
        "create table trajectories as select * from (values (?, 'delivered'), (?, 'incomplete')) t(trajectory_id, outcome)",
        [TEACHER, STUDENT],
    )
    return con


def _type(name: str) -> str:
    return "int" if name in ("call_index", "prompt_tokens", "completion_tokens") else "bool" if name == "verified" else "text"


def test_the_accepted_output_is_preferred_to_the_refused_one_of_the_same_context() -> None:
    (pair,) = repair_pairs(lake())
    assert json.loads(pair.example["completion_json"])["tool_calls"][0]["function"] == {
        "name": "render_shots",
        "arguments": '{"shots":"all"}',
    }
    assert json.loads(pair.rejected_json)["tool_calls"][0]["function"] == {"name": "render_shots", "arguments": "{}"}
    assert (pair.rejected_provenance, pair.pair_id[:4]) == ("student", "grp_")


@pytest.mark.parametrize(
    "change",
    [
        {"admitted": False},
        {"kind": "defect"},
        {"status": "committed"},
        {"context": "d" * 64},
        {"said": '{"shots":"all"}'},
        {"verified": False},
        {"call": 3},
    ],
)
def test_nothing_else_is_a_pair(change: dict[str, Any]) -> None:
    assert list(repair_pairs(lake(**change))) == []


def test_a_repair_request_is_desirable_when_its_repairs_held_and_the_run_delivered() -> None:
    assert [(r.example["call_index"], r.held) for r in repair_labels(lake())] == [(5, True), (6, False)]
