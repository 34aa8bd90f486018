"""Loads an export with Axolotl's chat strategy, as the exported configuration says, and prints the text that its labels train.

Runs in Axolotl's environment: ``python axolotl_labels.py EXPORT TOKENIZER``. One JSON object a row.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import yaml
from axolotl.prompt_strategies.chat_template import load
from axolotl.utils.dict import DictDefault
from datasets import load_dataset
from transformers import AutoTokenizer

if __name__ == "__main__":
    export, folder = Path(sys.argv[1]), sys.argv[2]
    config = DictDefault(yaml.safe_load((export / "axolotl.yaml").read_text("utf-8")) | {"sequence_len": 32768, "train_on_inputs": False})
    tokenizer = AutoTokenizer.from_pretrained(folder)
    (part,) = config.datasets
    assert part.type == "chat_template"
    strategy = load(tokenizer, config, dict(part))
    for row in load_dataset(part.ds_type, data_files=str(export / part.path), split="train"):
        made = strategy.tokenize_prompt(row)
        labels = [label for label in made["labels"] if label != -100]
        print("@@" + json.dumps({"trained": tokenizer.decode(labels), "all": tokenizer.decode(made["input_ids"])}))
