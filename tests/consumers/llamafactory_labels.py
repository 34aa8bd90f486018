"""Loads a ShareGPT export with LLaMA-Factory and prints, for every row, the text that its labels train.

Runs in LLaMA-Factory's environment: ``python llamafactory_labels.py EXPORT TOKENIZER TEMPLATE [sft|rm|kto]``. One JSON object a row, with
``trained``, or ``chosen`` and ``rejected`` (rm), or ``trained`` and ``label`` (kto).
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
    stage = sys.argv[4] if len(sys.argv) > 4 else "sft"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    data = DataArguments(dataset="workprint", dataset_dir=export, template=name, cutoff_len=32768, overwrite_cache=True)
    model = ModelArguments(model_name_or_path=folder)
    training = Seq2SeqTrainingArguments(output_dir=export + "/../lf-out", use_cpu=True, do_train=True)
    template = get_template_and_fix_tokenizer(tokenizer, data)
    sizes = types.SimpleNamespace(merge_size=2)  # templates of models that see want to know it, though no row has a picture
    processor = types.SimpleNamespace(image_processor=sizes, video_processor=sizes)
    rows = get_dataset(template, model, data, training, stage=stage, tokenizer=tokenizer, processor=processor)["train_dataset"]
    for row in rows:
        fields = {"trained": "labels"} if stage != "rm" else {"chosen": "chosen_labels", "rejected": "rejected_labels"}
        line = {field: tokenizer.decode([label for label in row[labels] if label != -100]) for field, labels in fields.items()}
        print("@@" + json.dumps(line | ({"label": row["kto_tags"]} if stage == "kto" else {})))
