"""Other trainers train exactly what was authored (checks F, G and H)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.consumers.cases import CASES
from tests.consumers.conftest import run_script

pytestmark = pytest.mark.full


@pytest.mark.parametrize(("template", "column"), [("qwen3_nothink", "qwen3"), ("qwen3_5_nothink", "qwen3_8")])
def test_llamafactory_trains_the_authored_text(
    template: str, column: str, exported: Callable[[str], Path], tokenizers: Path, tmp_path: Path
) -> None:
    """LLaMA-Factory's form of a Qwen3.5 call writes booleans as JSON does, which is Qwen3.8's text; it has no template of that name."""
    rows = run_script("llamafactory", "llamafactory_labels.py", exported("llamafactory"), tokenizers / column, template, cwd=tmp_path)
    assert [r["trained"] for r in rows] == [getattr(case, column) for case in CASES]


@pytest.mark.parametrize(
    ("template", "agent", "column"),
    [
        ("qwen3", "hermes", "qwen3"),
        ("qwen3_nothinking", "hermes", "qwen3"),
        ("qwen3_5", "qwen3_5", "qwen3_8"),
        ("qwen3_8", "qwen3_5", "qwen3_8"),
    ],
)
def test_swift_trains_the_authored_text(
    template: str, agent: str, column: str, exported: Callable[[str], Path], tokenizers: Path, tmp_path: Path
) -> None:
    """ms-swift's form of a Qwen3.5 call writes booleans as JSON does, which is Qwen3.8's text."""
    file = exported("swift") / "train.jsonl"
    rows = run_script("swift", "swift_labels.py", file, tokenizers / column, template, agent, cwd=tmp_path)
    assert [r["trained"] for r in rows] == [getattr(case, column) for case in CASES]


@pytest.mark.parametrize("template", ["qwen3", "qwen3_5_think", "qwen3_8"])
def test_axolotl_trains_the_authored_text(template: str, exported: Callable[[str], Path], tokenizers: Path, tmp_path: Path) -> None:
    """Axolotl trains the end of the turn, and not the line break that templates write after it."""
    rows = run_script("axolotl", "axolotl_labels.py", exported("axolotl"), tokenizers / template, cwd=tmp_path)
    assert [r["trained"] + "\n" for r in rows] == [getattr(case, template) for case in CASES]
