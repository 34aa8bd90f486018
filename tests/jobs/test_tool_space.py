"""A release with other tools or prompts makes its trajectories anew; faults got over are told even when a later one ends the try."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jobs import stages
from jobs.config import WorkprintConfig
from jobs.stages import Workshop, run_replay, tool_space
from media.sandbox import open_sandbox
from repair.registry import full_registry
from replay.registry import Registry
from replay.suite import Retried
from schemas.errors import ToolFailed
from storage.artifacts import ArtifactStore
from tests.replay.doubles import TinyTool, contract, engines, pool_clip
from tests.replay.toy import storyboard, toy_registry


def test_another_tool_or_prompt_is_another_tool_space(monkeypatch: pytest.MonkeyPatch) -> None:
    before = tool_space()
    assert tool_space() == before
    with monkeypatch.context() as patch:
        tools = [t for name in full_registry().names() if (t := full_registry().get(name)) is not None]
        patch.setattr(stages, "full_registry", lambda: Registry([*tools, TinyTool(contract("another"))]))
        assert tool_space() != before
    monkeypatch.setattr(stages, "prompts_digest", lambda: "0" * 64)
    assert tool_space() != before


def test_a_fault_got_over_is_told_when_a_later_one_ends_the_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = {name: tool for name in toy_registry().names() if (tool := toy_registry().get(name)) is not None}
    tries: list[int] = []

    def execute(*_: Any) -> Any:
        tries.append(1)
        raise ToolFailed("engine", f"fault {len(tries)}")

    failing = TinyTool(tools["render_shots"].contract, executing=execute)
    monkeypatch.setattr(stages, "full_registry", lambda: Registry([*(t for n, t in tools.items() if n != "render_shots"), failing]))
    monkeypatch.setattr(stages, "cut_pool", lambda *_a, **_k: (pool_clip(0), pool_clip(1)))
    monkeypatch.setattr(Workshop, "engines", property(lambda _shop: engines()))
    told: list[Retried] = []
    shop = Workshop(WorkprintConfig(), ArtifactStore(tmp_path / "artifacts"), open_sandbox("process"))
    with pytest.raises(ToolFailed, match="fault 2"):
        run_replay(shop, storyboard(4), tmp_path / "film", tmp_path / "journal", "0" * 64, lambda _text: None, told.append)
    assert [(r.tool, r.error["message"]) for r in told] == [("render_shots", "fault 1")]
