"""Episodes fit ATIF 1.7 (check J without Harbor): a JSON Schema of our own, made from the published field names, that refuses others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from jsonschema import Draft202012Validator

from materialize.export.api import export
from tests.consumers.conftest import HERE
from tests.materialize.test_export_kinds import con, lines_in, tables  # noqa: F401 - fixtures
from tests.materialize.test_groups import World, world  # noqa: F401 - a fixture

VALIDATOR = Draft202012Validator(json.loads((HERE / "atif-1.7.schema.json").read_text("utf-8")))


@pytest.fixture
def episode(world: World, con: duckdb.DuckDBPyConnection, tmp_path: Path) -> dict[str, Any]:  # noqa: F811
    export("sft", "atif", con, tmp_path / "out", store=world.bench.store)
    (line,) = lines_in(tmp_path / "out", "index.jsonl")
    found: dict[str, Any] = json.loads((tmp_path / "out" / line["path"]).read_text("utf-8"))
    return found


def test_an_exported_episode_fits_the_schema(episode: dict[str, Any]) -> None:
    assert [(list(e.path), e.message) for e in VALIDATOR.iter_errors(episode)] == []
    assert len(episode["steps"]) > 10
    assert episode["subagent_trajectories"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda e: e.update(snapshot_id="snp_1"),
        lambda e: e["steps"][0].update(role="orchestrator"),
        lambda e: e["subagent_trajectories"][0].pop("steps"),
        lambda e: next(s for s in e["steps"] if s.get("tool_calls"))["tool_calls"][0].update(arguments="{}"),
    ],
)
def test_what_harbor_would_refuse_is_refused(episode: dict[str, Any], spoil: Any) -> None:
    spoil(episode)
    assert not VALIDATOR.is_valid(episode)
