"""Loads an export with ms-swift and prints, for every row, the text that its labels train.

Runs in ms-swift's environment: ``python swift_labels.py FILE.jsonl TOKENIZER TEMPLATE AGENT_TEMPLATE``. One JSON object a row.
"""

from __future__ import annotations

import json
import sys

from swift.dataset import load_dataset
from swift.model import get_processor
from swift.template import get_template

if __name__ == "__main__":
    path, folder, kind, agent = sys.argv[1:5]
    processor = get_processor(folder, model_type="qwen3")
    template = get_template(processor, template_type=kind, agent_template=agent, enable_thinking=False)
    template.set_mode("train")
    rows, _ = load_dataset(path, num_proc=1)
    for row in rows:
        encoded = template.encode(row)
        labels = [label for label in encoded["labels"] if label != -100]
        print("@@" + json.dumps({"trained": processor.decode(labels), "all": processor.decode(encoded["input_ids"])}))
