"""Acceptance check of an SFT export in TRL: two training steps of a tiny random model, and a comparison of what was trained.

Runs in an environment of its own (TRL and this project pin different things)::

    pip install torch==2.13.0 trl==1.16.0
    python tests/consumers/trl_sft.py EXPORT_FOLDER

For every row and three chat templates the tokens with a label are decoded and compared with the text that was authored. Exit status 0
when all are equal. Needs no network and no GPU.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "TOKENIZERS_PARALLELISM": "false", "CUDA_VISIBLE_DEVICES": ""}

TEMPLATES = ("qwen3", "qwen3_5_think", "qwen3_8")


def expected(template: str, answer: dict[str, Any]) -> str:
    """The text that must be trained, written out by hand for each template."""
    text: str = answer["content"]
    for call in answer["tool_calls"] or ():
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        if template == "qwen3":
            body = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False) + "\n"
        else:
            parameters = "".join(f"<parameter={k}>\n{_xml(template, v)}\n</parameter>\n" for k, v in arguments.items())
            body = f"<function={name}>\n{parameters}</function>\n"
        text += ("\n" if text else "") + f"<tool_call>\n{body}</tool_call>"
    return text + "<|im_end|>\n"


def _xml(template: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if template == "qwen3_5_think" and not isinstance(value, dict | list):
        return str(value)  # this template writes True and None; its own models were trained so
    return json.dumps(value, ensure_ascii=False)


def tokenizer_for(texts: list[str]) -> Any:
    """A byte-level BPE tokenizer of about 600 tokens."""
    from tokenizers import ByteLevelBPETokenizer
    from transformers import PreTrainedTokenizerFast

    bpe = ByteLevelBPETokenizer()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>"]
    bpe.train_from_iterator(texts, vocab_size=600, min_frequency=2, special_tokens=special)
    return PreTrainedTokenizerFast(tokenizer_object=bpe._tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>")  # noqa: S106


def check(folder: Path, template: str) -> dict[str, Any]:
    """Train two steps and compare; returns figures."""
    import trl
    from datasets import load_dataset
    from transformers import Qwen3Config, Qwen3ForCausalLM
    from trl import SFTConfig, SFTTrainer

    start = time.monotonic()
    data = load_dataset(str(folder), split="train")
    tokenizer = tokenizer_for([m["content"] for row in data.select(range(min(50, len(data)))) for m in row["prompt"] + row["completion"]])
    tokenizer.chat_template = (Path(trl.__file__).parent / "chat_templates" / f"{template}.jinja").read_text("utf-8")
    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
            num_key_value_heads=2, head_dim=16, max_position_embeddings=65_536,
        )
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as out:
        config = SFTConfig(
            output_dir=out, max_steps=2, per_device_train_batch_size=1, max_length=None, report_to=[], use_cpu=True, bf16=False, seed=0,
            logging_steps=1, save_strategy="no", disable_tqdm=True,
        )  # fmt: skip
        trainer = SFTTrainer(model=model, args=config, train_dataset=data, processing_class=tokenizer)
        trainer.train()
    wrong = []
    trained_tokens = all_tokens = 0
    for row, original in zip(trainer.train_dataset, data, strict=True):
        batch = trainer.data_collator([row])
        labels = batch["labels"][0].tolist()
        ids = [label for label in labels if label != -100]
        trained_tokens += len(ids)
        all_tokens += len(labels)
        got, want = tokenizer.decode(ids), expected(template, original["completion"][0])
        if got != want:
            wrong.append((original["example_id"], got, want))
    for example, got, want in wrong[:3]:
        print(f"{example}:\n  trained  {got!r}\n  authored {want!r}")
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    return {
        "template": template,
        "rows": len(data),
        "equal": len(data) - len(wrong),
        "tokens": all_tokens,
        "trained": trained_tokens,
        "loss": losses,
        "seconds": round(time.monotonic() - start, 1),
    }


def main(folder: Path) -> int:
    """Run all templates; print one line of JSON each."""
    good = True
    for template in TEMPLATES:
        figures = check(folder, template)
        print(json.dumps(figures))
        good = good and figures["rows"] == figures["equal"] > 0 and figures["trained"] > 0
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
