"""``workprint openenv`` as a server, and OpenEnv's own client in several sessions at once.

python env_openenv.py LAKE
"""

import json
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from openenv import GenericEnvClient

from storage.lake import Lake

PLACE = sys.argv[1]


def session(job):
    name, row, action = job
    with GenericEnvClient(base_url=URL).sync() as env:
        begun = env.reset(**row).observation
        ended = env.step(action)
        again = env.reset(**row).observation
        state = env.state()
    return {
        "name": name, "role": begun["role"], "tools": len(begun["tools"]), "same_start": begun == again, "done": ended.done,
        "reward": ended.reward, "parts": sorted(ended.observation["metadata"]["parts"]), "state": state,
    }  # fmt: skip


def decision(tool, role):
    rows = Lake(PLACE, create=False).query(
        "select trajectory_id, call_index, snapshot_before, content_json, arguments_json from calls where role = $1 and tool = $2 "
        "and status != 'refused' order by all", [role, tool],
    ).rows  # fmt: skip
    return rows[0]


with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    PORT = free.getsockname()[1]
URL = f"http://127.0.0.1:{PORT}"
server = subprocess.Popen(
    [sys.executable, "-c", "from jobs.cli import main; main()", "openenv", "--lake", PLACE, "--port", str(PORT), "--sessions", "4"]
)
try:
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", PORT)) == 0:
                break
        assert server.poll() is None, "the server ended"
        time.sleep(0.1)
    trajectory, index, snapshot, _, arguments = decision("compose_timeline", "orchestrator")
    row = {"trajectory_id": trajectory, "call_index": index, "calls": 1}
    asked, at, _, text, _ = decision("retrieve_visuals", "generator")
    content = {"trajectory_id": asked, "call_index": at}
    jobs = [
        ("good", row, {"tool": "compose_timeline", "arguments": json.loads(arguments)}),
        ("by_state", {"snapshot_id": snapshot, "calls": 1}, {"tool": "compose_timeline", "arguments": json.loads(arguments)}),
        ("mute", row, {"content": "I am done."}),
        ("content", content, {"content": text}),
    ]
    with ThreadPoolExecutor(len(jobs)) as pool:
        for found in pool.map(session, jobs):
            print("@@" + json.dumps(found))
finally:
    server.terminate()
    server.wait(20)
