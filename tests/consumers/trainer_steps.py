"""Lets a trainer's own command train a tiny model on an export, as the export says, and tells what every step put the loss on.

Runs in the trainer's environment: ``python trainer_steps.py TRAINER EXPORT MODEL OUT [KIND [TEMPLATE]]``, with TRAINER one of trl,
axolotl, llamafactory and swift, and KIND sft or pref. Nothing of the trainer is replaced: a callback, which transformers adds to every
trainer of its kind, looks at the labels that reach the model. Prints one JSON object for every row of the first step, then one of the run.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import types
from pathlib import Path
from typing import Any

os.environ.update(DISABLE_VERSION_CHECK="1", AXOLOTL_DO_NOT_TRACK="1", WANDB_MODE="disabled", USE_HF="1")
stub = types.ModuleType("torchaudio")  # LLaMA-Factory asks for it at import, and uses it for sound only
stub.__spec__ = types.SimpleNamespace(name="torchaudio", origin=None)  # type: ignore[assignment]  # no more is looked at
sys.modules["torchaudio"] = stub

import transformers.trainer  # noqa: E402 - after the stub
from transformers import AutoTokenizer, TrainerCallback  # noqa: E402

STEPS = 2
ROWS = 8
"""Rows in a step."""


class Watch(TrainerCallback):  # type: ignore[misc]  # transformers has no types here
    """What the trained model was given, and whether it changed."""

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(model.name_or_path)
        self.before = {name: value.detach().clone() for name, value in model.named_parameters()}
        self.rows: list[list[dict[str, Any]]] = [[]]
        self.hook = model.register_forward_pre_hook(self._seen, with_kwargs=True)

    def _seen(self, module: Any, args: Any, given: dict[str, Any]) -> None:
        labels = given.get("labels")
        if labels is not None and module.training:
            for row in labels.tolist():
                learnt = [label for label in row if label != -100]
                self.rows[-1].append({"trained": self.tokenizer.decode(learnt), "tokens": len(learnt)})

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.rows.append([])

    def on_train_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        self.hook.remove()
        for row in self.rows[0]:
            print("\n@@" + json.dumps(row))
        told = [entry for entry in state.log_history if "loss" in entry]
        moved = [name for name, value in model.named_parameters() if not value.detach().equal(self.before[name])]
        end = {"steps": state.global_step, "losses": [e["loss"] for e in told], "moved": len(moved), "told": told}
        print("\n@@" + json.dumps(end | {"rows": [len(rows) for rows in self.rows]}), flush=True)


def watch() -> None:
    """Call when the trainer is imported: ms-swift puts a list of its own in place of this one."""
    transformers.trainer.DEFAULT_CALLBACKS.append(Watch)


def trl(export: Path, model: str, out: str, kind: str = "sft") -> None:
    """The trainer that the others are compared with; all rows in one step."""
    from datasets import load_dataset
    from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer

    watch()
    more = {"max_steps": STEPS, "per_device_train_batch_size": ROWS, "learning_rate": 1e-3, "use_cpu": True, "bf16": False}
    settings, kind_of = {"sft": (SFTConfig, SFTTrainer), "pref": (DPOConfig, DPOTrainer)}[kind]
    args = settings(output_dir=out, max_length=None, report_to=[], logging_steps=1, save_strategy="no", **more)
    kind_of(model=model, args=args, train_dataset=load_dataset(str(export))["train"]).train()


def llamafactory(export: Path, model: str, out: str, kind: str = "sft", template: str = "qwen3_nothink") -> None:
    """The settings of the README; what they do not say is how many steps."""
    import yaml
    from llamafactory.train.tuner import run_exp

    watch()
    (block,) = re.findall(r"```yaml\n(.*?)```", (export / "README.md").read_text("utf-8"), re.DOTALL)
    told = yaml.safe_load(block.replace("path/to/this/folder", str(export)))
    run_exp(
        told
        | {"template": template, "model_name_or_path": model, "output_dir": out, "do_train": True, "finetuning_type": "full"}
        | {"per_device_train_batch_size": ROWS, "max_steps": STEPS, "logging_steps": 1, "learning_rate": 1e-3, "use_cpu": True}
        | {"report_to": "none", "save_strategy": "no", "overwrite_cache": True}
    )


def swift(export: Path, model: str, out: str, kind: str = "sft", template: str = "qwen3") -> None:
    """The command of the README, and the names of a model that no hub knows."""
    from swift.pipelines import rlhf_main, sft_main

    watch()
    (block,) = re.findall(r"```sh\n(.*?)```", (export / "README.md").read_text("utf-8"), re.DOTALL)
    words = shlex.split(block.replace("\\\n", " ").replace("path/to/this/folder", str(export)).replace("Qwen/Qwen3-8B", model))
    more = "--model_type qwen3 --tuner_type full --torch_dtype float32 --gradient_accumulation_steps 1 --gradient_checkpointing false"
    more += f" --max_steps {STEPS} --per_device_train_batch_size {ROWS} --logging_steps 1 --learning_rate 1e-3 --use_cpu true"
    more += f" --report_to none --save_strategy no --split_dataset_ratio 0 --dataset_num_proc 1 --template {template} --output_dir {out}"
    {"sft": sft_main, "rlhf": rlhf_main}[words[1]]([*words[2:], *more.split()])


def axolotl(export: Path, model: str, out: str, kind: str = "sft") -> None:
    """The exported configuration with the place of the folder and a model in it."""
    import yaml
    from axolotl.cli.train import do_cli

    watch()
    config = yaml.safe_load((export / "axolotl.yaml").read_text("utf-8"))
    for part in config["datasets"]:
        part["path"] = str(export / part["path"])
    config |= {"base_model": model, "output_dir": out, "dataset_prepared_path": out + "/prepared"}
    config |= {"special_tokens": {"pad_token": "<|endoftext|>"}, "sequence_len": 32768, "dataset_num_proc": 1, "val_set_size": 0}
    config |= {"micro_batch_size": ROWS, "gradient_accumulation_steps": 1, "max_steps": STEPS, "learning_rate": 1e-3}
    config |= {"optimizer": "adamw_torch", "lr_scheduler": "constant", "logging_steps": 1, "save_strategy": "no"}
    config |= {"bf16": False, "tf32": False}
    path = Path(out) / "axolotl.yaml"
    path.write_text(yaml.safe_dump(config), "utf-8")
    sys.argv = ["train"]  # it reads the rest itself
    do_cli(str(path))


if __name__ == "__main__":
    trainer, export, model, out, *names = sys.argv[1:]
    Path(out).mkdir(parents=True, exist_ok=True)
    globals()[trainer](Path(export), model, out, *names)
