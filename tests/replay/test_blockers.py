"""The closed taxonomy: one input for every code through the real runtime, each answered with its subject, needs and remedies."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from replay.runtime import Runtime
from replay.tool import Product
from schemas.artifact import ArtifactKind
from schemas.blocker import RULES, Blocker, BlockerCode
from schemas.contract import Fact, Role
from schemas.trajectory import ObservationStatus, Provenance, RoleOutput
from tests.replay.doubles import (
    SEGMENTS,
    TinyTool,
    call,
    content,
    contract,
    count_tool,
    music_tool,
    planned,
    refused,
    runtime,
    stitch_tool,
)


def fresh(folder: Path) -> Runtime:
    """A run before its first call, with a tool of every kind."""
    reject = TinyTool(contract("reject"), executing=lambda _s, _g, _e: refused(needs=("renders",), remedies=("render_shots",)))
    mend = TinyTool(contract("mend", repairable=True))
    late = stitch_tool(needs=(Fact.SHOT_PLAN, Fact.MUSIC))
    music = music_tool(executing=lambda _s, _g, _e: Product((), {}))
    return runtime(folder, count_tool(), reject, mend, late, music, budget=9, run_repairs=0, content_attempts=2)


def asked(folder: Path) -> Runtime:
    """A run that waits for the generator's segments."""
    run = fresh(folder)
    run.step(call("segment_article", max_sentences=3))
    return run


def with_plan(folder: Path) -> Runtime:
    """A run with five planned shots."""
    return planned(fresh(folder))


def given_up(folder: Path) -> Runtime:
    """A run at the last attempt of an answer."""
    run = asked(folder)
    run.step(content("nonsense"))
    return run


def at_the_end(folder: Path) -> Runtime:
    """A run before its last call."""
    run = fresh(folder)
    for _ in range(8):
        run.step(call("stitch_video"))
    return run


def over(folder: Path) -> Runtime:
    """A run that is over, without a film."""
    run = at_the_end(folder)
    run.step(call("stitch_video"))
    return run


WORDS = RoleOutput(role=Role.ORCHESTRATOR, text="Let us stitch.", provenance=Provenance.STUDENT)
BROKEN = RoleOutput(role=Role.ORCHESTRATOR, tool="count", arguments_json="{", provenance=Provenance.STUDENT)

TABLE: list[tuple[Callable[[Path], Runtime], RoleOutput, BlockerCode, str, tuple[str, ...], tuple[str, ...]]] = [
    (fresh, WORDS, BlockerCode.UNPARSABLE_OUTPUT, "output", (), ()),
    (fresh, BROKEN, BlockerCode.UNPARSABLE_OUTPUT, "arguments", (), ()),
    (asked, content("{"), BlockerCode.UNPARSABLE_OUTPUT, "content", (), ()),
    (fresh, content("{}"), BlockerCode.ROLE_MISMATCH, "role:generator", (), ()),
    (fresh, call("stitch_vidoe"), BlockerCode.UNKNOWN_TOOL, "tool:stitch_vidoe", (), ("stitch_video",)),
    (fresh, call("count"), BlockerCode.MISSING_ARGUMENT, "argument:text", (), ()),
    (fresh, call("count", text="a", speed=1), BlockerCode.UNKNOWN_ARGUMENT, "argument:speed", (), ()),
    (fresh, call("count", text=1), BlockerCode.WRONG_TYPE, "argument:text", (), ()),
    (fresh, call("count", text="a", times=10), BlockerCode.VALUE_NOT_ALLOWED, "argument:times", (), ()),
    (asked, content({"segments": SEGMENTS["segments"][:1]}), BlockerCode.CONTENT_CONTRACT_BROKEN, "content:segments", (), ()),
    (given_up, content({"segments": []}), BlockerCode.CONTENT_CONTRACT_BROKEN, "content:segments", (), ("segment_article",)),
    (with_plan, call("plan_shots", segments="g09"), BlockerCode.UNRESOLVED_REFERENCE, "segment:g09", (), ()),
    (with_plan, call("segment_article", max_sentences=3), BlockerCode.WRONG_STAGE_ORDER, "tool:segment_article", (), ("plan_shots",)),
    (fresh, call("plan_shots", segments="all"), BlockerCode.PREREQUISITE_MISSING, "tool:plan_shots", ("segments",), ("segment_article",)),
    (with_plan, call("stitch_video"), BlockerCode.PREREQUISITE_MISSING, "tool:stitch_video", ("music",), ("search_music",)),
    (fresh, call("mend"), BlockerCode.REPAIR_LIMIT_REACHED, "tool:mend", (), ("stitch_video",)),
    (over, call("count", text="a"), BlockerCode.BUDGET_EXHAUSTED, "film", (), ()),
    (fresh, call("reject"), BlockerCode.PRODUCT_REJECTED, "film", ("renders",), ("render_shots",)),
    (at_the_end, call("count", text="a"), BlockerCode.DELIVERY_INCOMPLETE, "film", ("shot_plan", "music"), ()),
]


def first_of(run: Runtime, output: RoleOutput) -> Blocker:
    """The blocker that an output leads to: its own, or that of what the runtime had to do next."""
    observation = run.step(output)
    if run.calls[-1].output.provenance is Provenance.RUNTIME and not run.finished:
        return run.calls[-1].observation.blockers[0]
    return (observation.blockers or run.calls[-1].observation.blockers)[0]


@pytest.mark.parametrize(
    ("start", "output", "code", "subject", "needs", "remedies"), TABLE, ids=[f"{n}-{row[2].value}" for n, row in enumerate(TABLE)]
)
def test_one_input_for_every_code(
    folder: Path,
    start: Callable[[Path], Runtime],
    output: RoleOutput,
    code: BlockerCode,
    subject: str,
    needs: tuple[str, ...],
    remedies: tuple[str, ...],
) -> None:
    run = start(folder)
    before = (run.state_digest, run.snapshot_id) if code is not BlockerCode.CONTENT_CONTRACT_BROKEN else None
    made = stored(run)
    blocker = first_of(run, output)
    assert (blocker.code, blocker.subject, blocker.needs, blocker.remedies) == (code, subject, needs, remedies)
    assert blocker.message
    assert re.fullmatch(form(code), blocker.subject)
    if before is not None and code is not BlockerCode.DELIVERY_INCOMPLETE:
        assert (run.state_digest, run.snapshot_id) == before
        assert stored(run) == made


def stored(run: Runtime) -> set[str]:
    """Artifacts of the store apart from contexts, which record what a role saw and come with every call."""
    contexts = {c.context_sha256 for c in run.calls}
    return set(run.suite.store.names()) - contexts - {run.suite.store.put_json(run.context().visible(), ArtifactKind.CONTEXT).sha256}


def form(code: BlockerCode) -> str:
    """The documented forms of a subject as a pattern."""
    (rule,) = [r for r in RULES if r.code is code]
    forms = re.split(r", | or ", rule.subject)
    return "|".join(re.sub(r"[A-Z]+$", ".+", one) for one in forms)


def test_the_table_and_the_rules_cover_the_closed_list() -> None:
    assert {row[2] for row in TABLE} == set(BlockerCode)
    assert [r.code for r in RULES] == sorted(BlockerCode, key=[r.code for r in RULES].index)
    assert len(RULES) == len(BlockerCode) == 15


def test_needs_and_remedies_come_only_where_the_rules_say_so() -> None:
    rules = {r.code: r for r in RULES}
    for _, _, code, _, needs, remedies in TABLE:
        assert not needs or rules[code].needs
        assert not remedies or rules[code].remedies


LADDER = ["parse", "schema", "references", "prerequisites", "budget", "execute", "commit"]


def test_rungs_come_in_the_order_of_the_runtime() -> None:
    places = [LADDER.index(r.rung) for r in RULES]
    assert places == sorted(places)


def test_an_output_wrong_in_every_way_is_refused_at_the_first_rung(folder: Path) -> None:
    """Each next output mends the fault before it, and meets the next rung."""
    lost = Blocker(code=BlockerCode.UNRESOLVED_REFERENCE, subject="shot:s099", message="there is no such shot")
    tool = count_tool()
    tool.contract = tool.contract.model_copy(update={"needs": (Fact.MUSIC,), "repairable": True})
    tool.resolving = lambda _s, a: (lost,) if a["text"] == "s099" else ()
    run = runtime(folder, tool, run_repairs=0)
    seen = [
        run.step(output).blockers[0].code.value
        for output in (
            RoleOutput(role=Role.ORCHESTRATOR, tool="coutn", arguments_json="{", provenance=Provenance.STUDENT),
            call("coutn", text=1),
            call("count", text=1),
            call("count", text="s099"),
            call("count", text="s001"),
        )
    ]
    assert seen == ["unparsable_output", "unknown_tool", "wrong_type", "unresolved_reference", "prerequisite_missing"]
    tool.contract = tool.contract.model_copy(update={"needs": ()})
    (folder / "free").mkdir()
    free = runtime(folder / "free", tool, run_repairs=0)
    assert free.step(call("count", text="s001")).blockers[0].code.value == "repair_limit_reached"
    (folder / "open").mkdir()
    assert runtime(folder / "open", tool).step(call("count", text="s001")).status is ObservationStatus.COMMITTED
