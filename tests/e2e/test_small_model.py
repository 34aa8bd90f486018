"""A real language model decides: SmolLM2 (135 million weights) behind llama.cpp's server, over loopback, on a real production.

``make test-llm`` builds the server and fetches the weights. A model of this size blunders at nearly every turn, which is what is tested:
its blunders are typed blockers of a run that ends.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
from typer.testing import CliRunner

from jobs.cli import app
from media.assets import asset
from media.command import Command, Limits
from media.sandbox import open_sandbox
from replay.chat.config import EndpointLimits, ModelConfig
from replay.chat.model import ChatRequest, HttpChatModel
from schemas.errors import EngineMissing
from schemas.reply import ModelReply
from storage.artifacts import ArtifactStore

pytestmark = [pytest.mark.slow, pytest.mark.full]

ROOT = Path(__file__).resolve().parents[2]
BUILT = Path(os.environ.get("WORKPRINT_LLM", ROOT / "build" / "llm"))

CONFIG: dict[str, Any] = {
    "inversion": {"asr": {"model": "whisper-tiny-en"}},
    "replay": {
        "content_attempts": 2,
        "speech": {"engine": "flite"},
        "retrieval": {"embedder": "hashing"},
        "render": {"height": 180, "preset": "ultrafast"},
    },
    "materialize": {"validation_share": 0.0, "held_out_share": 0.0, "tokenizer": "none"},
}
STUDENT = {"model": "smollm2", "temperature": 0.7, "seed": 1, "max_tokens": 160, "json_form": "object_schema"}


@contextmanager
def served(*options: str) -> Iterator[str]:
    """The model's server; gives its address."""
    model = BUILT / "model.gguf"
    if not model.exists():
        pytest.skip(f"no model server at {BUILT}: make test-llm builds it")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [str(BUILT / "bin" / "python"), str(Path(__file__).with_name("llama_server.py")), str(model), str(port), *options]
    with subprocess.Popen(command, env={**os.environ, "OMP_WAIT_POLICY": "passive"}) as process:
        try:
            for _ in range(240):
                assert process.poll() is None, "the model server ended"
                try:
                    if requests.get(f"http://127.0.0.1:{port}/v1/models", timeout=2).ok:
                        break
                except requests.ConnectionError:
                    time.sleep(0.5)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.kill()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with served() as url:
        yield url


@pytest.fixture(scope="module")
def binding() -> Iterator[str]:
    """The same with tool calls and contents bound by grammar, as larger servers do: what comes is well formed, and as senseless."""
    with served("--calls") as url:
        yield url


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        whole = asset("demo-video")
    except EngineMissing as e:
        pytest.skip(f"the demo film is not here: {e.next_step}")
    root = tmp_path_factory.mktemp("small-model")
    cut = ("ffmpeg", "-nostdin", "-v", "error", "-ss", "128", "-i", "/in/film", "-t", "16", "-c", "copy", "/out/talk.mkv")
    open_sandbox().run(Command(cut, inputs={"film": whole}, outputs=("talk.mkv",), limits=Limits(wall_s=60)), root)
    return root / "talk.mkv"


def produce(film: Path, folder: Path, url: str, policy: dict[str, Any], budget: int) -> dict[str, Any]:
    """One run of the whole job; gives what the lake says of it, and prints the figures of docs/agents.md."""
    config = json.loads(json.dumps(CONFIG))
    config["replay"] |= {"policy": policy, "budget": budget}
    config["run"] = {"engine": "local", "endpoints": {"student": {"endpoint_url": url, "timeout_s": 600, "attempts": 2}}}
    (folder / "config.json").write_text(json.dumps(config))
    lake = folder / "lake"
    began = time.monotonic()
    done = CliRunner().invoke(app, ["run", str(film), "--lake", str(lake), "--config", str(folder / "config.json"), "--json"])
    seconds = time.monotonic() - began
    assert done.exit_code in (0, 4), done.output

    def ask(sql: str) -> list[dict[str, Any]]:
        result = CliRunner().invoke(app, ["query", sql, "--lake", str(lake), "--json"])
        assert result.exit_code == 0, result.output
        rows: list[dict[str, Any]] = json.loads(result.stdout)
        return rows

    out = {
        "run": ask("select policy, outcome, calls, orchestrator_calls, refused_calls from trajectories"),
        "failures": ask("select * from failures"),
        "turns": ask(
            "select provenance, role, count(*) calls, count(reply_sha256) answered, count(*) filter (status = 'refused') refused, "
            "sum(prompt_tokens) prompt_tokens, sum(completion_tokens) completion_tokens from calls group by all order by all"
        ),
        "blockers": ask(
            "select provenance, code, count(*) n from blockers join calls using (trajectory_id, call_index) group by all order by n desc"
        ),
        "replies": ask("select reply_sha256 sha from calls where reply_sha256 is not null"),
    }
    store = ArtifactStore(lake / "artifacts")
    replies = [ModelReply.model_validate(store.read_json(r["sha"])) for r in out["replies"]]
    out["model_s"] = round(sum(r.wall_ms for r in replies) / 1000, 1)
    out["cut"] = sum(r.finish_reason == "length" for r in replies)
    print(json.dumps({**out, "replies": len(replies), "seconds": round(seconds, 1)}, indent=1))
    return out


@pytest.mark.parametrize("form", ["native", "hermes", "qwen_xml"])
def test_a_small_model_alone_in_all_roles_ends_its_run_with_typed_blockers(film: Path, server: str, tmp_path: Path, form: str) -> None:
    seen = produce(film, tmp_path, server, {"name": "chat", "student": {**STUDENT, "tool_form": form}}, budget=6)
    (run,) = seen["run"]
    assert run["policy"] == "chat smollm2"
    assert run["outcome"] in ("incomplete", "delivered")
    assert seen["failures"] == []
    students = [t for t in seen["turns"] if t["provenance"] == "student"]
    assert sum(t["calls"] for t in students) >= 6
    assert all(t["answered"] == t["calls"] and t["completion_tokens"] > 0 for t in students)
    refused = sum(t["refused"] for t in students)
    assert sum(b["n"] for b in seen["blockers"] if b["provenance"] == "student") >= refused


def test_a_small_model_held_to_well_formed_calls_meets_the_checks_behind_them(film: Path, binding: str, tmp_path: Path) -> None:
    student = {**STUDENT, "extra": {"tool_choice": "auto"}}
    seen = produce(film, tmp_path, binding, {"name": "chat", "student": student}, budget=6)
    (run,) = seen["run"]
    assert run["outcome"] in ("incomplete", "delivered")
    assert seen["failures"] == []
    assert {b["code"] for b in seen["blockers"] if b["provenance"] == "student"} - {"unparsable_output"}


def test_a_small_model_beside_the_scripted_teacher_speaks_in_every_role(film: Path, server: str, tmp_path: Path) -> None:
    policy = {
        "name": "mixed",
        "seed": 4,
        "student": {**STUDENT, "tool_form": "hermes"},
        "turns": {"beta_start": 0.75, "update": 0, "decay_updates": 100},
    }
    seen = produce(film, tmp_path, server, policy, budget=30)
    (run,) = seen["run"]
    assert run["outcome"] in ("incomplete", "delivered")
    assert seen["failures"] == []
    assert {t["role"] for t in seen["turns"] if t["provenance"] == "student"} == {"orchestrator", "generator", "critic"}
    assert not [b for b in seen["blockers"] if b["provenance"] == "teacher" and b["code"] == "unparsable_output"]


def test_log_probabilities_of_the_real_server_are_kept() -> None:
    with served("--logprobs", "--context", "512") as url:
        config = ModelConfig(model="smollm2", max_tokens=16, seed=1, logprobs=True, extra={"top_logprobs": 1})
        reply = HttpChatModel(config, EndpointLimits(endpoint_url=url, attempts=1)).complete(
            ChatRequest([{"role": "user", "content": "Count to three."}])
        )
    assert reply.completion_tokens is not None
    assert reply.logprobs is not None
    assert len(reply.logprobs) in (reply.completion_tokens - 1, reply.completion_tokens)
    assert all(t.logprob <= 0 for t in reply.logprobs)
    assert "".join(t.token for t in reply.logprobs).strip() == reply.content.strip()
