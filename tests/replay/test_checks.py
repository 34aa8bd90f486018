"""The validation ladder, rung by rung."""

from __future__ import annotations

from typing import Any

import pytest

from replay import checks
from replay.config import ReplayConfig
from replay.registry import Registry
from replay.state import apply, film_change, initial
from schemas.blocker import Blocker, BlockerCode
from schemas.contract import Fact, Role
from schemas.trajectory import Provenance, RoleOutput
from tests.replay.doubles import TinyTool, call, contract, count_tool, registry, stitch_tool, task


def verdict(output: RoleOutput, *tools: TinyTool, state: Any = None) -> list[tuple[str, str]]:
    """(code, subject) of every blocker; empty when the output passed."""
    result = checks.orchestrator(output, state or initial(task()), registry(*tools), ReplayConfig(run_repairs=0))
    return [] if isinstance(result, checks.ToolCall) else [(b.code.value, b.subject) for b in result]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"text": "hello", "times": 3, "loud": True, "mood": "calm"}, []),
        ({"text": ""}, []),
        ({}, [("missing_argument", "argument:text")]),
        ({"text": "hello", "speed": 3}, [("unknown_argument", "argument:speed")]),
        ({"text": 3}, [("wrong_type", "argument:text")]),
        ({"text": None}, [("wrong_type", "argument:text")]),
        ({"text": ["a"]}, [("wrong_type", "argument:text")]),
        ({"text": "a", "times": "3"}, [("wrong_type", "argument:times")]),
        ({"text": "a", "times": 3.0}, [("wrong_type", "argument:times")]),
        ({"text": "a", "times": True}, [("wrong_type", "argument:times")]),
        ({"text": "a", "loud": 1}, [("wrong_type", "argument:loud")]),
        ({"text": "a", "times": 0}, [("value_not_allowed", "argument:times")]),
        ({"text": "a", "times": 10}, [("value_not_allowed", "argument:times")]),
        ({"text": "a", "mood": "sad"}, [("value_not_allowed", "argument:mood")]),
        ({"text": "eleven char"}, [("value_not_allowed", "argument:text")]),
        (
            {"times": "x", "speed": 1},
            [("missing_argument", "argument:text"), ("wrong_type", "argument:times"), ("unknown_argument", "argument:speed")],
        ),
    ],
)
def test_arguments_against_their_specs(arguments: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert verdict(call("count", **arguments), count_tool()) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not json",
        "[1]",
        '"text"',
        "null",
        '{"text": "a"',
        '{"text": "a"} {"text": "b"}',
        '{"text": "a", "text": "b"}',
        '{"times": NaN}',
        '{"text": "\\ud800"}',
        '{"times": 123456789012345678901234567890}',
        "[" * 100_000,
        '{"text": "' + "a" * 70_000 + '"}',
    ],
    ids=["empty", "words", "array", "string", "null", "cut", "two", "repeated key", "nan", "surrogate", "huge integer", "deep", "long"],
)
def test_arguments_that_are_not_one_json_object(text: str) -> None:
    output = RoleOutput(role=Role.ORCHESTRATOR, tool="count", arguments_json=text, provenance=Provenance.STUDENT)
    assert verdict(output, count_tool()) == [("unparsable_output", "arguments")]


def test_an_output_without_a_tool_call_is_unparsable() -> None:
    output = RoleOutput(role=Role.ORCHESTRATOR, text="I think we should stitch.", provenance=Provenance.STUDENT)
    assert verdict(output) == [("unparsable_output", "output")]


def test_an_unknown_tool_is_answered_with_close_names() -> None:
    result = checks.orchestrator(call("stitch_vidoe"), initial(task()), registry(), ReplayConfig())
    assert isinstance(result, tuple)
    assert (result[0].code, result[0].remedies) == (BlockerCode.UNKNOWN_TOOL, ("stitch_video",))


def test_another_roles_output_is_refused_before_anything_else() -> None:
    output = RoleOutput(role=Role.CRITIC, text="{}", tool="nothing", provenance=Provenance.STUDENT)
    assert verdict(output) == [("role_mismatch", "role:critic")]


def test_every_missing_fact_gives_a_blocker_with_its_producers() -> None:
    tools = Registry([stitch_tool(needs=(Fact.SEGMENTS, Fact.MUSIC)), TinyTool(contract("search_music", produces=(Fact.MUSIC,)))])
    result = checks.orchestrator(call("stitch_video"), initial(task()), tools, ReplayConfig())
    assert isinstance(result, tuple)
    assert [(b.code.value, b.needs, b.remedies) for b in result] == [
        ("prerequisite_missing", ("segments",), ()),  # no tool of this registry makes segments
        ("prerequisite_missing", ("music",), ("search_music",)),
    ]


def test_a_new_producer_is_a_remedy_without_being_listed_anywhere() -> None:
    tools = Registry([stitch_tool(needs=(Fact.MUSIC,)), TinyTool(contract("compose_music", produces=(Fact.MUSIC,)))])
    result = checks.orchestrator(call("stitch_video"), initial(task()), tools, ReplayConfig())
    assert isinstance(result, tuple)
    assert result[0].remedies == ("compose_music",)


def test_references_are_checked_before_prerequisites() -> None:
    lost = Blocker(code=BlockerCode.UNRESOLVED_REFERENCE, subject="shot:s099", message="no such shot")
    tool = TinyTool(contract("mend", needs=(Fact.RENDERS,)), resolving=lambda _s, _a: (lost,))
    assert verdict(call("mend"), tool) == [("unresolved_reference", "shot:s099")]


def test_the_repair_limit_comes_after_the_prerequisites() -> None:
    tool = TinyTool(contract("mend", repairable=True, needs=(Fact.MUSIC,)))
    free = TinyTool(contract("mend", repairable=True))
    assert verdict(call("mend"), tool) == [("prerequisite_missing", "tool:mend")]
    assert verdict(call("mend"), free) == [("repair_limit_reached", "tool:mend")]


def test_repairs_already_used_count() -> None:
    state = apply(initial(task()), [film_change("repairs_used", 2)])
    tool = TinyTool(contract("mend", repairable=True))
    for allowed, refused in ((3, False), (2, True)):
        result = checks.orchestrator(call("mend"), state, registry(tool), ReplayConfig(run_repairs=allowed))
        assert isinstance(result, tuple) is refused
