"""What a role may know, as data: task brief, progress, local records, earlier calls. Role contexts are rendered from it.

Owns the choice and the size of what is shown; renders nothing. Everything here is a pure function of a state and the calls before it,
and nothing in it comes from a storyboard.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from replay import facts, lineage
from replay.config import ReplayConfig
from replay.registry import Registry
from schemas.blocker import Blocker
from schemas.canonical import canonical_text
from schemas.contract import Fact
from schemas.state import ProductionState
from schemas.trajectory import Call, Observation, Provenance
from schemas.verdict import Defect

MAX_ROWS = 24
"""Shot records in a later context; enough for one call's consequences, bounded for films of any length."""
MAX_LACKING_ROWS = 8
"""Of those, records shown only because a product is missing: progress names all such shots anyway."""
MAX_FIRST_ROWS = 48
"""Shot records in a first observation, which shows the whole state as far as the bound allows."""
MAX_DEFECTS = 24
MAX_SEGMENTS = 40
MAX_CLIPS = 10
OBSERVATION_CHARS = 3_000
SHOTS_CHARS = 7_000
DEFECTS_CHARS = 3_500
SEGMENTS_CHARS = 3_000
ARGUMENT_CHARS = 160
OLD_ARGUMENT_CHARS = 60
RECENT_CALLS = 12
"""Calls whose arguments are shown at length; of older ones the beginning is enough."""
EVIDENCE_CHARS = 24_000
"""Bound of one request's evidence. Tools ask in parts when they need more."""

_LADDER = ((400, 200), (200, 100), (120, 60), (80, 40), (60, 20), (40, 10), (24, 4))
"""Longest text and longest list, tried in this order until a value fits."""

QUIET_FIELDS = frozenset({"pending", "inspected"})
"""Fields whose changes say nothing to a role: bookkeeping of the runtime and of inspections."""

_SHOT_ID = re.compile(r"s\d{3,4}")

SHOWN_FACTS = (
    Fact.SEGMENTS,
    Fact.SHOT_PLAN,
    Fact.ASSETS,
    Fact.NARRATION,
    Fact.DECORATIONS,
    Fact.MUSIC,
    Fact.TIMELINE,
    Fact.RENDERS,
    Fact.INSPECTION,
    Fact.DELIVERY,
)


def clip(text: str, limit: int) -> str:
    """At most ``limit`` characters, the last one '…' when something was cut."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def fit(value: Any, limit: int) -> Any:
    """A value whose canonical JSON has at most ``limit`` characters: texts and lists are cut as little as needed, cuts are marked."""
    if len(canonical_text(value)) <= limit:
        return value
    for text, items in _LADDER:
        out = _cut(value, text, items)
        if len(canonical_text(out)) <= limit:
            return out
    return {"omitted": "too large to show"}


def _cut(value: Any, text: int, items: int) -> Any:
    if isinstance(value, str):
        return clip(value, text)
    if isinstance(value, list | tuple):
        kept = [_cut(v, text, items) for v in value[:items]]
        return [*kept, {"omitted": len(value) - items}] if len(value) > items else kept
    if isinstance(value, dict):
        kept_keys = list(value)[: items * 2]
        out = {k: _cut(value[k], text, items) for k in kept_keys}
        return {**out, "omitted": len(value) - len(kept_keys)} if len(value) > len(kept_keys) else out
    return value


def ranges(ids: Sequence[str], order: Sequence[str], limit: int = 240) -> str:
    """Subjects in short form: ``s001-s004,s009``. What does not fit is counted: ``s001,s003,+12``."""
    place = {sid: i for i, sid in enumerate(order)}
    runs: list[list[str]] = []
    for sid in ids:
        if runs and sid in place and runs[-1][-1] in place and place[sid] == place[runs[-1][-1]] + 1:
            runs[-1].append(sid)
        else:
            runs.append([sid])
    parts: list[str] = []
    used = shown = 0
    for run in runs:
        part = run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}"
        if used + len(part) + 1 > limit:
            return ",".join([*parts, f"+{len(ids) - shown}"])
        parts.append(part)
        used += len(part) + 1
        shown += len(run)
    return ",".join(parts)


def brief(state: ProductionState) -> dict[str, Any]:
    """The task in short: what must be made, from what, within which bounds."""
    task = state.film.task
    return {
        "title": clip(task.title, 120),
        "language": task.language,
        "script_chars": len(task.script),
        "script_opening": clip(task.script, 240),
        "aspect_ratio": task.aspect_ratio,
        "canvas": [task.width, task.height],
        "frames_per_second": f"{task.frame_rate.num}/{task.frame_rate.den}",
        "feasible_ms": [task.duration_min_us // 1000, task.duration_max_us // 1000],
        "pool_clips": len(task.pool),
        "pool_ms": sum(c.duration_us for c in task.pool) // 1000,
        "music_library": task.music_library,
        "music_moods": list(task.music_moods[:8]),
        "voice": task.voice,
    }


def progress(state: ProductionState) -> dict[str, dict[str, Any]]:
    """Per fact: whether it holds, how many subjects have it of how many, and which lack it."""
    out: dict[str, dict[str, Any]] = {}
    for fact in SHOWN_FACTS:
        missing = facts.lacking(fact, state)
        of = facts.concerned(fact, state)
        without_plan = missing == facts.FILM
        have = 0 if without_plan else of - len(missing)
        row: dict[str, Any] = {"holds": not missing, "have": max(have, 0), "of": of}
        if missing and not without_plan:
            row["missing"] = ranges(missing, state.film.shot_order)
        out[fact.value] = row
    return out


def shot_row(state: ProductionState, shot_id: str) -> dict[str, Any]:
    """One shot's record in short; what is not there is left out."""
    shot = state.shots[shot_id]
    p = shot.planned
    row: dict[str, Any] = {
        "id": shot_id,
        "segment": facts.segment_name(p.segment),
        "span": [p.script_start, p.script_end],
        "planned_ms": p.target_duration_us // 1000,
        "query": clip(p.visual_query, 80),
    }
    if p.text:
        row["text"] = clip(p.text, 80)
    if p.spotlight is not None:
        row["spotlight"] = p.spotlight.kind.value
    if shot.asset is not None:
        row["asset"] = shot.asset.clip_id
    if shot.narration is not None:
        row["narration_ms"] = shot.narration.duration_us // 1000
        if not lineage.narration_is_current(state, shot_id):
            row["narration"] = "stale"
    if shot.decoration is not None:
        row["decoration"] = shot.decoration.template
    if shot.render is not None:
        row["render"] = "current" if shot_id not in facts.lacking(Fact.RENDERS, state) else "stale"
    if shot.open_defects:
        row["defects"] = [d.code.value for d in shot.open_defects[:6]]
    if shot.repairs_used:
        row["repairs"] = shot.repairs_used
    return row


def defect_rows(state: ProductionState) -> list[dict[str, Any]]:
    """Open defects, ranked ones first, bounded by :data:`MAX_DEFECTS`."""
    found: list[Defect] = list(state.film.film_defects)
    for sid in state.film.shot_order:
        found.extend(state.shots[sid].open_defects)
    place = {d: i for i, d in enumerate(state.film.ranked_defects)}
    found.sort(key=lambda d: (place.get(d.defect_id, len(place)), d.severity != "error"))
    rows: list[dict[str, Any]] = [
        {"id": d.defect_id, "code": d.code.value, "subject": d.subject, "severity": d.severity, "measured": clip(d.measured, 100)}
        for d in found[:MAX_DEFECTS]
    ]
    if len(found) > MAX_DEFECTS:
        rows.append({"omitted": len(found) - MAX_DEFECTS})
    return rows


def segment_rows(state: ProductionState) -> list[dict[str, Any]]:
    """Segments with their titles and how many shots are planned in each."""
    count: dict[int, int] = {}
    for shot in state.shots.values():
        count[shot.planned.segment] = count.get(shot.planned.segment, 0) + 1
    segments = state.film.segments or ()
    rows: list[dict[str, Any]] = [
        {
            "name": facts.segment_name(s.index),
            "title": clip(s.title, 60),
            "chars": s.script_end - s.script_start,
            "shots": count.get(s.index, 0),
        }
        for s in segments[:MAX_SEGMENTS]
    ]
    if len(segments) > MAX_SEGMENTS:
        rows.append({"omitted": len(segments) - MAX_SEGMENTS})
    return rows


def pool_rows(state: ProductionState) -> list[dict[str, Any]]:
    """A few clips of the pool, evenly spread, so that a role knows the kind of material there is. By name: the order in which the pool
    was cut is that of the finished film, which is an answer."""
    pool = sorted(state.film.task.pool, key=lambda c: c.clip_id)
    step = max(1, -(-len(pool) // MAX_CLIPS))
    return [{"clip": c.clip_id, "ms": c.duration_us // 1000, "text": clip(c.text, 80)} for c in pool[::step]]


def observation_view(observation: Observation) -> dict[str, Any]:
    """What the runtime returned, as a policy reads it, bounded."""
    out: dict[str, Any] = {"tool": observation.tool, "status": observation.status.value}
    if observation.results:
        out["results"] = observation.results
    if observation.blockers:
        out["blockers"] = [blocker_view(b) for b in observation.blockers]
    return dict(fit(out, OBSERVATION_CHARS))


def blocker_view(blocker: Blocker) -> dict[str, Any]:
    """One blocker; empty fields are left out."""
    out: dict[str, Any] = {"code": blocker.code.value, "subject": blocker.subject, "message": clip(blocker.message, 300)}
    if blocker.needs:
        out["needs"] = list(blocker.needs)
    if blocker.remedies:
        out["remedies"] = list(blocker.remedies)
    return out


def changed_view(changed: Iterable[str], order: Sequence[str]) -> dict[str, str]:
    """Changes by field: ``{'asset': 's001-s016', 'film': 'segments'}``."""
    by_field: dict[str, list[str]] = {}
    film: list[str] = []
    for name in changed:
        subject, _, field = name.partition(".")
        if field in QUIET_FIELDS:
            continue
        if subject == "film":
            film.append(field)
        else:
            by_field.setdefault(field, []).append(subject)
    out = {field: ranges(ids, order) for field, ids in sorted(by_field.items())}
    if film:
        out["film"] = ",".join(film)
    return out


def call_rows(calls: Sequence[Call]) -> list[dict[str, Any]]:
    """The orchestrator's calls so far, one short row each. A budget of at most 50 calls bounds the list."""
    fate: dict[int, Call] = {}
    for call in calls:
        fate[call.orchestrator_call] = call
    rows: list[dict[str, Any]] = []
    own = [c for c in calls if c.orchestrator_call == c.call_index]
    for place, call in enumerate(own):
        last = fate[call.call_index]
        row: dict[str, Any] = {"call": call.call_index, "tool": clip(call.tool or "?", 40), "status": last.observation.status.value}
        if call.output.arguments_json:
            row["arguments"] = clip(call.output.arguments_json, ARGUMENT_CHARS if place >= len(own) - RECENT_CALLS else OLD_ARGUMENT_CHARS)
        if last.observation.blockers:
            row["status"] = "refused"
            row["codes"] = sorted({b.code.value for b in last.observation.blockers})
        if call.output.provenance is Provenance.RUNTIME:
            row["by"] = "runtime"
        rows.append(row)
    return rows


def relevant_shots(state: ProductionState, calls: Sequence[Call]) -> list[str]:
    """Shots worth showing, in film order.

    A first observation shows all (:data:`MAX_FIRST_ROWS` at most). Later ones show those that the latest observation names, those it
    changed, those with open defects, then some that lack a product (:data:`MAX_ROWS` at most, :data:`MAX_LACKING_ROWS` of the last kind).
    """
    order = state.film.shot_order
    if not calls:
        return list(order[:MAX_FIRST_ROWS])
    wanted: dict[str, None] = {}
    latest = calls[-1].observation
    for blocker in latest.blockers:
        wanted.update(dict.fromkeys(_SHOT_ID.findall(blocker.subject + " " + blocker.message)))
    named = [name.partition(".") for name in latest.changed]
    wanted.update(dict.fromkeys(subject for subject, _, field in named if subject != "film" and field not in QUIET_FIELDS))
    wanted.update(dict.fromkeys(sid for sid in order if state.shots[sid].open_defects))
    lack: dict[str, None] = {}
    for fact in (Fact.ASSETS, Fact.NARRATION, Fact.DECORATIONS, Fact.RENDERS):
        lack.update(dict.fromkeys(facts.lacking(fact, state)))
    known = [sid for sid in wanted if sid in state.shots][:MAX_ROWS]
    spare = [sid for sid in lack if sid in state.shots and sid not in known][: min(MAX_LACKING_ROWS, MAX_ROWS - len(known))]
    chosen = {*known, *spare}
    return [sid for sid in order if sid in chosen]


def named_shots(value: Any, state: ProductionState) -> list[str]:
    """Ids of existing shots that occur anywhere in a request's evidence, in film order."""
    found: set[str] = set()
    _collect(value, found)
    return [sid for sid in state.film.shot_order if sid in found]


def _collect(value: Any, found: set[str]) -> None:
    if isinstance(value, str):
        if _SHOT_ID.fullmatch(value):
            found.add(value)
    elif isinstance(value, dict):
        for key, item in value.items():
            _collect(key, found)
            _collect(item, found)
    elif isinstance(value, list | tuple):
        for item in value:
            _collect(item, found)


def tool_views(registry: Registry) -> dict[str, dict[str, Any]]:
    """Offered tools: what they need, what they make, whom they ask, and their arguments."""
    return {
        c.name: {
            "needs": [f.value for f in c.needs],
            "produces": [f.value for f in c.produces],
            "asks": [r.value for r in c.roles],
            "args": {a.name: a.model_dump(mode="json", exclude_none=True, exclude={"name", "description"}) for a in c.args},
        }
        for c in registry.contracts()
    }


def repairs_left(state: ProductionState, config: ReplayConfig) -> int:
    """How many repair calls the run still has."""
    return max(0, config.run_repairs - state.film.repairs_used)
