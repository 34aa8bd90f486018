"""Environments of the consumers, and the sets that are loaded in them.

Every consumer has a Python environment of its own below ``build/consumers`` (or ``$WORKPRINT_CONSUMERS``), built by
``make test-consumers``. A test whose environment is not there is skipped and says so.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from materialize.export.api import export
from schemas.tables import TABLE
from storage.arrow import finish_rows, table_of
from tests.consumers.cases import CASES, TOOLS

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "CUDA_VISIBLE_DEVICES": "",
    "OMP_NUM_THREADS": "2",
}

Run = Callable[..., list[dict[str, Any]]]


def python_of(name: str) -> str:
    """The interpreter of a consumer's environment; skips where it was not built."""
    folder = Path(os.environ.get("WORKPRINT_CONSUMERS") or ROOT / "build" / "consumers") / name
    if not (folder / ".ready").exists():
        pytest.skip(f"the environment {name!r} is not built: bash scripts/consumers.sh build {name}")
    return str(folder / "bin" / "python")


def run_script(environment: str, script: str, *args: object, cwd: Path | None = None, timeout: float = 540) -> list[dict[str, Any]]:
    """Run a script of this folder in an environment; the JSON objects it printed, each on a line after ``@@``."""
    python = python_of(environment)
    home = str(cwd or os.environ.get("PYTEST_DEBUG_TEMPROOT") or "/tmp")  # noqa: S108 - caches of a library, no secrets
    env = os.environ | OFFLINE | {"HF_HOME": home + "/hf", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([python, str(HERE / script), *map(str, args)], capture_output=True, text=True, env=env, cwd=cwd, timeout=timeout)
    assert done.returncode == 0, f"{script} ended with {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-6000:]}"
    return [json.loads(line[2:]) for line in done.stdout.splitlines() if line.startswith("@@")]


@pytest.fixture(scope="session")
def examples() -> pa.Table:
    """One row of the examples table for every case."""
    rows = []
    for i, case in enumerate(CASES):
        prompt = [{"role": "system", "content": "You edit films."}, {"role": "user", "content": case.user}]
        rows.append(
            {
                "example_id": f"exa_{case.name}", "project_id": "prj_a", "trajectory_id": "trj_a", "call_index": i,
                "role": "orchestrator" if case.is_call else "generator", "kind": "tool_call" if case.is_call else "queries",
                "provenance": "scripted", "licence": "CC0-1.0", "attribution": None, "split": "train", "config_digest": "c",
                "verified": True, "snapshot_id": "snp_x", "context_sha256": f"{i:064x}",
                "prompt_json": json.dumps(prompt, ensure_ascii=False), "tools_json": json.dumps(TOOLS) if case.is_call else "[]",
                "completion_json": json.dumps(case.completion, ensure_ascii=False),
                "prompt_tokens": None, "completion_tokens": None,
            }
        )  # fmt: skip
    return table_of(TABLE["examples"], finish_rows(TABLE["examples"], rows, stage_key="s", run_id="r"))


@pytest.fixture(scope="session")
def exported(examples: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The cases as an SFT export for a consumer; made once."""
    root = tmp_path_factory.mktemp("exports")

    def folder(consumer: str) -> Path:
        out = root / consumer
        if not out.exists():
            export("sft", consumer, examples, out)
        return out

    return folder


@pytest.fixture(scope="session")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders ``qwen3``, ``qwen3_5_think``, ``qwen3_8``: small byte-level tokenizers with the templates of these models.

    The templates are those that TRL carries, so its environment makes them.
    """
    root = tmp_path_factory.mktemp("tokenizers")
    texts = root / "texts.json"
    texts.write_text(json.dumps([case.user for case in CASES] + [case.qwen3 for case in CASES] + [case.qwen3_8 for case in CASES]))
    run_script("trl", "make_tokenizers.py", texts, root)
    return root


@pytest.fixture(scope="session")
def tiny(tokenizers: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model of two layers that knows Qwen3's template."""
    folder = tmp_path_factory.mktemp("model") / "tiny"
    run_script("trl", "make_model.py", tokenizers / "qwen3", folder)
    return folder
