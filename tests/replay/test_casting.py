"""Which template of a kind the scripted generator takes."""

from __future__ import annotations

from typing import Any

import pytest

from replay.policies.casting import choose, suits


def offer(name: str, kind: str, **slots: dict[str, Any]) -> dict[str, Any]:
    rows = [{"name": slot, "max_chars": 40, "required": True} | changes for slot, changes in slots.items()]
    return {"template": name, "kind": kind, "slots": rows}


PLAIN = offer("title", "title", title={"max_chars": 80}, subtitle={"required": False})
QUESTION = offer("question", "title", title={"form": "question"}, subtitle={"required": False})
MEANING = offer("definition", "title", title={}, subtitle={"form": "sentence"})
DIAL = offer("dial", "number", value={"form": "percent"}, label={})
NUMBER = offer("number", "number", value={}, label={})
LINE = offer("line", "chart", label1={"form": "time"}, value1={})


@pytest.mark.parametrize(
    ("template", "meant", "expected"),
    [
        (PLAIN, {"title": "A clock"}, True),
        (PLAIN, {"title": "A clock", "author": "x"}, False),
        (PLAIN, {"subtitle": "A clock"}, False),
        (PLAIN, {"title": "x" * 81}, False),
        (QUESTION, {"title": "A clock"}, False),
        (QUESTION, {"title": "Why does it swing?"}, True),
        (QUESTION, {"title": "为什么？"}, True),
        (MEANING, {"title": "Period", "subtitle": "the time of one swing"}, True),
        (MEANING, {"title": "Period", "subtitle": "Part two"}, False),
        (MEANING, {"title": "周期", "subtitle": "摆完成一次往返运动的时间"}, True),
        (MEANING, {"title": "Period"}, False),
        (DIAL, {"value": "45%", "label": "x"}, True),
        (DIAL, {"value": "45", "label": "x"}, False),
        (DIAL, {"value": "145%", "label": "x"}, False),
        (LINE, {"label1": "1450", "value1": "3"}, True),
        (LINE, {"label1": "March", "value1": "3"}, True),
        (LINE, {"label1": "Venice", "value1": "3"}, False),
    ],
)
def test_a_template_suits_texts_that_it_shows_whole_and_as_what_they_are(
    template: dict[str, Any], meant: dict[str, str], expected: bool
) -> None:
    assert suits(template, meant) is expected


def names(kind: str, meant: dict[str, str], offers: list[dict[str, Any]]) -> set[str]:
    return {choose(offers, kind, meant, seed, "s001")["template"] for seed in range(40)}


def test_every_suiting_template_is_taken_by_some_seed() -> None:
    assert names("number", {"value": "45%", "label": "x"}, [DIAL, NUMBER]) == {"dial", "number"}
    assert names("title", {"title": "Why?"}, [MEANING, PLAIN, QUESTION]) == {"title", "question"}


@pytest.mark.parametrize(
    ("meant", "expected"), [({}, "number"), ({"value": "x" * 99, "label": "y"}, "number"), ({"value": "12", "label": "y"}, "number")]
)
def test_the_plain_template_is_taken_where_nothing_else_suits(meant: dict[str, str], expected: str) -> None:
    assert names("number", meant, [DIAL, NUMBER]) == {expected}


def test_without_a_template_of_the_kind_the_first_is_taken() -> None:
    assert names("quote", {"quote": "x"}, [DIAL, NUMBER]) == {"dial"}


def test_a_seed_and_a_shot_decide_once() -> None:
    meant = {"value": "45%", "label": "x"}
    assert len({choose([DIAL, NUMBER], "number", meant, 7, "s002")["template"] for _ in range(5)}) == 1
