"""The environment core inside TRL's GRPO trainer (check C), verl's agent loop (E) and behind an OpenEnv server (I): recorded states of a
lake that real tools made."""

from __future__ import annotations

import sysconfig
from pathlib import Path
from typing import Any

import pytest

from materialize.config import MaterializeConfig
from materialize.export.api import export
from materialize.tokens import open_counter
from media.assets import asset
from schemas.canonical import sha256_bytes
from schemas.errors import EngineMissing
from storage.lake import Lake
from tests.consumers.conftest import python_of, run_script
from tests.materialize.real_lake import make_lake


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of one small film."""
    return make_lake(tmp_path_factory.mktemp("environments")).lake.root


@pytest.fixture(scope="module")
def sets(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders ``rl`` and ``sft``: the exports of the lake for TRL."""
    root = tmp_path_factory.mktemp("sets")
    connection = Lake(place, create=False).connect()
    for kind in ("rl", "sft"):
        export(kind, "trl", connection, root / kind)
    connection.close()
    return root


@pytest.fixture(scope="module")
def grpo(place: Path, sets: Path, tokenizers: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What one step said."""
    folder = tmp_path_factory.mktemp("grpo")
    (found,) = run_script("trl", "trl_grpo.py", place, sets / "rl", sets / "sft", tokenizers / "qwen3", cwd=folder)
    return found


def tool_block(prompt: str) -> str:
    """The lines of a rendered prompt that name the tools."""
    return prompt.partition("<tools>\n")[2].partition("\n</tools>")[0]


def test_a_grpo_step_learns_from_executed_rewards(grpo: dict[str, Any]) -> None:
    assert (grpo["members"], len(grpo["starts"])) == (2, 1)
    good, refused = grpo["rewards"]
    assert good > 0.9 > 0.5 > refused
    assert grpo["reward_std"] > 0
    assert grpo["moved"]


def test_grpo_reads_what_supervised_training_taught(grpo: dict[str, Any]) -> None:
    assert grpo["tools"].count("\n") == 12
    assert sha256_bytes(grpo["tools"].encode()) == sha256_bytes(grpo["tools_sft"].encode())
    assert grpo["same_prompt"]


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
    assert tool_block(found["good"]["prompt"]) == request.getfixturevalue("grpo")["tools_sft"]
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
