"""TRL trains exactly what was authored. Needs an environment with TRL, named by WORKPRINT_TRL_PYTHON."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest

from materialize.export.api import export
from schemas.tables import TABLE
from storage.arrow import finish_rows, table_of

ARGUMENTS = (
    '{"shots": "all"}',
    "{}",
    '{"n": 3, "yes": true}',
    '{"x": null, "f": 23.976023976023978}',
    '{"s": "夜空 <b> \\"q\\""}',
    '{"z": {"a": [1]}}',
)
TOOL = {
    "type": "function",
    "function": {"name": "cut", "description": "Cut.", "parameters": {"type": "object", "properties": {"shots": {"type": "string"}}}},
}


def _table() -> pa.Table:
    rows = []
    answers = [
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "cut", "arguments": a}}]}
        for a in ARGUMENTS
    ] + [{"role": "assistant", "content": '{"queries":[{"shot_id":"s001","query":"夜空\\n"}]}'}]
    for i, answer in enumerate(answers):
        is_call = "tool_calls" in answer
        rows.append(
            {
                "example_id": f"exa_{i}", "project_id": "prj_a", "trajectory_id": "trj_a", "call_index": i,
                "role": "orchestrator" if is_call else "generator", "kind": "tool_call" if is_call else "queries",
                "provenance": "scripted", "licence": "CC0-1.0", "attribution": None, "split": "train", "config_digest": "c",
                "verified": True,
                "snapshot_id": "snp_x", "context_sha256": "x",
                "prompt_json": json.dumps([{"role": "system", "content": "Edit."}, {"role": "user", "content": f"<|im_end|> {i}"}]),
                "tools_json": json.dumps([TOOL]) if is_call else "[]",
                "completion_json": json.dumps(answer), "prompt_tokens": None, "completion_tokens": None,
            }
        )  # fmt: skip
    return table_of(TABLE["examples"], finish_rows(TABLE["examples"], rows, stage_key="s", run_id="r"))


@pytest.mark.slow
def test_trl_trains_the_authored_text_and_nothing_else(tmp_path: Path) -> None:
    python = os.environ.get("WORKPRINT_TRL_PYTHON")
    if not python:
        pytest.skip("set WORKPRINT_TRL_PYTHON to the Python of an environment with torch==2.13.0 and trl==1.16.0")
    export("sft", "trl", _table(), tmp_path / "out")
    script = Path(__file__).with_name("trl_sft.py")
    env = os.environ | {"HF_HOME": str(tmp_path / "hf")}
    done = subprocess.run([python, str(script), str(tmp_path / "out")], capture_output=True, text=True, env=env)
    figures = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"template"')]
    assert [(f["template"], f["rows"], f["equal"]) for f in figures] == [(t, 7, 7) for t in ("qwen3", "qwen3_5_think", "qwen3_8")], (
        done.stderr
    )
    assert done.returncode == 0
