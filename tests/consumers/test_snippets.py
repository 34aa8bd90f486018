"""The Python blocks of dataset cards run as they stand, with a tiny model and one step put in their places."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from materialize.distillation import distillation_rows
from materialize.export.api import export
from schemas.example import Split
from tests.consumers.conftest import OFFLINE, ROOT, python_of
from tests.materialize.conftest import storyboard, whole_run
from tests.materialize.real_lake import make_lake
from tests.materialize.test_distillation import connect as connect_turns
from tests.materialize.test_distillation import taken_in_turns
from tests.materialize.test_export_compared import connect, tables  # noqa: F401 - a fixture
from tests.materialize.test_groups import world  # noqa: F401 - a fixture

BLOCK = re.compile(r"^### ([^\n]+)\n+```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHORT = 'output_dir="out", max_steps=1, per_device_train_batch_size=4, use_cpu=True, bf16=False, report_to=[]'


def run(python: str, code: str, cwd: Path) -> str:
    home = {"HF_HOME": str(cwd / "hf"), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([python, "-c", code], cwd=cwd, env=os.environ | OFFLINE | home, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, f"{code}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def cards(exported: Callable[[str], Path], tables: dict[str, pa.Table], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:  # noqa: F811
    """One canonical folder of each kind that a trainer takes; the lake of ``rl`` lies beside it."""
    root = tmp_path_factory.mktemp("cards")
    run_ = whole_run(root / "store")
    turns = distillation_rows(
        taken_in_turns(run_, {"beta_start": 0.8, "update": 50, "decay_updates": 100}), storyboard("prj_one"), run_.store, Split.TRAIN
    )
    (root / "made").mkdir()
    made = make_lake(root / "made")
    made.lake.root.rename(root / "lake")
    groups: duckdb.DuckDBPyConnection = connect(tables)
    for kind, source in {"pref": groups, "kto": groups, "opd": connect_turns(turns)}.items():
        export(kind, "hf", source, root / kind)
    command = str(Path(sys.executable).with_name("workprint"))
    subprocess.run([command, "export", "rl", "--to", "hf", "--lake", "lake", "-o", "rl", "--limit", "4"], cwd=root, check=True)
    return {"sft": exported("hf")} | {kind: root / kind for kind in ("pref", "kto", "opd", "rl")}


@pytest.mark.full
@pytest.mark.parametrize("kind", ["sft", "pref", "kto", "opd", "rl"])
def test_every_python_block_of_a_card_runs(kind: str, cards: dict[str, Path], tiny: Path, tmp_path: Path) -> None:
    folder = cards[kind]
    blocks = dict(BLOCK.findall((folder / "README.md").read_text("utf-8")))
    assert set(blocks) == {"datasets", "pandas and DuckDB", "TRL"}
    for who, code in blocks.items():
        code = code.replace("path/to/this/folder", str(folder)).replace("path/to/lake", str(folder.parent / "lake"))
        code = code.replace("Qwen/Qwen3-8B", str(tiny)).replace("Qwen/Qwen3-0.6B", str(tiny)).replace('output_dir="out"', SHORT)
        said = run(python_of("trl"), code, tmp_path)
        assert ("train_loss" in said) == (who == "TRL")
