"""Inspect's task over exported rows, with Inspect's mock model saying scripted replies.

python env_inspect.py LAKE ROWS EPISODES    # ROWS: an export of rl or benchmark; EPISODES: JSON of test_evaluators.py
"""

import json
import sys

from inspect_ai import eval as evaluate
from inspect_ai import score
from inspect_ai._util.registry import registry_lookup
from inspect_ai.model import ModelOutput, ModelUsage, get_model

from materialize.adapters.inspect_ai import make_task

PLACE, ROWS, EPISODES = sys.argv[1:4]


def run(episode):
    left = [*map(tuple, episode["said"]), episode["text"]]
    shown = []

    def say(messages, tools, choice, config):
        shown.append(([[m.role, m.text] for m in messages], [t.model_dump(exclude_none=True) for t in tools]))
        reply = left.pop(0)
        if isinstance(reply, str):
            made = ModelOutput.from_content("mockllm/model", reply)
        else:
            made = ModelOutput.for_tool_call("mockllm/model", reply[0], json.loads(reply[1]))
        made.usage = ModelUsage()  # else the mock model counts tokens by a table from the network
        return made

    task = make_task(PLACE, ROWS, calls=episode["calls"])
    task.dataset = task.dataset.filter(lambda s: s.metadata["row"]["snapshot_id"] == episode["snapshot_id"])
    (log,) = evaluate(task, model=get_model("mockllm/model", custom_outputs=say), log_dir="logs", display="none")
    assert log.status == "success", log.error
    (sample,) = log.samples
    (found,) = sample.scores.values()
    (again,) = score(log, task.scorer, action="overwrite", display="none").samples[0].scores.values()
    return {
        "name": episode["name"], "reward": found.value, "parts": found.metadata["parts"], "again": again.value, "first": shown[0][0],
        "tools": shown[0][1], "seen": [m.text for m in sample.messages if m.role == "tool"],
        "mean": log.results.scores[0].metrics["mean"].value,
    }  # fmt: skip


for one in json.load(open(EPISODES)):
    print("@@" + json.dumps(run(one)))
print("@@" + json.dumps({"name": "command_line", "found": registry_lookup("task", "workprint/edit") is not None}))
