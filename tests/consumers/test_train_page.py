"""Every block of docs/train.md runs as it stands, in order, in one folder with a lake of real tools."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.consumers.conftest import OFFLINE, ROOT, python_of
from tests.materialize.real_lake import make_lake

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    """What each block printed, in order; the first that fails ends it."""
    python = python_of("trl")
    folder = tmp_path_factory.mktemp("page")
    (folder / "made").mkdir()
    made = make_lake(folder / "made")
    shutil.move(made.lake.root, folder / "lake")
    env = (
        os.environ
        | OFFLINE
        | {"PATH": f"{Path(python).parent}:{os.environ['PATH']}", "HF_HOME": str(folder / "hf"), "PYTHONPATH": str(ROOT)}
    )
    out = []
    for kind, text in BLOCK.findall((ROOT / "docs" / "train.md").read_text("utf-8")):
        argv = ["bash", "-euc", text] if kind == "sh" else [python, "-c", text]
        done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=500)
        assert done.returncode == 0, f"{text}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        out.append((kind, done.stdout))
    return out


@pytest.mark.slow
def test_every_block_of_the_page_runs(printed: list[tuple[str, str]]) -> None:
    assert [kind for kind, _ in printed] == ["sh", "python", "python", "python"]
    trained = printed[2][1].partition("trained: ")[2]
    assert trained.startswith('\'<tool_call>\\n{"name": ') or trained.startswith("'{")
    assert trained.rstrip().endswith("<|im_end|>\\n'")
    assert re.search(r"reward: 0\.\d+ deviation: 0\.0", printed[3][1])
