"""The environment core inside verl's agent loop and behind an OpenEnv server: recorded states of a lake that real tools made."""

from __future__ import annotations

import sysconfig
from pathlib import Path
from typing import Any

import pytest

from materialize.config import MaterializeConfig
from materialize.tokens import open_counter
from media.assets import asset
from schemas.errors import EngineMissing
from tests.consumers.conftest import python_of, run_script
from tests.materialize.real_lake import make_lake


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of one small film."""
    return make_lake(tmp_path_factory.mktemp("environments")).lake.root


def by_name(found: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in found}


@pytest.mark.slow
def test_verls_agent_loop_executes_recorded_decisions(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    python_of("verl")
    try:
        open_counter(MaterializeConfig())
    except EngineMissing as missing:
        pytest.skip(str(missing))
    place = request.getfixturevalue("place")
    site = sysconfig.get_paths()["purelib"]
    found = by_name(run_script("verl", "env_verl.py", place, asset("qwen3-tokenizer"), site, cwd=tmp_path))
    assert found["good"]["trained"] == '<tool_call>\n{"name": "compose_timeline", "arguments": {}}\n</tool_call><|im_end|>'
    assert found["mute"]["trained"] == "I am done.<|im_end|>"
    assert found["good"]["reward"] > 0.9 > 0.5 > found["mute"]["reward"] == found["early"]["reward"]
    assert (found["early"]["turns"], found["early"]["trained"].count("<|im_end|>")) == (6, 3)
    assert "<tool_response>" in found["early"]["response"]
    assert "<tool_response>" not in found["early"]["trained"]
    assert '"description": "' in found["good"]["prompt"].rpartition("<tools>")[2]
    assert (found["content"]["reward"], found["cut"]["reward"]) == (1.0, 0.0)
    assert all(row["as_asked"] and row["logprobs"] for row in found.values())


@pytest.mark.slow
def test_openenvs_client_gets_recorded_decisions_in_several_sessions_at_once(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    python_of("openenv")
    found = by_name(run_script("openenv", "env_openenv.py", request.getfixturevalue("place"), cwd=tmp_path))
    assert {name: (row["role"], row["tools"], row["same_start"], row["done"]) for name, row in found.items()} == {
        "good": ("orchestrator", 13, True, True),
        "by_state": ("orchestrator", 13, True, True),
        "mute": ("orchestrator", 13, True, True),
        "content": ("generator", 0, True, True),
    }
    assert found["good"]["reward"] == found["by_state"]["reward"] > 0.9 > 0.5 > found["mute"]["reward"]
    assert found["content"]["reward"] == 1.0
    assert found["content"]["parts"] == ["coverage", "grounding", "schema_validity", "usability"]
    assert found["good"]["state"]["trajectory_id"].startswith("trj_")
