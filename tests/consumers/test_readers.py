"""Readers that are no trainers of their own take the exports: verl's prompts (E), Harbor (J), NeMo Gym, SkyRL, Croissant (K)."""

from __future__ import annotations

from pathlib import Path

import pytest

from materialize.export.api import export
from storage.lake import Lake
from tests.consumers.conftest import run_script
from tests.materialize.real_lake import make_lake

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for each (kind, consumer) below, of a lake that real tools made."""
    place = make_lake(tmp_path_factory.mktemp("readers")).lake.root
    root = tmp_path_factory.mktemp("read")
    lake = Lake(place, create=False)
    connection = lake.connect()
    for kind, consumer in (("sft", "atif"), ("rl", "nemo-gym"), ("rl", "skyrl"), ("sft", "hf"), ("rl", "verl")):
        export(kind, consumer, connection, root / consumer, store=lake.store)
    connection.close()
    return root


def test_harbor_reads_every_episode(sets: Path) -> None:
    found = run_script("harbor", "read_sets.py", "atif", sets / "atif")
    assert [(r["version"], r["steps"] > 20) for r in found] == [("ATIF-v1.7", True)] * 2


def test_nemo_gym_reads_every_start(sets: Path) -> None:
    found = run_script("nemo-gym", "read_sets.py", "nemo_gym", sets / "nemo-gym")
    assert len(found) > 10
    assert {tuple(r["input"]) for r in found} == {("system", "user")}
    assert {len(r["tools"]) for r in found} == {13}


def test_skyrl_reads_every_start(sets: Path, tokenizers: Path) -> None:
    found = run_script("skyrl", "read_sets.py", "skyrl", sets / "skyrl", tokenizers / "qwen3")
    assert len(found) > 10
    assert {(tuple(r["roles"]), r["env_class"]) for r in found} == {(("system", "user"), "workprint")}


def test_croissant_metadata_is_valid(sets: Path) -> None:
    (found,) = run_script("croissant", "read_sets.py", "croissant", sets / "hf")
    assert found["errors"] == []


def test_verl_reads_every_start(sets: Path, tokenizers: Path) -> None:
    found = run_script("verl", "verl_sets.py", "rl", sets / "verl", tokenizers / "qwen3")
    assert len(found) > 10
    assert {(tuple(r["prompt"]), r["agent"], r["loop"]) for r in found} == {(("system", "user"), "workprint", "workprint")}
    assert {len(r["sha256"]) for r in found} == {64}
