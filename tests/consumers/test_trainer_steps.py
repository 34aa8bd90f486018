"""Other trainers than TRL really train: their own entry points, told what the export's README or configuration says, make two steps of a
tiny random model on a processor. What the loss lay on, and how much of it, is what this project says (checks E to H)."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from materialize.export.api import export
from materialize.export.options import ExportOptions
from tests.consumers.cases import CASES, wanted
from tests.consumers.conftest import run_script
from tests.materialize.test_export_compared import connect, tables  # noqa: F401 - a fixture
from tests.materialize.test_groups import world  # noqa: F401 - a fixture

pytestmark = pytest.mark.full

PAIRS = 3

OWN_END = {"axolotl"}
"""Axolotl trains the end of the turn, and not the line break that templates write after it."""


def steps(trainer: str, folder: Path, model: Path, out: Path, kind: str = "sft") -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The rows of the first step, and the run."""
    script, names = ("verl_steps.py", ()) if trainer == "verl" else ("trainer_steps.py", (trainer,))
    *rows, end = run_script(trainer, script, *names, folder, model, out, *([] if trainer == "verl" else [kind]), cwd=out.parent)
    return rows, end


@pytest.fixture(scope="module")
def trl(exported: Callable[[str], Path], tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The same two steps in TRL, whose labels other tests prove."""
    return steps("trl", exported("trl"), tiny, tmp_path_factory.mktemp("trl") / "out")[1]


@pytest.mark.parametrize("trainer", ["llamafactory", "swift", "axolotl", "verl"])
def test_two_steps_train_what_was_authored(
    trainer: str, exported: Callable[[str], Path], examples: pa.Table, tiny: Path, trl: dict[str, Any], tmp_path: Path
) -> None:
    export("sft", "trl", examples, tmp_path / "tokens", tokenizer=str(tiny))
    counted = {r["example_id"]: r["completion_tokens"] for r in pq.read_table(tmp_path / "tokens" / "data").to_pylist()}
    rows, end = steps(trainer, exported(trainer), tiny, tmp_path / "out")
    cut = 1 if trainer in OWN_END else 0
    told = sorted((text[: len(text) - cut], counted[name] - cut) for name, text in wanted("qwen3").items())
    assert sorted((r["trained"], r["tokens"]) for r in rows) == told
    assert (end["steps"], len(end["losses"])) == (2, 2)
    assert end["moved"] > 20
    exact = {"llamafactory": 5e-4, "swift": 5e-4, "axolotl": 0.01, "verl": 0.05}[trainer]  # one token less a row; numbers of 16 bits
    assert end["losses"] == pytest.approx(trl["losses"], abs=exact)
    assert end["losses"][1] < end["losses"][0]
    assert len(rows) == len(CASES)


@pytest.mark.parametrize("trainer", ["llamafactory", "swift"])
def test_two_steps_compare_executed_pairs(trainer: str, tables: dict[str, pa.Table], tiny: Path, tmp_path: Path) -> None:  # noqa: F811
    """Before anything is learned the loss is that of a coin; after a step it is TRL's, whose pairs other tests prove."""
    groups: duckdb.DuckDBPyConnection = connect(tables)
    ends = {}
    for name in ("trl", trainer):
        report = export("pref", name, groups, tmp_path / name, ExportOptions(limit=PAIRS))
        assert report.rows == {"train": PAIRS}
        ends[name] = steps(name, tmp_path / name, tiny, tmp_path / f"out-{name}", "pref")[1]
    (first, second), moved = ends[trainer]["losses"], ends[trainer]["moved"]
    assert (first, second) == pytest.approx((math.log(2), ends["trl"]["losses"][1]), abs=1e-3)
    assert second < 0.68
    assert moved > 20
