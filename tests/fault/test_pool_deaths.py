"""Actors that do not come back: who asks them gets a typed fault in bounded time, the rest of the batch is done, a later run mends."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from jobs.progress import last_actors
from storage.lake import Lake
from tests.fault.light import config_of, light_groups, run_light
from tests.media.servers import Reply, serve

pytestmark = [pytest.mark.fault, pytest.mark.slow, pytest.mark.full]

ASKING = (2, 5)


def members() -> list[int]:
    """Processes of this test's Ray that hold an engine."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cmdline").read_bytes().startswith(b"ray::_Member") and _is_ours(int(entry.name)):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def _is_ours(pid: int) -> bool:
    while pid > 1:
        if pid == os.getpid():
            return True
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return False


@contextmanager
def killed_at_every_start() -> Iterator[list[int]]:
    """No engine's process lives for longer than a moment inside the block."""
    over = threading.Event()
    killed: list[int] = []

    def work() -> None:
        while not over.wait(0.05):
            for pid in members():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
                killed.append(pid)

    killer = threading.Thread(target=work)
    killer.start()
    try:
        yield killed
    finally:
        over.set()
        killer.join()


POOL = {"cpus": 0, "rise_s": 3, "attempts": 2}
ANSWER = {"model": "m", "choices": [{"message": {"content": "ok"}}], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}


def test_an_engine_that_never_starts_again_costs_the_projects_that_ask_it_and_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = config_of(engine="ray", ray={"cpus_per_project": 1, "actors": {"ocr": POOL}}, attempts=2)
    groups = light_groups(range(8), dict.fromkeys(ASKING, "reads"))
    check(tmp_path / "lake", groups, config, "ocr", ("ToolFailed", "engine_died"), capsys)


def test_a_model_that_never_starts_again_costs_the_projects_that_ask_it_and_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve([Reply(json.dumps(ANSWER).encode(), wait_s=2)]) as server:
        config = config_of(engine="ray", ray={"cpus_per_project": 1}, attempts=2, endpoints={"student": {"endpoint_url": server.url}})
        replay = config.replay.model_validate({"policy": {"name": "chat", "student": {"model": "m"}}})
        groups = light_groups(range(8), dict.fromkeys(ASKING, "chats"))
        check(
            tmp_path / "lake",
            groups,
            config.model_copy(update={"replay": replay}),
            "student",
            ("EndpointFailed", "model_actor_died"),
            capsys,
        )


def check(root: Path, groups: Any, config: Any, part: str, fault: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    began = time.monotonic()
    with killed_at_every_start() as killed:
        results = run_light(root, groups, config)
    wall = time.monotonic() - began
    assert [(r.status, r.code) for r in results] == [
        ("failed", fault[1]) if n in ASKING else ("delivered", None) for n in range(8)
    ], (results, killed)  # fmt: skip
    rows = [r for r in Lake(root).scan("failures").to_pylist() if r["quarantined"]]
    assert [(r["stage"], r["error_type"], r["code"], r["attempts"]) for r in rows] == [("replay", *fault, 2)] * 2
    assert len(killed) > 1
    assert wall < 150
    assert capsys.readouterr().out == ""  # nothing of Ray's among the results
    assert last_actors(root, "run_light")[part]["failed"] >= 1
    results = run_light(root, groups, config, "run_again")
    assert {r.status for r in results} == {"delivered"}
