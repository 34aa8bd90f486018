"""A call's time: sandboxed processes, engines and the tool's own work share one allowance; running out is a fault of ours."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from media.command import Command, Limits, Sandbox
from replay.deadline import Deadline, TimedSandbox, timed_engines
from replay.runtime import Runtime
from replay.suite import Suite
from replay.tool import Product
from schemas.errors import LimitExceeded
from tests.replay.doubles import TinyTool, ask, call, content, contract, engines, registry, runtime, suite, task


class Hand:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_time_left_is_counted_from_the_start() -> None:
    clock = Hand()
    deadline = Deadline("render_shots", 60, 20, clock)
    clock.now = 15.0
    assert deadline.left_s() == 5.0
    clock.now = 20.0
    with pytest.raises(LimitExceeded) as caught:
        deadline.check()
    assert caught.value.code == "call_wall"
    assert "render_shots took longer than the 60 s" in caught.value.message


@pytest.mark.parametrize(("wanted", "left", "given"), [(60.0, 20.0, 20.0), (10.0, 20.0, 10.0)])
def test_a_process_gets_no_more_time_than_the_call_has_left(wanted: float, left: float, given: float) -> None:
    seen: list[float] = []

    class Looking:
        name = "looking"

        def run(self, command: Command, workdir: Path) -> Any:
            seen.append(command.limits.wall_s)

        def stream(self, command: Command, consume: Any) -> Any:
            seen.append(command.limits.wall_s)

    timed = TimedSandbox(Looking(), Deadline("x", 60, left, Hand()))
    timed.run(Command(("true",), limits=Limits(wall_s=wanted)), Path())
    timed.stream(Command(("true",), limits=Limits(wall_s=wanted)), lambda _pipe: None)
    assert (seen, timed.name) == ([given, given], "looking")


def test_a_real_process_ends_with_its_call(tmp_path: Path, sandbox: Sandbox) -> None:
    timed = TimedSandbox(sandbox, Deadline("x", 1, 0.6))
    started = time.monotonic()
    with pytest.raises(LimitExceeded) as caught:
        timed.run(Command(("sleep", "60")), tmp_path)
    assert caught.value.code == "call_wall"
    assert time.monotonic() - started < 20


def test_a_commands_own_limit_keeps_its_own_code(tmp_path: Path, sandbox: Sandbox) -> None:
    timed = TimedSandbox(sandbox, Deadline("x", 600, 600))
    with pytest.raises(LimitExceeded) as caught:
        timed.run(Command(("sleep", "60"), limits=Limits(wall_s=0.3)), tmp_path)
    assert caught.value.code != "call_wall"


def test_engines_are_asked_only_while_there_is_time() -> None:
    clock = Hand()
    timed = timed_engines(engines(), Deadline("x", 10, 10, clock))
    assert (timed.speech.name, timed.templates, timed.music.tracks) == ("mute", {}, ())
    assert timed.speech.voice_for("en", "default") == "en-voice"
    assert timed.versions() == engines().versions()
    clock.now = 11.0
    with pytest.raises(LimitExceeded):
        timed.speech.voice_for("en", "default")


def slow(seconds: float, **changes: Any) -> TinyTool:
    """A tool that idles in its own code, where nothing can stop it."""

    def execute(state: Any, given: Any, env: Any) -> Product:
        time.sleep(seconds)
        return Product((), {"ok": True})

    return TinyTool(contract("slow", wall_s=1, **changes), executing=execute)


def test_a_call_over_its_time_is_tried_again_and_then_propagates_with_nothing_changed(folder: Path) -> None:
    run = runtime(folder, slow(1.05))
    before = (run.state_digest, run.calls)
    with pytest.raises(LimitExceeded) as caught:
        run.step(call("slow"))
    assert caught.value.code == "call_wall"
    assert (run.state_digest, run.calls) == before
    assert [(r.tool, r.error["code"], r.error["type"]) for r in run.retried] == [("slow", "call_wall", "LimitExceeded")]


def test_all_pieces_of_a_call_share_its_time(folder: Path) -> None:
    tool = TinyTool(contract("search_music", wall_s=1))

    def need(state: Any, arguments: Any, given: Any, env: Any) -> Any:
        time.sleep(0.6)
        return ask() if not given else None

    tool.needing = need
    run = runtime(folder, tool)
    run.step(call("search_music"))
    with pytest.raises(LimitExceeded):
        run.step(content({"query": "calm"}))
    assert run.state.film.pending is not None


def test_the_time_a_role_thinks_does_not_count(folder: Path) -> None:
    tool = TinyTool(contract("search_music", wall_s=1), needing=lambda _s, _a, given, _e: None if given else ask())
    run = runtime(folder, tool)
    run.step(call("search_music"))
    time.sleep(1.1)
    assert run.step(content({"query": "calm"})).results == {"ok": True}


def test_the_next_call_has_its_own_time(folder: Path) -> None:
    run: Runtime = Runtime(task(), registry(slow(0.6)), suite(folder))
    assert isinstance(run.suite, Suite)
    for _ in range(3):
        assert run.step(call("slow")).results == {"ok": True}
