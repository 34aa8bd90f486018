"""verifiers' own evaluation command over exported rows; the model is a loopback endpoint with scripted, streamed replies.

python env_verifiers.py LAKE ROWS EPISODES    # ROWS: an export of rl or benchmark; EPISODES: JSON of test_evaluators.py, one a row
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from materialize.adapters.starts import read_starts
from tests.media.servers import Reply, serve

PLACE, ROWS, EPISODES = sys.argv[1:4]
PLACES = {start.row["snapshot_id"]: number for number, start in enumerate(read_starts(ROWS))}
ALL = sorted(json.load(open(EPISODES)), key=lambda episode: PLACES[episode["snapshot_id"]])


def reply(said, number):
    """One streamed answer of a chat endpoint: a text, or a tool call."""
    delta = {"role": "assistant", "content": said if isinstance(said, str) else None}
    if not isinstance(said, str):
        delta["tool_calls"] = [
            {"index": 0, "id": f"call_{number}", "type": "function", "function": {"name": said[0], "arguments": said[1]}}
        ]
    about = {"id": f"c{number}", "object": "chat.completion.chunk", "created": 0, "model": "scripted"}
    reason = "stop" if isinstance(said, str) else "tool_calls"
    chunks = [
        {**about, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**about, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        {**about, "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}},
    ]
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return Reply("".join([*lines, "data: [DONE]\n\n"]).encode(), headers={"Content-Type": "text/event-stream"})


def run(calls, episodes):
    """One evaluation, its tasks one after the other."""
    script = [said for episode in episodes for said in (*map(tuple, episode["said"]), episode["text"])]
    name = f"calls-{calls}"
    with serve([reply(said, number) for number, said in enumerate(script)]) as server:
        command = [
            str(Path(sys.executable).with_name("vf-eval")), "workprint", "--env.taskset.rows", ROWS, "--env.taskset.task.lake", PLACE,
            "--client.base-url", server.url, "--client.api-key-var", "NO_KEY", "-m", "scripted", "-c", "1",
            "--select.include.idx", json.dumps([str(PLACES[e["snapshot_id"]]) for e in episodes]), "--env.agent.runtime.type", "subprocess",
            "--no-push", "--no-rich", "-o", "runs", "--run.name", name, *(("--env.taskset.task.calls", str(calls)) if calls else ()),
        ]  # fmt: skip
        env = os.environ | {"NO_KEY": "none", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}  # where uv lies
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    lines = [json.loads(line) for path in Path("runs", name).rglob("traces.jsonl") for line in path.read_text().splitlines()]
    traces = {line["task"]["data"]["row"]["snapshot_id"]: line["traces"][0] for line in lines}
    asked, place = [request for request in server.requests if "messages" in request], 0
    for episode in episodes:
        trace, first = traces[episode["snapshot_id"]], asked[place]
        place += len(episode["said"]) + 1
        last = asked[place - 1]["messages"]
        yield {
            "name": episode["name"], "reward": trace["rewards"]["workprint"]["score"], "parts": trace["metrics"],
            "tools": first.get("tools", []),
            "first": [[m["role"], m["content"]] for m in first["messages"]], "errors": trace["errors"],
            "seen": [m["content"] for m in last if m["role"] == "tool"],
        }  # fmt: skip


for calls in (1, None):
    for found in run(calls, [episode for episode in ALL if episode["calls"] == calls]):
        print("@@" + json.dumps(found))
