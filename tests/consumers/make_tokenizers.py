"""Makes three small byte-level tokenizers with the chat templates that TRL carries for Qwen3, Qwen3.5 and Qwen3.8, each beside the
configuration of a tiny model.

Runs in TRL's environment: ``python make_tokenizers.py TEXTS.json FOLDER``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import trl
from tokenizers import ByteLevelBPETokenizer
from transformers import PreTrainedTokenizerFast, Qwen3Config

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>"]

if __name__ == "__main__":
    texts, root = json.loads(Path(sys.argv[1]).read_text("utf-8")), Path(sys.argv[2])
    for template in ("qwen3", "qwen3_5_think", "qwen3_8"):
        bpe = ByteLevelBPETokenizer()
        bpe.train_from_iterator(texts, vocab_size=600, min_frequency=2, special_tokens=SPECIAL, show_progress=False)
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe._tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>")  # noqa: S106
        tokenizer.chat_template = (Path(trl.__file__).parent / "chat_templates" / f"{template}.jinja").read_text("utf-8")
        tokenizer.save_pretrained(root / template)
        Qwen3Config(
            vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
            num_key_value_heads=2, head_dim=16, max_position_embeddings=65_536, architectures=["Qwen3ForCausalLM"],
        ).save_pretrained(root / template)  # fmt: skip
