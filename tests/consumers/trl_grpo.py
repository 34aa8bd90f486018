"""One GRPO step in TRL with a tiny random model, whose words are written out, on recorded states of a lake.

Runs in TRL's environment: ``python trl_grpo.py LAKE ROWS SFT TOKENIZER``. ROWS is an ``export rl --to trl`` folder, of which the row of
the timeline is used; SFT is the SFT export of the same lake, whose prompt must read the same. Of the two rollouts of the group one makes
the call that was recorded, the other one that is refused there. What they are worth comes from executing them. Prints one JSON object.
"""

from __future__ import annotations

import json
import sys
import tempfile
from typing import Any

import torch
from datasets import load_dataset
from transformers import AutoTokenizer, Qwen3Config, Qwen3ForCausalLM
from trl import GRPOConfig, GRPOTrainer

from materialize.adapters.trl import environment_class
from materialize.recorded import LakeRuns

GOOD = '<tool_call>\n{"name": "compose_timeline", "arguments": {}}\n</tool_call><|im_end|>'
BAD = '<tool_call>\n{"name": "stitch_video", "arguments": {}}\n</tool_call><|im_end|>'
AFTER = "Done.<|im_end|>"


def scripted(model: Any, tokenizer: Any, prompts: list[list[int]]) -> Any:
    """``generate`` that answers the first time with a good and a bad call, and afterwards with a word."""
    asked = 0

    def generate(input_ids: Any, **_: Any) -> Any:
        nonlocal asked
        said = [GOOD, BAD] if asked == 0 else [AFTER] * len(input_ids)
        if asked == 0:
            prompts.extend(input_ids.tolist())
        asked += 1
        ids = [tokenizer.encode(text, add_special_tokens=False) for text in said]
        longest = max(map(len, ids))
        padded = torch.tensor([i + [tokenizer.pad_token_id] * (longest - len(i)) for i in ids])
        return torch.cat([input_ids, padded], dim=1)

    return generate


def tool_block(text: str) -> str:
    """The part of a rendered prompt that names the tools."""
    return text.partition("<tools>\n")[2].partition("\n</tools>")[0]


def main(lake: str, rows: str, demonstrations: str, folder: str, out: str) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(Qwen3Config.from_pretrained(folder))
    prompts: list[list[int]] = []
    model.generate = scripted(model, tokenizer, prompts)
    config = GRPOConfig(
        output_dir=out, max_steps=1, per_device_train_batch_size=2, num_generations=2, max_completion_length=4096, report_to=[],
        use_cpu=True, bf16=False, seed=0, logging_steps=1, save_strategy="no", disable_tqdm=True, shuffle_dataset=False,
        chat_template_kwargs={"enable_thinking": False},
    )  # fmt: skip
    sft = load_dataset(demonstrations, split="train").filter(lambda row: "compose_timeline" in row["completion_json"])[0]
    data = load_dataset(rows, split="train").filter(lambda row: row["context_sha256"] == sft["context_sha256"])
    seen: list[Any] = []
    base = environment_class(LakeRuns.at(lake), calls=1)

    class Watched(base):  # type: ignore[misc, valid-type]  # made at run time
        def reset(self, **row: Any) -> None:
            super().reset(**row)
            seen.append(self)

    trainer = GRPOTrainer(model=model, args=config, train_dataset=data, processing_class=tokenizer, environment_factory=Watched)
    before = {name: value.clone() for name, value in model.named_parameters()}
    trainer.train()
    log = trainer.state.log_history[0]
    taught = tokenizer.apply_chat_template(
        sft["prompt"], tools=sft["tools"], add_generation_prompt=True, tokenize=False, **sft["chat_template_kwargs"]
    )
    rendered = tokenizer.decode([t for t in prompts[0] if t != tokenizer.pad_token_id])
    print(
        "@@"
        + json.dumps(
            {
                "members": len(seen),
                "starts": sorted({e._rollout.environment.potentials[0] for e in seen}),
                "rewards": [round(e.get_reward(), 6) for e in seen],
                "reward_std": log["reward_std"],
                "loss": log["loss"],
                "moved": any(not torch.equal(before[name], value) for name, value in model.named_parameters()),
                "tools": tool_block(rendered),
                "tools_sft": tool_block(taught),
                "same_prompt": rendered == taught,
            }
        )
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        main(*sys.argv[1:5], scratch)
