"""Which chat models a run asks, and which connection a process uses."""

from __future__ import annotations

from typing import Any

import pytest

from jobs import models
from jobs.config import WorkprintConfig
from replay.chat.config import ModelConfig
from schemas.errors import ConfigInvalid

S, T, J = {"model": "s"}, {"model": "t"}, {"model": "j"}
URLS = {part: {"endpoint_url": f"http://127.0.0.1:9/{part}"} for part in ("student", "teacher", "judge")}


def config(policy: dict[str, Any], judge: dict[str, Any] | None = None) -> WorkprintConfig:
    return WorkprintConfig.model_validate({"replay": {"policy": policy}, "repair": {"judge": judge}, "run": {"endpoints": URLS}})


@pytest.mark.parametrize(
    ("policy", "judge", "parts"),
    [
        ({"name": "scripted"}, None, ()),
        ({"name": "scripted"}, J, ("judge",)),
        ({"name": "chat", "student": S, "teacher": T}, None, ("student",)),
        ({"name": "chat", "teacher": T}, J, ("teacher", "judge")),
        ({"name": "mixed", "student": S}, None, ("student",)),
        ({"name": "mixed", "student": S, "teacher": T}, J, ("student", "teacher", "judge")),
    ],
)
def test_a_run_shares_a_connection_to_every_model_that_it_asks(
    policy: dict[str, Any], judge: dict[str, Any] | None, parts: tuple[str, ...]
) -> None:
    assert models.asked(config(policy, judge)) == parts


def test_a_shared_connection_is_used_for_the_very_model_it_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "_SHARED", {})
    run = config({"name": "scripted"}, J)
    ours = models.connect("judge", run)
    models.share({"judge": ours})
    assert models.model("judge", run) is ours
    other = models.model("judge", config({"name": "scripted"}, {"model": "another"}))
    assert other is not ours
    assert other.config == ModelConfig(model="another")


@pytest.mark.parametrize(("part", "setting"), [("student", "replay.policy.student"), ("judge", "repair.judge")])
def test_a_part_without_a_model_is_named(part: Any, setting: str) -> None:
    with pytest.raises(ConfigInvalid, match=setting):
        models.connect(part, config({"name": "scripted"}))
