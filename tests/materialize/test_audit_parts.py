"""Examples and groups executed again: all equal as stored, and the first difference named where something was changed."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from jobs.auditing import audit
from jobs.cli import app
from jobs.grouping import reward_weights
from materialize.audit import audit_example, audit_group
from materialize.config import RewardConfig
from materialize.recorded import LakeRuns
from schemas.contract import Role
from tests.materialize.real_lake import RealLake

OTHER = orjson.dumps({"role": "assistant", "content": '{"query": "loud"}'}).decode()
"""A completion that nobody gave."""


@pytest.fixture(scope="module")
def runs(real_lake: RealLake) -> LakeRuns:
    return real_lake.runs


def rows(runs: LakeRuns, sql: str) -> list[dict[str, Any]]:
    asked = runs.lake.query(sql)
    return [dict(zip(asked.columns, values, strict=True)) for values in asked.rows]


@pytest.mark.slow
def test_a_seeded_sample_of_everything_executes_again_as_stored_and_is_recorded(real_lake: RealLake) -> None:
    place = str(real_lake.lake.root)
    call = next(c for c in real_lake.trajectories[0].calls if c.tool == "search_music" and c.role is Role.GENERATOR)
    made = CliRunner().invoke(app, ["groups", "--lake", place, "--snapshot", call.snapshot_before, "-k", "2"])
    assert made.exit_code == 0, made.output
    done = CliRunner().invoke(
        app, ["audit", "--lake", place, "--of", "examples", "--of", "groups", "--sample", "3", "--seed", "2", "--json"]
    )
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert (report["examples"]["audited"], report["examples"]["equal_share"], report["recorded"]) == (3, 1.0, True)
    assert report["groups"]["equal_share"] == 1.0
    found = real_lake.lake.query(
        "select kind, count(*), avg(equal::int), max(stored), max(seed) from audits group by kind order by kind"
    ).rows
    (examples,) = real_lake.lake.query("select count(*) from examples").rows[0]
    assert found[0] == ("example", 3, 1.0, examples, 2)
    assert found[1][0:1] + found[1][2:3] == ("group", 1.0)


def test_the_next_audit_takes_the_place_of_the_last_of_its_kind(real_lake: RealLake) -> None:
    audit(real_lake.lake, of=("examples",), sample=1, seed=5)
    audit(real_lake.lake, of=("examples",), sample=2, seed=6)
    assert real_lake.lake.query("select count(*), max(seed) from audits where kind = 'example'").rows == [(2, 6)]


def test_an_audit_that_is_not_recorded_leaves_no_trace(real_lake: RealLake) -> None:
    before = real_lake.lake.versions()[-1]
    names = set(real_lake.lake.store.names())
    assert audit(real_lake.lake, of=("examples",), sample=1, seed=9, record=False).passed
    assert real_lake.lake.versions()[-1] == before
    assert set(real_lake.lake.store.names()) == names


@pytest.mark.parametrize(
    ("change", "parts", "what"),
    [
        ({}, 3, None),
        ({"prompt_json": "[]"}, 2, "the prompt or the tools are others than the example's"),
        ({"completion_json": OTHER}, 1, "the observation is another than recorded"),
        ({"call_index": 999}, 0, "fault: [no_such_call]"),
    ],
)
def test_what_an_example_was_changed_in_is_told(runs: LakeRuns, change: dict[str, Any], parts: int, what: str | None) -> None:
    row = rows(runs, "select * from examples where kind = 'music_query' order by example_id limit 1")[0]
    found = audit_example(runs, {**row, **change})
    assert (found.equal_parts, found.equal) == (parts, what is None)
    assert found.difference is None if what is None else (found.difference or "").startswith(what)


@pytest.mark.slow
def test_a_candidate_that_is_worth_something_else_is_told(real_lake: RealLake, runs: LakeRuns) -> None:
    call = next(c for c in real_lake.trajectories[0].calls if c.tool == "plan_shots" and c.role is Role.GENERATOR)
    made = CliRunner().invoke(app, ["groups", "--lake", str(runs.lake.root), "--snapshot", call.snapshot_before, "-k", "2", "--json"])
    name = json.loads(made.stdout)["groups"][0]["group_id"]
    group = rows(runs, f"select * from groups where group_id = '{name}'")[0]  # noqa: S608 - our own id
    members = rows(runs, f"select * from candidates where group_id = '{name}' order by candidate_index")  # noqa: S608
    weights = reward_weights(runs.lake, group["project_id"], name)
    assert weights == RewardConfig()
    assert audit_group(runs, group, members, weights).equal
    better = [{**members[0], "reward": 0.5}, *members[1:]]
    assert "candidate 0 is worth" in (audit_group(runs, group, better, weights).difference or "")
    elsewhere = [{**members[0], "state_after": "0" * 64}, *members[1:]]
    assert "candidate 0 was answered otherwise" in (audit_group(runs, group, elsewhere, weights).difference or "")
    older = [{**m, "observation_json": None, "state_after": None} for m in members]  # executed before table version 3
    assert audit_group(runs, group, older, weights).equal
    other = weights.model_copy(update={"generator": {**weights.generator, "coverage": 0.5}})
    assert not audit_group(runs, group, members, other).equal


def test_there_are_three_kinds_of_things_to_audit(real_lake: RealLake) -> None:
    found = CliRunner().invoke(app, ["audit", "--lake", str(real_lake.lake.root), "--of", "shots"])
    assert getattr(found.exception, "code", None) == "audit_of"
