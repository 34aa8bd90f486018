"""Rarefaction by hand, argument shapes, and the report over rows of a small lake."""

from __future__ import annotations

import json
from typing import Any

import duckdb
import pytest

from evaluation.variety import argument_shape, near_duplicates, spread, variety


@pytest.mark.parametrize(
    ("held", "sample", "kinds", "expected", "top"),
    [
        ([{"a"}, {"a"}, {"a"}, {"a"}], 2, 1, 1.0, 1.0),
        ([{"a"}, {"b"}, {"c"}, {"d"}], 2, 4, 2.0, 0.25),
        ([{"a"}, {"a"}, {"b"}], 1, 2, 1.0, 2 / 3),
        ([{"a"}, {"a"}, {"b"}], 2, 2, 1 + 2 / 3, 2 / 3),  # a is always met, b with 1 - C(2,2)/C(3,2)
        ([{"a", "b"}, {"b"}, set()], 3, 2, 2.0, 2 / 3),
        ([], 0, 0, 0.0, 0.0),
    ],
)
def test_expected_number_of_different_things_in_a_sample(
    held: list[set[str]], sample: int, kinds: int, expected: float, top: float
) -> None:
    found = spread(held, sample)
    assert (found.kinds, found.expected, found.top_share) == (kinds, pytest.approx(expected), pytest.approx(top))


@pytest.mark.parametrize(
    ("tool", "arguments", "shape"),
    [
        ("plan_shots", '{"segments":"all","max_shot_ms":87000}', "plan_shots(max_shot_ms=#, segments=all)"),
        ("render_shots", '{"shots":"s001-s011"}', "render_shots(shots=range)"),
        ("render_shots", '{"shots":"s001"}', "render_shots(shots=one)"),
        ("repair_shots", '{"shots":"s001,s004-s006"}', "repair_shots(shots=several)"),
        ("plan_shots", '{"segments":"g02"}', "plan_shots(segments=one)"),
        ("retrieve_visuals", '{"shots":3,"fast":true}', "retrieve_visuals(fast=true, shots=#)"),
        ("search_music", '{"mood":"Calm and slow"}', "search_music(mood=text)"),
        ("stitch_video", "{}", "stitch_video()"),
        (None, "[]", "-(unreadable)"),
        ("stitch_video", "{", "stitch_video(unreadable)"),
    ],
)
def test_shape_of_a_call(tool: str | None, arguments: str, shape: str) -> None:
    assert argument_shape(tool, arguments) == shape


def example(index: int, said: str, user: str, project: str = "p") -> tuple[Any, ...]:
    completion = json.dumps({"role": "assistant", "content": said, "tool_calls": [{"id": f"call_{index}"}]}, separators=(",", ":"))
    prompt = json.dumps([{"role": "system", "content": "x"}, {"role": "user", "content": user}])
    return (f"e{index}", project, "t", index, "orchestrator", "tool_call", prompt, completion, 100 + index)


@pytest.fixture
def con() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    con.execute("create table projects (project_id text)")
    con.execute("create table trajectories (trajectory_id text, project_id text, tool_sequence text[])")
    con.execute("create table calls (trajectory_id text, call_index int, role text, tool text, status text, arguments_json text)")
    con.execute("create table blockers (trajectory_id text, call_index int, code text)")
    con.execute("create table repairs (trajectory_id text, code text, mend text, outcome text)")
    con.execute(
        "create table examples (example_id text, project_id text, trajectory_id text, call_index int, role text, kind text, "
        "prompt_json text, completion_json text, prompt_tokens int)"
    )
    return con


LONG = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty "
)


def test_a_near_duplicate_says_the_same_under_nearly_the_same_prompt(con: duckdb.DuckDBPyConnection) -> None:
    rows = [
        example(1, "go", LONG * 9 + "end a"),
        example(2, "go", LONG * 9 + "end b"),  # repeats 1
        example(3, "stop", LONG * 9 + "end b"),  # says something else
        example(4, "go", "another prompt altogether, of other words"),
        example(5, "go", LONG * 9 + "end b", project="q"),  # another project
    ]
    con.executemany("insert into examples values (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    assert near_duplicates(con) == 1


def test_the_report_counts_what_trajectories_hold(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("insert into projects values ('p'), ('q')")
    con.execute("insert into trajectories values ('t1', 'p', ['a', 'b']), ('t2', 'p', ['a', 'b']), ('t3', 'q', ['b', 'a'])")
    con.execute(
        "insert into calls values ('t1', 0, 'orchestrator', 'a', 'refused', '{\"x\":1}'), "
        "('t1', 1, 'orchestrator', 'b', 'committed', '{}'), "
        "('t2', 0, 'orchestrator', 'a', 'committed', '{\"x\":2}'), ('t3', 0, 'generator', 'b', 'committed', null)"
    )
    con.execute("insert into blockers values ('t1', 0, 'wrong_type')")
    con.execute("insert into repairs values ('t2', 'render_black', 'rerender', 'verified')")
    con.executemany("insert into examples values (?, ?, ?, ?, ?, ?, ?, ?, ?)", [example(1, "go", "a"), example(2, "stop", "b")])
    found = variety(con).as_json()
    assert (found["trajectories"], found["projects"], found["sample"]) == (3, 2, 3)
    assert {name: s["kinds"] for name, s in found["spreads"].items()} == {
        "tool sequences": 2,
        "argument shapes": 2,  # a(x=#) and b()
        "blockers": 1,
        "repairs": 1,
        "tools chosen after a refusal": 1,
    }
    assert found["examples"] == {"orchestrator tool_call": 2}
    assert found["examples_per_project"] == {"min": 0, "mean": 1.0, "max": 2}
    assert found["prompt_tokens"] == {"orchestrator": {"p05": 101, "p50": 101, "p95": 102}}


def test_an_empty_lake_has_an_empty_report(con: duckdb.DuckDBPyConnection) -> None:
    found = variety(con)
    assert (found.trajectories, found.per_trajectory, found.spreads["blockers"].kinds) == (0, 0.0, 0)
