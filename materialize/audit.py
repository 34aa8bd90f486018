"""Stored examples and groups executed again: does an example's completion still lead where it led, is a candidate still worth what it was?

Owns what is compared. Everything is executed in a store apart, which begins with what the restored snapshot refers to: nothing that the
lake holds of the recorded branch is used, and nothing is added to it. Whole trajectories are evaluation.audit's.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import orjson

from materialize.branches import Executor
from materialize.config import GroupConfig, RewardConfig
from materialize.matched import matched_key
from materialize.recorded import LakeRuns
from schemas.canonical import canonical_text
from schemas.contract import Role
from schemas.errors import PipelineError
from schemas.trajectory import Provenance, RoleOutput

SAME = 1e-9
"""Rewards that differ by no more are equal: sums of the same numbers in the same order."""


@dataclass(frozen=True, slots=True)
class Reexecuted:
    """One example or group, executed again."""

    kind: Literal["example", "group"]
    subject: str
    project_id: str
    parts: int
    """Things compared: context, observation and state of an example; candidates of a group and its key."""
    equal_parts: int
    difference: str | None
    wall_s: float = field(compare=False)

    @property
    def equal(self) -> bool:
        """All is as recorded."""
        return self.difference is None

    def as_json(self) -> dict[str, Any]:
        """Stable form inside ``workprint audit --json``."""
        return {
            self.kind + "_id": self.subject,
            "project_id": self.project_id,
            "equal": self.equal,
            "parts": self.parts,
            "equal_parts": self.equal_parts,
            "first_difference": self.difference,
            "wall_s": round(self.wall_s, 2),
        }


def audit_example(runs: LakeRuns, row: Mapping[str, Any]) -> Reexecuted:
    """Restore the state of an example, build its prompt anew, and execute its completion.

    Args:
        row: of table ``examples``.

    Returns:
        the comparison with what the example holds (prompt, tools) and with what the run recorded (observation, state after it). A fault of
        ours is a difference too.
    """
    started = time.monotonic()
    found: list[str] = []
    try:
        trajectory, index = runs.find({"trajectory_id": row["trajectory_id"], "call_index": row["call_index"]})
        with TemporaryDirectory(prefix="workprint-audit-") as folder, runs.bench(trajectory).apart(Path(folder)).open() as env:
            shown = env.restore(trajectory, index).visible()
            if canonical_text(shown["messages"]) != row["prompt_json"] or canonical_text(shown["tools"]) != row["tools_json"]:
                found.append("the prompt or the tools are others than the example's")
            recorded, observation = trajectory.calls[index], env.step(output_of(row))
            if observation != recorded.observation:
                found.append("the observation is another than recorded")
            if env.runtime.state_digest != recorded.state_after:
                found.append("the state after it is another than recorded")
    except PipelineError as error:
        return _failed("example", str(row["example_id"]), str(row["project_id"]), 3, error, started)
    return Reexecuted(
        "example",
        str(row["example_id"]),
        str(row["project_id"]),
        3,
        3 - len(found),
        found[0] if found else None,
        time.monotonic() - started,
    )


def output_of(row: Mapping[str, Any]) -> RoleOutput:
    """The role output that an example teaches, from its completion alone."""
    message = orjson.loads(row["completion_json"])
    called = message.get("tool_calls") or [{}]
    function = called[0].get("function", {})
    return RoleOutput(
        role=Role(row["role"]),
        text=message["content"],
        tool=function.get("name"),
        arguments_json=function.get("arguments"),
        provenance=Provenance(row["provenance"]),
    )


def is_executable(runs: LakeRuns, group: Mapping[str, Any]) -> bool:
    """The frozen policy of a group can be had here: it was not a chat model.

    Raises:
        PipelineError: its trajectory cannot be read.
    """
    trajectory, _ = runs.find({"trajectory_id": group["trajectory_id"], "call_index": group["call_index"]})
    return bool(orjson.loads(group["matched_key_json"])["continuation"] == runs.continuation_name(trajectory))


def audit_group(runs: LakeRuns, group: Mapping[str, Any], candidates: Sequence[Mapping[str, Any]], rewards: RewardConfig) -> Reexecuted:
    """Restore the state of a group and execute all its candidates under its paired seeds.

    Args:
        group, candidates: rows of the tables, the latter in order.
        rewards: the weights it was rewarded with.

    Returns:
        the comparison of the matched key, and of reward, parts, refusal and number of calls of every candidate; and of what the
        runtime answered to it and the state after it, where that was recorded (table version 3).
    """
    started = time.monotonic()
    name, parts = str(group["group_id"]), len(candidates) + 1
    found: list[str] = []
    try:
        trajectory, index = runs.find({"trajectory_id": group["trajectory_id"], "call_index": group["call_index"]})
        held = orjson.loads(group["matched_key_json"])
        config = GroupConfig(seeds=tuple(held["seeds"]))
        with TemporaryDirectory(prefix="workprint-audit-") as folder:
            bench = runs.bench(trajectory).apart(Path(folder), rewards)
            with bench.open() as env:
                env.restore(trajectory, index)
                if matched_key(env.runtime, held["continuation"], config).group_id != name:
                    found.append("another matched key")
            executor = Executor(bench, trajectory, index, runs.continuation(trajectory), config, rewards)
            outcomes = [executor.execute(RoleOutput.model_validate_json(row["output_json"])) for row in candidates]
        for row, outcome in zip(candidates, outcomes, strict=True):
            was = orjson.loads(row["reward_parts_json"])
            same = was.keys() == outcome.reward.parts.keys() and all(abs(v - was[k]) <= SAME for k, v in outcome.reward.parts.items())
            counted = (row["refused"], row["calls"]) == (outcome.refused, outcome.calls)
            answered = canonical_text(outcome.first.observation.model_dump(mode="json"))
            if row["state_after"] is not None and (row["observation_json"], row["state_after"]) != (answered, outcome.first.state_after):
                found.append(f"candidate {row['candidate_index']} was answered otherwise, or led to another state")
            elif not (same and counted and abs(outcome.reward.value - row["reward"]) <= SAME):
                found.append(f"candidate {row['candidate_index']} is worth {outcome.reward.value:.6f}, recorded {row['reward']:.6f}")
    except PipelineError as error:
        return _failed("group", name, str(group["project_id"]), parts, error, started)
    difference = found[0] if found else None
    return Reexecuted("group", name, str(group["project_id"]), parts, parts - len(found), difference, time.monotonic() - started)


def _failed(kind: Literal["example", "group"], name: str, project: str, parts: int, error: PipelineError, started: float) -> Reexecuted:
    return Reexecuted(kind, name, project, parts, 0, f"fault: {error}"[:300], time.monotonic() - started)
