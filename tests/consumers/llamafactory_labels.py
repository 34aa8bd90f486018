"""Loads a ShareGPT export with LLaMA-Factory and prints, for every row, the text that its labels train.

Runs in LLaMA-Factory's environment: ``python llamafactory_labels.py EXPORT TOKENIZER TEMPLATE``. One JSON object a row.
"""

from __future__ import annotations

import json
import os
import sys
import types

os.environ["DISABLE_VERSION_CHECK"] = "1"
stub = types.ModuleType("torchaudio")  # asked for at import, used for sound only
stub.__spec__ = types.SimpleNamespace(name="torchaudio", origin=None)  # type: ignore[assignment]  # no more is looked at
sys.modules["torchaudio"] = stub

from llamafactory.data import get_dataset, get_template_and_fix_tokenizer  # noqa: E402 - after the stub
from llamafactory.hparams import DataArguments, ModelArguments  # noqa: E402
from transformers import AutoTokenizer, Seq2SeqTrainingArguments  # noqa: E402

if __name__ == "__main__":
    export, folder, name = sys.argv[1:4]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    data = DataArguments(dataset="workprint", dataset_dir=export, template=name, cutoff_len=32768, overwrite_cache=True)
    model = ModelArguments(model_name_or_path=folder)
    training = Seq2SeqTrainingArguments(output_dir=export + "/../lf-out", use_cpu=True, do_train=True)
    template = get_template_and_fix_tokenizer(tokenizer, data)
    rows = get_dataset(template, model, data, training, stage="sft", tokenizer=tokenizer)["train_dataset"]
    for row in rows:
        labels = [label for label in row["labels"] if label != -100]
        print("@@" + json.dumps({"trained": tokenizer.decode(labels), "all": tokenizer.decode(row["input_ids"])}))
