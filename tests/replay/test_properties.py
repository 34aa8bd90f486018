"""Properties over random runs: refusals change nothing, snapshots restore, contexts rebuild."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from replay.runtime import Runtime
from replay.tool import Product
from schemas.artifact import ArtifactKind
from schemas.canonical import sha256_bytes
from schemas.contract import Fact, Role
from schemas.trajectory import ObservationStatus, Provenance, RoleOutput
from storage.journal import Journal
from tests.replay.conftest import MEMORY
from tests.replay.doubles import (
    PLAN,
    SEGMENTS,
    TinyTool,
    call,
    content,
    contract,
    count_tool,
    music_tool,
    refused,
    registry,
    runtime,
    stitch_tool,
    suite,
)

SPOILED = b"bytes of a product that is rejected"
REFLECTION = {"findings": [], "patch": [{"shot_id": "s001", "target_ms": 2200}]}

OUTPUTS: list[RoleOutput] = [
    call("segment_article", max_sentences=3),
    call("segment_article", max_sentences=1),
    call("segment_article", max_sentences=99),
    call("segment_article"),
    call("plan_shots", segments="all"),
    call("plan_shots", segments="missing", max_shot_ms=4000),
    call("plan_shots", segments="g02"),
    call("plan_shots", segments="g01-g02"),
    call("reflect_plan", focus="all"),
    call("reflect_plan", focus="taste"),
    call("search_music"),
    call("count", text="a", times=2),
    call("count", text="a", times="2"),
    call("reject"),
    call("stitch_video"),
    call("unheard_of"),
    RoleOutput(role=Role.ORCHESTRATOR, text="well", provenance=Provenance.STUDENT),
    content(SEGMENTS),
    content({"segments": SEGMENTS["segments"][:1]}),
    content(PLAN),
    content({"shots": PLAN["shots"][:3]}),
    content({"query": "calm"}),
    content("{"),
    content("{}", role=Role.CRITIC),
    content(REFLECTION, role=Role.CRITIC),
]


def tools() -> tuple[TinyTool, ...]:
    """Besides planning: a counter, a product rejected after its bytes were stored, a music search, a stitcher that needs a plan."""

    def spoil(state: Any, given: Any, env: Any) -> Any:
        env.store.put_bytes(SPOILED, ArtifactKind.RENDER, "video/mp4")
        return refused()

    reject = TinyTool(contract("reject"), executing=spoil)
    music = music_tool(executing=lambda _s, _g, _e: Product((), {"track": "none"}))
    return count_tool(), reject, music, stitch_tool(needs=(Fact.SHOT_PLAN,))


def kept(run: Runtime) -> set[str]:
    """Stored artifacts, apart from contexts (the record of what a role saw) and bytes that nothing refers to."""
    contexts = {c.context_sha256 for c in run.calls} | {run.suite.store.put_json(run.context().visible(), ArtifactKind.CONTEXT).sha256}
    return set(run.suite.store.names()) - contexts - {sha256_bytes(SPOILED)}


def play(folder: Path, choices: list[int]) -> Runtime:
    path = folder / "journal"
    path.unlink(missing_ok=True)
    run = runtime(folder, *tools(), budget=12, content_attempts=2, journal=Journal(path))
    for choice in choices:
        before = (run.state_digest, run.snapshot_id)
        artifacts, lines, known = kept(run), path.read_bytes(), len(run.calls)
        observation = run.step(OUTPUTS[choice])
        added = path.read_bytes().removeprefix(lines)
        assert added.count(b"\n") == len(run.calls) - known, "one line for every call, and no line rewritten"
        assert sha256_bytes(SPOILED).encode() not in added
        if observation.status is ObservationStatus.REFUSED and len(run.calls) <= known + 1:
            assert (run.state_digest, run.snapshot_id) == before
            assert kept(run) == artifacts
        if observation.status is ObservationStatus.REFUSED and not run.finished:
            refusal = next(c for c in reversed(run.calls) if c.observation.status is ObservationStatus.REFUSED)
            assert (refusal.state_before, refusal.state_after) == (before[0], before[0])
            assert refusal.snapshot_after == before[1]
            assert not observation.changed
        assert bool(observation.blockers) is (observation.status is ObservationStatus.REFUSED)
    return run


@settings(max_examples=40, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.integers(0, len(OUTPUTS) - 1), max_size=25), st.data())
def test_random_runs_keep_their_promises(choices: list[int], draw: Any) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        run = play(Path(folder), choices)
        for one in run.calls:
            if one.observation.status is ObservationStatus.REFUSED:
                assert one.state_before == one.state_after
                assert one.changes == ()
        assert all(a.state_after == b.state_before for a, b in zip(run.calls, run.calls[1:], strict=False))
        authored = [c for c in run.calls if c.output.provenance is not Provenance.RUNTIME]
        if not authored:
            return
        recorded = authored[draw.draw(st.integers(0, len(authored) - 1))]
        again = Runtime(
            recorded.snapshot_before,
            registry(*tools()),
            suite(Path(folder), content_attempts=2),
            budget=12,
            history=run.calls[: recorded.call_index],
        )
        visible = again.context().visible()
        assert again.suite.store.put_json(visible, ArtifactKind.CONTEXT).sha256 == recorded.context_sha256
        again.step(recorded.output)
        assert again.calls[recorded.call_index] == recorded
