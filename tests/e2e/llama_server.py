"""Serves one GGUF model over the OpenAI protocol on loopback; run by the Python of ``build/llm`` (see ``make test-llm``), never by ours.

    build/llm/bin/python tests/e2e/llama_server.py MODEL.gguf PORT [--calls] [--logprobs] [--context N]

As ``python -m llama_cpp.server``, but without the packed weight buffers that are chosen by the processor: llama.cpp's AMX kernels end
with a segmentation fault on virtual machines that announce AMX, and answers should not depend on the machine.
"""

# mypy: ignore-errors
from __future__ import annotations

import argparse

import llama_cpp.llama_cpp as low
import uvicorn
from llama_cpp.server.app import create_app
from llama_cpp.server.settings import ModelSettings, ServerSettings


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("port", type=int)
    parser.add_argument("--logprobs", action="store_true", help="keep the logits of every token, which log probabilities need")
    parser.add_argument("--calls", action="store_true", help="bind what is written to the tools and schemas of the request, by grammar")
    parser.add_argument("--context", type=int, default=8192)
    options = parser.parse_args()
    usual = low.llama_model_default_params

    def plain():
        params = usual()
        params.use_extra_bufts = False
        return params

    low.llama_model_default_params = plain
    model = ModelSettings(
        model=options.model,
        chat_format="chatml-function-calling" if options.calls else None,
        n_ctx=options.context,
        n_threads=2,
        n_threads_batch=2,
        logits_all=options.logprobs,
        verbose=False,
    )
    app = create_app(server_settings=ServerSettings(host="127.0.0.1", port=options.port), model_settings=[model])
    uvicorn.run(app, host="127.0.0.1", port=options.port, log_level="warning")


if __name__ == "__main__":
    main()
