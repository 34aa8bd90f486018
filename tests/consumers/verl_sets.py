"""Reads exports with verl's own loaders: SFT through ``data.custom_cls``, RL prompts through RLHFDataset.

Runs in verl's environment: ``python verl_sets.py sft EXPORT TOKENIZER...`` or ``python verl_sets.py rl EXPORT TOKENIZER``. One JSON object
a row.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import yaml
from omegaconf import OmegaConf
from transformers import AutoTokenizer


def sft(folder: Path, *tokenizers: str) -> None:
    from verl.utils.import_utils import load_extern_object

    kind = load_extern_object("pkg://materialize.export.verl_dataset", "WorkprintSFTDataset")
    files = [str(p) for p in sorted(folder.rglob("train-*.parquet"))]
    config = OmegaConf.create({"pad_mode": "no_padding", "max_length": 65_536, "truncation": "error"})
    for place in tokenizers:
        tokenizer = AutoTokenizer.from_pretrained(place)
        for row in kind(files, tokenizer, config):
            ids, mask = row["input_ids"].tolist(), row["loss_mask"].tolist()
            trained = [i for i, m in zip(ids, mask, strict=True) if m]
            said = {
                "template": Path(place).name,
                "trained": tokenizer.decode(trained),
                "tokens": len(trained),
                "all": tokenizer.decode(ids),
            }
            print("@@" + json.dumps(said))


def rl(folder: Path, place: str) -> None:
    from verl.utils.dataset.rl_dataset import RLHFDataset

    config = OmegaConf.create({"max_prompt_length": 65_536, "return_raw_chat": True, "filter_overlong_prompts": False})
    files = [str(p) for p in sorted(folder.rglob("train-*.parquet"))]
    rows = RLHFDataset(files, AutoTokenizer.from_pretrained(place), config)
    (loop,) = yaml.safe_load((folder / "agent.yaml").read_text("utf-8"))
    for i in range(len(rows)):
        row = rows[i]
        said = {"prompt": [m["role"] for m in row["raw_prompt"]], "agent": row["agent_name"], "loop": loop["name"]}
        print("@@" + json.dumps(said | {"call": row["extra_info"]["call_index"], "sha256": row["extra_info"]["trajectory_sha256"]}))


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
