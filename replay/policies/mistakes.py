"""Mistakes a scripted run makes on purpose, so that blockers and the answers to them can be learnt. Every one is sure to be refused.

Owns the catalogue. When and how often is the policy's business; each output that comes from here is labelled ``scripted_mistake``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from replay.policies.agenda import View, lacks, legal

Arguments = dict[str, Any]
Fill = Callable[[str], Arguments]
"""Gives valid arguments for a tool."""


@dataclass(frozen=True, slots=True)
class Slip:
    """A call that will be refused."""

    kind: str
    tool: str
    arguments: Arguments


def possible(view: View, fill: Fill, rng: Random) -> list[Slip]:
    """The slips open in this state, one of each kind; never empty while a tool is missing something.

    Args:
        fill: valid arguments for a tool, to be spoiled.
    """
    tools: list[str] = list(view["tools"])
    early = [t for t in tools if lacks(view, t)]
    ready = [t for t in tools if legal(view, t)]
    out: list[Slip] = []
    if "stitch_video" in early:
        out.append(Slip("stitch_too_early", "stitch_video", fill("stitch_video")))
    if early:
        tool = rng.choice(early)
        out.append(Slip("tool_too_early", tool, fill(tool)))
    scoped = [t for t in ready if "shots" in view["tools"][t]["args"]]
    if scoped and view["shots_total"]:
        tool = rng.choice(scoped)
        lost = f"s{view['shots_total'] + rng.randint(40, 90):03d}"
        out.append(Slip("unknown_shot", tool, {**fill(tool), "shots": lost}))
        out.append(Slip("wrong_type", tool, {**fill(tool), "shots": rng.randint(1, 9)}))
    required = [(t, a) for t in ready for a, spec in view["tools"][t]["args"].items() if spec.get("required", True)]
    if required:
        tool, name = rng.choice(required)
        out.append(Slip("missing_argument", tool, {k: v for k, v in fill(tool).items() if k != name}))
    listed = [(t, a) for t in ready for a, spec in view["tools"][t]["args"].items() if spec.get("enum")]
    if listed:
        tool, name = rng.choice(listed)
        out.append(Slip("value_not_allowed", tool, {**fill(tool), name: "best"}))
    if ready:
        tool = rng.choice(ready)
        name = rng.choice([n for n in ("quality", "style", "priority") if n not in view["tools"][tool]["args"]])
        out.append(Slip("unknown_argument", tool, {**fill(tool), name: "high"}))
    if "plan_shots" in ready:
        out.append(Slip("unknown_segment", "plan_shots", {**fill("plan_shots"), "segments": f"g{rng.randint(60, 90)}"}))
    if "segment_article" in ready and view["shots_total"]:
        out.append(Slip("segments_after_plan", "segment_article", fill("segment_article")))
    invented = [n for n in ("export_video", "publish_video", "trim_clip", "add_subtitles") if n not in tools]
    if invented:
        out.append(Slip("unknown_tool", rng.choice(invented), {}))
    return out
