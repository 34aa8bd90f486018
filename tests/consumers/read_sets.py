"""Reads exported sets with the models and readers of their consumers; each function runs in an environment of its own.

``python read_sets.py KIND PATH [TOKENIZER]``. One JSON object a file or row.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NotRequired


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


def openai(folder: Path) -> None:
    """The types of a chat request in OpenAI's SDK, which fine-tuning lines consist of; unknown fields of a line are refused.

    The SDK's message types allow more than fine-tuning does: ``tests/consumers/test_readers.py`` holds the rest.
    """
    from openai.types.chat import ChatCompletionAssistantMessageParam, ChatCompletionFunctionToolParam, ChatCompletionMessageParam
    from pydantic import TypeAdapter, with_config
    from typing_extensions import TypedDict

    closed = with_config({"extra": "forbid"})

    @closed
    class Asked(TypedDict):
        messages: list[ChatCompletionMessageParam]
        tools: NotRequired[list[ChatCompletionFunctionToolParam]]
        parallel_tool_calls: NotRequired[bool]

    @closed
    class Pair(TypedDict):
        input: Asked
        preferred_output: list[ChatCompletionAssistantMessageParam]
        non_preferred_output: list[ChatCompletionAssistantMessageParam]

    example, pair = TypeAdapter(Asked), TypeAdapter(Pair)  # they live as long as what they check

    def checked(read: Any, raw: Any, key: str = "") -> None:
        """Walk through what pydantic checks only as it is read: the SDK types lists as iterables, and a text as content counts as one."""
        if isinstance(read, dict):
            for name, part in read.items():
                checked(part, raw[name], name)
        elif not isinstance(read, str | int | float | None) and not (key == "content" and isinstance(raw, str)):
            for part, raw_part in zip(read, raw, strict=True):
                checked(part, raw_part)

    for line in (folder / "train.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        if "input" in row:
            checked(pair.validate_json(line, strict=True), row)
            asked, said = row["input"], [row["preferred_output"], row["non_preferred_output"]]
        else:
            checked(example.validate_json(line, strict=True), row)
            asked, said = row, [[m for m in row["messages"] if m["role"] == "assistant"]]
        calls = [[(c["function"]["name"], c["function"]["arguments"]) for m in part for c in m.get("tool_calls", ())] for part in said]
        say(
            roles=[m["role"] for m in asked["messages"]],
            said=[len(part) for part in said],
            content=[part[0].get("content") for part in said],
            calls=calls,
            tools=[t["function"]["name"] for t in asked.get("tools", ())],
        )


def mcp(folder: Path) -> None:
    """The official SDK's client over standard streams: lists the tools of ``workprint mcp``, looks, and makes calls.

    ``folder`` holds ``server.json`` (command and arguments) and ``calls.json`` (name and arguments of each).
    """
    import asyncio

    import mcp as sdk

    command = json.loads((folder / "server.json").read_text("utf-8"))
    calls = json.loads((folder / "calls.json").read_text("utf-8"))

    async def drive() -> None:
        server = sdk.StdioServerParameters(command=command[0], args=command[1:])
        async with sdk.Client(server, read_timeout_seconds=300) as client:
            listed = await client.list_tools()
            say(tools=[t.name for t in listed.tools], schemas=[t.input_schema["type"] for t in listed.tools])
            for name, arguments in calls:
                result = await client.call_tool(name, arguments)
                say(name=name, error=bool(result.is_error), text=result.content[0].text)

    asyncio.run(drive())


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
