"""``plan_shots``: segments become planned shots: narration span, visual query, target duration, spotlight.

Segments are planned in film order, so that shot ids follow it. Planning a segment again replaces its shots; a shot whose plan is unchanged
keeps its id and what was produced for it.
"""

from __future__ import annotations

import re
from typing import Any

from replay import facts
from replay.contents import ShotPlan, content_schema
from replay.scope import shot_id
from replay.script import skip_space
from replay.state import drop_shot, film_change, put_shot
from replay.tool import Arguments, Contents, Product, Refusal, ToolEnv
from replay.views import clip
from schemas.blocker import Blocker, BlockerCode
from schemas.contract import ArgSpec, ContentRequest, Fact, Role, ToolContract
from schemas.state import Change, PlannedShot, ProductionState, Segment, ShotRecord, SpotlightPlan

PART_CHARS = 6_000
"""Script characters shown in one request (one segment at least)."""

_RANGE = re.compile(r"g(\d{2,3})(?:-g(\d{2,3}))?")


class PlanShots:
    """Asks the generator for shots and checks that their texts are the segments' script, character for character."""

    contract = ToolContract(
        name="plan_shots",
        version=1,
        summary="Plan the shots of script segments: narration span, visual query, target duration and, where a graphic helps, a spotlight.",
        args=(
            ArgSpec(
                name="segments",
                type="string",
                description="Which segments: 'missing' (those without shots), 'all', or names and ranges such as 'g01,g03-g04'.",
                max_length=400,
            ),
            ArgSpec(
                name="max_shot_ms",
                type="integer",
                description="No shot may be planned longer than this, milliseconds, 1000 to 600000. Left out: no limit.",
                required=False,
                minimum=1_000,
                maximum=600_000,
            ),
        ),
        needs=(Fact.SEGMENTS,),
        produces=(Fact.SHOT_PLAN,),
        roles=(Role.GENERATOR,),
        checks=("every character of the planned segments lies in exactly one shot", "shots stand in script order", "shot ids are unique"),
        wall_s=10,
        max_output_bytes=1,
    )

    def resolve(self, state: ProductionState, arguments: Arguments) -> tuple[Blocker, ...]:
        """The segments exist, and none before them is unplanned."""
        segments = state.film.segments
        if segments is None:
            return ()  # the prerequisite check says so
        chosen = _chosen(state, arguments["segments"])
        if isinstance(chosen, Blocker):
            return (chosen,)
        if not chosen:
            message = "no segment is without shots; name the segments to plan again"
            return (Blocker(code=BlockerCode.VALUE_NOT_ALLOWED, subject="argument:segments", message=message),)
        planned = _planned(state)
        gap = next((i for i in range(max(chosen)) if i not in planned and i not in chosen), None)
        if gap is None:
            return ()
        first = facts.segment_name(gap)
        return (
            Blocker(
                code=BlockerCode.WRONG_STAGE_ORDER,
                subject=f"segment:{first}",
                message=f"segments are planned in film order; {first} comes before {facts.segment_name(max(chosen))} and has no shots",
                remedies=("plan_shots",),
            ),
        )

    def need(self, state: ProductionState, arguments: Arguments, given: Contents, env: ToolEnv) -> ContentRequest | None:
        """Ask for the next group of segments."""
        groups = _groups(state, arguments)
        if len(given) == len(groups):
            return None
        task = state.film.task
        longest = f" No target is above {arguments['max_shot_ms']} ms." if "max_shot_ms" in arguments else ""
        return ContentRequest(
            role=Role.GENERATOR,
            tool=self.contract.name,
            tool_version=self.contract.version,
            kind="shot_plan",
            instruction=(
                "Plan the shots of these segments, in order. The shots' texts, one after the other, are each segment's text copied "
                "exactly; a shot without narration has an empty text. 'segment' is the number of the segment. The visual query says what "
                f"should be seen. The target is how long the shot stays, in milliseconds.{longest} Give a spotlight and its brief only "
                "where a graphic (title, list, number, quote, comparison, chart, lower third) says more than a picture."
            ),
            content_schema=content_schema("shot_plan"),
            evidence={
                "segments": [
                    {"segment": s.index, "title": s.title, "start": s.script_start, "text": task.script[s.script_start : s.script_end]}
                    for s in groups[len(given)]
                ],
                "film": {"script_chars": len(task.script), "feasible_ms": [task.duration_min_us // 1000, task.duration_max_us // 1000]},
            },
        )

    def accept(self, state: ProductionState, arguments: Arguments, given: Contents, content: dict[str, Any]) -> tuple[Blocker, ...]:
        """Texts follow the script exactly; targets keep to the limit; every spotlight has a brief."""
        placed = _place(state, _groups(state, arguments)[len(given)], ShotPlan.model_validate(content))
        if isinstance(placed, Blocker):
            return (placed,)
        limit = arguments.get("max_shot_ms")
        out: list[Blocker] = []
        for i, item in enumerate(ShotPlan.model_validate(content).shots):
            if limit is not None and item.target_ms > limit:
                out.append(_broken(f"shots.{i}.target_ms", f"{item.target_ms} ms; the call allows at most {limit}"))
            if item.spotlight is not None and not item.spotlight_brief.strip():
                out.append(_broken(f"shots.{i}.spotlight_brief", "a spotlight needs a brief that says what the graphic must say"))
        return tuple(out)

    def execute(self, state: ProductionState, arguments: Arguments, given: Contents, env: ToolEnv) -> Product | Refusal:
        """Write the shots, keep what is unchanged, and verify that the spans tile the planned segments."""
        groups = _groups(state, arguments)
        fresh: dict[int, list[PlannedShot]] = {}
        for group, content in zip(groups, given, strict=True):
            placed = _place(state, group, ShotPlan.model_validate(content))
            if isinstance(placed, Blocker):
                return Refusal((placed,))
            for shot in placed:
                fresh.setdefault(shot.segment, []).append(shot)
        changes, order, kept = _merge(state, fresh)
        planned = [c.value["planned"] for c in changes if c.value is not None]
        total = sum(s.target_duration_us for shots in fresh.values() for s in shots)
        return Product(
            changes=(*changes, film_change("shot_order", order), film_change("plan_reflected", False)),
            results={
                "segments": [facts.segment_name(i) for i in sorted(fresh)],
                "shots": sum(len(s) for s in fresh.values()),
                "kept": kept,
                "spotlights": sum(1 for p in planned if p["spotlight"] is not None),
                "planned_ms": total // 1000,
                "shots_in_film": len(order),
            },
        )


def _planned(state: ProductionState) -> set[int]:
    return {s.planned.segment for s in state.shots.values()}


def _chosen(state: ProductionState, text: str) -> list[int] | Blocker:
    """Segment indices meant by the argument, in film order."""
    count = len(state.film.segments or ())
    if text.strip() == "all":
        return list(range(count))
    if text.strip() == "missing":
        planned = _planned(state)
        return [i for i in range(count) if i not in planned]
    wanted: set[int] = set()
    for part in text.replace(" ", "").split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            message = f"'{clip(part, 40)}' is no segment or range; expected 'missing', 'all', or names such as 'g01,g03-g04'"
            return Blocker(code=BlockerCode.VALUE_NOT_ALLOWED, subject="argument:segments", message=message)
        first, last = int(match[1]), int(match[2] or match[1])
        if not 1 <= first <= last <= count:
            message = (
                f"there is no {clip(part, 40)}; the script has {count} segments, {facts.segment_name(0)} to {facts.segment_name(count - 1)}"
            )
            return Blocker(code=BlockerCode.UNRESOLVED_REFERENCE, subject=f"segment:{clip(part, 40)}", message=message)
        wanted.update(range(first - 1, last))
    return sorted(wanted)


def _groups(state: ProductionState, arguments: Arguments) -> list[list[Segment]]:
    """The chosen segments in stretches of at most :data:`PART_CHARS` script characters."""
    chosen = _chosen(state, arguments["segments"])
    segments = state.film.segments or ()
    groups: list[list[Segment]] = []
    used = 0
    for index in chosen if isinstance(chosen, list) else []:
        length = segments[index].script_end - segments[index].script_start
        if not groups or used + length > PART_CHARS:
            groups.append([])
            used = 0
        groups[-1].append(segments[index])
        used += length
    return groups


def _place(state: ProductionState, group: list[Segment], plan: ShotPlan) -> list[PlannedShot] | Blocker:
    """Give every planned shot its range of the script. White space between shots belongs to the shot before it."""
    script = state.film.task.script
    by_index = {s.index: s for s in group}
    out: list[PlannedShot] = []
    at = skip_space(script, group[0].script_start)
    current = 0
    for i, item in enumerate(plan.shots):
        if item.segment not in by_index:
            return _broken(
                f"shots.{i}.segment", f"segment {item.segment} is not asked for; expected one of {', '.join(str(s.index) for s in group)}"
            )
        while group[current].index != item.segment:
            if item.segment < group[current].index:
                return _broken(f"shots.{i}.segment", f"segment {item.segment} comes after a shot of segment {group[current].index}")
            left = _rest(script, at, group[current].script_end)
            if left:
                return _broken(f"shots.{i}", f"segment {group[current].index} is not finished; its script goes on with {clip(left, 40)!r}")
            current += 1
            at = max(at, skip_space(script, group[current].script_start))
        end = group[current].script_end
        text = item.text.strip()
        if not script.startswith(text, at) or at + len(text) > end:
            seen = _rest(script, at, end)
            return _broken(
                f"shots.{i}.text", f"the script of segment {item.segment} goes on with {clip(seen, 40)!r}, not {clip(text, 40)!r}"
            )
        start = out[-1].script_end if out and out[-1].segment == item.segment else group[current].script_start
        after = min(skip_space(script, at + len(text)), end) if text else start
        out.append(
            PlannedShot(
                segment=item.segment,
                script_start=start,
                script_end=after,
                text=text,
                visual_query=item.visual_query,
                target_duration_us=item.target_ms * 1000,
                spotlight=None if item.spotlight is None else SpotlightPlan(kind=item.spotlight, brief=item.spotlight_brief),
            )
        )
        at = skip_space(script, after) if text else at
    for segment in group[current:]:
        left = _rest(script, max(at, segment.script_start), segment.script_end)
        if left:
            return _broken("shots", f"segment {segment.index} is not covered; its script goes on with {clip(left, 40)!r}")
    missing = sorted(set(by_index) - {s.segment for s in out})
    if missing:
        return _broken("shots", f"segment {missing[0]} has no shot")
    return out


def _rest(script: str, at: int, end: int) -> str:
    return script[at:end].strip()


def _merge(state: ProductionState, fresh: dict[int, list[PlannedShot]]) -> tuple[list[Change], list[str], int]:
    """Changes, new film order, and how many shots stayed as they were."""
    by_segment: dict[int, list[ShotRecord]] = {}
    for sid in state.film.shot_order:
        by_segment.setdefault(state.shots[sid].planned.segment, []).append(state.shots[sid])
    next_number = max((int(sid[1:]) for sid in state.film.shot_order), default=0)
    changes: list[Change] = []
    order: list[str] = []
    kept = 0
    for segment in state.film.segments or ():
        old = by_segment.get(segment.index, [])
        if segment.index not in fresh:
            order.extend(r.shot_id for r in old)
            continue
        unused = list(old)
        for planned in fresh[segment.index]:
            same = next((r for r in unused if r.planned == planned), None)
            if same is not None:
                unused.remove(same)
                order.append(same.shot_id)
                kept += 1
                continue
            sid = shot_id(next_number)
            next_number += 1
            changes.append(put_shot(ShotRecord(shot_id=sid, planned=planned)))
            order.append(sid)
        changes.extend(drop_shot(r.shot_id) for r in unused)
    return changes, order, kept


def _broken(where: str, message: str) -> Blocker:
    return Blocker(code=BlockerCode.CONTENT_CONTRACT_BROKEN, subject=f"content:{where}", message=message)


TOOL = PlanShots()
