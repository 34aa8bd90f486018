"""Episodes of SkyRL's environment over exported rows, driven as its generator does.

python env_skyrl.py LAKE ROWS EPISODES TOKENIZER    # ROWS: export rl --to skyrl; EPISODES: JSON of test_evaluators.py
"""

import glob
import json
import sys

import skyrl_gym
from datasets import load_dataset
from transformers import AutoTokenizer

from materialize.adapters.skyrl import register

PLACE, ROWS, EPISODES, FOLDER = sys.argv[1:5]
TOKENIZER = AutoTokenizer.from_pretrained(FOLDER)
STARTS = {row["snapshot_id"]: row for row in load_dataset("parquet", data_files=glob.glob(f"{ROWS}/data/*.parquet"), split="train")}
register(PLACE, tokenizer=FOLDER, calls=1)
register(PLACE, tokenizer=FOLDER, name="unlimited")


def written(tool, arguments):
    return f'<think>\nnow\n</think>\n\n<tool_call>\n{{"name": "{tool}", "arguments": {arguments}}}\n</tool_call>'


def run(episode):
    row = STARTS[episode["snapshot_id"]]
    extras = {k: v for k, v in row.items() if k not in ("prompt", "env_class")} | {"max_turns": 8}
    env = skyrl_gym.make(row["env_class"] if episode["calls"] else "unlimited", env_config={}, extras=extras)
    history, _ = env.init(row["prompt"])
    tools = json.loads(row["tools_json"]) or None
    prompt = TOKENIZER.apply_chat_template(history, tokenize=False, add_generation_prompt=True)
    told = TOKENIZER.apply_chat_template(row["prompt"], tools=tools, tokenize=False, add_generation_prompt=True)
    seen, out = [], None
    for reply in [*(written(*call) for call in episode["said"]), episode["text"]]:
        out = env.step(reply + "<|im_end|>")
        seen += [message["content"] for message in out["observations"]]
        if out["done"]:
            break
    metrics = env.get_metrics()
    env.close()
    return {
        "name": episode["name"], "reward": out["reward"], "parts": out["metadata"]["parts"], "seen": seen, "prompt": prompt,
        "same_prompt": prompt == told, "averaged": metrics["reward"],
    }  # fmt: skip


for one in json.load(open(EPISODES)):
    print("@@" + json.dumps(run(one)))
