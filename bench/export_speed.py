"""How long an export of 135,000 examples takes, and how much memory: ``python -m bench.export_speed [EXAMPLES] [CONSUMER]``.

Examples are synthetic (36 a project; 9 KB of prompt and, every second one, 6 KB of tool schemas), in 15 Parquet files as a lake has
after compaction. Prints one line of JSON.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from materialize.export.api import export
from schemas.tables import TABLE
from storage.arrow import schema_of

FILES = 15
PER_PROJECT = 36


def write_lake(folder: Path, projects: int) -> None:
    """Parquet files of table ``examples``."""
    draw = random.Random(0)  # noqa: S311
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(2, 9))) for _ in range(8000)]
    tools = json.dumps([_tool(i) for i in range(13)])
    schema = schema_of(TABLE["examples"])
    for file in range(FILES):
        rows: list[dict[str, Any]] = []
        for number in range(file, projects, FILES):
            script = " ".join(draw.choices(words, k=800))
            rows += [_row(f"prj_{file:02d}_{number:06d}", i, script, draw.choices(words, k=200), tools) for i in range(PER_PROJECT)]
        pq.write_table(pa.Table.from_pylist(rows, schema), folder / f"{file:02d}.parquet", compression="zstd", row_group_size=8192)


def _tool(i: int) -> dict[str, Any]:
    properties = {f"argument_{j}": {"type": "string", "description": "what it is for, in some words"} for j in range(3)}
    parameters = {"type": "object", "properties": properties, "required": []}
    return {"type": "function", "function": {"name": f"tool_{i}", "description": "Does what it says. " * 4, "parameters": parameters}}


def _row(project: str, i: int, script: str, extra: list[str], tools: str) -> dict[str, Any]:
    is_call = i % 2 == 0
    answer: dict[str, Any] = {"role": "assistant", "content": "" if is_call else json.dumps({"queries": extra[:30]})}
    if is_call:
        function = {"name": "tool_1", "arguments": json.dumps({"argument_0": f"s{i:03d}"})}
        answer["tool_calls"] = [{"id": f"call_{i}", "type": "function", "function": function}]
    user = f'<data name="state">{json.dumps({"script": script, "more": extra, "call": i})}</data>'
    return {
        "example_id": f"exa_{project}_{i}", "project_id": project, "trajectory_id": f"trj_{project}", "call_index": i,
        "role": "orchestrator" if is_call else "generator", "kind": "tool_call" if is_call else "queries", "provenance": "scripted",
        "licence": "CC-BY-4.0", "attribution": None, "split": "validation" if project.endswith("0") else "train", "config_digest": "c" * 64,
        "verified": True, "snapshot_id": "snp_" + "0" * 64, "context_sha256": f"{int(project[4:6] + project[7:]) * 100 + i:064x}",
        "prompt_json": json.dumps([{"content": "You edit. " * 120, "role": "system"}, {"content": user, "role": "user"}]),
        "tools_json": tools if is_call else "[]", "completion_json": json.dumps(answer), "prompt_tokens": 2000, "completion_tokens": 60,
        "stage_key": "s", "run_id": "r", "row_digest": "0" * 64,
    }  # fmt: skip


def main(examples: int, consumer: str) -> None:
    """Write, export, report."""
    with tempfile.TemporaryDirectory() as temp:
        folder = Path(temp)
        write_lake(folder, examples // PER_PROJECT)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        connection = duckdb.connect(config={"threads": 2, "memory_limit": "600MB"})
        connection.execute(f"create view examples as select * from '{folder}/*.parquet'")  # noqa: S608
        wall, cpu = time.monotonic(), time.process_time()
        report = export("sft", consumer, connection, folder / "out")
        print(
            json.dumps(
                {
                    "consumer": consumer,
                    "examples": sum(report.rows.values()),
                    "wall_s": round(time.monotonic() - wall, 1),
                    "cpu_s": round(time.process_time() - cpu, 1),
                    "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
                    "peak_mb_before": round(before / 1024),
                    "export_mb": round(sum(f.size_bytes for f in report.files) / 1e6),
                }
            )
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 135_000, sys.argv[2] if len(sys.argv) > 2 else "hf")
