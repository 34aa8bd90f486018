"""ATIF recordings of other agents: what is read of them, and what is no recording."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.atif import RecordedCall, read_calls
from schemas.errors import ConfigInvalid


def written(folder: Path, value: Any) -> Path:
    path = folder / "run.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def step(number: int, *calls: tuple[str, Any], **more: Any) -> dict[str, Any]:
    made = [{"tool_call_id": f"c{i}", "function_name": name, "arguments": arguments} for i, (name, arguments) in enumerate(calls)]
    return {"step_id": number, "source": "agent", "message": "hm", "tool_calls": made, **more}


def atif(*steps: dict[str, Any], version: str = "ATIF-v1.7", **more: Any) -> dict[str, Any]:
    return {"schema_version": version, "session_id": "s", "agent": {"name": "editor", "version": "1"}, "steps": list(steps), **more}


def test_calls_come_in_order_with_their_arguments(tmp_path: Path) -> None:
    start = {"step_id": 1, "source": "user", "message": "make a film"}
    path = written(tmp_path, atif(start, step(2, ("segment_article", {})), step(3, ("plan_shots", {"a": 1}), ("look", {}))))
    assert read_calls(path) == (
        "editor",
        [RecordedCall("segment_article", {}), RecordedCall("plan_shots", {"a": 1}), RecordedCall("look", {})],
    )


@pytest.mark.parametrize("version", ["ATIF-v1.0", "ATIF-v1.7", "atif-v1.8"])
def test_versions_of_the_format(tmp_path: Path, version: str) -> None:
    assert read_calls(written(tmp_path, atif(step(1, ("a", {})), version=version)))[1] == [RecordedCall("a", {})]


@pytest.mark.parametrize(
    ("arguments", "read"),
    [
        ('{"shots": "all"}', {"shots": "all"}),
        (None, {}),
        ("all", {"arguments": "all"}),
        ([1], {"arguments": [1]}),
        ({"n": None}, {"n": None}),
    ],
)
def test_arguments_in_other_forms(tmp_path: Path, arguments: Any, read: dict[str, Any]) -> None:
    assert read_calls(written(tmp_path, atif(step(1, ("a", arguments)))))[1] == [RecordedCall("a", read)]


def test_context_copied_from_elsewhere_is_not_called_again(tmp_path: Path) -> None:
    path = written(tmp_path, atif(step(1, ("a", {}), is_copied_context=True), step(2, ("b", {}))))
    assert read_calls(path)[1] == [RecordedCall("b", {})]


def test_calls_of_a_sub_agent_stand_where_it_was_asked(tmp_path: Path) -> None:
    ref = {"results": [{"source_call_id": "c0", "subagent_trajectory_ref": [{"trajectory_id": "t2"}]}]}
    inner = {"trajectory_id": "t2", "steps": [step(1, ("give_content", {"content": "{}"}))]}
    path = written(
        tmp_path, atif(step(1, ("plan_shots", {}), observation=ref), step(2, ("stitch_video", {})), subagent_trajectories=[inner])
    )
    assert [c.name for c in read_calls(path)[1]] == ["plan_shots", "give_content", "stitch_video"]


def test_a_sub_agent_that_names_itself_does_not_go_on_for_ever(tmp_path: Path) -> None:
    ref = {"results": [{"subagent_trajectory_ref": [{"trajectory_id": "t"}]}]}
    inner: dict[str, Any] = {"trajectory_id": "t", "steps": [step(1, ("a", {}), observation=ref)]}
    inner["subagent_trajectories"] = [{"trajectory_id": "t", "steps": [step(1, ("a", {}), observation=ref)]}]
    assert len(read_calls(written(tmp_path, atif(step(1, ("b", {}), observation=ref), subagent_trajectories=[inner])))[1]) == 3


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("not json", "no JSON"),
        ("[]", "schema_version"),
        ({"schema_version": "2"}, "schema_version"),
        (atif() | {"steps": 3}, "'steps' is no list"),
        (atif() | {"steps": [1]}, r"'steps\[0\]' is no object"),
        (atif({"tool_calls": [{"function_name": 7}]}), r"'steps\[0\]\.tool_calls\[0\]\.function_name'"),
        (atif({"tool_calls": ["x"]}), r"function_name"),
        (atif({"tool_calls": 5}), r"'steps\[0\]\.tool_calls' is no list"),
        (atif({"tool_calls": True}), r"'steps\[0\]\.tool_calls' is no list"),
        (atif({}, subagent_trajectories=5), "'subagent_trajectories' is no list"),
    ],
)
def test_what_is_no_recording_is_refused_with_the_reason(tmp_path: Path, value: Any, why: str) -> None:
    with pytest.raises(ConfigInvalid, match=why):
        read_calls(written(tmp_path, value))


def test_names_of_sub_agents_do_not_multiply_without_end(tmp_path: Path) -> None:
    many = {"step_id": 1, "observation": {"results": [{"subagent_trajectory_ref": [{"trajectory_id": "t"}] * 60}]}}

    def nested(depth: int) -> dict[str, Any]:
        return {"trajectory_id": "t", "steps": [many], "subagent_trajectories": [nested(depth - 1)] if depth else []}

    with pytest.raises(ConfigInvalid, match="more than 200000 steps"):
        read_calls(written(tmp_path, atif(many, subagent_trajectories=[nested(8)])))
