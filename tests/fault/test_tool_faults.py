"""A tool that crashes or takes too long is a fault of ours: tried again in a fresh folder up to the bound, written into ``failures``, and
neither seen by a policy nor found in a trajectory, a context or an example."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from jobs import chain as chain_module
from jobs.chain import Chain
from jobs.config import WorkprintConfig
from jobs.sources import SourceGroup
from materialize.config import MaterializeConfig
from materialize.examples import materialize
from replay.config import PolicyConfig, ReplayConfig
from replay.episode import run_episode
from replay.policies.scripted import ScriptedPolicy
from replay.registry import Registry
from replay.runtime import Runtime
from replay.tool import Product, Tool, ToolEnv
from schemas.errors import LimitExceeded, OutputRejected, PipelineError, ToolFailed
from schemas.media import SourceItem
from schemas.trajectory import Trajectory
from storage.lake import Lake
from tests.replay.doubles import suite
from tests.replay.toy import ToyCritic, storyboard, toy_registry, toy_task

pytestmark = pytest.mark.fault

BOARD = storyboard(6)
CANARY = "the engine fell over at 0x7f12"


class Faulty:
    """A tool whose work fails at some tries; everything else is the tool's own."""

    def __init__(self, tool: Tool, fail: Callable[[], None], tries: Collection[int]) -> None:
        self._tool, self._fail, self._tries = tool, fail, tries
        self.contract = tool.contract.model_copy(update={"wall_s": 1})
        self.folders: list[Path] = []
        for name in ("resolve", "need", "accept"):
            setattr(self, name, getattr(tool, name))

    def execute(self, state: Any, arguments: Any, given: Any, env: ToolEnv) -> Product:
        assert not list(env.workdir.iterdir()), "a fresh folder"
        (env.workdir / "half").write_text("made")
        self.folders.append(env.workdir)
        if len(self.folders) in self._tries:
            self._fail()
        done = self._tool.execute(state, arguments, given, env)
        assert isinstance(done, Product)
        return done


def crash() -> None:
    raise ToolFailed("engine", CANARY)


def stall() -> None:
    time.sleep(1.05)


def overflow() -> None:
    raise LimitExceeded("memory", CANARY)


def bug() -> None:
    raise RuntimeError(CANARY)


def refused_output() -> None:
    raise OutputRejected("link", CANARY)


def play(folder: Path, fail: Callable[[], None] = crash, tries: Collection[int] = ()) -> tuple[Trajectory, Runtime, Faulty]:
    """A scripted run in which the renderer fails at some of its tries."""
    folder.mkdir()
    tools = {name: tool for name in toy_registry().names() if (tool := toy_registry().get(name)) is not None}
    faulty = Faulty(tools["render_shots"], fail, tries)
    run = Runtime(toy_task(BOARD), Registry([*(t for n, t in tools.items() if n != "render_shots"), faulty]), suite(folder))
    policy = ScriptedPolicy(BOARD, 3, ReplayConfig(policy=PolicyConfig(mistake_rate=0.0)), ToyCritic())
    return run_episode(run, policy), run, faulty


@pytest.mark.parametrize(
    ("fail", "code"), [(crash, "engine"), (stall, "call_wall"), (overflow, "memory")], ids=["crash", "time-out", "memory"]
)
def test_a_fault_that_passes_leaves_no_trace_in_what_is_learnt_from(folder: Path, fail: Callable[[], None], code: str) -> None:
    healthy, _, _ = play(folder / "healthy")
    trajectory, run, tool = play(folder / "faulty", fail, {1})
    assert trajectory == healthy
    assert [(r.tool, r.error["code"]) for r in run.retried] == [("render_shots", code)]
    assert len(set(tool.folders[:2])) == 2
    assert not any(path.exists() for path in tool.folders)
    examples = materialize(trajectory, BOARD, run.suite.store, run.suite.snapshots, MaterializeConfig(tokenizer="none"), None).output
    assert len(examples) > 8
    for text in (trajectory.model_dump_json(), *(e.model_dump_json() for e in examples)):
        assert CANARY not in text
        assert "call_wall" not in text
    assert all(CANARY.encode() not in run.suite.store.read(c.context_sha256) for c in trajectory.calls)


@pytest.mark.parametrize(
    ("fail", "tries", "error"),
    [(crash, 2, ToolFailed), (stall, 2, LimitExceeded), (bug, 1, ToolFailed), (refused_output, 1, OutputRejected)],
    ids=["crash", "time-out", "bug", "refused output"],
)
def test_a_fault_that_stays_ends_the_try_at_the_bound(
    folder: Path, fail: Callable[[], None], tries: int, error: type[PipelineError]
) -> None:
    seen: list[int] = []

    def counted() -> None:
        seen.append(1)
        fail()

    with pytest.raises(error):
        play(folder / "run", counted, set(range(1, 9)))
    assert len(seen) == tries


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def chain(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Chain:
    """The chain of one source over a real lake, with no waiting between its attempts."""
    monkeypatch.setattr(chain_module.time, "sleep", lambda _s: None)
    group = SourceGroup("key", (SourceItem(uri="talk.mp4"),), folder / "talk.mp4", "a" * 64, 1)
    return Chain(group, WorkprintConfig(), Lake(folder / "lake"), "run_1")


def failures(folder: Path) -> list[tuple[Any, ...]]:
    """Rows of the table, in order."""
    return Lake(folder / "lake").query("select code, attempts, quarantined, message from failures order by attempts").rows


def test_a_fault_that_passed_is_written_into_failures(folder: Path, chain: Chain) -> None:
    _, run, _ = play(folder / "run", crash, {1})
    for retried in run.retried:
        chain._got_over(retried)
    ((code, attempts, quarantined, message),) = failures(folder)
    assert (code, attempts, quarantined) == ("engine", 1, False)
    assert message.endswith(f"render_shots: {CANARY}")


def test_a_fault_that_stays_is_tried_afresh_and_then_quarantined(folder: Path, chain: Chain) -> None:
    tries: list[int] = []

    def work() -> Any:
        tries.append(1)
        return play(folder / f"try-{len(tries)}", crash, set(range(1, 9)))

    with pytest.raises(chain_module._GaveUp):
        chain._attempts("replay", work)
    assert [(code, attempts, quarantined) for code, attempts, quarantined, _ in failures(folder)] == [
        ("engine", 1, False),
        ("engine", 2, False),
        ("engine", 3, True),
    ]
