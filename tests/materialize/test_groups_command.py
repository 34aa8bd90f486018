"""``workprint groups`` with a chat model over loopback HTTP: its samples as candidates, and itself as the frozen policy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from jobs.cli import app
from materialize.export.api import export
from schemas.errors import ConfigInvalid
from schemas.reply import ModelReply
from schemas.trajectory import Call
from tests.materialize.real_lake import RealLake
from tests.media.servers import Reply, Server, serve

CONFIG = """
replay: {policy: {student: {model: tiny, temperature: TEMPERATURE, seed: 7, logprobs: true}}}
run: {endpoints: {student: {endpoint_url: "URL", attempts: 1}}}
"""


def answer(content: str = "", tool: str | None = None, arguments: str = "{}") -> Reply:
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if tool is not None:
        message["tool_calls"] = [{"id": "c", "type": "function", "function": {"name": tool, "arguments": arguments}}]
    usage = {"prompt_tokens": 50, "completion_tokens": 9}
    choice = {"message": message, "finish_reason": "stop", "logprobs": {"content": [{"token": "x", "logprob": -0.25}]}}
    return Reply(json.dumps({"model": "tiny", "choices": [choice], "usage": usage}).encode())


SAMPLES = [
    answer(tool="stitch_video"),
    answer(tool="render_shots", arguments='{"shots": "s999"}'),
    answer("I have no idea."),
    answer(tool="stitch_video"),
]
"""The first three are samples of the delivering decision; the last is what the model says ever after."""


def last_call(real_lake: RealLake, trajectory: int) -> Call:
    """The delivering call of a run."""
    call = real_lake.trajectories[trajectory].calls[-1]
    assert call.tool == "stitch_video"
    return call


def groups(real_lake: RealLake, folder: Path, server: Server, call: Call, *options: str, temperature: float = 0.8) -> Any:
    config = folder / "student.yaml"
    config.write_text(CONFIG.replace("URL", server.url).replace("TEMPERATURE", str(temperature)))
    asked = ("--snapshot", call.snapshot_before, "--config", str(config), "-k", "3", "--json", *options)
    return CliRunner().invoke(app, ["groups", "--lake", str(real_lake.lake.root), *asked])


@pytest.mark.slow
def test_samples_of_a_chat_model_are_executed_and_continued_by_it_frozen(real_lake: RealLake, tmp_path: Path) -> None:
    call = last_call(real_lake, 0)
    with serve(SAMPLES) as server:
        made = groups(real_lake, tmp_path, server, call, "--sampler", "chat", "--continuation", "chat")
        assert made.exit_code == 0, made.output
        asked = len(server.requests)
        again = groups(real_lake, tmp_path, server, call, "--sampler", "chat", "--continuation", "chat")
        assert (json.loads(again.stdout)["known"], len(server.requests)) == (1, asked)
    (group,) = json.loads(made.stdout)["groups"]
    assert [(c["origin"], c["refused"]) for c in group["candidates"]] == [("sample", False), ("sample", True), ("sample", True)]
    good, *poor = (c["reward"] for c in group["candidates"])
    assert good > 0.9 > 0.5 > max(poor)
    context = real_lake.lake.store.read_json(call.context_sha256)
    assert [r["messages"] for r in server.requests[:3]] == [context["messages"]] * 3
    assert len({r["seed"] for r in server.requests[:3]}) == 3  # a seed for every sample
    assert [r["messages"] != context["messages"] for r in server.requests[3:]] == [True] * (asked - 3)  # what follows a refusal
    assert asked > 3


@pytest.mark.slow
def test_the_whole_reply_of_a_sample_is_kept_for_training(real_lake: RealLake, tmp_path: Path) -> None:
    call = last_call(real_lake, 1)
    with serve(SAMPLES) as server:
        made = groups(real_lake, tmp_path, server, call, "--sampler", "chat")
        assert (made.exit_code, len(server.requests)) == (0, 3)  # the scripted editor plays on
    (group,) = json.loads(made.stdout)["groups"]
    shown = CliRunner().invoke(
        app, ["reward", "explain", group["candidates"][0]["candidate"], "--lake", str(real_lake.lake.root), "--json"]
    )
    reply = json.loads(shown.stdout)["output"]["reply"]
    kept = ModelReply.model_validate_json(real_lake.lake.store.read(reply))
    assert (kept.model, [p.logprob for p in kept.logprobs or ()]) == ("tiny", [-0.25])
    lake, (name, _) = real_lake.lake, group["candidates"][0]["candidate"].split(".")
    con = lake.connect()
    with pytest.raises(ConfigInvalid, match="no_store"):
        export("groups", "hf", con, tmp_path / "none")
    export("groups", "hf", con, tmp_path / "out", store=lake.store)
    con.close()
    rows = [r for r in pq.read_table(tmp_path / "out" / "data").to_pylist() if r["group_id"] == name]
    assert [(r["model"], r["logprobs_json"], r["completion_token_ids"]) for r in rows] == [
        ("tiny", "[-0.25]", None if kept.completion_token_ids is None else list(kept.completion_token_ids))
    ] * 3


def test_a_model_that_always_says_the_same_cannot_be_sampled(real_lake: RealLake, tmp_path: Path) -> None:
    with serve(SAMPLES) as server:
        found = groups(real_lake, tmp_path, server, last_call(real_lake, 0), "--sampler", "chat", temperature=0.0)
    assert getattr(found.exception, "code", None) == "one_answer"
    assert server.requests == []


def test_a_chat_model_has_to_be_named(real_lake: RealLake) -> None:
    found = CliRunner().invoke(app, ["groups", "--lake", str(real_lake.lake.root), "--sampler", "chat"])
    assert getattr(found.exception, "code", None) == "no_model"


def test_who_proposes_is_one_of_two(real_lake: RealLake) -> None:
    found = CliRunner().invoke(app, ["groups", "--lake", str(real_lake.lake.root), "--sampler", "dice"])
    assert getattr(found.exception, "code", None) == "option"


@pytest.mark.slow
def test_a_dead_model_gives_no_group_and_no_reward(real_lake: RealLake, tmp_path: Path) -> None:
    with serve([Reply(b"gone", status=500)]) as server:
        made = groups(real_lake, tmp_path, server, real_lake.trajectories[0].calls[2], "--sampler", "chat")
    assert made.exit_code == 4
    (failed,) = json.loads(made.stdout)["failed"]
    assert failed["call_index"] == 2
    assert real_lake.lake.query("select count(*) from groups where call_index = 2").rows == [(0,)]
