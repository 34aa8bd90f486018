"""Makes a random model of two layers of a tokenizer's folder: ``python make_model.py TOKENIZER FOLDER``. Runs in TRL's environment."""

from __future__ import annotations

import sys

import torch
from transformers import AutoTokenizer, Qwen3Config, Qwen3ForCausalLM

if __name__ == "__main__":
    torch.manual_seed(0)
    AutoTokenizer.from_pretrained(sys.argv[1]).save_pretrained(sys.argv[2])
    Qwen3ForCausalLM(Qwen3Config.from_pretrained(sys.argv[1])).save_pretrained(sys.argv[2])
