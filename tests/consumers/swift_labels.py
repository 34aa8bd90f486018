"""Loads an export with ms-swift, as its README says, and prints, for every row, the text that its labels train.

Runs in its environment: ``python swift_labels.py FILE.jsonl TOKENIZER TEMPLATE AGENT_TEMPLATE [train|rlhf|kto]``. One JSON object a row,
with ``trained``, or ``chosen`` and ``rejected`` (rlhf), or ``trained`` and ``label`` (kto).
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from swift.dataset import load_dataset
from swift.model import get_processor
from swift.template import get_template

if __name__ == "__main__":
    path, folder, kind, agent = sys.argv[1:5]
    mode = sys.argv[5] if len(sys.argv) > 5 else "train"
    (scale,) = re.findall(r"--loss_scale (\S+)", (Path(path).parent / "README.md").read_text("utf-8"))
    fields = {
        "train": {"trained": "labels"},
        "rlhf": {"chosen": "chosen_labels", "rejected": "rejected_labels"},
        "kto": {"trained": "chosen_labels"},
    }[mode]
    processor = get_processor(folder, model_type="qwen3")
    template = get_template(processor, template_type=kind, agent_template=agent, enable_thinking=False, loss_scale=scale)
    template.set_mode(mode)
    rows, _ = load_dataset(path, num_proc=1)
    for row in rows:
        encoded = template.encode(row)
        line = {field: processor.decode([label for label in encoded[labels] if label != -100]) for field, labels in fields.items()}
        print("@@" + json.dumps(line | ({"label": encoded["label"]} if mode == "kto" else {})))
