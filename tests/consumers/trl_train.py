"""Trains a tiny random model in TRL for a few steps on exported sets and tells what was trained.

Runs in TRL's environment: ``python trl_train.py KIND EXPORT TOKENIZER [KIND EXPORT TOKENIZER ...]`` with KIND one of sft, rft, tokens,
pref, kto, opd.
Prints one JSON object for every row with the number of its job, its id and the decoded tokens that bear the loss; then one with the
losses, or with the error that ended the job. No network, no GPU.
"""

from __future__ import annotations

import json
import sys
import tempfile
import traceback
from typing import Any

from datasets import Dataset, load_dataset
from transformers import AutoTokenizer, Qwen3Config, Qwen3ForCausalLM

STEPS = 2


def tiny(tokenizer: Any, seed: int = 0) -> Any:
    """A random model of two layers, as the tokenizer's folder describes it."""
    import torch

    torch.manual_seed(seed)
    return Qwen3ForCausalLM(Qwen3Config.from_pretrained(tokenizer.name_or_path))


def settings(out: str, **more: Any) -> dict[str, Any]:
    """What all trainers are given."""
    common = {"output_dir": out, "max_steps": STEPS, "per_device_train_batch_size": 1, "report_to": [], "use_cpu": True, "bf16": False}
    return common | {"seed": 0, "logging_steps": 1, "save_strategy": "no", "disable_tqdm": True} | more


_job = 0


def say(**values: Any) -> None:
    """Print one line of the job that runs now."""
    print("@@" + json.dumps({"job": _job} | values), flush=True)


def losses(trainer: Any) -> None:
    """The losses of the steps; none may be missing."""
    found = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    say(steps=trainer.state.global_step, losses=found)


def train_sft(data: Dataset, tokenizer: Any, out: str) -> None:
    from trl import SFTConfig, SFTTrainer

    trainer = SFTTrainer(
        model=tiny(tokenizer), args=SFTConfig(**settings(out, max_length=None)), train_dataset=data, processing_class=tokenizer
    )
    trainer.train()
    for row, original in zip(trainer.train_dataset, data, strict=True):
        batch = trainer.data_collator([row])
        labels = [label for label in batch["labels"][0].tolist() if label != -100]
        say(id=original["example_id"], trained=tokenizer.decode(labels), tokens=len(labels), all=tokenizer.decode(batch["input_ids"][0]))
    losses(trainer)


train_rft = train_tokens = train_sft  # the rows have one form, or are tokens already


def train_pref(data: Dataset, tokenizer: Any, out: str) -> None:
    from trl import DPOConfig, DPOTrainer

    path = out + "/model"
    tiny(tokenizer).save_pretrained(path)  # the reference copy is loaded from here
    args = DPOConfig(**settings(out, max_length=None))
    trainer = DPOTrainer(model=path, args=args, train_dataset=data, processing_class=tokenizer)
    trainer.train()
    for row, original in zip(trainer.train_dataset, data, strict=True):
        chosen, rejected = tokenizer.decode(row["chosen_ids"]), tokenizer.decode(row["rejected_ids"])
        say(id=original["example_id"], group=original["group_id"], chosen=chosen, rejected=rejected)
    losses(trainer)


def train_kto(data: Dataset, tokenizer: Any, out: str) -> None:
    from trl import KTOConfig, KTOTrainer

    path = out + "/model"
    tiny(tokenizer).save_pretrained(path)
    args = KTOConfig(**settings(out, per_device_train_batch_size=2, max_length=None))
    trainer = KTOTrainer(model=path, args=args, train_dataset=data, processing_class=tokenizer)
    trainer.train()
    for row, original in zip(trainer.train_dataset, data, strict=True):
        say(id=original["example_id"], group=original["group_id"], trained=tokenizer.decode(row["completion_ids"]), label=row["label"])
    losses(trainer)


def train_opd(data: Dataset, tokenizer: Any, out: str) -> None:
    from trl import DistillationConfig, DistillationTrainer

    teacher = out + "/teacher"
    tiny(tokenizer, seed=1).save_pretrained(teacher)
    args = DistillationConfig(**settings(out, max_steps=1, max_completion_length=8))
    trainer = DistillationTrainer(model=tiny(tokenizer), teacher_model=teacher, args=args, train_dataset=data, processing_class=tokenizer)
    trainer.train()
    losses(trainer)


if __name__ == "__main__":
    for _job, start in enumerate(range(1, len(sys.argv), 3)):
        kind, export, tokenizer_folder = sys.argv[start : start + 3]
        with tempfile.TemporaryDirectory() as scratch:
            try:
                globals()[f"train_{kind}"](load_dataset(export, split="train"), AutoTokenizer.from_pretrained(tokenizer_folder), scratch)
            except Exception:
                say(error=traceback.format_exc())
