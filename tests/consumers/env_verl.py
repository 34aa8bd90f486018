"""Samples through verl's agent loop over a lake; the server that would sample on a GPU says what it is told to.

python env_verl.py LAKE TOKENIZER SITE    # SITE: packages of this project, behind verl's own
"""

import json
import sys

sys.path.append(sys.argv[3])

import hydra
from omegaconf import OmegaConf
from transformers import AutoTokenizer
from verl.experimental.agent_loop.agent_loop import DictConfigWrap
from verl.utils.dataset.rl_dataset import RLHFDataset
from verl.workers.rollout.replica import TokenOutput

from storage.lake import Lake

PLACE, FOLDER = sys.argv[1:3]
TOKENIZER = AutoTokenizer.from_pretrained(FOLDER)
ROLLOUT = {"prompt_length": 16000, "response_length": 12000, "multi_turn": {"format": "hermes"}}
CONFIG = OmegaConf.create({"actor_rollout_ref": {"rollout": ROLLOUT}, "data": {}})


class Server:
    """Says the given texts, one a turn."""

    def __init__(self, replies):
        self.replies, self.asked = list(replies), []

    async def generate(self, request_id, prompt_ids, sampling_params, priority=0, **_):
        self.asked.append(list(prompt_ids))
        ids = [*TOKENIZER.encode(self.replies.pop(0), add_special_tokens=False), TOKENIZER.convert_tokens_to_ids("<|im_end|>")]
        return TokenOutput(token_ids=ids, log_probs=[-0.5] * len(ids), extra_fields={})


def rollout(name, replies, row, calls=None):
    server = Server(replies)
    loop = hydra.utils.instantiate(
        {"_target_": "materialize.adapters.verl.agent_loop", "lake": PLACE, "calls": calls},
        trainer_config=DictConfigWrap(CONFIG), server_manager=server, tokenizer=TOKENIZER, processor=None, hf_model_type="qwen3",
        dataset_cls=RLHFDataset, data_config=DictConfigWrap(CONFIG.data), tools=None,
    )  # fmt: skip
    made = loop.loop.run_until_complete(loop.run({"temperature": 1.0}, raw_prompt=[], extra_info=row, priority=0))
    whole = made.prompt_ids + made.response_ids
    print("@@" + json.dumps({
        "name": name,
        "reward": made.reward_score,
        "turns": made.num_turns,
        "trained": TOKENIZER.decode([t for t, m in zip(made.response_ids, made.response_mask, strict=True) if m]),
        "prompt": TOKENIZER.decode(made.prompt_ids),
        "response": TOKENIZER.decode(made.response_ids),
        "logprobs": len(made.response_logprobs) == len(made.response_ids),
        "as_asked": all(whole[: len(asked)] == asked for asked in server.asked),
    }))  # fmt: skip


def decision(tool, role):
    rows = Lake(PLACE, create=False).query(
        "select trajectory_id, call_index, content_json, arguments_json from calls where role = $1 and tool = $2 and status != 'refused' "
        "order by all", [role, tool],
    ).rows  # fmt: skip
    trajectory, index, text, arguments = rows[0]
    return {"trajectory_id": trajectory, "call_index": index, "index": 3}, text, arguments


def call(name, arguments):
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


ROW, _, ARGUMENTS = decision("compose_timeline", "orchestrator")
rollout("good", [call("compose_timeline", ARGUMENTS)], ROW, calls=1)
rollout("mute", ["I am done."], ROW, calls=1)
rollout("early", [call("render_shots", '{"shots": "all"}'), call("compose_timeline", ARGUMENTS), "Enough."], ROW)
ROW, TEXT, _ = decision("retrieve_visuals", "generator")
rollout("content", [TEXT], ROW)
rollout("cut", [TEXT[:20]], ROW)
