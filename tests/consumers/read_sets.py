"""Reads exported sets with the models and readers of their consumers; each function runs in an environment of its own.

``python read_sets.py KIND PATH [TOKENIZER]``. One JSON object a file or row.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def say(**values: object) -> None:
    print("@@" + json.dumps(values), flush=True)


def atif(folder: Path) -> None:
    """Harbor's own model of a trajectory; unknown fields are refused."""
    from harbor.models.trajectories import Trajectory

    for path in sorted(folder.rglob("trj_*.json")):
        read = Trajectory.model_validate_json(path.read_bytes())
        say(name=path.stem, version=read.schema_version, steps=len(read.steps))


def nemo_gym(folder: Path) -> None:
    """The request that NeMo Gym makes of a row."""
    from nemo_gym.base_resources_server import BaseRunRequest

    for line in (folder / "train.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        asked = BaseRunRequest.model_validate(row).responses_create_params
        say(input=[dict(m)["role"] for m in asked.input], tools=[t["name"] for t in asked.tools], call=row["call_index"])


def skyrl(folder: Path, tokenizer: str) -> None:
    """SkyRL's own reader of prompts."""
    from skyrl.train.dataset import PromptDataset
    from transformers import AutoTokenizer

    files = [str(p) for p in sorted(folder.rglob("train-*.parquet"))]
    rows = PromptDataset(files, AutoTokenizer.from_pretrained(tokenizer), max_prompt_length=60_000, num_workers=1)
    for place in range(len(rows)):
        prompt, env_class, extra, _ = rows[place]
        say(roles=[m["role"] for m in prompt], env_class=env_class, call=extra["call_index"])


def croissant(folder: Path) -> None:
    """The reference validator of Croissant."""
    import mlcroissant

    read = mlcroissant.Dataset(jsonld=str(folder / "croissant.json"))
    say(errors=sorted(read.metadata.issues.errors), name=read.metadata.name)


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
