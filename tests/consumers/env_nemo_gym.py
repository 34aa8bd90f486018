"""NeMo Gym's resources server over exported rows, on loopback, asked as NeMo Gym's simple agent asks.

python env_nemo_gym.py LAKE ROWS EPISODES    # ROWS: export rl --to nemo-gym; EPISODES: JSON of test_evaluators.py
"""

import json
import socket
import sys
import threading
import time

import requests
import uvicorn
from nemo_gym.base_resources_server import BaseRunRequest, BaseVerifyResponse

from materialize.adapters.nemo_gym import application

PLACE, ROWS, EPISODES = sys.argv[1:4]
LINES = {line["snapshot_id"]: line for line in map(json.loads, open(f"{ROWS}/train.jsonl"))}


def serve(calls):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(application(PLACE, calls=calls), host="127.0.0.1", port=port, log_level="error"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.05)
    return server, f"http://127.0.0.1:{port}"


def response(output):
    return {
        "id": "resp_1", "created_at": 0, "model": "scripted", "object": "response", "output": output, "parallel_tool_calls": False,
        "tool_choice": "auto", "tools": [], "status": "completed",
    }  # fmt: skip


def message(text):
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}


def run(url, episode):
    """Calls whose arguments are no JSON are not sent, as the simple agent does."""
    line = LINES[episode["snapshot_id"]]
    BaseRunRequest.model_validate(line)
    with requests.Session() as http:
        http.post(f"{url}/seed_session", json=line, timeout=300).raise_for_status()
        output, seen = [], []
        for number, (tool, arguments) in enumerate(episode["said"]):
            output.append({"type": "function_call", "call_id": f"c{number}", "name": tool, "arguments": arguments, "id": f"fc{number}"})
            try:
                body = json.loads(arguments)
            except ValueError:
                seen.append('{"error": "no JSON"}')
            else:
                answered = http.post(f"{url}/{tool}", json=body, timeout=300)
                answered.raise_for_status()
                seen.append(answered.text)
            output.append({"type": "function_call_output", "call_id": f"c{number}", "output": seen[-1]})
        asked = line | {"response": response([*output, message(episode["text"])])}
        verified = http.post(f"{url}/verify", json=asked, timeout=300)
        verified.raise_for_status()
        again = http.post(f"{url}/verify", json=asked, timeout=300).status_code
    found = verified.json()
    BaseVerifyResponse.model_validate(found)
    tools = line["responses_create_params"].get("tools", [])
    return {
        "name": episode["name"], "reward": found["reward"], "parts": found["reward_parts"], "seen": seen, "tools": tools, "again": again,
        "kept": found["snapshot_id"],
    }  # fmt: skip


SERVERS = {1: serve(1), None: serve(None)}
for one in json.load(open(EPISODES)):
    print("@@" + json.dumps(run(SERVERS[one["calls"]][1], one)))
URL = SERVERS[1][1]
STATUS = [requests.post(f"{URL}/{path}", json={}, timeout=300).status_code for path in ("seed_session", "render_shots")]
print("@@" + json.dumps({"name": "refused", "status": STATUS}))
for server, _ in SERVERS.values():
    server.should_exit = True
