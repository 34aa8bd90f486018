"""The worked example of docs/adding-a-tool.md, taken from the page and put into a copy of the packages: it is found, described and runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from repair.registry import full_registry

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "adding-a-tool.md"
PACKAGES = ("schemas", "media", "storage", "replay", "repair")


def examples() -> dict[str, str]:
    """Files of the page by their path: code blocks whose first line names one."""
    blocks = re.findall(r"```python\n# (\S+\.py)\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    return dict(blocks)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages and tests of replay, with the page's two files added and nothing else changed."""
    root = tmp_path_factory.mktemp("house")
    quiet = shutil.ignore_patterns("__pycache__", "*.pyc")
    for name in (*PACKAGES, "tests/replay"):
        shutil.copytree(ROOT / name, root / name, ignore=quiet)
    for name in ("pyproject.toml", "tests/conftest.py"):
        shutil.copy(ROOT / name, root / name)
    (root / "docs").mkdir()
    for path, text in examples().items():
        (root / path).write_text(text, "utf-8")
    return root


def python(house: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python in the copy."""
    env = {**os.environ, "PYTHONPATH": str(house), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([sys.executable, *arguments], cwd=house, env=env, capture_output=True, text=True, timeout=300)


def test_the_page_brings_one_module_and_one_test_table() -> None:
    assert sorted(examples()) == ["replay/tools/quieten_music.py", "tests/replay/test_quieten_music.py"]


def test_the_new_tool_is_found_described_and_its_table_passes(house: Path) -> None:
    described = python(house, "-m", "replay.reference", "docs/tools.md")
    assert described.returncode == 0, described.stderr
    assert "## quieten_music" in (house / "docs" / "tools.md").read_text("utf-8")
    table = python(
        house, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/replay/test_quieten_music.py", "tests/replay/test_reference.py"
    )
    assert table.returncode == 0, table.stdout + table.stderr
    offered = python(house, "-c", "from repair.registry import full_registry as r; import replay; print(replay.__file__, *r().names())")
    path, *names = offered.stdout.split()
    assert Path(path).parent == house / "replay"
    assert names == sorted([*full_registry().names(), "quieten_music"])


def test_the_examples_keep_the_house_rules(house: Path) -> None:
    for path in examples():
        done = python(house, "-m", "ruff", "check", path)
        assert done.returncode == 0, done.stdout
        done = python(house, "-m", "ruff", "format", "--check", path)
        assert done.returncode == 0, done.stdout
