"""The commands and blocks of dataset cards that no trainer's test runs: taken out of the card, and read or run by whom they are for."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from materialize.export.api import export
from media.assets import asset
from schemas.errors import EngineMissing
from storage.lake import Lake
from tests.consumers.conftest import OFFLINE, ROOT, python_of, run_script
from tests.consumers.test_snippets import SHORT, run
from tests.materialize.real_lake import make_lake
from tests.materialize.test_export_compared import connect, tables  # noqa: F401 - a fixture
from tests.materialize.test_groups import world  # noqa: F401 - a fixture
from tests.media.servers import Reply, serve

pytestmark = pytest.mark.full

BLOCK = re.compile(r"^(?:### ([^\n]+)\n+)?(?:[^#`]*?)```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two lakes of real tools: one to train on, one held out."""
    return {split: make_lake(tmp_path_factory.mktemp(split), split).lake.root for split in ("train", "held_out")}


def card(places: dict[str, Path], kind: str, consumer: str, out: Path, name: str | None = None) -> str:
    """A block of the card of a new export, with real places in it."""
    place = places["held_out" if kind == "benchmark" else "train"]
    lake = Lake(place, create=False)
    connection = lake.connect()
    export(kind, consumer, connection, out, store=lake.store)
    connection.close()
    return block(out, name).replace("path/to/lake", str(place))


def block(folder: Path, name: str | None = None) -> str:
    """The block below a heading of a folder's card; the only one without a name."""
    text = (folder / "README.md").read_text("utf-8").partition("## Loading")[2]
    found = [code for heading, _, code in BLOCK.findall(text) if name is None or heading == name]
    assert len(found) == 1
    return found[0].replace("path/to/this/folder", str(folder))


def qwen3() -> Path:
    try:
        return asset("qwen3-tokenizer")
    except EngineMissing as missing:
        pytest.skip(str(missing))


def test_trl_trains_rows_that_are_tokens_by_the_block_of_their_card(places: dict[str, Path], tiny: Path, tmp_path: Path) -> None:
    lake = Lake(places["train"], create=False)
    export("sft", "trl", lake.connect(), tmp_path / "set", tokenizer=str(tiny))
    code = block(tmp_path / "set", "TRL").replace("Qwen/Qwen3-8B", str(tiny)).replace('output_dir="out"', SHORT)
    assert "train_loss" in run(python_of("trl"), code, tmp_path)


@pytest.mark.parametrize("consumer", ["verl", "hf"])
def test_verls_trainer_reads_the_rows_of_its_command(places: dict[str, Path], tokenizers: Path, tmp_path: Path, consumer: str) -> None:
    code = card(places, "sft", consumer, tmp_path / "set", "verl")
    (found,) = run_script("verl", "card_commands.py", "verl_sft", code, tokenizers / "qwen3", cwd=tmp_path)
    assert found["model"] == "Qwen/Qwen3-8B"
    assert found["rows"] > 20
    assert min(found["trained"]) > 5


def test_verls_prompts_and_loop_are_those_of_its_command(places: dict[str, Path], tokenizers: Path, tmp_path: Path) -> None:
    code = card(places, "rl", "verl", tmp_path / "set", "verl")
    (found,) = run_script("verl", "card_commands.py", "verl_rl", code, tokenizers / "qwen3", cwd=tmp_path)
    assert found["loop"] == "workprint"
    assert found["agents"] == ["workprint"]
    assert found["rows"]["train_files"] == found["rows"]["val_files"] > 5


def test_skyrl_takes_the_settings_of_its_commands(places: dict[str, Path], tmp_path: Path) -> None:
    code = card(places, "sft", "skyrl", tmp_path / "set")
    (found,) = run_script("skyrl", "card_commands.py", "skyrl_sft", code, cwd=tmp_path)
    assert found == {"folder": [str(tmp_path / "set")], "splits": ["train"], "length": 32768}


def test_skyrls_block_restores_states(places: dict[str, Path], tmp_path: Path) -> None:
    code = card(places, "rl", "skyrl", tmp_path / "set", "SkyRL").replace("Qwen/Qwen3-8B", str(qwen3()))
    found = run_script("skyrl", "card_commands.py", "skyrl_rl", code, cwd=tmp_path)
    assert [(row["roles"], row["told"]) for row in found] == [(["system", "user"], True)] * 2


def test_nemo_gym_takes_the_settings_of_its_command(places: dict[str, Path], tmp_path: Path) -> None:
    code = card(places, "rl", "nemo-gym", tmp_path / "set")
    (found,) = run_script("nemo-gym", "card_commands.py", "nemo_gym", code, cwd=tmp_path)
    assert (found["command"], found["agent"], found["rows"] > 5) == ("ng_collect_rollouts", "YOUR_AGENT", True)


def test_harbor_takes_the_block_for_episodes(places: dict[str, Path], tmp_path: Path) -> None:
    code = card(places, "sft", "atif", tmp_path / "set")
    assert run_script("harbor", "card_commands.py", "plain", code, cwd=tmp_path) == [{"done": True}]


@pytest.mark.parametrize(("kind", "method"), [("sft", "supervised"), ("pref", "dpo")])
def test_openais_client_uploads_the_file_and_starts_the_job(
    places: dict[str, Path],
    tables: dict[str, pa.Table],  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    method: str,
) -> None:
    groups: duckdb.DuckDBPyConnection = connect(tables)
    if kind == "pref":
        export("pref", "openai-jsonl", groups, tmp_path / "set")
        code = block(tmp_path / "set")
    else:
        code = card(places, kind, "openai-jsonl", tmp_path / "set")
    with serve([Reply(b'{"id": "file-1", "object": "file"}'), Reply(b'{"id": "job-1"}')]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        assert run_script("openai", "card_commands.py", "plain", code, cwd=tmp_path) == [{"done": True}]
    sent, started = server.requests
    assert (tmp_path / "set" / "train.jsonl").read_bytes() in sent["bytes"]
    assert (started["training_file"], started["method"]) == ("file-1", {"type": method})


INSPECT = """
import sys
from inspect_ai._cli.main import main
from inspect_ai.model._providers import mockllm
async def uncounted(*_): pass
(mock,) = (c for c in vars(mockllm).values() if hasattr(c, "_ensure_default_usage"))
mock._ensure_default_usage = uncounted  # it counts by a table from the network
sys.argv[0] = "inspect"
main()
"""
"""Inspect's command, whose mock model counts no tokens."""


def command(environment: str, code: str, cwd: Path, *more: str, start: str | None = None, **env: str) -> str:
    """Run a shell command of a card by the program in a consumer's environment, or by Python code that starts it."""
    python = python_of(environment)
    folder = Path(python).parent
    program, *argv = shlex.split(code.replace("\\\n", " "))
    begin = [str(folder / program)] if start is None else [python, "-c", start]
    home = {"HF_HOME": str(cwd / "hf"), "PYTHONPATH": str(ROOT), "PATH": f"{folder}:{os.environ['PATH']}"}
    done = subprocess.run(
        [*begin, *argv, *more], cwd=cwd, env=os.environ | OFFLINE | home | env, capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.parametrize("kind", ["rl", "benchmark"])
def test_inspect_runs_the_command_of_the_card(places: dict[str, Path], tmp_path: Path, kind: str) -> None:
    code = card(places, kind, "hf", tmp_path / "set", "Inspect").replace("openai/gpt-5-mini", "mockllm/model")
    more = ["--limit", "1", "--display", "plain", "--log-format", "json", "--log-dir", "logs"]
    said = command("inspect", code, tmp_path, *more, start=INSPECT)
    (log,) = [json.loads(path.read_text("utf-8")) for path in (tmp_path / "logs").glob("*.json")]
    (score,) = log["results"]["scores"]
    assert (log["status"], score["name"], "workprint_reward" in said) == ("success", "workprint_reward", True)
    assert 0 <= score["metrics"]["mean"]["value"] <= 1


@pytest.mark.parametrize("kind", ["rl", "benchmark"])
def test_verifiers_runs_the_command_of_the_card(places: dict[str, Path], tmp_path: Path, kind: str) -> None:
    code = card(places, kind, "hf", tmp_path / "set", "verifiers").replace("openai/gpt-5-mini", "scripted")
    with serve([Reply(_streamed("Enough."), headers={"Content-Type": "text/event-stream"})]) as server:
        more = ["--client.base-url", server.url, "--client.api-key-var", "NO_KEY", "-c", "1", "-n", "1", "--no-rich", "-o", "runs"]
        command("verifiers", code, tmp_path, *more, NO_KEY="none")
    (line,) = [json.loads(line) for path in (tmp_path / "runs").rglob("traces.jsonl") for line in path.read_text("utf-8").splitlines()]
    (trace,) = line["traces"]
    assert trace["errors"] == []
    assert 0 <= trace["rewards"]["workprint"]["score"] <= 1


def _streamed(text: str) -> bytes:
    """A chat endpoint's streamed answer."""
    about: dict[str, Any] = {"id": "c1", "object": "chat.completion.chunk", "created": 0, "model": "scripted"}
    parts = [({"role": "assistant", "content": text}, None), ({}, "stop")]
    chunks = [about | {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]} for delta, reason in parts]
    chunks.append(about | {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}})
    return "".join([*(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks), "data: [DONE]\n\n"]).encode()
